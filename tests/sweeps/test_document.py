"""Sweep files: what they expand to, and what is refused before anything runs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from statetrack.errors import BadInput
from statetrack.models.build import read_options
from statetrack.models.catalogue import without_width
from statetrack.models.matching import hollow
from statetrack.results import Cell, Sweep
from statetrack.sweeps import from_blocks, read, shipped, sweep_of
from statetrack.tasks import trusted_task
from statetrack.training import PROTOCOLS, train_many
from tests.sweeps.counted_cells import KINDS

GOOD = """\
name: small
seeds: 2
protocol: design
blocks:
  - tasks: [txc, RTC]
    subjects: [MLP, "gru[hidden=32]"]
    lengths: [8, 16]
    settings: {rates: [1e-3, 3e-3], most_checks: 3}
  - tasks: [txc]
    subjects: [mlp]
    lengths: [8]
    seeds: [1, 5]
    settings: {rates: [1e-3, 3e-3], most_checks: 3}
    note: more seeds
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def test_a_file_is_the_product_of_its_blocks_and_each_cell_stands_once(tmp_path: Path) -> None:
    sweep = read(written(tmp_path, GOOD))
    described = [(cell.task, cell.subject, cell.length, cell.seed) for cell in sweep.cells]
    grid = [
        (t, m, n, s) for t in ("txc", "rtc") for m in ("mlp", "gru[hidden=32]") for n in (8, 16) for s in (0, 1)
    ]  # fmt: skip
    assert described == [*grid, ("txc", "mlp", 8, 5)]  # seed 1 of the second block stands in the first already
    assert [entry.note for entry in sweep.entries] == [""] * 16 + ["more seeds"]
    assert sweep.cells[0].protocol["rates"] == [1e-3, 3e-3]  # YAML reads 1e-3 as a text
    assert sweep.cells[0].protocol["batch"] == PROTOCOLS["design"].batch


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("[txc, RTC]", "[TXC, rtc]"),
        ("MLP", "mlp"),
        ("rates: [1e-3, 3e-3], most_checks: 3", "most_checks: 3, rates: [0.001, 0.0030]"),
        ("name: small\nseeds: 2\n", "seeds: [0, 1]\nname: other\n"),
        ("note: more seeds", "note: more of them"),
    ],
)
def test_a_cell_has_the_same_key_however_the_file_writes_it(tmp_path: Path, text: str, same: str) -> None:
    """Otherwise a run would not find what another one left in its folder."""
    assert text in GOOD
    keys = [[cell.key for cell in read(written(tmp_path, each)).cells] for each in (GOOD, GOOD.replace(text, same))]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 17


def test_a_cell_of_a_sweep_is_the_cell_that_training_writes(tmp_path: Path) -> None:
    settings = {"most_checks": 1, "check_every": 1, "batch": 4, "polish": 1}
    (cell,) = from_blocks("one", [{"tasks": ["TXC"], "subjects": ["MLP"], "lengths": [4], "settings": settings}]).cells
    (result,) = train_many("txc", "mlp", length=4, seeds=[0], settings=settings, out=tmp_path / "out", device="cpu")
    assert result.cell == cell
    assert [path.stem for path in (tmp_path / "out").glob("*.json")] == [cell.key]


REFUSED = [
    ("MLP, ", "MLLP, ", "small.yaml, line 6: unknown model 'MLLP'; did you mean mlp"),
    ("txc, RTC", "txc, RTCC", "small.yaml, line 5: unknown task 'RTCC'; did you mean rtc"),
    ("[8, 16]", "[8, none]", "small.yaml, line 7: 'none' in lengths should be a whole number of at least 1"),
    ("[8, 16]", "[8, 0]", "line 7: 0 in lengths should be a whole number of at least 1"),
    ("[8, 16]", "[]", "line 7: lengths should be a list of whole numbers"),
    ("hidden=32", "width=32", "line 6: model gru has no option 'width'"),
    ("hidden=32", "hidden=many", "line 6: hidden"),
    (
        "most_checks: 3}\n  -",
        "most_check: 3}\n  -",
        "line 8: unknown protocol setting 'most_check'; did you mean",
    ),
    ("most_checks: 3}\n  -", "most_checks: few}\n  -", "line 8: most_checks=few should be a whole number in 1.."),
    ("most_checks: 3}\n  -", "most_checks: 0}\n  -", "line 8: most_checks=0 should be a whole number in 1.."),
    (
        "rates: [1e-3, 3e-3], most_checks: 3}\n  -",
        "rates: [fast]}\n  -",
        "line 8: learning rates ['fast'] should be",
    ),
    ("protocol: design", "protocol: desing", "line 3: unknown protocol 'desing'; did you mean design"),
    ("seeds: 2", "seeds: 0", "line 2: 0 in seeds should be a whole number of at least 1"),
    ("seeds: 2", "seeds: -2", "line 2: -2 in seeds should be a whole number of at least 1"),
    ("seeds: 2", "seed: 2", "line 2: unknown key 'seed'; did you mean seeds"),
    ("    lengths: [8]\n", "", "small.yaml, line 9: a block needs lengths"),
    ("note: more seeds", "notes: more", "line 14: unknown key 'notes'; did you mean note"),
    ("note: more seeds", "resources: {cpus: some}", "resources: cpus=some should be a name and a number"),
    ("name: small", "name: ../small", "line 1: name '../small' should be usable as the name of a file"),
    ("blocks:", "blocks: [", "not valid YAML"),
    ("    note: more seeds", "    seeds: 2", "'seeds' appears twice"),
    ("subjects: [mlp]", 'subjects: ["ask:{model} implicit"]', "line 10: 'ask:{model} implicit' needs a model"),
    ("subjects: [mlp]", "subjects: [transformer]\n    lengths: [8, 5000]", "'lengths' appears twice"),
]


