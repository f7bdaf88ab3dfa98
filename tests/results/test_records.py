"""Records: what is written comes back, files of 0.1.0 among them; what is not a record is refused by name."""

from __future__ import annotations

import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import (
    AskedRecord,
    Cell,
    Record,
    Store,
    TrainingRecord,
    merge,
    records,
    seal,
    status,
    unpack,
)
from statetrack.results.curve import Curve
from statetrack.results.evaluations import (
    AllStrings,
    BreakingWord,
    Evaluation,
    OffData,
    OnRows,
    OnStream,
    OnWords,
    Power,
)
from statetrack.results.format_0 import flat
from statetrack.results.plans import PlannedCell, Sweep, save
from statetrack.results.records import EpisodeRecord, RateTried, Training, no_result, unite
from statetrack.results.schema import BadRecord
from statetrack.results.store import add
from statetrack.sweeps import read
from tests.sweeps.counted_cells import made

ARCHIVES = Path(__file__).parents[2] / "docs" / "results"
number = some.floats(allow_nan=False, allow_infinity=False)
maybe = some.none() | number
share = some.none() | some.floats(0, 1)
shares = some.dictionaries(some.text(max_size=3), share, max_size=3)
marks = some.none() | some.dictionaries(some.integers(0, 99).map(str), share, max_size=3)
curve = some.none() | some.lists(maybe, max_size=4)
pair = some.none() | some.lists(number, min_size=2, max_size=2)
whole = some.integers(0, 2**40)

cells = some.builds(
    Cell, some.text(max_size=5), some.text(max_size=5), whole, whole,
    some.dictionaries(some.text(max_size=3), number | some.text(max_size=3) | some.lists(number), max_size=3),
)  # fmt: skip
trainings = some.builds(
    Training, learning_rate=number, steps=whole, parameters=whole, diverged_at=some.none() | whole,
    final_train_loss=maybe, state_size=some.none() | whole, device=some.text(max_size=3),
    rates_tried=some.lists(some.builds(RateTried, number, maybe), max_size=2).map(tuple),
    curve=some.none() | some.lists(some.tuples(whole, whole, number, number, maybe), unique_by=lambda at: at[0]).map(
        lambda points: Curve(*([list(column) for column in zip(*sorted(points, key=lambda at: at[0]))] or [[]] * 5))
    ),
)  # fmt: skip
breaking = some.builds(
    BreakingWord, family=some.text(max_size=3), expected=whole, given=some.none() | some.just(-5),
    parts=some.lists(some.builds(Power, some.lists(whole, min_size=1, max_size=3), some.integers(1, 2**40)),
                     min_size=1, max_size=3).map(tuple),
)  # fmt: skip
evaluations = some.one_of(
    some.builds(
        OnWords, seed=whole, budget=whole, words=some.just(9), tokens=whole, longest=whole, wrong=some.integers(1, 9),
        breaking=some.none() | breaking,
    ),
    some.builds(
        OnRows, seed=whole, length=whole, rows=whole, n=whole, accuracy=share, interval=pair, unanswered=maybe,
        accuracy_by_position=curve, floor_exact=some.booleans(), floors=some.none() | shares, reason=some.text("ab"),
    ),
    some.builds(OnStream, seed=whole, steps=whole, rows=whole, accuracy=marks),
    some.builds(OffData, seed=whole, length=whole, accuracy=shares, mean=number, worst=number),
    some.builds(AllStrings, seed=whole, length=whole, strings=whole, accuracy=maybe, full_sequence_accuracy=number),
)  # fmt: skip
shared: dict[str, Any] = {
    "cell": cells, "version": some.text(max_size=5), "status": some.sampled_from(records.STATUSES),
    "reason": some.text(max_size=5), "seconds": maybe,
}  # fmt: skip
episodes = some.builds(
    EpisodeRecord, ended=some.text(max_size=4), max_length=whole, asked=whole, outcomes=some.text("+xfr"),
    positions=some.lists(whole, max_size=3), changes=some.text("01-"), replies=some.lists(some.text(max_size=4)),
    tokens=some.dictionaries(some.text(max_size=3), whole, max_size=2), logprobs=some.none() | some.lists(number),
)  # fmt: skip
every = some.one_of(
    some.builds(Record, **shared | {"status": some.sampled_from((records.FAILED, records.SKIPPED))}),
    some.builds(TrainingRecord, **shared, training=trainings, evaluations=some.lists(evaluations).map(tuple)).map(
        lambda record: replace(record, evaluations=(OnRows(length=record.cell.length, seed=0), *record.evaluations))
    ),
    some.builds(AskedRecord, **shared, episode=episodes),
)


