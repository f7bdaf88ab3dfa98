"""The long table: a row for each network and each thing that it was tested on, as plots and statistics want it.

`of` says what a row is of, and `tested` how long that was:

    rows         rows of one length
    stream       the last positions before a mark of a stream
    words        hard words: `tested` is the longest of them, `wrong` how many were, `broken_by` the shortest such one
    for ever     every word, of any length, as `certify` found out; `case` is what it came to: proved as trained,
                 broken by a word (`broken_by`), open (every word of up to `tested` tokens is right), proof missing
    off data     rows that training never shows, `case` by case
    all strings  every input of the length trained on
    dialogue     one sample that a language model was asked; `tested` is its length
    prompts      final answers to prompts of one length, as lm-evaluation-harness scored them
    mean         over the groups of a selector, each counted once: `rows` is how many groups
    (nothing)    a cell without a result: `status` and `reason` say why

`accuracy` is over all positions, `end_accuracy` over the last 32; along a stream both are over the last positions
before the mark, which has no row where rows of the same length were tested. Of hard words `accuracy` is the share
without an error, of a dialogue that of right answers. `low` and `high` are 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from statetrack.errors import need
from statetrack.results.cell import ASK, Cell
from statetrack.results.evaluations import AllStrings, ForEver, OffData, OnRows, OnStream, OnWords
from statetrack.results.external import ExternalEpisodes, ExternalMean, ExternalScores
from statetrack.results.networks import HasEvaluations, Tested
from statetrack.results.records import DONE, AskedRecord, EvaluatedRecord, Record, TrainingRecord

COLUMNS: dict[str, type] = {
    "key": str, "task": str, "model": str, "protocol": str, "note": str, "trained": int, "seed": int, "status": str,
    "reason": str, "of": str, "tested": int, "case": str, "rows": int, "n": int, "accuracy": float, "low": float,
    "high": float, "floor": float, "end_accuracy": float, "end_low": float, "end_high": float, "end_floor": float,
    "solved": bool, "wrong": int, "broken_by": str, "max_length": int, "ended": str, "parameters": int,
    "state_size": int, "learning_rate": float, "train_seconds": float, "epsilon": float, "margin": float,
}  # fmt: skip
DTYPES = {int: "Int64", float: "float64", bool: "boolean", str: "object"}  # of pandas; whole numbers may be missing

Row = dict[str, Any]
Tests = Callable[[HasEvaluations], list[Tested]]  # `statetrack.verdicts.measurements.tested`: with floors of the end


def long_rows(records: Iterable[Record], tests: Tests, notes: Mapping[str, str] | None = None) -> list[Row]:
    """Sorted by task, model, protocol, length trained on and seed; every row has every column. `notes` of a sweep on
    its cells are by key.
    """
    ordered = sorted(records, key=lambda record: place(record.cell))
    return [
        dict.fromkeys(COLUMNS) | _cell(record, notes or {}) | row for record in ordered for row in _rows(record, tests)
    ]


def place(cell: Cell) -> tuple[Any, ...]:
    """By which cells are sorted."""
    return cell.task, cell.subject, str(cell.protocol.get("name", "")), cell.length, cell.seed, cell.key


def _cell(record: Record, notes: Mapping[str, str]) -> Row:
    cell = record.cell
    row: Row = {
        "key": cell.key, "task": cell.task, "model": cell.subject, "protocol": str(cell.protocol.get("name", "")),
        "note": notes.get(cell.key) or None, "trained": None if cell.kind == ASK else cell.length or None,
        "seed": cell.seed, "status": record.status, "reason": record.reason or None,
    }  # fmt: skip
    if isinstance(record, TrainingRecord):
        made = record.training
        row |= {"parameters": made.parameters, "state_size": made.state_size, "learning_rate": made.learning_rate,
                "train_seconds": made.train_seconds}  # fmt: skip
    elif isinstance(record, EvaluatedRecord):
        row |= {"parameters": record.weights.parameters, "state_size": record.weights.state_size}
    return row


def _rows(record: Record, tests: Tests) -> Iterator[Row]:
    """One row at least."""
    if isinstance(record, HasEvaluations):
        yield from map(_tested, tests(record))
        yield from _besides(record)
    elif isinstance(record, AskedRecord):
        yield _dialogue(record)
    else:
        yield {"tested": record.cell.length}


def _tested(one: Tested) -> Row:
    low, high = one.interval
    end_low, end_high = one.end_interval or (None, None)
    return {
        "of": one.of, "tested": one.length, "rows": one.rows, "n": one.n, "accuracy": one.accuracy, "low": low,
        "high": high, "floor": one.floor, "end_accuracy": one.end, "end_low": end_low, "end_high": end_high,
        "end_floor": one.end_floor, "solved": one.solved,
    }  # fmt: skip


def _besides(record: HasEvaluations) -> Iterator[Row]:
    """What is not a length: every word, hard words, rows off the data, all strings, and what could not be run."""
    for each in record.evaluations:
        if each.other_weights:
            continue
        if isinstance(each, ForEver):
            yield _for_ever(each)
        elif each.reason:
            length = getattr(each, "length", getattr(each, "steps", None))
            yield {"of": each.kind, "tested": length, "reason": each.reason}
        elif isinstance(each, OnWords):
            right = 1 - each.wrong / each.words if each.words else None
            word = each.breaking.word if each.breaking else None
            yield {"of": each.kind, "tested": each.longest, "rows": each.words, "n": each.tokens, "accuracy": right,
                   "wrong": each.wrong, "broken_by": word}  # fmt: skip
        elif isinstance(each, OffData):
            yield from ({"of": each.kind, "tested": each.length, "case": case, "accuracy": share}
                        for case, share in each.accuracy.items())  # fmt: skip
        elif isinstance(each, AllStrings):
            yield {"of": each.kind, "tested": each.length, "rows": each.strings, "accuracy": each.accuracy}
        else:
            assert isinstance(each, OnRows | OnStream)  # which are among the lengths


def _for_ever(each: ForEver) -> Row:
    return {"of": each.kind, "tested": each.covered or None, "case": each.standing, "reason": each.reason or None,
            "broken_by": each.word.word if each.word else None, "epsilon": each.epsilon,
            "margin": each.margin}  # fmt: skip


def _dialogue(record: AskedRecord) -> Row:
    """The answers of an episode that was cut off are in no mean, so that they are not counted."""
    episode = record.episode
    row: Row = {"of": "dialogue", "tested": record.cell.length, "rows": 1, "ended": episode.ended}
    if record.finished and episode.outcomes:
        right = episode.outcomes.count("+")
        row |= {"n": len(episode.outcomes), "accuracy": right / len(episode.outcomes), "max_length": episode.max_length}
    return row


def external_rows(
    scores: Iterable[ExternalScores], episodes: Iterable[ExternalEpisodes], tests: Tests,
    means: Iterable[ExternalMean] = (),
) -> list[Row]:  # fmt: skip
    """The same of what other programs measured; `note` is the file that it was read from."""
    rows = [dict.fromkeys(COLUMNS) | row for each in scores for row in _scored(each)]
    rows += [dict.fromkeys(COLUMNS) | row for each in means for row in _averaged(each)]
    for log in episodes:
        rows += [
            row | {"protocol": log.source.program, "note": log.source.file} for row in long_rows(log.records, tests)
        ]
    return rows


def _scored(scores: ExternalScores) -> Iterator[Row]:
    for each in scores.lengths:
        low, high = each.interval
        yield {
            "task": scores.task, "model": scores.model, "protocol": scores.source.program, "case": scores.how or None,
            "note": scores.source.file, "status": DONE, "of": "prompts", "tested": each.length, "rows": each.rows,
            "n": each.rows, "accuracy": each.accuracy, "low": low, "high": high, "floor": scores.chance,
        }  # fmt: skip


def _averaged(mean: ExternalMean) -> Iterator[Row]:
    for length, accuracy in mean.by_length.items():
        yield {
            "task": mean.selector, "model": mean.model, "protocol": mean.source.program, "case": mean.how or None,
            "note": mean.source.file, "status": DONE, "of": "mean", "tested": length, "rows": len(mean.tasks),
            "accuracy": accuracy, "floor": mean.chance,
        }  # fmt: skip


def to_pandas(rows: Iterable[Row]) -> Any:
    """The rows as a pandas.DataFrame, each column of its type, also where it is empty."""
    pandas = need("pandas", "notebook", "to_pandas()")
    return pandas.DataFrame(list(rows), columns=list(COLUMNS)).astype(
        {name: DTYPES[kind] for name, kind in COLUMNS.items()}
    )
