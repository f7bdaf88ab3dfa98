"""A forecast is from what was measured on such a device, or says that it does not know; a record holds its memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statetrack.cli import forecasts, main
from statetrack.results import Store, history
from statetrack.results.history import Measured
from statetrack.results.pace import POWER
from statetrack.results.plans import PlannedCell
from statetrack.sweeps import Options, from_blocks
from statetrack.sweeps.forecast import (
    LIKE,
    OTHERS,
    SAME_MODEL,
    SAME_TASK,
    Evidence,
    Guess,
    Where,
    forecast,
    memory_of,
    seconds_of,
    took_by,
    where,
)
from statetrack.training import memory, train
from statetrack.training.memory import OF_PROCESS, PeakMemory

HERE = Where("a processor", workers=2)
QUICK = {"check_every": 5, "most_checks": 1, "polish": 0, "batch": 4, "warmup": 0, "validation_rows": 16, "words": 0}
SHORT = {name: value for name, value in QUICK.items() if name != "words"}


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings folder that knows nothing yet."""
    monkeypatch.setenv("STATETRACK_CONFIG", str(tmp_path / "settings"))
    return tmp_path / "settings"


def planned(
    *lengths: int, subject: str = "mlp[hidden=4]", task: str = "txc", seeds: int = 2, **more: Any
) -> list[PlannedCell]:
    block = {"tasks": [task], "subjects": [subject], "lengths": list(lengths), "seeds": seeds, "settings": QUICK | more}
    return list(from_blocks("few", [block]).entries)


def took(entry: PlannedCell, seconds: float, device: str = "a processor", **more: Any) -> Measured:
    cell = entry.cell
    held = Measured(device=device, task=cell.task, subject=cell.subject, length=cell.length, siblings=cell.siblings,
                    cost=entry.cost, seconds=seconds, step=4 * cell.length)  # fmt: skip
    return replace(held, **more)


def test_cells_like_it_come_before_others_and_those_before_a_guess() -> None:
    asked, other_seed = planned(8)
    longer, much_longer = planned(64, 512, seeds=1)
    (elsewhere,) = planned(8, task="rtc", seeds=1)
    (another,) = planned(8, subject="gru[hidden=4]", seeds=1)
    known = [took(another, 100.0)]
    scaled = 100.0 * (asked.cost / another.cost) ** POWER
    assert seconds_of(asked, Evidence(known)) == Guess(pytest.approx(scaled), OTHERS, 1)
    known.append(took(elsewhere, 50.0))
    assert seconds_of(asked, Evidence(known)) == Guess(pytest.approx(50.0), SAME_MODEL, 1)  # as costly as this one
    known += [took(longer, 30.0), took(much_longer, 300.0)]
    scaled = 30.0 * (asked.cost / longer.cost) ** POWER  # the nearer of the two
    assert seconds_of(asked, Evidence(known)) == Guess(pytest.approx(scaled), SAME_TASK, 1)
    known += [took(other_seed, 2.0), took(other_seed, 4.0)]
    assert seconds_of(asked, Evidence(known)) == Guess(3.0, LIKE, 2)
    (streamed,) = planned(8, seeds=1, stream=65536)
    assert seconds_of(streamed, Evidence(known)).source == SAME_TASK  # type: ignore[union-attr]
    assert seconds_of(asked, Evidence([])) is None


def test_the_pace_of_one_language_model_says_nothing_of_another_or_of_training() -> None:
    (trained,) = planned(8, seeds=1)
    block = {"tasks": ["txc"], "subjects": ["ask:none random"], "lengths": [4], "seeds": 1, "protocol": "ask"}
    asked = from_blocks("asked", [block]).entries[0]
    evidence = Evidence([took(trained, 9.0), took(asked, 2.0, device="", subject="another model", siblings="other")])
    assert seconds_of(asked, evidence) is None
    assert seconds_of(trained, Evidence([took(asked, 2.0, device="")])) is None
    assert seconds_of(asked, Evidence([took(asked, 2.0, device="")])) == Guess(2.0, LIKE, 1)