@pytest.mark.parametrize(("old", "new", "said"), REFUSED)
def test_what_cannot_be_run_is_refused_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(BadInput) as caught:
        read(written(tmp_path, GOOD.replace(old, new)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_length_beyond_a_models_positions_is_refused() -> None:
    with pytest.raises(BadInput, match=r"sweep long: transformer has \d+ positions; length 999999 does not fit"):
        from_blocks("long", [{"tasks": ["txc"], "subjects": ["transformer"], "lengths": [999_999]}])


MATCHED = [{"tasks": ["s3", "a5"], "subjects": ["gru", "e88-gain-1l"], "lengths": [4], "match": {"parameters": "100k"}}]


def test_a_block_may_ask_for_models_of_one_size() -> None:
    cells = from_blocks("sized", MATCHED).cells
    assert [cell.subject for cell in cells] == [
        "gru[hidden=127]", "e88-gain-1l[dim=48]", "gru[hidden=116]", "e88-gain-1l[dim=45]"
    ]  # fmt: skip
    assert len({cell.key for cell in cells}) == 4
    written_out = [{"tasks": [cell.task], "subjects": [cell.subject], "lengths": [cell.length]} for cell in cells]
    assert from_blocks("sized", written_out).cells == cells  # a cell does not know how its width was chosen
    there = [block | {"match": {"parameters": "100k", "task": "a5"}} for block in MATCHED]
    assert {cell.subject for cell in from_blocks("sized", there).cells} == {"gru[hidden=116]", "e88-gain-1l[dim=45]"}


def test_a_block_may_take_over_another_one_and_change_some_of_it(tmp_path: Path) -> None:
    text = "lengths: [8]\nblocks:\n  - &one {tasks: [txc], subjects: [mlp], note: one}\n  - {<<: *one, tasks: [rtc]}\n"
    sweep = read(written(tmp_path, text))
    assert [(cell.task, cell.subject) for cell in sweep.cells] == [("txc", "mlp"), ("rtc", "mlp")]
    assert [entry.note for entry in sweep.entries] == ["one", "one"]


WRONG_MATCH = [
    ("match: {parameters: many}", "line 8: parameters=many should be a number such as 100k"),
    ("match: 100k", "line 8: match '100k' should say parameters=100k"),
    ("match: {parameters: 300}", "line 6: MLP has no hidden with 300 parameters, within 2%; nearest: "),
    ("match: {parameters: 1k, task: s99}", "line 6: unknown task 's99'"),
    ("settings: {match: 100k}", "line 8: match stands beside settings, and not in them"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_MATCH)
def test_a_wrong_match_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    file = "name: small\ntasks: [txc]\nlengths: [8]\nblocks:\n  - seeds: 1\n    subjects: [MLP]\n\n    " + text
    with pytest.raises(BadInput) as caught:
        read(written(tmp_path, file))
    assert said in str(caught.value)


def test_a_language_model_has_no_width() -> None:
    block = {"tasks": ["s3"], "subjects": ["ask:none random"], "lengths": [4], "protocol": "ask"}
    with pytest.raises(BadInput, match="match is for models that are trained"):
        from_blocks("asked", [block | {"match": {"parameters": "100k"}}])


def test_an_unknown_sweep_has_near_matches() -> None:
    with pytest.raises(BadInput, match=r"unknown sweep or \.yaml file 'desing'; did you mean design"):
        read("desing")


SIZES = {"demo": 25, "for-ever": 168, "groups": 180, "length-generalisation": 141, "regular": 180}
STUDY = {
    "study-pilot": 38, "study-ladder": 1636, "study-reflections": 570, "study-depth": 150, "study-holding": 128,
    "study-1024": 231, "study-batch": 18, "study-questions": 270,
}  # fmt: skip
ASKING = ("permutations", "track-the-stat", "track-the-stat-compat")


@pytest.mark.parametrize("name", SIZES)
def test_shipped_sweeps_expand(name: str) -> None:
    sweep = read(name)
    assert sweep.name == name
    assert len(sweep.cells) == SIZES[name]
    assert sweep.about


@cache
def ladder() -> Sweep:
    return read("study-ladder", rates=1e-3)


@pytest.mark.parametrize("name", STUDY)
def test_the_sweeps_of_the_study_expand_to_what_its_plan_says(name: str) -> None:
    sweep = ladder() if name == "study-ladder" else read(name)
    assert (sweep.name, len(sweep.cells)) == (name, STUDY[name])
    plan = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    assert re.search(rf"`{name}` \|.*\| {STUDY[name]:,} \|", plan)
    assert not any(cell.seed == 1000 for cell in sweep.cells) or name == "study-pilot"


def test_every_shipped_sweep_is_tried_here() -> None:
    assert {*SIZES, *STUDY, *ASKING, "design", "design-full"} == set(shipped())


def test_the_ladder_is_not_run_at_rates_that_no_pilot_chose() -> None:
    with pytest.raises(BadInput, match="the rates are those of a pilot: give --rates"):
        read("study-ladder")
    piloted = {without_width(cell.subject) for cell in read("study-pilot").cells}
    assert piloted == {without_width(cell.subject) for cell in ladder().cells}


def test_the_ladder_has_a_control_for_every_network_that_it_judges() -> None:
    """By the rules of verdicts: the same model, so the same width, at length 4 and on a flip-flop of its symbols."""
    cells = {(cell.task, cell.subject, cell.length) for cell in ladder().cells}
    judged = {(task, subject) for task, subject, length in cells if length == 32 and "composition" in task}
    assert len(judged) == 17 * 7 + 2 * 3
    for task, subject in judged:
        symbols = trusted_task(task).inputs
        flip_flop = "flip_flop" if symbols == 2 else f"flip_flop[symbols={symbols}]"
        assert {(task, subject, 4), (flip_flop, subject, 32)} <= cells


def test_the_ladder_compares_models_of_one_size() -> None:
    seen = set()
    for cell in ladder().cells:
        if (cell.task, cell.subject) not in seen and cell.length == 32 and "composition" in cell.task:
            seen.add((cell.task, cell.subject))
            name, options = read_options(cell.subject)
            task = trusted_task(cell.task)
            assert abs(hollow(name, task.inputs, task.outputs, options).parameter_count - 100_000) <= 2_000


def test_the_design_sweep_holds_what_the_document_asks() -> None:
    cells = read("design").cells
    documents = {"e88-1l", "e88-4l", "mamba2-4l", "mamba2-8l", "mamba2-16l", "mamba2-32l", "linear-rnn", "mlp"}
    short = [cell for cell in cells if cell.length <= 256 and cell.protocol["name"] == "design"]
    for task in ("rtc", "txc", "fsm"):
        for length in (16, 32, 64, 128, 256):
            here = [cell for cell in short if cell.task == task and cell.length == length]
            assert documents <= {cell.subject for cell in here}
            assert all(sum(cell.subject == other.subject for other in here) == 3 for cell in here)
    assert all(len(cell.protocol["rates"]) > 1 for cell in cells if cell.protocol["name"] == "curriculum")
    full = {(cell.task, cell.subject, cell.length) for cell in read("design-full").cells}
    assert {(cell.task, cell.subject, cell.length) for cell in cells} <= full


@pytest.mark.parametrize("name", ["track-the-stat", "permutations"])
def test_sweeps_of_language_models_ask_for_a_model(name: str) -> None:
    assert name in shipped()
    with pytest.raises(BadInput, match="needs a model: --model NAME"):
        read(name)


@given(parts=some.integers(1, 7), count=some.integers(0, 20))
def test_parts_share_nothing_and_leave_nothing_out(parts: int, count: int) -> None:
    cells = [Cell("none", "counted:well", n // 3 + 1, n % 3, {}) for n in range(count)]
    whole = sweep_of("parts", cells, KINDS)
    keys = [cell.key for number in range(parts) for cell in whole.part(number + 1, parts).cells]
    assert sorted(keys) == sorted(cell.key for cell in cells)
