"""Rules 2 on what the documents predict (docs/claims.md has them on one screen).

Each seed has one vote, at each length: yes, no, or open. The votes are a rate with bounds, like all that training
finds. Nothing is confirmed that a guess reaches; a sentence that says that a model fails needs training that is shown
adequate; near 1 it is errors that are compared. An argument decides only what no number can, and is a remark beside
what can be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from statetrack.formatting import fixed, shown
from statetrack.results.evaluations import SOLVED
from statetrack.verdicts import depth_law
from statetrack.verdicts.controls import adequacy
from statetrack.verdicts.documents import DIAGNOSIS, LAW, AccuracyTest, DocumentPrediction
from statetrack.verdicts.measurements import Measurement, as_designed, by_seed, spread
from statetrack.verdicts.networks import networks
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED, Verdict, undecided
from statetrack.verdicts.rates import USUALLY, Rate, rate

NEAR_ONE = 0.9  # from here on numbers are compared as errors
FACTOR = 2  # errors within this factor of one another are alike
ROOM = 0.01  # that a guess must leave below 1 for skill to be told

Pair = tuple[Measurement, Measurement]


def judge(prediction: DocumentPrediction, records: list[Measurement]) -> Verdict:
    test, argument = prediction.test, " ".join(prediction.argument)
    if prediction.judged_by == DIAGNOSIS:
        return undecided("not measured here: `statetrack diagnose` looks at it", remark=argument)
    if test is None:
        if prediction.false:
            return Verdict(REFUTED, argument, 0, by_argument=True)
        return undecided("no accuracy decides it")
    if prediction.judged_by == LAW:
        return replace(depth_law.judge(test, records), remark=argument)
    return replace(_measured(test, records), remark=argument)


def _measured(test: AccuracyTest, records: list[Measurement]) -> Verdict:
    there = as_designed(records)
    mine, others = of(there, test.model, test), of(there, test.other, test)
    if not mine:
        return undecided(f"{test.model} was not trained on {test.task} at a length it speaks of")
    seeds = len(by_seed(mine))
    lengths = sorted({run.length for run in mine})
    if test.kind in ALONG:
        return Verdict(*_along(test, mine, lengths, records), seeds)
    votes = [_at(test, mine, others, length, records) for length in lengths]
    for outcome in (REFUTED, UNDECIDED):
        for (vote, why), length in zip(votes, lengths):
            if vote == outcome:
                return Verdict(outcome, f"at {length:,}: {why}", seeds)
    missing = [f"{length:,}" for length in test.lengths if length not in lengths]
    why = f"at {', '.join(f'{length:,}' for length in lengths)}: {votes[-1][1]}"
    if missing:
        return undecided(f"{why}; {', '.join(missing)} was not run", seeds)
    return Verdict(CONFIRMED, why, seeds)


def of(records: Sequence[Measurement], model: str, test: AccuracyTest) -> list[Measurement]:
    """The runs of a model that a test speaks of."""
    named = (model, test.task, test.metric)
    found = [run for run in records if (run.model.lower(), run.task, run.metric) == named and not run.witness]
    return [run for run in found if test.speaks_of(run.length)]


@dataclass(frozen=True)
class Ballot:
    """The votes at one length; what a guess reaches; whether a yes says that some runs fail, and which."""

    votes: list[bool | None]
    shown: str
    guess: str = ""
    failing: tuple[Measurement, ...] = ()

    def decided(self, records: list[Measurement]) -> tuple[str, str]:
        found = rate(self.votes)
        counted = f"{self.shown}: {_counted(found)}"
        if found.seldom:
            return REFUTED, counted
        if found.word != USUALLY:
            return UNDECIDED, f"{counted}; {found.lacks()}{'; ' if self.guess else ''}{self.guess}"
        if self.guess:
            return UNDECIDED, f"{counted}; {self.guess}"
        if self.failing:
            adequate = adequacy(networks(self.failing), records)
            return (CONFIRMED if adequate.shown else UNDECIDED), f"{counted}; {adequate.text}"
        return CONFIRMED, counted


def _counted(found: Rate) -> str:
    return f"{found.yes} yes, {found.no} no, {found.open} open" if found.open else f"{found.yes} yes, {found.no} no"


def _at(
    test: AccuracyTest, mine: list[Measurement], others: list[Measurement], length: int, records: list[Measurement]
) -> tuple[str, str]:
    here, there = _one_each(mine, length), _one_each(others, length)
    if not test.other:
        return ALONE[test.kind](test, list(here.values())).decided(records)
    if not there:
        return UNDECIDED, f"{test.other} was not trained there; {test.model} {spread(here.values())}"
    pairs = [(run, there[seed]) for seed, run in here.items() if seed in there]
    if not pairs:
        return UNDECIDED, f"no seed of {test.model} and {test.other} is the same"
    return PAIRED[test.kind](test, pairs).decided(records)


def _one_each(runs: Sequence[Measurement], length: int) -> dict[int, Measurement]:
    """The first run of every seed at a length: a record that is given twice has one vote."""
    found = by_seed(run for run in runs if run.length == length)
    return {seed: found[seed][0] for seed in sorted(found)}


def _vote(run: Measurement, yes: bool, no: bool) -> bool | None:
    """A run that took no step or diverged has no vote, unless it solved its length all the same."""
    if run.excuse and not run.surely_solved:
        return None
    return True if yes else False if no else None


def expected(test: AccuracyTest) -> tuple[float, float]:
    """The accuracies that are about the number of a sentence. 99 % says that it is solved: more is as good.

    >>> tuple(round(end, 3) for end in expected(AccuracyTest("about", "m", "t", (), 0.95)))
    (0.9, 0.975)
    """
    error = 1 - test.value
    if test.value >= SOLVED:
        return 1 - FACTOR * error, 1.0
    if test.value >= NEAR_ONE:
        return 1 - FACTOR * error, 1 - error / FACTOR
    return test.value - test.tolerance, test.value + test.tolerance


def _about(test: AccuracyTest, here: list[Measurement]) -> Ballot:
    low, high = expected(test)
    floor = max(run.floor for run in here)
    fails = floor >= low and test.value < NEAR_ONE  # at the floor, or worse than a guess: it says that the model fails
    votes = [
        _vote(run, low <= run.accuracy <= high and (fails or _skilled(run)), run.high < low or run.low > high)
        for run in here
    ]
    guess = _guess(floor) if floor >= low and not fails else ""
    text = f"{spread(here)}, predicted {low:.3g} to {high:.3g}, floor {shown(floor)}"
    return Ballot(votes, text, guess, tuple(here) if fails else ())


def _at_least(test: AccuracyTest, here: list[Measurement]) -> Ballot:
    floor = max(run.floor for run in here)
    votes = [_vote(run, run.low >= test.value and _skilled(run), run.high < test.value) for run in here]
    text = f"{spread(here)}, predicted at least {test.value:.3g}, floor {shown(floor)}"
    return Ballot(votes, text, _guess(floor) if floor >= test.value else "")


def _at_most(test: AccuracyTest, here: list[Measurement]) -> Ballot:
    """That a model stays this low says that it fails."""
    votes = [_vote(run, run.high <= test.value, run.low > test.value and _skilled(run)) for run in here]
    return Ballot(votes, f"{spread(here)}, predicted at most {test.value:.3g}", failing=tuple(here))


def _gap(test: AccuracyTest, pairs: list[Pair]) -> Ballot:
    """Being ahead of a model says that the other one fails."""
    votes = [_both(a, b, a.low - b.high >= test.value and _skilled(a), a.high - b.low < test.value) for a, b in pairs]
    return Ballot(votes, _against(pairs, f"predicted a gap of {test.value:.2f}"), failing=tuple(b for _, b in pairs))


def _alike(test: AccuracyTest, pairs: list[Pair]) -> Ballot:
    votes = [_both(a, b, *close(a, b, test.value)) for a, b in pairs]
    return Ballot(votes, _against(pairs, f"predicted within {test.value:.2f} and above the floor"))


def _both(a: Measurement, b: Measurement, yes: bool, no: bool) -> bool | None:
    votes = [_vote(run, yes, no) for run in (a, b)]
    return None if None in votes else votes[0]


def close(a: Measurement, b: Measurement, value: float) -> tuple[bool, bool]:
    """Whether two accuracies are surely close, and whether they are surely not: near 1 by their errors. Two that are
    no better than a guess are not called alike.
    """
    apart = max(a.low - b.high, b.low - a.high) > value
    if min(a.accuracy, b.accuracy) >= NEAR_ONE:
        least, most = (1 - a.high, 1 - b.high), (1 - a.low, 1 - b.low)
        apart = apart or least[0] > FACTOR * most[1] or least[1] > FACTOR * most[0]
    return not apart and abs(a.accuracy - b.accuracy) <= value and _skilled(a) and _skilled(b), apart


def _along(
    test: AccuracyTest, mine: list[Measurement], lengths: list[int], records: list[Measurement]
) -> tuple[str, str]:
    """The votes of seeds that were trained at the shortest and at a longer length: at every longer one where it should
    be flat, else at that of most seeds, the longest of equals.
    """
    first = by_seed(run for run in mine if run.length == lengths[0])
    shared = []
    for length in lengths[1:]:
        last = by_seed(run for run in mine if run.length == length)
        shared.append([(first[seed][0], last[seed][0]) for seed in sorted(first) if seed in last])
    told = [pairs for pairs in shared if pairs]
    if test.kind == "degrades" and told:
        told = [max(told, key=lambda pairs: (len(pairs), pairs[0][1].length))]
    found = [ALONG[test.kind](test, pairs).decided(records) for pairs in told]
    for outcome in (REFUTED, UNDECIDED):
        for vote, why in found:
            if vote == outcome:
                return vote, why
    return found[-1] if found else (UNDECIDED, "no seed was trained at two lengths")


def _degrades(test: AccuracyTest, pairs: list[Pair]) -> Ballot:
    """By skill, the way from the floor to 1, since floors change with the length."""
    votes = []
    for a, b in pairs:
        room = min(1 - a.floor, 1 - b.floor) >= ROOM and _skilled(a)
        falls = room and _skill(b.high, b) < _skill(a.low, a)
        rises = room and not falls and _skill(b.accuracy, b) >= _skill(a.accuracy, a)
        votes.append(_both(a, b, falls, rises))
    return Ballot(votes, _between(pairs), failing=tuple(b for _, b in pairs))


def _flat(test: AccuracyTest, pairs: list[Pair]) -> Ballot:
    votes = [_both(a, b, *close(a, b, test.value)) for a, b in pairs]
    return Ballot(votes, f"{_between(pairs)}, predicted within {test.value:.2f} and above the floor")


def _skilled(run: Measurement) -> bool:
    """Whether the whole interval lies above what a guess scores."""
    return run.low > run.floor


def _skill(accuracy: float, run: Measurement) -> float:
    return (accuracy - run.floor) / (1 - run.floor)


def _guess(floor: float) -> str:
    return f"a guess scores {shown(floor)}, so it cannot be confirmed"


def _against(pairs: list[Pair], said: str) -> str:
    return f"{spread(a for a, _ in pairs)} against {spread(b for _, b in pairs)}, {said}"


def _between(pairs: list[Pair]) -> str:
    a, b = pairs[0]
    floors = f"floors {fixed(a.floor)} and {fixed(b.floor)}"
    return f"{spread(a for a, _ in pairs)} at {a.length:,}, {spread(b for _, b in pairs)} at {b.length:,}, {floors}"


ALONE: dict[str, Callable[[AccuracyTest, list[Measurement]], Ballot]] = {
    "about": _about, "at least": _at_least, "at most": _at_most,
}  # fmt: skip
PAIRED: dict[str, Callable[[AccuracyTest, list[Pair]], Ballot]] = {"gap": _gap, "alike": _alike}
ALONG: dict[str, Callable[[AccuracyTest, list[Pair]], Ballot]] = {"degrades": _degrades, "flat": _flat}
