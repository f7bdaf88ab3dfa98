"""What a sweep will take, for people: a row for each kind of cell, a line for all; and afterwards what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.cli.output import print_table, say
from statetrack.formatting import plural, short_names

if TYPE_CHECKING:
    from statetrack.sweeps.forecast import Forecast, Guess, KindForecast

MEGA, GIGA = 1e6, 1e9


def show(ahead: Forecast) -> None:
    """The table and what it comes to, or that nothing is known."""
    if not ahead.left:
        say("\nforecast: nothing is left to do")
        return
    say(f"\nforecast for {ahead.where.device}, from what cells took there before")
    names = short_names(name for kind in ahead.kinds for name in (kind.entry.cell.task, kind.entry.cell.subject))
    headers = ["task", "model", "length", "protocol", "to do", "there", "seconds each", "memory", "from"]
    print_table(headers, [_row(kind, names) for kind in ahead.kinds])
    for line in totals(ahead):
        say(line)


def _row(kind: KindForecast, names: dict[str, str]) -> list[str]:
    cell = kind.entry.cell
    from_ = f"{plural(kind.seconds.count, 'cell')} {kind.seconds.source}" if kind.seconds else ""
    return [
        names[cell.task], names[cell.subject], str(cell.length), str(cell.protocol.get("name", "")), str(kind.left),
        str(kind.there), number(kind.seconds), held(kind.memory), from_,
    ]  # fmt: skip


def number(guess: Guess | None) -> str:
    return "not known" if guess is None else f"{guess.value:.2g}" if guess.value < 10 else f"{guess.value:,.0f}"


def held(guess: Guess | None) -> str:
    """Memory; ~ where it is scaled by the tokens of a step."""
    from statetrack.sweeps.forecast import LIKE

    return "not known" if guess is None else f"{'' if guess.source == LIKE else '~'}{size(guess.value)}"


def size(value: float) -> str:
    """
    >>> size(120_300_000), size(3_140_000_000), size(12_345)
    ('120 MB', '3.1 GB', '1 MB')
    """
    return f"{value / GIGA:.1f} GB" if value >= GIGA else f"{max(1.0, value / MEGA):.0f} MB"


def totals(ahead: Forecast) -> list[str]:
    """What all of it comes to, as far as it is known."""
    from statetrack.results.pace import duration

    known, workers = len(ahead.by_key), ahead.where.workers
    if not known:
        return [f"{plural(ahead.left, 'cell')} to do: how long is not known, as no such cell was measured here before"]
    clock = f", {duration(ahead.clock)} with {plural(workers, 'worker')}" if workers and ahead.clock is not None else ""
    of = f"{known:,} of the {plural(ahead.left, 'cell')} to do" if ahead.unknown else f"{plural(known, 'cell')} to do"
    lines = [f"{of}: about {duration(ahead.seconds)} of work{clock}"]
    lines += [f"of the other {ahead.unknown:,} nothing is known"] if ahead.unknown else []
    if ahead.memory is None:
        return [*lines, "memory: not known of all"]
    what = "of a GPU's memory" if ahead.where.gpu else "beside what Python and torch take in every process"
    return [*lines, f"memory: at most about {size(ahead.memory)} at a time, {what}"]


def compared(ahead: Forecast, seconds: dict[str, float]) -> str | None:
    """The forecast of the cells that were finished since, beside what they took; None where none was known."""
    both = [key for key in ahead.by_key if seconds.get(key)]
    if not both:
        return None
    said, took = sum(ahead.by_key[key] for key in both), sum(seconds[key] for key in both)
    some = f"of {len(both):,} of them " if len(both) < len(seconds) else ""
    return f"forecast {some}{said:,.0f} s of work, took {took:,.0f} s: {took / said:.2f} times that"
