"""Trained networks as claims speak of them. A claim about one network is of one of three kinds, never mixed:

proved for these weights   a file that a separate checker accepts
broken by this word        an input after which it answers wrong
measured                   right on n rows to N, which excludes a rate of wrong rows above some number
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from statetrack.intervals import excluded_rate
from statetrack.verdicts.measurements import FAR, Measurement, grouped

PROVED, BROKEN, MEASURED = "proved for these weights", "broken by this word", "measured"


@dataclass(frozen=True)
class Network:
    """What was measured of the weights that validation chose in one training, from the shortest length on."""

    runs: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        return self.runs[0]

    @property
    def trained(self) -> int:
        return min(run.trained_on for run in self.runs)

    @property
    def own(self) -> Measurement | None:
        """At the length trained on."""
        return next((run for run in self.runs if run.length == self.trained), None)

    @property
    def learned(self) -> bool | None:
        """Whether it surely solved the length trained on; None where that is open, or its failure is excused."""
        if self.own is None:
            return None
        if self.own.surely_solved:
            return True
        return False if self.own.failed and not self.excused else None

    @property
    def excused(self) -> bool:
        """Whether its failures say nothing of the model: it did not solve its own length, and it took no step, diverged
        or was ended by patience.
        """
        solved = self.own is not None and self.own.surely_solved
        return bool(self.first.excuse or self.first.stopped) and not solved

    @property
    def far(self) -> list[Measurement]:
        """At 8 times the length trained on and more, the longest first."""
        return sorted((run for run in self.runs if run.length >= FAR * self.trained), key=lambda run: -run.length)

    @property
    def right_far_out(self) -> bool | None:
        """True when it is solved far out, no word breaks it and rows of other kinds are solved as well, False when that
        surely is not so, None where it is open.

        The longest length speaks, unless it was solved on too few rows to be sure, as streams are: then the next
        shorter one does. A network that was not tested far out is open, unless it lost what it was trained on.
        """
        if self.excused:
            return None
        if self.first.broken or (self.first.elsewhere and self.learned):
            return False
        if self.learned is not True:
            return self.learned
        speaks = next((run for run in self.far if not run.solved or run.surely_solved), None)
        if speaks is None:
            return None
        return True if speaks.surely_solved else False if speaks.failed else None

    @property
    def claim(self) -> tuple[str, str]:
        """Its kind, and what may be said of the network."""
        if self.first.broken:
            return BROKEN, self.first.broken
        if self.first.proved:
            return PROVED, f"proved to be right at every length ({self.first.proved})"
        right = [run for run in self.runs if run.surely_solved]
        if not right:
            return MEASURED, f"not solved at {self.trained:,}"
        longest = max(right, key=lambda run: run.length)
        if self.first.elsewhere:
            return MEASURED, f"solved to {longest.length:,} on random rows, and not on others ({self.first.elsewhere})"
        if longest.accuracy < 1 or not longest.rows:
            return MEASURED, f"solved to {longest.length:,}, with errors"
        excludes = f"which excludes that more than {excluded_rate(longest.rows):.2%} of such rows go wrong"
        return MEASURED, f"right on {longest.rows:,} rows to {longest.length:,}, {excludes}"


def networks(records: Iterable[Measurement]) -> list[Network]:
    """Of trained weights; what was set by hand and other metrics than accuracy are left out."""
    trained = (record for record in records if not record.witness and record.metric == "accuracy")
    shared = grouped(trained, lambda run: (run.model.lower(), run.task, run.protocol, run.trained, run.seed))
    return [Network(tuple(sorted(runs, key=lambda run: run.length))) for runs in shared.values()]


def one_way(found: Sequence[Network]) -> list[Network]:
    """One network for each seed, all trained in one way and at one length: those of which there are most seeds; of
    equals the longest. So no seed counts as the best of several networks.
    """
    ways = grouped(found, lambda one: (one.first.protocol, one.trained))
    return max(ways.values(), key=lambda same: (len(same), same[0].trained, same[0].first.protocol), default=[])


def words_tried(found: Iterable[Network]) -> str:
    """Whether hard words were tried on them, for the end of a sentence."""
    tried = [one.first.words for one in found]
    if None in tried or not tried:
        return "hard words were not tried on all of them"
    return f"none is broken by a word, of {min(number for number in tried if number is not None):,} tried at least"
