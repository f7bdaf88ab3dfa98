"""Records as 0.1.0 wrote them: flat, without a kind and a format, with the stream as a part of the cell.

`read` takes one, `flat` gives any record those names again.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from statetrack.results import schema
from statetrack.results.cell import ASK, STREAM, Cell
from statetrack.results.evaluations import AllStrings, Evaluation, OffData, OnRows, OnStream
from statetrack.results.networks import HasEvaluations
from statetrack.results.records import (
    AskedRecord,
    EpisodeRecord,
    EvaluatedRecord,
    Record,
    Training,
    TrainingRecord,
    checked,
)
from statetrack.results.schema import BadRecord

SHARED = ("version", "status", "reason", "seconds")
BEYOND, OFF, EXACT = "length_generalisation", "off_distribution", "exact"
SINCE = ("processor", "peak_memory", "peak_memory_of")  # what 0.1.0 did not tell of a training, beside the curve
TRAINING = [field.name for field in fields(Training) if field.name not in ("curve", *SINCE)]
EPISODE = [field.name for field in fields(EpisodeRecord) if field.name != "logprobs"]
ROWS = [field.name for field in fields(OnRows) if field.name not in ("seed", "length", "reason", "other_weights")]
AT_ONE_LENGTH = ROWS[: ROWS.index("full_sequence_accuracy")]


def read(data: dict[str, Any]) -> Record:
    """A record of 0.1.0; raises BadRecord where it is not one."""
    old_cell = schema.read(Cell, data.get("cell"))
    cell = old_cell.identity
    shared = {name: data[name] for name in SHARED if name in data} | {"cell": schema.plain(cell)}
    shared = {"version": "0.1.0", **shared}
    if cell.kind == ASK and "outcomes" in data:
        episode = {field.name: data[field.name] for field in fields(EpisodeRecord) if field.name in data}
        return checked(schema.read(AskedRecord, shared | {"episode": episode}))
    if "accuracy" in data:
        training = {name: data[name] for name in TRAINING if name in data}
        parts = {"training": training, "evaluations": _evaluations(data, old_cell)}
        seconds = {name: data[name] for name in ("evaluation_seconds",) if name in data}
        return checked(schema.read(TrainingRecord, shared | parts | seconds))
    if data.get("status") in (None, "done", "diverged"):
        raise BadRecord("a result without a number")
    return schema.read(Record, shared)


def _evaluations(data: dict[str, Any], cell: Cell) -> list[dict[str, Any]]:
    chosen = {"seed": cell.seed}
    evaluations = [{"kind": OnRows.kind, "length": cell.length, **chosen, **{k: data[k] for k in ROWS if k in data}}]
    for length, entry in _mapping(data, BEYOND).items():
        evaluations.append({"kind": OnRows.kind, "length": int(length), **chosen, **_dropped_nulls(entry)})
    if data.get(OFF):
        evaluations.append({"kind": OffData.kind, "length": cell.length, **chosen, **_mapping(data, OFF)})
    if data.get(EXACT):
        evaluations.append({"kind": AllStrings.kind, "length": cell.length, **chosen, **_mapping(data, EXACT)})
    if data.get(STREAM):
        evaluations.append({"kind": OnStream.kind, "steps": cell.steps, **chosen, **_mapping(data, STREAM)})
    return evaluations


def _mapping(data: dict[str, Any], name: str) -> dict[str, Any]:
    mapping = data.get(name) or {}
    if not isinstance(mapping, dict):
        raise BadRecord(f"{name} is {mapping!r:.40}, not a mapping")
    return mapping


def _dropped_nulls(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadRecord(f"{BEYOND} holds {entry!r:.40}, not a mapping")
    return {name: value for name, value in entry.items() if value is not None}


def flat(record: Record) -> dict[str, Any]:
    """The numbers of any record under the names of 0.1.0, and what came since."""
    named: dict[str, Any] = {"cell": record.cell.to_dict(), "version": record.version, "status": record.status}
    named |= {"reason": record.reason} if record.reason else {}
    if isinstance(record, TrainingRecord):
        named |= _flat_training(record)
    elif isinstance(record, EvaluatedRecord):
        named |= _flat_evaluated(record)
    elif isinstance(record, AskedRecord):
        named |= {name: getattr(record.episode, name) for name in EPISODE}
        named |= {"logprobs": record.episode.logprobs} if record.episode.logprobs is not None else {}
    return named | ({"seconds": record.seconds} if record.seconds is not None else {})


def _flat_training(record: TrainingRecord) -> dict[str, Any]:
    here = record.at_length
    training = {name: getattr(record.training, name) for name in TRAINING if name != "rates_tried"}
    training |= {name: value for name in SINCE if (value := getattr(record.training, name))}
    return {
        **training,
        **{name: getattr(here, name) for name in ROWS},
        "solved": record.solved,
        BEYOND: {str(length): _flat_rows(each) for length, each in record.beyond.items()},
        OFF: _only(record.off_data, "accuracy", "mean", "worst"),
        EXACT: _only(record.all_strings, "strings", "accuracy", "full_sequence_accuracy"),
        STREAM: _longest_stream(record),
        **_flat_words(record),
        **_flat_for_ever(record),
        "evaluation_seconds": record.evaluation_seconds,
        "rates_tried": [asdict(rate) for rate in record.training.rates_tried],
    }


def _flat_evaluated(record: EvaluatedRecord) -> dict[str, Any]:
    """0.1.0 had none of it. Nothing in it has the name of something that a training gives."""
    return {
        "weights": asdict(record.weights),
        BEYOND: {str(length): _flat_rows(each) for length, each in record.rows.items()},
        STREAM: _longest_stream(record),
        **_flat_words(record),
        **_flat_for_ever(record),
        "evaluation_seconds": record.evaluation_seconds,
    }


def _longest_stream(record: HasEvaluations) -> dict[str, Any] | None:
    longest = max(record.streams, key=lambda stream: stream.steps, default=None)
    return _flat_stream(longest) if longest else None


def _flat_rows(each: OnRows) -> dict[str, Any]:
    if each.accuracy is None and each.reason:
        return {"accuracy": None, "reason": each.reason, "floor": each.floor}
    return {name: getattr(each, name) for name in AT_ONE_LENGTH}


def _flat_stream(stream: OnStream) -> dict[str, Any]:
    if stream.accuracy is None:
        return {"accuracy": None, "reason": stream.reason}
    return {name: getattr(stream, name) for name in ("rows", "positions", "accuracy", "unanswered")}


def _flat_words(record: HasEvaluations) -> dict[str, Any]:
    """0.1.0 had none of it."""
    word = record.broken
    told = {"broken_tokens": word.tokens, "broken_expected": word.expected,
            "broken_given": word.given, "broken_family": word.family} if word else {}  # fmt: skip
    tried = _only(record.words, "how", "budget", "words", "tokens", "longest", "wrong") or {}
    return {"words": tried | {"broken_by": record.broken_by} | told} if tried or told else {}


def _flat_for_ever(record: HasEvaluations) -> dict[str, Any]:
    """0.1.0 had none of it. What is claimed is the `standing`; the numbers are those of the evaluation behind it."""
    numbers = ("outcome", "reason", "epsilon", "margin", "float32", "regions", "seconds", "covered", "why", "proof")
    told = _only(record.for_ever, *numbers)
    return {"for_ever": {"standing": record.standing} | told} if told else {}


def _only(evaluation: Evaluation | None, *names: str) -> dict[str, Any] | None:
    return {name: getattr(evaluation, name) for name in names} if evaluation else None
