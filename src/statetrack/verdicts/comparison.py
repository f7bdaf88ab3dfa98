"""What compares the diagnosed cells of a folder. It needs the diagnoses and no weights, so no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statetrack.results import Record, Store, TrainingRecord
from statetrack.results import diagnosis as files
from statetrack.results.diagnosis import Comparison, Diagnosis, LeftOut
from statetrack.results.plans import oldest_rules
from statetrack.verdicts.ablations import ComparedCell, ablations
from statetrack.verdicts.patterns import patterns


def seen_in(records: Iterable[Record], diagnoses: Mapping[str, Diagnosis]) -> list[ComparedCell]:
    """The trained cells that have a result, each with its diagnosis, if there is one of its key; sorted."""
    seen = [ComparedCell(record, diagnoses.get(record.cell.key)) for record in records
            if isinstance(record, TrainingRecord) and record.finished]  # fmt: skip
    return sorted(seen, key=lambda one: (one.cell.task, one.cell.length, one.cell.subject, one.cell.seed))


def compare(store: Store, left_out: Sequence[LeftOut] = ()) -> Comparison:
    """Ablations and patterns, over all trained cells of the folder that have a result, diagnosed now or before."""
    records = list(store.records())
    diagnoses = {record.cell.key: found for record in records if (found := files.of_cell(store, record.cell))}
    seen = seen_in(records, diagnoses)
    named = {each.key for each in left_out}
    others = [one for one in seen if one.cell.key not in named]
    waiting = [one.cell for one in others if one.diagnosis is None and files.why_not(store, one.record) is None]
    return Comparison(
        cells=[_line(one, one.diagnosis) for one in others if one.diagnosis],
        left_out=[*left_out, *(files.left_out(cell, "not diagnosed yet", files.NOT_YET) for cell in waiting)],
        ablations=ablations(seen),
        patterns=patterns(seen, oldest_rules(store)),
    )


def _line(one: ComparedCell, found: Diagnosis) -> dict[str, Any]:
    cell = one.cell
    return {
        "key": cell.key, "task": cell.task, "model": cell.subject, "trained": cell.length, "seed": cell.seed,
        "conclusion": found.conclusion, "sentence": found.sentences[0], "sentences": found.sentences,
        "accuracy": one.record.at_length.accuracy, "at_90": one.at_90(), "streamed": found["error"].get("streamed"),
        "predicted_at_90": one.at_90("predicted"), "machine_equal": found["automaton"].get("equal"),
        "machine_errs": bool(found["automaton"].get("error_string") or found["automaton"].get("known_word")),
        "seconds": found.seconds, "for_ever": one.record.said_for_ever,
    }  # fmt: skip


def compare_again(store: Store) -> None:
    """Write what compares the cells of a folder anew, from the diagnoses that lie there."""
    refused = [why for _, entry in store.entries() if (why := files.why_not(store, entry)) is not None]
    files.write_comparison(store, compare(store, refused))