@given(record=every)
def test_what_is_written_comes_back(record: Record) -> None:
    held = records.write(record)
    assert (held["kind"], held["format"]) == (record.kind, 2)
    assert records.read(json.loads(json.dumps(held, allow_nan=False))) == record


def archived(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The records of a shipped archive as 0.1.0 wrote them, with the names of their files."""
    with tarfile.open(ARCHIVES / f"{name}.tar.gz") as tar:
        names = [each for each in tar.getnames() if "/" not in each]
        return [(each.removesuffix(".json"), json.loads(tar.extractfile(each).read())) for each in names]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["design", "length-generalisation"])
@pytest.mark.needs("torch")
def test_nothing_of_an_archive_of_0_1_0_is_missing_or_damaged(name: str, tmp_path: Path) -> None:
    """Its cells are those that the sweep of that name asks for today."""
    old = archived(name)
    joined = unpack(ARCHIVES / f"{name}.tar.gz", tmp_path / "out")
    assert (joined.taken, joined.kept, joined.damaged) == (len(old), 0, [])
    store = Store(tmp_path / "out")
    assert {path.stem for path in store.folder.glob("*.json")} == {key for key, _ in old}  # names stay
    sweep = read(name)
    found = {entry.cell.key: store.record(entry.cell) for entry in sweep.entries}
    for entry in sweep.entries:
        record = found[entry.cell.key]
        assert record is not None
        assert not record.lacks(entry.streams)
    counts = status(store).sweeps[name]
    assert (counts["missing"], counts["failed"], counts["running"]) == (0, 0, 0)
    assert sum(counts.values()) == len(sweep.entries) == len(old)
    assert status(store).damaged == []


LATER = ("unanswered", "trained_on_words")


@pytest.mark.parametrize("name", ["design", "length-generalisation"])
def test_every_number_of_a_record_of_0_1_0_is_read(name: str) -> None:
    """Under its old name it is what it was. The stream is no part of the cell any more; what LATER names came later;
    whether it is solved is a judgement, not a number, and is made anew."""

    def without_null(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_null(each) for key, each in value.items() if key not in LATER}
        return value

    for key, old in archived(name):
        assert Cell(**old["cell"]).key == key
        again = flat(records.read(old))
        assert again.pop("cell") == Cell(**old.pop("cell")).identity.to_dict()
        assert without_null(again) | {"solved": None} == old | {"solved": None}


def test_a_key_is_that_of_0_1_0() -> None:
    """Hashes that 0.1.0 made; they name files in people's folders."""
    protocol = {"name": "design", "batch": 256, "rates": [1e-3], "stream": 0}
    assert Cell("txc", "mlp", 64, 0, protocol).key == "f9b0c095f02f45dec733"
    assert Cell("s5_composition", "ask some", 20, 3, {"name": "ask"}).key == "2c99d09bbe2413ae55e7"


def old_record(cell: Cell, marks: dict[str, float] | None) -> dict[str, Any]:
    """As 0.1.0 wrote it, in short."""
    stream = {"rows": 64, "positions": 1024, "accuracy": marks} if marks else None
    return {
        "cell": cell.to_dict(), "version": "0.1.0", "status": "done", "learning_rate": 1e-3, "steps": 10,
        "parameters": 5, "accuracy": 1.0, "rows": 64, "n": 640, "interval": [0.9, 1.0], "tail_accuracy": 1.0,
        "floor": 0.5, "length_generalisation": {}, "off_distribution": None, "exact": None, "stream": stream,
    }  # fmt: skip


def old_folder(folder: Path, **streams: dict[str, float] | None) -> tuple[Store, Cell]:
    """One cell of 0.1.0 for every stream, `s4096={...}`, and the cell that all of them are now."""
    folder.mkdir()
    for name, marks in streams.items():
        cell = Cell("txc", "mlp", 10, 0, {"name": "design", "stream": int(name[1:])})
        (folder / f"{cell.key}.json").write_text(json.dumps(old_record(cell, marks)))
    return Store(folder), Cell("txc", "mlp", 10, 0, {"name": "design", "stream": 0})


def test_a_cell_of_0_1_0_is_found_under_its_old_key(tmp_path: Path) -> None:
    store, cell = old_folder(tmp_path / "out", s4096={"4096": 0.75})
    (tmp_path / "out" / f"{replace(cell, protocol={'name': 'design', 'stream': 4096}).key}.safetensors").touch()
    assert not store.path(cell).exists()
    record = store.read(cell)
    assert isinstance(record, TrainingRecord)
    assert record.cell == cell
    assert record.lacks([4096, 8192]) == [8192]
    assert [key for key, _ in store.entries()] == [cell.key]
    assert store.weights(cell) is not None


def test_two_old_cells_that_differ_in_their_stream_are_one_with_both_evaluations(tmp_path: Path) -> None:
    store, cell = old_folder(tmp_path / "out", s0=None, s4096={"4096": 0.75}, s2048={"2048": 0.5})
    ((key, record),) = store.entries()
    assert key == cell.key
    assert isinstance(record, TrainingRecord)
    assert {stream.steps: stream.accuracy for stream in record.streams} == {4096: {"4096": 0.75}, 2048: {"2048": 0.5}}
    assert len(record.of(OnRows)) == 1
    assert [each.other_weights for each in record.evaluations] == [False] * 3
    assert status(store).counts["done"] == 1
    store.write(record)  # written anew, nothing is lost and nothing stands twice
    assert Store(store.folder).read(cell) == record
    assert main(["results", str(store.folder), "--csv", str(tmp_path / "a.csv")]) == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 2


def streamed(record: TrainingRecord, steps: int) -> TrainingRecord:
    return record.with_evaluations([OnStream(seed=0, steps=steps, rows=8, accuracy={str(steps): 1.0})])


def test_a_merge_unites_evaluations(tmp_path: Path) -> None:
    record = made(Cell("t", "s", 4, 0, {}))
    other = replace(record, training=replace(record.training, steps=2))
    folders = [tmp_path / name for name in "abc"]
    for folder, each in zip(folders, (streamed(record, 8), streamed(record, 16), streamed(other, 32))):
        Store(folder).write(each)
    joined = merge(folders[1:], folders[0])
    assert (joined.taken, joined.kept, joined.evaluations) == (0, 2, 2)
    found = Store(folders[0]).read(record.cell)
    assert isinstance(found, TrainingRecord)
    assert found.training == record.training
    held = [each for each in found.evaluations if isinstance(each, OnStream)]
    assert [(each.steps, each.other_weights) for each in held] == [(8, False), (16, False), (32, True)]
    assert found.lacks([8, 16, 32]) == [32]  # what other weights did is kept, and counts nowhere
    assert [each.steps for each in found.streams] == [8, 16]
    assert merge(folders[1:], folders[0]).evaluations == 0


def test_numbers_are_better_than_a_reason_why_there_are_none(tmp_path: Path) -> None:
    """And weights of the same training come along where there are none."""
    record = made(Cell("t", "s", 4, 0, {}))
    failed = record.with_evaluations([OnStream(seed=0, steps=8, reason="out of memory")])
    Store(tmp_path / "a").write(failed)
    Store(tmp_path / "b").write(streamed(record, 8))
    Store(tmp_path / "b").path(record.cell, "safetensors").write_bytes(b"weights")
    merge([tmp_path / "b"], tmp_path / "a")
    assert Store(tmp_path / "a").read(record.cell) == streamed(record, 8)
    assert Store(tmp_path / "a").weights(record.cell) is not None
    assert merge([tmp_path / "a"], tmp_path / "b").evaluations == 0


def test_weights_are_those_of_the_training_that_counts(tmp_path: Path) -> None:
    """Two trainings of one cell of 0.1.0, and only the second has weights."""
    store, cell = old_folder(tmp_path / "out", s0=None, s4096={"4096": 0.75})
    old = replace(cell, protocol={"name": "design", "stream": 4096})
    store.path(old, "safetensors").write_bytes(b"weights")
    assert store.weights(cell) == store.path(old, "safetensors")
    held = json.loads(store.path(old).read_text())
    store.path(old).write_text(json.dumps(held | {"steps": 11}))
    assert Store(store.folder).weights(cell) is None


def test_a_damaged_file_of_0_1_0_is_named(tmp_path: Path) -> None:
    store, cell = old_folder(tmp_path / "out", s4096={"4096": 0.75})
    (path,) = store.folder.glob("*.json")
    path.write_text(path.read_text().replace('"accuracy": 1.0', '"accuracy": "x"'))
    assert [damage.path for damage in store.damaged()] == [path]
    assert store.read(cell) is None


def test_evaluations_added_at_the_same_moment_all_stay(tmp_path: Path) -> None:
    record = made(Cell("t", "s", 4, 0, {}))
    Store(tmp_path).write(record)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda steps: add(Store(tmp_path), streamed(record, steps)), range(1, 33)))
    found = Store(tmp_path).read(record.cell)
    assert isinstance(found, TrainingRecord)
    assert sorted(stream.steps for stream in found.streams) == list(range(1, 33))


