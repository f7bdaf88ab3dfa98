"""Training and evaluating come apart: a stream that is asked for later is measured on the weights that were kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Cell, Store, TrainingRecord, status
from statetrack.results.records import Training
from statetrack.sweeps import Options, from_blocks, run
from statetrack.training import loop, train, train_many
from statetrack.training import run as training

SHORT = {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 4, "warmup": 0, "validation_rows": 16}
MODEL = "gru[dim=4,hidden=8]"


def block(seeds: int = 1, **settings: object) -> list[dict[str, object]]:
    return [{"tasks": ["txc"], "subjects": [MODEL], "lengths": [4], "seeds": seeds, "settings": SHORT | settings}]


def kept(folder: Path, cell: Cell) -> TrainingRecord:
    record = Store(folder).read(cell)
    assert isinstance(record, TrainingRecord)
    return record


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop.Stepper, "__call__", None)  # a step would fail


def untimed(record: TrainingRecord) -> TrainingRecord:
    """Without what the clock and the memory of the process say."""
    how: Training = replace(record.training, train_seconds=None, tokens_per_second=None, peak_memory=None)
    return replace(record, seconds=None, evaluation_seconds=None, training=how)


def test_train_and_a_sweep_leave_the_same_record(tmp_path: Path) -> None:
    result = train("txc", MODEL, length=4, settings=SHORT, stream=2048, out=tmp_path / "train", device="cpu")
    (cell,) = from_blocks("one", block(stream=2048)).cells
    run(from_blocks("one", block(stream=2048)), tmp_path / "sweep", Options(workers=0, device="cpu"))
    one, two = kept(tmp_path / "train", cell), kept(tmp_path / "sweep", cell)
    assert untimed(one) == untimed(two)
    assert one == result.record
    assert one.seconds is not None
    assert two.seconds is not None
    assert vars(one).keys() == vars(two).keys()
    names = [sorted(path.name for path in (tmp_path / place).glob("[!.]*")) for place in ("train", "sweep")]
    assert names[0] == names[1] == [f"{cell.key}.json", f"{cell.key}.safetensors"]


def test_a_stream_asked_for_later_is_measured_on_the_kept_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train("txc", MODEL, length=4, settings=SHORT, stream=2048, device="cpu").record
    first = train("txc", MODEL, length=4, settings=SHORT, out=tmp_path, device="cpu")
    assert first.record.streams == []
    monkeypatch.setattr(loop.Stepper, "__call__", None)
    later = train("txc", MODEL, length=4, settings=SHORT, stream=2048, out=tmp_path, device="cpu")
    assert later.cell == first.cell
    assert later.record.training == first.record.training
    assert later.record.evaluations == (*first.record.evaluations, *whole.streams)
    assert kept(tmp_path, first.cell) == later.record
    again = train(
        "txc", MODEL, length=4, settings=SHORT, stream=1024, out=tmp_path, device="cpu"
    )  # a mark of the other
    assert again.record == later.record
    assert again.found


def test_without_weights_it_is_trained_again_and_the_user_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = train("txc", MODEL, length=4, settings=SHORT, stream=1024, out=tmp_path, device="cpu")
    Store(tmp_path).path(first.cell, "safetensors").unlink()
    told: list[str] = []
    later = train("txc", MODEL, length=4, settings=SHORT, stream=2048, out=tmp_path, device="cpu", warn=told.append)
    why = f"no weights are kept: {first.cell.key}.safetensors is not there"
    assert told == [f"{first.cell}: {why}; so it is trained again for its stream"]
    assert [stream.steps for stream in later.record.streams] == [1024, 2048]  # what it had is measured again
    assert untimed(later.record).training == untimed(first.record).training
    assert Store(tmp_path).weights(first.cell) is not None


@pytest.mark.usefixtures("no_training")
def test_a_folder_of_0_1_0_with_weights_is_evaluated_further(tmp_path: Path) -> None:
    """Three networks that 0.1.0 trained and streamed."""
    for path in (Path(__file__).parents[1] / "diagnosis" / "weights").glob("dfe5*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ((_, before),) = Store(tmp_path).entries()
    assert isinstance(before, TrainingRecord)
    cell, steps = before.cell, max([0, *(stream.steps for stream in before.streams)])
    rules = {key: value for key, value in cell.protocol.items() if key not in ("name", "stream")}
    after = train(
        cell.task, cell.subject, length=cell.length, seed=cell.seed, protocol=cell.protocol["name"],
        settings=rules, stream=2 * steps + 1024, out=tmp_path, device="cpu",
    ).record  # fmt: skip
    assert after.evaluations[:-1] == before.evaluations
    assert after.streams[-1].steps == 2 * steps + 1024


def test_a_sweep_that_asks_for_more_does_only_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, more = from_blocks("one", block(2)), from_blocks("one", block(2, stream=2048))
    assert [cell.key for cell in plain.cells] == [cell.key for cell in more.cells]
    both = from_blocks("one", block(2) + block(2, stream=2048) + block(1, stream=1024))
    assert [entry.streams for entry in both.entries] == [(1024, 2048), (2048,)]
    run(plain, tmp_path, Options(workers=0, device="cpu"))
    monkeypatch.setattr(loop.Stepper, "__call__", None)
    tally = run(more, tmp_path, Options(workers=0, device="cpu"))
    assert (tally.found, tally.finished) == (0, 2)
    assert all(not kept(tmp_path, cell).lacks([2048]) for cell in plain.cells)
    assert run(more, tmp_path, Options(workers=0, device="cpu")).found == 2
    assert run(plain, tmp_path, Options(workers=0, device="cpu")).found == 2


def test_what_lacks_a_stream_is_missing_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = "\n".join(f"  {key}: {value}" for key, value in SHORT.items())
    text = f"tasks: [txc]\nsubjects: ['{MODEL}']\nlengths: [4]\nsettings:\n{settings}\n"
    (tmp_path / "one.yaml").write_text(text)
    arguments = [
        "sweep",
        str(tmp_path / "one.yaml"),
        "--out",
        str(tmp_path / "out"),
        "--workers",
        "0",
        "--device",
        "cpu",
    ]
    assert main([*arguments, "--no-weights"]) == 0
    (tmp_path / "one.yaml").write_text(text + "  stream: 1024\n")
    assert main([*arguments, "--dry-run"]) == 0
    assert main([*arguments, "--limit-seconds", "0.000001"]) == 1
    assert status(Store(tmp_path / "out")).counts["missing"] == 1
    capsys.readouterr()
    assert main(arguments) == 0
    told = capsys.readouterr().err
    assert "1 finished cell: a stream is asked for, and no weights were kept; trained again" in told
    assert status(Store(tmp_path / "out")).counts["missing"] == 0


class Killed(BaseException):
    pass


def test_a_sweep_killed_between_two_seeds_goes_on_from_their_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed is kept then. The others are neither trained again nor left behind."""
    sweep, honest, measured = from_blocks("three", block(3)), training.measure, []

    def killed_at_the_second(job, cell, *rest):
        if measured:
            raise Killed
        measured.append(cell)
        return honest(job, cell, *rest)

    monkeypatch.setattr(training, "measure", killed_at_the_second)
    with pytest.raises(Killed):
        run(sweep, tmp_path, Options(workers=0, device="cpu", together=3))
    assert [path.stem for path in tmp_path.glob("*.json")] == [measured[0].key]
    monkeypatch.setattr(training, "measure", honest)
    monkeypatch.setattr(loop.Stepper, "__call__", None)
    tally = run(sweep, tmp_path, Options(workers=0, device="cpu", together=3))
    assert (tally.found, tally.finished) == (1, 3)
    assert list((tmp_path / ".sweep" / "work").glob("*")) == []


