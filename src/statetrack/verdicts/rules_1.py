"""Rules 1, by which verdicts were given before rules 2 (docs/claims.md says what was wrong with them). They stay as
they were, so that what was said of cells that were planned under them can be shown beside what is said now.

    solved      a run is surely solved when it counts as solved, its interval lies above .98 and above its floor, and
                the floor of its last positions is below .99; surely not solved when it does not count as solved and
                its interval lies below .99; else unclear
    far         at least 8 times the length that the run was trained on; for weights set by hand, 10,000 steps
    seeds       a claim about training needs 3 seeds, and is decided by more than half of them

A claim that weights exist is confirmed by weights that solve the task far out, be they set by hand or found by
training. Failed training never refutes it. A claim that no weights exist is refuted by such weights, and never
confirmed by failures. A claim about training ignores weights that were set by hand.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from statetrack.formatting import fixed
from statetrack.models.catalogue import lookup
from statetrack.theory.predictions.predict import CANNOT, EVERY, FADES, GROWS, UNKNOWN, Prediction
from statetrack.verdicts.documents import DESIGN, AccuracyTest, DocumentPrediction
from statetrack.verdicts.measurements import (
    FAR,
    SEEDS,
    WITNESS_STEPS,
    Measurement,
    as_designed,
    by_seed,
    grouped,
    most,
    spread,
)  # fmt: skip
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED, Verdict

FIVES = tuple(range(5, 505, 5))  # the lengths of a sentence that names none


def judge(prediction: Prediction | DocumentPrediction, records: list[Measurement]) -> Verdict:
    if isinstance(prediction, DocumentPrediction):
        return replace(_document(prediction, records), rules=1)
    return replace(_theory(prediction, records), rules=1)


def _theory(prediction: Prediction, records: list[Measurement]) -> Verdict:
    records = [record for record in records if record.task == prediction.task and record.metric == "accuracy"]
    if prediction.outcome == UNKNOWN:
        return Verdict(UNDECIDED, "nothing was predicted", 0)
    if prediction.outcome == GROWS:
        return _grows(prediction, records)
    own = [record for record in records if record.model.lower() == prediction.model]
    return _weights(prediction, own) if prediction.about == "weights" else _training(prediction, own)


def _weights(prediction: Prediction, records: list[Measurement]) -> Verdict:
    trained = by_seed(record for record in records if not record.witness)
    by_hand = any(record.witness and record.surely_solved and record.length >= WITNESS_STEPS for record in records)
    by_training = any(far_out(runs) == "solved" for runs in trained.values())
    exist = by_hand or by_training
    found = "weights set by hand" if by_hand else "a trained network"
    if prediction.outcome == EVERY:
        if exist:
            return Verdict(CONFIRMED, f"{found} solved it far out", len(trained))
        return Verdict(UNDECIDED, "none solved it far out, which does not refute that weights exist", len(trained))
    if exist:
        return _against(prediction, f"{found} solved it far out", len(trained))
    return Verdict(UNDECIDED, "none solved it far out, which does not show that no weights exist", len(trained))


def _against(prediction: Prediction, seen: str, seeds: int) -> Verdict:
    """It was solved, though no weights should hold it on every input."""
    if prediction.rows_forget:
        return Verdict(UNDECIDED, f"{seen}, on random rows, which do not ask how long a state is held", seeds)
    return Verdict(REFUTED, seen, seeds)


def _training(prediction: Prediction, records: list[Measurement]) -> Verdict:
    trained = by_seed(record for record in records if not record.witness)
    if len(trained) < SEEDS:
        return Verdict(UNDECIDED, f"fewer than {SEEDS} seeds were trained", len(trained))
    ends = {seed: far_out(runs) for seed, runs in trained.items()}
    solved = [end == "solved" for end in ends.values()]
    failed = [end == "not solved" for end in ends.values()]
    seeds = len(trained)
    if prediction.outcome == EVERY:
        if most(solved):
            return Verdict(CONFIRMED, f"{sum(solved)} of {seeds} seeds solved it far out", seeds)
        if most(failed):
            return Verdict(REFUTED, f"{sum(failed)} of {seeds} seeds did not solve it far out", seeds)
    if prediction.outcome == CANNOT:
        if any(solved):
            return _against(prediction, f"{sum(solved)} of {seeds} seeds solved it far out", seeds)
        if all(failed):
            return Verdict(CONFIRMED, f"no seed solved it far out; {_above_floor(trained)}", seeds)
    if prediction.outcome == FADES:
        faded = [end == "not solved" and _faded(trained[seed]) for seed, end in ends.items()]
        if most(solved):
            return _against(prediction, f"{sum(solved)} of {seeds} seeds solved it far out", seeds)
        if most(faded):
            return Verdict(CONFIRMED, f"{sum(faded)} of {seeds} seeds solved a short length and lost it far out", seeds)
        if not any(_solved_first(runs) for runs in trained.values()):
            return Verdict(UNDECIDED, "no seed solved what a guess does not, at the shortest length", seeds)
    return Verdict(UNDECIDED, "seeds or intervals do not agree", seeds)


def _grows(prediction: Prediction, records: list[Measurement]) -> Verdict:
    """More depth must solve longer sequences, and no depth the longest."""
    depths: dict[int, list[Measurement]] = {}
    for record in records:
        model = lookup(record.model)
        if model is not None and model.family == prediction.family and not record.witness:
            depths.setdefault(model.layers, []).append(record)
    enough = {layers: runs for layers, runs in sorted(depths.items()) if len(by_seed(runs)) >= SEEDS}
    seeds = sum(len(by_seed(runs)) for runs in enough.values())
    if len(enough) < 2:
        return Verdict(UNDECIDED, f"fewer than two depths with {SEEDS} seeds each", seeds)
    reach = [_reach(runs) for runs in enough.values()]
    longest = max(max(_well_tested(runs), default=0) for runs in enough.values())
    shown = ", ".join(f"{layers} layers {length}" for layers, length in zip(enough, reach))
    if all(length == longest for length in reach):
        refutes = prediction.about == "training" or longest >= WITNESS_STEPS
        return Verdict(REFUTED if refutes else UNDECIDED, f"every depth solved the longest length, {longest}", seeds)
    if all(a < b for a, b in pairwise(reach)) and reach[-1] < longest:
        return Verdict(CONFIRMED, f"longest length solved: {shown}", seeds)
    if reach[-1] < reach[0] and prediction.about == "training":
        return Verdict(REFUTED, f"longest length solved: {shown}", seeds)
    return Verdict(UNDECIDED, f"longest length solved: {shown}", seeds)


def far_out(runs: list[Measurement]) -> str:
    """How one seed did far beyond the length trained on: solved, not solved, or unclear: not far, or not sure.

    Trained at several lengths, it solved it if one of the networks did, and did not if all that were tested far out
    surely did not.
    """
    ends = [end for network in _networks(runs) if (end := _far_out(network)) is not None]
    if "solved" in ends:
        return "solved"
    return "not solved" if ends and set(ends) == {"not solved"} else "unclear"


def _networks(runs: list[Measurement]) -> list[list[Measurement]]:
    """The results of one seed, apart by how and at which length it was trained."""
    return list(grouped(runs, lambda record: (record.trained, record.protocol)).values())


def _far_out(network: list[Measurement]) -> str | None:
    """By its longest length; None where none is far. One that was solved on too few rows to be sure, as streams are,
    leaves the word to the next shorter one.
    """
    far = FAR * min(record.trained_on for record in network)
    tested = sorted((record for record in network if record.length >= far), key=lambda record: -record.length)
    if not tested:
        return None
    return next((record.state for record in tested if not (record.solved and record.state == "unclear")), "unclear")


def _solved_first(runs: list[Measurement]) -> bool:
    """Whether a network of this seed solved its shortest length."""
    return any(min(network, key=lambda record: record.length).surely_solved for network in _networks(runs))


def _faded(runs: list[Measurement]) -> bool:
    return any(_solved_first(network) and _far_out(network) == "not solved" for network in _networks(runs))


def _reach(runs: list[Measurement]) -> int:
    """The longest length that most seeds solved, in one of their networks; 0 for none."""
    tested = _well_tested(runs)
    for length in sorted(tested, reverse=True):
        if most([any(record.surely_solved for record in seed) for seed in tested[length].values()]):
            return length
    return 0


def _well_tested(runs: list[Measurement]) -> dict[int, dict[int, list[Measurement]]]:
    """The lengths at which there are seeds enough, and the records of each seed there."""
    lengths = {record.length for record in runs}
    of = {length: by_seed(record for record in runs if record.length == length) for length in lengths}
    return {length: seeds for length, seeds in of.items() if len(seeds) >= SEEDS}


def _above_floor(trained: dict[int, list[Measurement]]) -> str:
    last = [max(runs, key=lambda record: record.length) for runs in trained.values()]
    ahead = max(record.accuracy - record.floor for record in last)
    return f"the best ended {ahead:+.3f} from its floor"


def _document(prediction: DocumentPrediction, records: list[Measurement]) -> Verdict:
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
    lengths = test.lengths or FIVES
    return [record for record in found if record.length in lengths and not record.witness]


def _seeds_at(records: list[Measurement], length: int) -> dict[int, list[Measurement]]:
    return by_seed(record for record in records if record.length == length)


def _decided(yes: list[bool], no: list[bool], why: str) -> tuple[str, str]:
    return (CONFIRMED if most(yes) else REFUTED if most(no) else UNDECIDED), why


def _at(test: AccuracyTest, mine: list[Measurement], others: list[Measurement], length: int) -> tuple[str, str]:
    """The vote at one length."""
    here = [record for record in mine if record.length == length]
    there = [record for record in others if record.length == length]
    value, shown = test.value, spread(here)
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
    shown = f"{shown} against {spread(there)}"
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
    shown = f"{spread([a for a, _ in pairs])} at {lengths[0]}, {spread([b for _, b in pairs])} at {lengths[-1]}"
    falls = [b.high < a.low for a, b in pairs]
    if test.kind == "degrades":
        shown += f", surely lower with {sum(falls)} of {len(falls)} seeds"
        return _decided(falls, [b.high >= a.low and b.accuracy >= a.accuracy for a, b in pairs], shown)
    apart = [max(a.low - b.high, b.low - a.high) > test.value for a, b in pairs]
    return _decided([abs(a.accuracy - b.accuracy) <= test.value for a, b in pairs], apart, shown)
