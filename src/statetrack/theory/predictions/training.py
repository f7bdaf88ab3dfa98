"""What training finds: not what does not exist, and for the rest what was measured before."""

from __future__ import annotations

from statetrack.models.catalogue import ModelEntry
from statetrack.theory.predictions.answers import CANNOT, CONDITIONAL, EVERY, FADES, GROWS, MEASURED, Answer, unknown
from statetrack.theory.predictions.features import Features


def found(model: ModelEntry, task: Features, weights: Answer) -> Answer:
    """What does not exist cannot be found; for the rest, what was measured before."""
    if weights.outcome in (CANNOT, FADES, GROWS) or model.family == "memoryless":
        return weights
    measured = _measured(model, task, weights.outcome == EVERY)
    return measured or unknown("no earlier measurement of this family on such a task is known here")


def _measured(model: ModelEntry, task: Features, exist: bool) -> Answer | None:
    """`exist`: it is known that weights do."""
    group, two_states = task.passport.group, task.passport.states == 2
    if model.family == "reflections" and exist and task.aperiodic is False:
        return _seen(FADES, "linear: nothing corrects an error")
    if model.family == "gain" and exist and two_states and task.aperiodic is False:
        return _seen(EVERY, "parity was held to 4,096 from training to 64, in four of four")
    if model.family == "gain-reflections" and exist and group is not None:
        if group.name == "S3" and model.reflections == 2:
            return _seen(EVERY, "S3 was held to 512 from training to 32")
        if group.name == "A5" and model.reflections == 4:
            return _seen(FADES, "A5 was solved at 32 and lost by 512")
    if model.family == "fixed-linear" and exist and task.threshold:
        why = "a linear logit: training is a convex problem once A sums"
        return Answer(EVERY, why, "here", CONDITIONAL, ("A sums from the start, as it does here",))
    if model.cell == "lstm" and task.task.name in ("txc", "cycle_navigation", "even_pairs", "modular_arithmetic"):
        return _seen(EVERY, "an LSTM trained to 40 scored 100 to 256", "pdssm")
    if model.cell == "tanh" and task.task.name in ("c6_composition", "s3_composition"):
        return _seen(EVERY, "trained to 60 by doubling lengths, at least 90 % to 1000", "rnn2605")
    if model.family == "attention" and two_states and task.quasi_aperiodic is False:
        return _seen(CANNOT, "a Transformer trained on parity to 40 scored .02 (scaled) beyond", "grazzi2024")
    return None


def _seen(outcome: str, why: str, source: str = "measured") -> Answer:
    return Answer(outcome, why, source, MEASURED)
