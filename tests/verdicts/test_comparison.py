"""What compares the cells of a folder: forms side by side, and the patterns that the design document expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statetrack.asking import Rules, dialogue, play, solver
from statetrack.asking.run import cell as ask_cell
from statetrack.results import AskedRecord, Cell, Store, TrainingRecord
from statetrack.results.diagnosis import ASKED, NO_WEIGHTS, NOT_DONE, NOT_YET, Diagnosis, comparison, left_out
from statetrack.results.evaluations import OnRows
from statetrack.results.records import FAILED, Training, no_result
from statetrack.tasks import task
from statetrack.verdicts.ablations import ComparedCell, ablations, family
from statetrack.verdicts.comparison import compare, compare_again
from statetrack.verdicts.patterns import is_e88, is_e88_without_tanh, is_linear, is_mamba, patterns


def cell(subject: str, seed: int, task: str = "txc") -> Cell:
    return Cell(task, subject, 64, seed, {"name": "curriculum"})


def seen(
    subject: str, curve: list[float], *, gradient: float = 1.0, held: float = 1.0, seeds: int = 5,
) -> list[ComparedCell]:  # fmt: skip
    """Seeds with this accuracy by quarter, this factor of the gradient and this R^2 of the count."""
    by_position: list[float | None] = [value for value in curve for _ in range(16)]
    training = Training(learning_rate=1e-3, steps=1, parameters=1)
    sections: dict[str, Any] = {
        "gradient": {"per_step": gradient}, "error": {"measured": {"at_90": {"length": 100}}},
        "probe": {"position": [8, 64], "count": {"score": [1.0, held]}},
        "eigenvalues": {"symbols": [{"largest": 0.9}]},
    }  # fmt: skip
    diagnosis = Diagnosis(
        task="txc", model=subject, trained=64, length=64, seed=0, conclusion="fades", sentences=[], seconds=0.0,
        sections=sections,
    )  # fmt: skip
    made = []
    whole = sum(curve) / 4
    for seed in range(seeds):
        rows = OnRows(
            length=64, seed=seed, rows=1024, accuracy=whole, tail_accuracy=curve[-1], floor=0.5,
            interval=[max(0.0, whole - 0.004), min(1.0, whole + 0.004)], accuracy_by_position=by_position,
        )  # fmt: skip
        record = TrainingRecord(cell=cell(subject, seed), training=training, evaluations=(rows,))
        made.append(ComparedCell(record, diagnosis))
    return made


def controls(subject: str) -> list[ComparedCell]:
    """The same training solves parity at 4 and the flip-flop at 64."""
    made = []
    for name, length in (("txc", 4), ("flip_flop", 64)):
        rows = OnRows(length=length, seed=0, rows=1024, accuracy=1.0, interval=[0.996, 1.0], tail_accuracy=1.0,
                      floor=0.5)  # fmt: skip
        place = Cell(name, subject, length, 0, {"name": "curriculum"})
        how = Training(learning_rate=1e-3, steps=1, parameters=1)
        made.append(ComparedCell(TrainingRecord(cell=place, training=how, evaluations=(rows,))))
    return made


def outcome(key: str, cells: list[ComparedCell], subject: str) -> str:
    here = {"key": key, "subject": subject, "task": "txc", "length": 64}
    return next(each["outcome"] for each in patterns(cells) if here.items() <= each.items())


def test_patterns_are_judged_by_their_rules() -> None:
    e88, bare, mamba, line = "e88-1l", "e88-1l-notanh", "mamba2-4l", "linear-rnn"
    assert outcome("6.1-e88", seen(e88, [1, 1, 1, 0.99]), e88) == "confirmed"
    assert outcome("6.1-e88", seen(e88, [1, 1, 1, 0.9]), e88) == "refuted"
    assert outcome("6.1-e88", seen(e88, [1, 1, 1, 0.9], seeds=3), e88) == "undecided"
    assert outcome("6.1-e88", seen(e88, [0.5, 0.5, 0.5, 0.5]), e88) == "undecided"  # a guess is as flat
    falling, chance = seen(mamba, [0.9, 0.8, 0.7, 0.6]), seen(line, [0.5] * 4)
    assert outcome("6.1-mamba", falling, mamba) == "undecided"  # training not shown adequate
    assert outcome("6.1-mamba", [*falling, *controls(mamba)], mamba) == "confirmed"
    assert outcome("6.1-mamba", seen(mamba, [0.9] * 4), mamba) == "refuted"
    assert outcome("6.1-linear", chance, line) == "undecided"
    assert outcome("6.1-linear", seen(line, [0.7, 0.5, 0.5, 0.5]), line) == "refuted"
    assert outcome("6.2-e88", seen(e88, [1] * 4, gradient=0.99), e88) == "confirmed"  # .99^64 = .53
    assert outcome("6.2-e88", seen(e88, [1] * 4, gradient=0.9), e88) == "refuted"
    assert outcome("6.2-mamba", seen(mamba, [1] * 4, gradient=0.9), mamba) == "confirmed"
    assert outcome("6.2-mamba", seen(mamba, [1] * 4, gradient=0.99), mamba) == "refuted"
    both = [*seen(e88, [1] * 4), *seen(mamba, [1] * 4)]
    assert outcome("6.3", both, e88) == "confirmed"
    assert outcome("6.3", [*seen(e88, [1] * 4, held=0.2), *seen(mamba, [1] * 4)], e88) == "refuted"
    assert outcome("6.3", seen(e88, [1] * 4), e88) == "undecided"  # nothing to compare with
    alike = [*seen(bare, [0.5] * 4), *seen(mamba, [0.52] * 4)]
    assert outcome("6.4", alike, bare) == "undecided"
    assert outcome("6.4", [*alike, *controls(bare)], bare) == "confirmed"
    assert outcome("6.4", [*seen(bare, [1] * 4), *seen(mamba, [0.5] * 4)], bare) == "refuted"


def test_section_6_has_both_verdicts_where_the_folder_was_planned_under_the_first_rules() -> None:
    """Three seeds decided under rules 1, and decide no rate. The argument stands beside it, and decides nothing."""
    cells = seen("e88-1l", [1] * 4, gradient=0.99, seeds=3)
    (now,) = [each for each in patterns(cells) if each["key"] == "6.2-e88"]
    assert (now["outcome"], now["before"]) == ("undecided", "")
    (both,) = [each for each in patterns(cells, 1) if each["key"] == "6.2-e88"]
    assert (both["outcome"], both["before"]) == ("undecided", "confirmed")
    assert "at least 2 more seeds needed" in both["why"]
    assert both["remark"].startswith("Where tanh is saturated")
    assert [each["outcome"] for each in patterns([]) if each["key"] == "6.2-e88"] == ["undecided"]


def test_ablations_stand_side_by_side() -> None:
    forms = ["e88-gain-1l-small", "e88-published-1l-small", "e88-1l-small"]
    (table,) = ablations([one for name in forms for one in seen(name, [1, 1, 1, 1 if "-1l" in name else 0.5])])
    assert [row["form"] for row in table["forms"]] == ["full", "no gain", "no delta"]
    assert table["missing"] == ["e88-gain-1l-small-notanh"]
    assert table["forms"][0]["seeds"] == [0, 1, 2, 3, 4]
    assert family("e88-gain-4l-notanh") == ("e88-gain-4l", "no tanh")
    assert family("e88-1l[tanh=false,dim=32]") == ("e88-gain-1l[dim=32]", "no delta, no tanh")
    assert family("e88-gain-r2") is None
    assert family("mamba2-4l") is None
    assert ablations(seen("mamba2-4l", [1] * 4)) == []


def test_every_cell_is_compared_or_left_out_with_its_code(tmp_path: Path) -> None:
    """An asked cell has no state to look at, whatever its subject is called."""
    store, the_task, rules = Store(tmp_path / "cells"), task("txc"), Rules()
    waiting, bare = (one.record for one in seen("gru", [1, 1, 1, 1], seeds=2))
    store.write(waiting)
    store.path(waiting.cell, "safetensors").write_bytes(b"")
    store.write(bare)
    store.write(no_result(broken := cell("lstm", 0), FAILED, "it fell over"))
    asked = ask_cell(the_task, rules, solver("oracle"), "", 0, 4)
    store.write(
        AskedRecord(cell=asked, episode=play(dialogue(the_task, rules, 0, 4), lambda _: "[answer: 0]").record())
    )
    compare_again(store)
    written = comparison(store)
    assert written is not None
    assert {each.key: each.code for each in written.left_out} == {
        waiting.cell.key: NOT_YET, bare.cell.key: NO_WEIGHTS, broken.key: NOT_DONE, asked.key: ASKED,
    }  # fmt: skip
    assert written == compare(store, written.left_out)
    named = left_out(waiting.cell, "it was not wanted", "")
    assert compare(store, [named]).left_out == [named]


def test_a_comparison_without_any_cell_is_whole(tmp_path: Path) -> None:
    found = compare(Store(tmp_path / "cells"))
    assert (found.cells, found.left_out, found.ablations) == ([], [], [])
    assert len(found.patterns) == 7


def test_whom_a_pattern_speaks_of_is_what_the_model_is_and_not_what_it_is_called() -> None:
    assert is_mamba("mamba2-12l")
    assert is_mamba("mamba2-4l-neg[negative=false]")
    assert not is_mamba("mamba2-4l[negative=true]")
    assert is_linear("linear-rnn[bias=false]")
    assert not is_linear("linear-rnn-of-mine.py:Net")
    assert is_e88("e88-1l-notanh[tanh=true]")
    assert is_e88_without_tanh("e88-gain-1l[tanh=false]")