def test_seeds_of_one_call_may_lack_different_things(tmp_path: Path) -> None:
    train_many("txc", MODEL, length=4, seeds=[0], settings=SHORT, out=tmp_path, device="cpu")
    train_many("txc", MODEL, length=4, seeds=[1], settings=SHORT, stream=1024, out=tmp_path, device="cpu")
    results = train_many(
        "txc", MODEL, length=4, seeds=[2, 1, 0], settings=SHORT, stream=1024, out=tmp_path, device="cpu"
    )
    assert [result.cell.seed for result in results] == [2, 1, 0]
    assert [result.record.lacks([1024]) for result in results] == [[], [], []]
    assert [result.found for result in results] == [False, True, True]
    assert [result.trained is None for result in results] == [False, True, False]


def test_weights_of_another_training_are_not_measured(tmp_path: Path) -> None:
    """As a copied file, or a run that was killed before its record, may leave them; their diagnosis goes as well."""
    first = train("txc", MODEL, length=4, settings=SHORT, out=tmp_path, device="cpu").record
    Store(tmp_path).write(replace(first, training=replace(first.training, final_train_loss=0.25)))
    (tmp_path / "diagnosis").mkdir()
    (tmp_path / "diagnosis" / f"{first.cell.key}.json").write_text("{}")
    told: list[str] = []
    later = train("txc", MODEL, length=4, settings=SHORT, stream=1024, out=tmp_path, device="cpu", warn=told.append)
    assert "holds the weights of another training of this cell; so it is trained again" in told[0]
    assert untimed(later.record).training == untimed(first).training
    assert not list((tmp_path / "diagnosis").iterdir())


def test_a_cell_whose_weights_are_damaged_does_not_keep_others_from_theirs(tmp_path: Path) -> None:
    run(from_blocks("two", block(2)), tmp_path, Options(workers=0, device="cpu"))
    first, second = from_blocks("two", block(2)).cells
    Store(tmp_path).path(first, "safetensors").write_bytes(b"junk")
    before = kept(tmp_path, second)
    tally = run(from_blocks("two", block(2, stream=1024)), tmp_path, Options(workers=0, device="cpu", together=2))
    assert tally.counts == {"done": 2}
    assert kept(tmp_path, second).training == before.training  # it was only evaluated


def test_without_weights_none_of_an_earlier_training_stay(tmp_path: Path) -> None:
    sweep = from_blocks("one", block())
    run(sweep, tmp_path, Options(workers=0, device="cpu"))
    Store(tmp_path).path(sweep.cells[0]).write_text("{")
    run(sweep, tmp_path, Options(workers=0, device="cpu", weights=False))
    assert Store(tmp_path).weights(sweep.cells[0]) is None


def test_a_model_that_cannot_be_streamed_is_not_trained_again_to_say_so(tmp_path: Path) -> None:
    own = {"length": 4, "settings": SHORT, "out": tmp_path, "device": "cpu"}
    model = "transformer[dim=8,layers=1,heads=1]"
    first = train("txc", model, stream=1024, **own)
    assert first.record.streams[0].never
    assert train("txc", model, stream=4096, **own).record == first.record


@pytest.mark.parametrize("steps", ["2048", "2.048e3", 2048.0])
def test_numbers_of_a_file_may_be_written_in_any_way(steps: object) -> None:
    (entry,) = from_blocks("one", block(stream=steps, batch="8")).entries
    assert entry.streams == (2048,)
    assert entry.cell.protocol["batch"] == 8


def test_true_is_no_number_of_steps() -> None:
    with pytest.raises(BadInput, match="stream True should lie in"):
        from_blocks("one", block(stream=True))
