"""Several runs of one model: told apart where it was loaded in different ways, counted once where they asked alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from statetrack.results.external import ExternalEpisodes, ExternalScores, Source
from statetrack.results.records import Record


def loaded(arguments: Mapping[str, Any]) -> str:
    """The way in which a model was loaded, as a few digits: its arguments are not shown, as they may hold a key.

    >>> loaded({}), len(loaded({"revision": "main"}))
    ('', 8)
    """
    text = json.dumps(arguments, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8] if arguments else ""


def sources(scores: Iterable[ExternalScores], episodes: Iterable[ExternalEpisodes]) -> list[Source]:
    return [*(each.source for each in scores), *(log.source for log in episodes)]


def tell_apart(scores: list[ExternalScores], episodes: list[ExternalEpisodes]) -> None:
    """Give models of one name that were loaded in different ways those digits in their names."""
    ways: dict[tuple[str, str], set[str]] = {}
    for each in sources(scores, episodes):
        ways.setdefault(_called(each), set()).add(each.loaded)
    scores[:] = [
        replace(each, model=_with_way(each.model, each.source)) if len(ways[_called(each.source)]) > 1 else each
        for each in scores
    ]
    episodes[:] = [_renamed(log) if len(ways[_called(log.source)]) > 1 else log for log in episodes]


def _called(source: Source) -> tuple[str, str]:
    return source.program, source.model


def _with_way(model: str, source: Source) -> str:
    return f"{model} ({source.loaded or 'as it is'})"


def _renamed(log: ExternalEpisodes) -> ExternalEpisodes:
    source, renamed = log.source, []
    for record in log.records:
        subject = record.cell.subject.replace(source.model, _with_way(source.model, source), 1)
        renamed.append(replace(record, cell=replace(record.cell, subject=subject)))
    return replace(log, records=tuple(renamed))


def drop_repeats(scores: list[ExternalScores], episodes: list[ExternalEpisodes]) -> list[str]:
    """Keep of runs that asked the same the one with most rows, or the latest; of samples the latest that has a result.

    Gives the files of which nothing is kept. Copies of a file are such repeats, and so are logs of an evaluation that
    was taken up again.
    """
    files = {each.file for each in sources(scores, episodes)}
    scores.sort(key=lambda each: (each.rows, each.source.created, each.source.file))
    counts = {(each.task, each.model, each.how): each for each in scores}
    scores[:] = sorted(counts.values(), key=lambda each: (each.task, each.model, each.how))
    episodes.sort(key=lambda log: (log.source.created, log.source.file))
    last = _last(record for log in episodes for record in log.records)
    kept = (replace(log, records=tuple(each for each in log.records if id(each) in last)) for log in episodes)
    episodes[:] = [log for log in kept if log.records]
    return sorted(files - {each.file for each in sources(scores, episodes)})


def _last(records: Iterable[Record]) -> set[int]:
    """Of the records of each cell the last one, or the last one with a result."""
    found: dict[str, Record] = {}
    for record in records:
        if record.finished or not (there := found.get(record.cell.key)) or not there.finished:
            found[record.cell.key] = record
    return {id(record) for record in found.values()}