def test_memory_is_the_most_that_was_seen_and_else_grows_with_the_step() -> None:
    asked, other = planned(8)
    (longer,) = planned(32, seeds=1)
    (another,) = planned(8, subject="gru[hidden=4]", seeds=1)
    known = [took(other, 1.0, memory=5000), took(other, 1.0, memory=7000), took(another, 1.0, memory=1)]
    assert memory_of(asked, 1, Evidence(known)) == Guess(7000.0, LIKE, 2)
    assert memory_of(asked, 4, Evidence(known)) == Guess(28000.0, SAME_TASK, 2)  # four seeds side by side
    assert memory_of(longer, 1, Evidence(known)) == Guess(28000.0, SAME_TASK, 2)  # four times the tokens
    assert memory_of(asked, 1, Evidence([took(another, 1.0, memory=1)])) is None
    assert memory_of(asked, 1, Evidence([took(other, 1.0)])) is None


def test_a_forecast_counts_what_is_left_and_how_workers_share_it(tmp_path: Path) -> None:
    sweep = from_blocks("few", [{"tasks": ["txc"], "subjects": ["mlp[hidden=4]", "gru[hidden=4]"], "lengths": [8],
                                 "seeds": 3, "settings": QUICK}])  # fmt: skip
    ahead = forecast(sweep, None, HERE)
    assert (ahead.left, ahead.unknown, ahead.seconds, ahead.memory) == (6, 6, 0.0, None)
    history.note(took(sweep.entries[0], 4.0, memory=100))
    history.note(took(sweep.entries[-1], 1.0, device="another processor"))  # of that nothing is taken
    ahead = forecast(sweep, None, HERE)
    gru = 4.0 * (sweep.entries[-1].cost / sweep.entries[0].cost) ** POWER
    assert ahead.seconds == pytest.approx(12 + 3 * gru)
    assert ahead.memory is None  # that of the gru is not known
    history.note(took(sweep.entries[-1], 1.0, memory=30))
    ahead = forecast(sweep, None, HERE)
    # The costliest first, whatever they took: 1, 1, 4 | 1, 4, 4; and the two largest at once.
    assert (ahead.seconds, ahead.clock, ahead.memory) == (15.0, 9.0, 200.0)
    assert forecast(sweep, None, replace(HERE, workers=None)).clock is None


def test_records_of_the_folder_count_and_what_is_there_is_not_forecast(tmp_path: Path, settings: Path) -> None:
    done = train("txc", "mlp[hidden=4]", length=8, seed=0, settings=SHORT, words=0, out=tmp_path / "out", device="cpu")
    (settings / history.NAME).unlink()  # so that the folder alone tells
    sweep = from_blocks("few", [{"tasks": ["txc"], "subjects": ["mlp[hidden=4]"], "lengths": [8, 16], "seeds": 2,
                                 "settings": QUICK}])  # fmt: skip
    store = Store(tmp_path / "out")
    ahead = forecast(sweep, store, Where(history.processor()))
    assert [(kind.left, kind.there, kind.seconds.source) for kind in ahead.kinds] == [(1, 1, LIKE), (2, 0, SAME_TASK)]  # type: ignore[union-attr]
    assert ahead.by_key[sweep.entries[1].cell.key] == pytest.approx(took_by(done.record).seconds)  # type: ignore[union-attr]
    assert done.cell.key not in ahead.by_key
    assert ahead.memory is not None
    assert forecast(sweep, store, Where("NVIDIA H200", gpu=True)).unknown == 3  # another device


