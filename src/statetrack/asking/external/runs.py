"""Several runs of one model: told apart where it was loaded in different ways or asked something else, and counted once
where they asked the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statetrack.asking.external.plain import digits
from statetrack.asking.external.question import NOT_KEPT, PROMPTS, ROWS
from statetrack.formatting import plural
from statetrack.results.external import ExternalEpisodes, ExternalScores, Source
from statetrack.results.records import Record


def loaded(arguments: Mapping[str, Any]) -> str:
    """The way in which a model was loaded, as a few digits: its arguments are not shown, as they may hold a key.

    >>> loaded({}), len(loaded({"revision": "main"}))
    ('', 8)
    """
    text = json.dumps(arguments, sort_keys=True, default=str)
    return digits(text) if arguments else ""


def _alike(scores: Iterable[ExternalScores], key: Callable[[ExternalScores], Any]) -> dict[Any, list[ExternalScores]]:
    found: dict[Any, list[ExternalScores]] = {}
    for each in scores:
        found.setdefault(key(each), []).append(each)
    return found


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


def name_differences(scores: list[ExternalScores]) -> None:
    """Add to how each run was asked what of it differs among the runs of its model that are else called alike; and
    which rows these were, where they differ among any runs of the model, as their means are compared.
    """
    scores[:] = _with_prompts(scores)
    alike = _alike(scores, lambda each: (each.source.program, each.model, each.how))
    model = _alike(scores, lambda each: (each.source.program, each.model))
    scores[:] = [
        _differing(each, alike[(each.source.program, each.model, each.how)], model[(each.source.program, each.model)])
        for each in scores
    ]


def _with_prompts(scores: Sequence[ExternalScores]) -> list[ExternalScores]:
    """Where all that is told of two runs is the same and their prompts are not, these tell them apart."""
    alike = _alike(scores, _question)
    several = {key for key, same in alike.items() if len({each.prompts for each in same} - {""}) > 1}
    return [
        replace(each, asked=each.asked | {PROMPTS: f"prompts {each.prompts}" if each.prompts else NOT_KEPT})
        if _question(each) in several else each
        for each in scores
    ]  # fmt: skip


def _differing(one: ExternalScores, alike: Sequence[ExternalScores], model: Sequence[ExternalScores]) -> ExternalScores:
    keys = dict.fromkeys(key for each in alike for key in each.asked)
    compared = {key: model if key in ROWS else alike for key in keys}
    differ = [key for key, others in compared.items() if len({each.asked.get(key, "") for each in others}) > 1]
    words = [one.asked.get(key) or f"{key} not told" for key in differ]
    return replace(one, how=", ".join(filter(None, [one.how, *words]))) if words else one


def _question(one: ExternalScores) -> tuple[Any, ...]:
    """All that makes two runs ask the same."""
    return one.source.program, one.task, one.model, one.how, *sorted(one.asked.items())


def drop_repeats(scores: list[ExternalScores], episodes: list[ExternalEpisodes]) -> list[tuple[str, str]]:
    """Keep of runs that asked the same the latest; of samples the latest that has a result.

    Gives the files of which something is not counted, and why. Copies of a file are such repeats, and so are logs of an
    evaluation that was taken up again.
    """
    return [*_drop_scores(scores), *_drop_samples(episodes)]


def _drop_scores(scores: list[ExternalScores]) -> list[tuple[str, str]]:
    ordered = sorted(scores, key=lambda each: (each.source.created, each.source.file))
    latest = {_question(each): each for each in ordered}
    scores[:] = sorted(latest.values(), key=lambda each: (each.task, each.model, each.how))
    repeats = [each for each in ordered if latest[_question(each)] is not each]
    pairs = _alike(repeats, lambda each: (each.source.file, latest[_question(each)].source.file))
    return [(file, _repeated(same, by)) for (file, by), same in sorted(pairs.items())]


def _repeated(same: Sequence[ExternalScores], by: str) -> str:
    what = same[0].source.task if len(same) == 1 else plural(len(same), "task")
    return f"{what} (asked again in {by})"


def _drop_samples(episodes: list[ExternalEpisodes]) -> list[tuple[str, str]]:
    episodes.sort(key=lambda log: (log.source.created, log.source.file))
    last = _last(record for log in episodes for record in log.records)
    kept = [replace(log, records=tuple(each for each in log.records if id(each) in last)) for log in episodes]
    lost = [(log.source.file, len(log.records) - len(left.records)) for log, left in zip(episodes, kept)]
    episodes[:] = [log for log in kept if log.records]
    return [(file, f"{plural(count, 'sample')} (asked again in another log)") for file, count in sorted(lost) if count]


def _last(records: Iterable[Record]) -> set[int]:
    """Of the records of each cell the last one, or the last one with a result."""
    found: dict[str, Record] = {}
    for record in records:
        if record.finished or not (there := found.get(record.cell.key)) or not there.finished:
            found[record.cell.key] = record
    return {id(record) for record in found.values()}
