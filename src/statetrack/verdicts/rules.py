"""What became of a prediction: confirmed, refuted or undecided, by one rule (docs/theory.md states it).

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

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from statetrack.models.catalogue import lookup
from statetrack.results import TrainingRecord
from statetrack.theory.predictions.predict import CANNOT, EVERY, FADES, GROWS, UNKNOWN, Prediction
from statetrack.verdicts import document_rules
from statetrack.verdicts.documents import DocumentPrediction
from statetrack.verdicts.measurements import FAR, SEEDS, WITNESS_STEPS, Measurement, by_seed, from_record, grouped, most
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED, Verdict

Result = Measurement | TrainingRecord | Mapping[str, Any]


def verdict(prediction: Prediction | DocumentPrediction, results: Iterable[Result]) -> Verdict:
    """Judge a prediction by results: the records that training writes, or plain ones with model, task, length, seed,
    accuracy, n, low, high, floor and solved.
    """
    records = [measured for result in results for measured in _read(result)]
    if isinstance(prediction, DocumentPrediction):
        return document_rules.judge(prediction, records)
    records = [record for record in records if record.task == prediction.task and record.metric == "accuracy"]
    if prediction.outcome == UNKNOWN:
        return Verdict(UNDECIDED, "nothing was predicted", 0)
    if prediction.outcome == GROWS:
        return _grows(prediction, records)
    own = [record for record in records if record.model.lower() == prediction.model]
    return _weights(prediction, own) if prediction.about == "weights" else _training(prediction, own)


def _read(result: Result) -> list[Measurement]:
    if isinstance(result, Measurement):
        return [result]
    if isinstance(result, TrainingRecord) or "cell" in result:
        return from_record(result)
    return [Measurement.read(result)]


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