def test_the_history_is_small_and_passes_by_what_it_did_not_write(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = planned(8)[0]
    history.note(took(entry, 1.5, memory=7))
    path = settings / history.NAME
    assert list(history.noted()) == [took(entry, 1.5, memory=7)]
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{\n[]\n" + json.dumps({"device": "x"}) + "\n" + path.read_text() + "\xff")
    assert list(history.noted()) == [took(entry, 1.5, memory=7)]
    monkeypatch.setattr(history, "MOST_BYTES", 4000)
    for number in range(100):
        history.note(took(entry, float(number + 1)))
    assert path.stat().st_size <= 4000
    kept = [each.seconds for each in history.noted()]
    assert kept == [float(number) for number in range(101 - len(kept), 101)]  # the last ones
    assert len(kept) > 5
    monkeypatch.setenv("STATETRACK_CONFIG", str(path))  # a file: nothing can be kept there
    history.note(took(entry, 1.0))
    assert list(history.noted()) == []


def test_a_record_holds_the_peak_of_its_memory_and_the_history_what_it_took(settings: Path) -> None:
    record = train("txc", "mlp[hidden=4]", length=8, settings=SHORT, words=0).record
    assert record.training.peak_memory_of == (OF_PROCESS if not torch.cuda.is_available() else memory.ON_GPU)
    assert record.training.peak_memory is not None
    (noted,) = history.noted()
    assert noted == took_by(record)
    assert (noted.subject, noted.seconds, noted.memory) == (
        "mlp[hidden=4]",
        record.seconds,
        record.training.peak_memory,
    )
    cost = planned(8, seeds=1)[0].cost
    assert noted.cost == cost  # as a plan weighs it


def test_the_peak_is_that_of_what_is_held_at_one_time() -> None:
    """Also after something larger, and without what the process held before; as pages are counted, not to the byte."""
    held = torch.ones(2**24)  # 64 MiB
    for mebibytes in (256, 32):
        peak = PeakMemory(torch.device("cpu"))
        if peak.kind != OF_PROCESS:
            pytest.skip("this system does not tell how much a process grows")
        torch.ones(mebibytes * 2**18)
        found = peak.read()
        assert found is not None
        assert mebibytes * 0.9 <= found / 2**20 <= mebibytes * 1.3
    assert held[0] == 1


def test_a_system_that_does_not_tell_is_not_guessed_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PROCESS", tmp_path / "nowhere")
    peak = PeakMemory(torch.device("cpu"))
    assert (peak.read(), peak.kind) == (None, "")


def test_where_a_sweep_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetrack.sweeps.forecast.count_gpus", lambda: 0)
    monkeypatch.setattr("statetrack.sweeps.local.count_gpus", lambda: 0)
    assert where(Options(workers=3)) == Where(history.processor(), workers=3)
    assert where(Options(workers=0, together=4)) == Where(history.processor(), workers=1, together=4)
    assert where(Options(ray="auto")).workers is None
    assert where(Options(device="cuda")) == Where("a GPU that is not here", True, None, None, 8)
    monkeypatch.setattr("statetrack.sweeps.forecast.count_gpus", lambda: 2)
    monkeypatch.setattr("statetrack.sweeps.local.count_gpus", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "NVIDIA X")
    assert where(Options()) == Where("NVIDIA X", True, workers=8, sharing=4, together=8)
    assert where(Options(device="cpu", workers=2)) == Where(history.processor(), workers=2)


def test_a_dry_run_says_what_it_knows_and_the_run_what_it_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ", ".join(f"{name}: {value}" for name, value in QUICK.items())
    text = f"{{tasks: [txc], subjects: ['mlp[hidden=4]'], lengths: [8, 16], seeds: 2, settings: {{{settings}}}}}"
    (tmp_path / "few.yaml").write_text(text)
    words = ["sweep", str(tmp_path / "few.yaml"), "--out", str(tmp_path / "out"), "--workers=0", "--device=cpu"]
    assert main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "4 cells to do: how long is not known, as no such cell was measured here before\n" in shown
    assert "not known" in shown
    assert not (tmp_path / "out").exists()
    assert main(words) == 0
    assert "forecast" not in capsys.readouterr().out  # there was none
    assert main([*words, "--dry-run"]) == 0
    assert "forecast: nothing is left to do\n" in capsys.readouterr().out
    assert main([*words[:2], "--dry-run"]) == 0  # without a folder nothing is done yet
    assert "4 cells to do: about " in capsys.readouterr().out
    assert main(words[:2]) == 2
    assert "--out is missing" in capsys.readouterr().err
    again = [*words[:3], str(tmp_path / "again"), *words[4:]]
    assert main([*again, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"forecast for {history.processor()}, from what cells took there before" in shown
    assert shown.count("2 cells like it") == 2
    assert "4 cells to do: about " in shown
    assert " of work, " in shown
    assert " with 1 worker\n" in shown
    assert "memory: at most about " in shown
    assert main(again) == 0
    assert " of work, took " in capsys.readouterr().out


def test_forecast_and_truth_are_compared_over_the_cells_that_both_know() -> None:
    sweep = from_blocks("few", [{"tasks": ["txc"], "subjects": ["mlp[hidden=4]"], "lengths": [8], "seeds": 3,
                                 "settings": QUICK}])  # fmt: skip
    history.note(took(sweep.entries[0], 10.0))
    ahead = forecast(sweep, None, HERE)
    keys = [entry.cell.key for entry in sweep.entries]
    assert forecasts.compared(ahead, {}) is None
    assert (
        forecasts.compared(ahead, {keys[0]: 12.0, keys[1]: 12.0}) == "forecast 20 s of work, took 24 s: 1.20 times that"
    )
    told = forecasts.compared(ahead, {keys[0]: 5.0, "another": 7.0})
    assert told == "forecast of 1 of them 10 s of work, took 5 s: 0.50 times that"