def test_each_sweep_stands_by_what_it_asks_for(tmp_path: Path) -> None:
    store, cell = Store(tmp_path), Cell("t", "s", 4, 0, {})
    store.write(made(cell))
    for name, streams in (("a", (8,)), ("b", ())):
        save(store, Sweep(name, "", (PlannedCell(cell, "", streams=streams),)))
    found = status(store)
    assert (found.sweeps["a"]["missing"], found.sweeps["b"]["done"], found.counts["missing"]) == (1, 1, 1)
    store.write(streamed(made(cell), 8))
    assert status(store).counts["missing"] == 0


def test_a_result_is_better_than_a_reason() -> None:
    cell = Cell("t", "s", 4, 0, {})
    done, skipped = made(cell), no_result(cell, "skipped", "x")
    assert unite(skipped, done) == unite(done, skipped) == done


TOLD = {"learning_rate": 1e-3, "steps": 10, "parameters": 5}
CURVE = {"updates": [5, 10], "lengths": [4, 4], "loss": [1, 0.5], "accuracy": [0, 1], "gradient_norm": [None, 2.5]}


def test_a_record_of_format_1_has_no_curve_and_reads_as_before() -> None:
    new = records.write(made(Cell("t", "s", 4, 0, {})))
    assert records.read(new | {"format": 1}) == records.read(new)
    assert records.read(new | {"training": TOLD | {"curve": CURVE}}).training.curve == Curve(**CURVE)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "trainig"}, "'trainig' is no kind of record"),
        ({"status": "fine"}, "not a record of statetrack"),
        ({"seconds": "two"}, "seconds is 'two', not a number"),
        ({"training": None}, "training is None, not a mapping"),
        ({"training": {"steps": 3}}, "training.learning_rate is missing"),
        (
            {"evaluations": [{"kind": "rows", "seed": 0, "length": 4, "interval": [0, "1"]}]},
            "evaluations[0].interval[1]",
        ),
        ({"evaluations": [{"kind": "row"}]}, "evaluations[0] is 'row', not one of rows, stream"),
        ({"accuracy": 1.0}, "TrainingRecord has no field accuracy"),
        ({"evaluations": []}, "it was not evaluated at the length trained on"),
        ({"kind": []}, "[] is no kind of record"),
        ({"training": TOLD | {"curve": CURVE | {"loss": []}}}, "the columns of its curve differ in length"),
        ({"training": TOLD | {"curve": CURVE | {"updates": [5, 5]}}}, "the updates of its curve do not grow"),
        ({"training": TOLD | {"curve": CURVE | {"loss": ["a", 1]}}}, "training.curve.loss[0] is 'a', not a number"),
        ({"format": None}, "no kind of record"),
        ({"evaluations": [{"kind": "rows", "seed": 0, "length": 4, "interval": [0.5]}]}, "an interval has two ends"),
        ({"evaluations": [{"kind": "rows", "seed": 0, "length": 4, "accuracy": -1}]}, "an accuracy lies in 0..1"),
    ],
)
def test_what_is_wrong_with_a_record_is_said(change: dict[str, Any], said: str) -> None:
    held = records.write(made(Cell("t", "s", 4, 0, {})))
    with pytest.raises(BadRecord) as caught:
        records.read(held | change)
    assert said in str(caught.value)


def test_a_record_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    record = made(Cell("t", "s", 4, 0, {}))
    wrong: Evaluation = OnRows(length="four", seed=0)  # type: ignore[arg-type]
    with pytest.raises(BadRecord, match=r"evaluations\[0\]\.length is 'four', not a whole number"):
        Store(tmp_path).write(replace(record, evaluations=(wrong,)))
    assert list(tmp_path.iterdir()) == []


def test_a_record_of_a_newer_version_is_refused_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, record = Store(tmp_path), made(Cell("t", "s", 4, 0, {}))
    path = store.write(record)
    path.write_bytes(seal.seal(seal.unseal(path.read_bytes()) | {"format": 3}))
    with pytest.raises(BadInput, match="format 3 needs a newer version"):
        store.read(record.cell)
    assert main(["status", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
