"""What other programs measured, in a terminal: one line for each task and model, and the lengths in their order."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from statetrack.cli.output import print_table, say
from statetrack.formatting import brief, fixed, not_ours, spread

if TYPE_CHECKING:
    from statetrack.asking.external import External
    from statetrack.results.external import ExternalMean, ExternalScores

MOST_SIDE_BY_SIDE = 8  # tasks, or models, whose lengths are printed as columns
MOST_ACROSS = 8  # lengths that are printed as columns, where the tasks are lines
HEADERS = ("task", "model", "how", "rows", "accuracy", "95 %", "chance", "below a half from", "violations", "too long",
           "unanswered", "prompts", "by")  # fmt: skip
COUNTED = HEADERS.index("below a half from")  # from here on columns are left out where nothing is told


def print_external(found: External) -> bool:
    """Their tables; whether there are any."""
    if found.scores:
        say("scored by other programs:")
        _print_scores(found.scores)
        if found.means:
            _print_means(found.means)
        _print_lengths(found.scores, found.means)
    if found.episodes:
        _print_episodes(found)
    return bool(found)


def name_left_out(found: External, known: Iterable[str] = ()) -> None:
    """The files that are not counted; `known` are others that are no cells."""
    foreign = found.foreign(known)
    for notice in [*([not_ours(foreign)] if foreign else []), *found.notices]:
        say(notice, file=sys.stderr)


def of_others(found: External) -> list[dict[str, Any]]:
    """The rows of the long table."""
    from statetrack.results.long_table import external_rows
    from statetrack.verdicts.measurements import tested

    return external_rows(found.scores, found.episodes, tested, found.means)


def _print_scores(scores: Sequence[ExternalScores]) -> None:
    lines = [
        [each.task, each.model, each.how, each.rows, fixed(each.accuracy, 4), _between(each.interval),
         brief(each.chance), each.falls_below_half, None if each.violations is None else fixed(each.violations, 4),
         each.too_long or None, each.unanswered or None, each.prompts or None, each.source.by]
        for each in scores
    ]  # fmt: skip
    told = [at for at in range(len(HEADERS)) if at < COUNTED or any(line[at] is not None for line in lines)]
    print_table([HEADERS[at] for at in told], [[line[at] for at in told] for line in lines])


def _print_means(means: Sequence[ExternalMean]) -> None:
    say("\nmeans over groups, each counted once:")
    print_table(
        ["mean", "model", "how", "groups", "accuracy", "chance"],
        [[each.name, each.model, each.how, len(each.tasks), fixed(each.accuracy, 4), brief(each.chance)]
         for each in means],
    )  # fmt: skip


def _print_lengths(scores: Sequence[ExternalScores], means: Sequence[ExternalMean]) -> None:
    """A line for each length that was asked, a column for each task or model; of many, the other way round."""
    lengths = sorted({one.length for each in scores for one in each.lengths})
    if len(scores) > MOST_SIDE_BY_SIDE:
        _print_turned(scores, means, lengths)
        return
    headers = [_called(each.task, each, scores) for each in scores]
    at = [{one.length: one for one in each.lengths} for each in scores]
    say()
    print_table(
        ["length", *(name for header in headers for name in (header, "rows"))],
        [[length, *(part for held in at for part in _cells(held.get(length)))] for length in lengths],
    )


def _called(task: str, one: ExternalScores | ExternalMean, scores: Sequence[ExternalScores]) -> str:
    several = len({(each.model, each.how) for each in scores}) > 1
    return ", ".join(filter(None, [task, *([one.model, one.how] if several else [])]))


def _print_turned(
    scores: Sequence[ExternalScores], means: Sequence[ExternalMean], lengths: Sequence[int]
) -> None:  # fmt: skip
    """A line for each mean and task, and a column for as many lengths as there is room for."""
    shown = spread(lengths, MOST_ACROSS)
    lines = [(_called(each.name, each, scores), each.by_length) for each in means]
    lines += [(_called(each.task, each, scores), {one.length: one.accuracy for one in each.lengths}) for each in scores]
    say("\naccuracy by length:")
    print_table(
        ["task", *map(str, shown)],
        [[called, *(fixed(at[length], 4) if length in at else "" for length in shown)] for called, at in lines],
    )
    which = f"{len(shown)} of {len(lengths)} lengths" if len(shown) < len(lengths) else "all lengths"
    say(f"\n{which}; each with its rows and interval: --long, or --long --csv FILE")


def _cells(one: Any) -> list[str]:
    if one is None:
        return ["", ""]
    return [fixed(one.accuracy, 4), f"{'at least ' if one.at_least else ''}{one.rows}"]


def _between(interval: tuple[float, float]) -> str:
    return f"{fixed(interval[0], 4)} to {fixed(interval[1], 4)}"


def _print_episodes(found: External) -> None:
    from statetrack.asking.metrics import overview

    table = overview(record for log in found.episodes for record in log.records)
    say("\nread from logs of Inspect:" if found.scores else "read from logs of Inspect:")
    print_table(list(table[0]), [[_short(value) for value in row.values()] for row in table], 3)


def _short(value: Any) -> Any:
    return fixed(value, 4) if isinstance(value, float) else value
