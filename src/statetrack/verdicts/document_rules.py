"""How results decide what the documents predict. Each seed gives one vote at each length; more than half decide."""

from __future__ import annotations

from collections import Counter

from statetrack.formatting import fixed
from statetrack.verdicts.documents import DESIGN, AccuracyTest, DocumentPrediction
from statetrack.verdicts.measurements import SEEDS, Measurement, by_seed, most
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED, Verdict


def judge(prediction: DocumentPrediction, records: list[Measurement]) -> Verdict:
    test, argument = prediction.test, " ".join(prediction.argument)
    if test is None:
        if prediction.false:
            return Verdict(REFUTED, argument, 0, by_argument=True)
        return Verdict(UNDECIDED, "no accuracy decides it", 0)
    if prediction.document == DESIGN:
        records = as_designed(records)
    mine, others = _of(records, test.model, test), _of(records, test.other, test)
    lengths = sorted({record.length for record in mine if len(_seeds_at(mine, record.length)) >= SEEDS})
    seeds = len(by_seed(mine))
    if not lengths and prediction.false:
        return Verdict(REFUTED, argument + _seen(mine + others, " Seen: "), seeds, by_argument=True)
    if not lengths:
        return Verdict(UNDECIDED, _too_few(test.model, test.task) + _seen(mine + others), seeds)
    if test.kind in ("degrades", "flat"):
        return Verdict(*_along(test, mine, lengths), seeds)
    votes = [_at(test, mine, others, length) for length in lengths]
    for outcome in (REFUTED, UNDECIDED):
        for (vote, why), length in zip(votes, lengths):
            if vote == outcome:
                return Verdict(outcome, f"at {length}: {why}", seeds)
    return Verdict(CONFIRMED, f"at {', '.join(map(str, lengths))}: {votes[-1][1]}", seeds)


def as_designed(records: list[Measurement]) -> list[Measurement]:
    """The document trains a network at each length, by a protocol of its own. So what a network does beyond its length
    is not meant, and another protocol stands in only for a model and task on which that one was not run.
    """
    there = [record for record in records if record.trained_on == record.length]
    protocols: dict[tuple[str, str], Counter[str]] = {}
    for record in there:
        protocols.setdefault((record.model, record.task), Counter())[record.protocol] += 1
    chosen = {of: "design" if "design" in held else held.most_common(1)[0][0] for of, held in protocols.items()}
    return [record for record in there if record.protocol == chosen[record.model, record.task]]


def _too_few(model: str, task: str) -> str:
    return f"fewer than {SEEDS} seeds of {model} on {task} trained at a length it speaks of"


def _seen(records: list[Measurement], lead: str = "; seen: ") -> str:
    """What little was seen stands beside the reason why it does not decide."""
    ordered = sorted(records, key=lambda record: (record.length, record.seed))
    shown = [f"{record.model} {fixed(record.accuracy)} at {record.length}" for record in ordered]
    return lead + ", ".join(shown) if shown else ""


def _of(records: list[Measurement], model: str, test: AccuracyTest) -> list[Measurement]:
    named = (model, test.task, test.metric)
    found = [record for record in records if (record.model.lower(), record.task, record.metric) == named]
    return [record for record in found if record.length in test.lengths and not record.witness]


def _seeds_at(records: list[Measurement], length: int) -> dict[int, list[Measurement]]:
    return by_seed(record for record in records if record.length == length)


def _decided(yes: list[bool], no: list[bool], why: str) -> tuple[str, str]:
    return (CONFIRMED if most(yes) else REFUTED if most(no) else UNDECIDED), why


def _at(test: AccuracyTest, mine: list[Measurement], others: list[Measurement], length: int) -> tuple[str, str]:
    """The vote at one length."""
    here = [record for record in mine if record.length == length]
    there = [record for record in others if record.length == length]
    value, shown = test.value, _spread(here)
    if test.kind == "about":
        low, high = value - test.tolerance, value + test.tolerance
        inside = [low <= record.accuracy <= high for record in here]
        outside = [record.high < low or record.low > high for record in here]
        return _decided(inside, outside, f"{shown}, predicted {value:.2f}")
    if test.kind == "at least":
        below = [record.high < value for record in here]
        if not most(below) and all(record.floor >= value for record in here):
            return UNDECIDED, f"the floor {fixed(here[0].floor)} gives it without any skill"
        return _decided([record.low >= value for record in here], below, f"{shown}, predicted at least {value:.2f}")
    if test.kind == "at most":
        above = [record.low > value for record in here]
        return _decided([record.high <= value for record in here], above, f"{shown}, predicted at most {value:.2f}")
    if len(by_seed(there)) < SEEDS:
        return UNDECIDED, _too_few(test.other, test.task) + _seen(there)
    pairs = [(one, two) for one in here for two in there]
    shown = f"{shown} against {_spread(there)}"
    if test.kind == "gap":
        ahead = [one.low - two.high >= value for one, two in pairs]
        behind = [one.high - two.low < value for one, two in pairs]
        return _decided(ahead, behind, f"{shown}, predicted a gap of {value:.2f}")
    close = [abs(one.accuracy - two.accuracy) <= value for one, two in pairs]
    apart = [max(one.low - two.high, two.low - one.high) > value for one, two in pairs]
    return _decided(close, apart, f"{shown}, predicted within {value:.2f}")


def _along(test: AccuracyTest, mine: list[Measurement], lengths: list[int]) -> tuple[str, str]:
    """The votes of the seeds that were measured at the shortest and at the longest length."""
    if len(lengths) < 2:
        return UNDECIDED, "one length only"
    first, last = _seeds_at(mine, lengths[0]), _seeds_at(mine, lengths[-1])
    pairs = [(first[seed][0], last[seed][0]) for seed in first if seed in last]
    shown = f"{_spread([a for a, _ in pairs])} at {lengths[0]}, {_spread([b for _, b in pairs])} at {lengths[-1]}"
    falls = [b.high < a.low for a, b in pairs]
    if test.kind == "degrades":
        shown += f", surely lower with {sum(falls)} of {len(falls)} seeds"
        return _decided(falls, [b.high >= a.low and b.accuracy >= a.accuracy for a, b in pairs], shown)
    apart = [max(a.low - b.high, b.low - a.high) > test.value for a, b in pairs]
    return _decided([abs(a.accuracy - b.accuracy) <= test.value for a, b in pairs], apart, shown)


def _spread(records: list[Measurement]) -> str:
    accuracies = [record.accuracy for record in records]
    return f"{fixed(min(accuracies))} to {fixed(max(accuracies))}"
