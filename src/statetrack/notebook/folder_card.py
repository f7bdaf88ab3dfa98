"""The tables that a folder of results is shown by: what was trained, what was asked, what was brought here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from statetrack.asking.metrics import overview
from statetrack.display import Card, Table
from statetrack.formatting import fixed, plural, short_names, shortened
from statetrack.reports.folder import protocol_labels, protocols_told_apart
from statetrack.reports.table import text_of
from statetrack.results import Damage, EvaluatedRecord, Record, TrainingRecord
from statetrack.results.folder_status import by_reason
from statetrack.results.networks import broken_by, said_of_rows
from statetrack.results.own_names import names_now
from statetrack.results.records import FAILED
from statetrack.verdicts.measurements import grouped, tested
from statetrack.verdicts.tracked_length import reach

TRAINED = ("task", "model", "protocol", "trained", "seeds", "solved", "accuracy", "floor", "right to")
BROKEN_BY, FOR_EVER = "broken by", "for ever"  # two more, where somebody has looked
BROUGHT = ("task", "model", "weights", "tested", "accuracy", "at the end", "floor")
ASKED = ("task", "subject", "rules", "length", "episodes", "failed", "avg_max_length", "accuracy")


def card(path: Path, records: Sequence[Record], damaged: Sequence[Damage]) -> Card:
    tables = [*_trained(records), *_brought(records), *_asked(records)]
    failures = [record for record in records if record.status == FAILED]
    _, changed = names_now(name for record in records for name in (record.cell.task, record.cell.subject))
    lines = [
        *sorted(_broken(records)),
        *changed,
        *by_reason(failures),
        *(f"damaged, left out: {each}" for each in damaged),
    ]
    return Card(f"{path}: {_counts(records)}", tables, below=lines)


def _counts(records: Sequence[Record]) -> str:
    """
    >>> _counts([])
    'no cells'
    """
    if not records:
        return "no cells"
    of = Counter(record.status for record in records)
    told = ", ".join(f"{count:,} {name}" for name, count in of.items())
    tasks, models = ({getattr(record.cell, name) for record in records} for name in ("task", "subject"))
    cells = plural(len(records), "cell")
    return f"{cells} ({told}) of {plural(len(tasks), 'task')} and {plural(len(models), 'model')}"


def _trained(records: Iterable[Record]) -> Iterator[Table]:
    """A row for each task, model, protocol and length trained on: medians over seeds, and how far most of them got."""
    trained = [record for record in records if isinstance(record, TrainingRecord) and record.finished]
    if not trained:
        return
    names = {part: names_now(getattr(record.cell, part) for record in trained)[0] for part in ("task", "subject")}
    rows = []
    protocols = protocol_labels([record.cell.protocol for record in trained])
    words, certified = any(record.broken_by for record in trained), any(record.for_ever for record in trained)
    for same in grouped(trained, lambda record: record.cell.siblings).values():
        cell, found = same[0].cell, reach(same)
        accuracy, floor = ([getattr(record.at_length, part) for record in same] for part in ("accuracy", "floor"))
        far = f"{'at least ' if found.reach == found.longest else ''}{found.reach:,}" if found.reach else "-"
        solved = sum(record.solved for record in same)
        rows.append([
            names["task"][cell.task], names["subject"][cell.subject],
            protocols[json.dumps(cell.protocol, sort_keys=True)], f"{cell.length:,}", str(len(same)),
            f"{solved} of {len(same)}", _middle(accuracy), _middle(floor), far,
            *([_words(same)] if words else []), *([_for_ever(same)] if certified else []),
        ])  # fmt: skip
    rows.sort(key=lambda row: (row[0], row[1], row[2], len(row[3]), row[3]))
    yield Table([*TRAINED, *([BROKEN_BY] if words else []), *([FOR_EVER] if certified else [])], rows)


def _words(same: Sequence[TrainingRecord]) -> str:
    """The shortest word that breaks one of these seeds, and how many are broken, where they are several."""
    words = broken_by(same)
    if not words:
        return "-" if any(record.broken_by for record in same) else ""
    return shortened(words[0].word, 14) + (f" ({len(words)} of {len(same)})" if len(same) > 1 else "")


def _for_ever(same: Sequence[TrainingRecord]) -> str:
    counts = Counter(record.standing for record in same if record.standing)
    if len(same) == 1:
        return "".join(counts)
    return ", ".join(f"{count} of {len(same)} {standing}" for standing, count in sorted(counts.items()))


def _broken(records: Iterable[Record]) -> Iterator[str]:
    """A line for each model that is right on random rows, or some seeds of which are, and that a word breaks."""
    trained = [record for record in records if isinstance(record, TrainingRecord) and record.finished]
    names, _ = names_now(name for record in trained for name in (record.cell.task, record.cell.subject))
    protocols = protocols_told_apart(record.cell for record in trained)
    several = len(set(protocols.values())) > 1
    for same in grouped(trained, lambda record: record.cell.siblings).values():
        cell, found, words = same[0].cell, reach(same), broken_by(same)
        how = f", {protocols[cell.key]}" if several else ""
        if found.reach and words:
            said = said_of_rows(found.reach, found.longest, words[0].named)
            more = f" ({len(words)} of {len(same)} seeds are broken by one)" if len(same) > 1 else ""
            yield f"{names[cell.task]}, {names[cell.subject]}{how}, trained at {cell.length:,}: {said}{more}"


def _middle(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return fixed(median(known), 4) if known else "-"


def _brought(records: Iterable[Record]) -> Iterator[Table]:
    """Weights that were not trained here: how they did at the longest length."""
    brought = [record for record in records if isinstance(record, EvaluatedRecord) and record.finished]
    names = short_names(record.cell.subject for record in brought)
    rows = []
    for record in brought:
        last = max(tested(record), key=lambda one: one.length, default=None)
        numbers = [last.accuracy, last.end, last.floor if last.of == "rows" else last.end_floor] if last else []
        told = [fixed(value, 4) if value is not None else "-" for value in numbers] or ["-", "-", "-"]
        rows.append([record.cell.task, names[record.cell.subject], record.weights.sha256[:8],
                     f"{last.length:,}" if last else "-", *told])  # fmt: skip
    if rows:
        yield Table(BROUGHT, rows)


def _asked(records: Iterable[Record]) -> Iterator[Table]:
    asked = overview(records)
    if asked:
        shown = [name for name in ASKED if any(row.get(name) not in (None, "") for row in asked)]
        yield Table(shown, [[text_of(row.get(name)) for name in shown] for row in asked])
