"""What theory predicts for a model on a task, before anything runs.

Outcomes, about the weights that exist ("weights") or about those that training finds ("training"):

    every length     some weights solve the task at every length
    grows with depth  each depth solves it up to some length, more depth further
    fades            it is solved at short lengths and lost at long ones
    cannot           no weights solve it at every length
    unknown          nothing that is known here decides it

>>> import statetrack as st
>>> predict("mamba2-32l", st.task("txc")).outcome
'cannot'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.models.catalogue import ModelEntry, find
from statetrack.tasks.base import Task
from statetrack.theory.predictions.features import Features
from statetrack.theory.predictions.sources import SOURCES

EVERY, GROWS, FADES, CANNOT, UNKNOWN = "every length", "grows with depth", "fades", "cannot", "unknown"
OUTCOMES = (EVERY, GROWS, FADES, CANNOT, UNKNOWN)
ABOUT = ("weights", "training")


@dataclass(frozen=True)
class Prediction:
    """One outcome with its reason.

    `precision` is that of the numbers assumed: fixed, log T bits, or exact. `status` is "proved", "assumed" (it rests
    on a conjecture), "conditional" (on what `conditions` say), "measured" (elsewhere, before) or "open".
    """

    model: str
    task: str
    about: str
    outcome: str
    why: str
    source: str
    precision: str
    status: str
    conditions: tuple[str, ...] = ()
    family: str = ""
    layers: int = 1
    rows_forget: bool = False  # random inputs soon wipe out the past, so being right on rows does not refute it

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def text(self) -> str:
        ending = f" (if {'; '.join(self.conditions)})" if self.conditions else ""
        marks = f"{self.about}, {self.status}, {self.precision} precision"
        return f"{self.outcome}: {self.why}{ending} [{marks}; {SOURCES[self.source]}]"


@dataclass(frozen=True)
class _Answer:
    outcome: str
    why: str
    source: str = "here"
    precision: str = "fixed"
    status: str = "proved"
    conditions: tuple[str, ...] = ()


def predict(model_name: str, task: Task, about: str = "weights") -> Prediction:
    """What theory says of this model on this task: about weights that exist, or about those that training finds."""
    if about not in ABOUT:
        raise BadInput(f"about={about!r} should be {' or '.join(map(repr, ABOUT))}")
    model, features = find(model_name), Features(task)
    if model.family not in RULES:
        answer = _open("nothing is known here of what this model's recurrence can do")
    else:
        weights = RULES[model.family](model, features)
        answer = weights if about == "weights" else _training(model, features, weights)
    told = dataclasses.asdict(answer) | {"family": model.family, "layers": model.layers}
    if answer.outcome in (CANNOT, FADES) and answer.source != "definition" and features.forgets:
        told |= {"rows_forget": True, "why": f"{answer.why}; but random inputs soon wipe out the past"}
    return Prediction(model.name, task.name, about, **told)


def _open(why: str) -> _Answer:
    return _Answer(UNKNOWN, why, "here", "fixed", "open")


def _counter(why: str) -> _Answer:
    return _Answer(EVERY, why, "here", "log T", "proved", ("a decay may round to 1",))


# ---- about weights ---------------------------------------------------------------------------------------------------


def _diagonal(model: ModelEntry, task: Features) -> _Answer:
    if task.threshold:
        return _counter("the answer is a threshold of a sum, and a decay of 1 sums")
    if task.aperiodic is None:
        return _open("whether it is star-free is not known")
    if not task.aperiodic:
        why = f"every entry moves by an increasing map, so no word cycles; the task holds {task.group_names}"
        return _Answer(CANNOT, why, "sarrof2024")
    if task.flip_flop:
        return _Answer(EVERY, "a write has decay 0, holding has decay 1", "sarrof2024", conditions=("gates saturate",))
    if model.layers == 1:
        return _open("star-free, but one layer may be too few")
    conditions = ("layers and width are enough", "gates saturate")
    return _Answer(EVERY, "the task is star-free", "sarrof2024", "fixed", "conditional", conditions)


def _squashed_diagonal(model: ModelEntry, task: Features) -> _Answer:
    if task.aperiodic is False:
        why = f"every entry moves by an increasing map, so no word cycles; the task holds {task.group_names}"
        return _Answer(CANNOT, why)
    return _contraction(task, "every step contracts, by d < 1 and by tanh")


def _contraction(task: Features, why: str) -> _Answer:
    if task.reach is not None:
        return _open(f"only the last {plural(task.reach, 'input', 'matters', 'matter')}, so that fading does no harm")
    if task.regular and task.aperiodic is None:
        return _open("whether old inputs matter is not known")
    return _Answer(FADES, f"{why}: two states come closer under every input", "here", "exact")


def _signed_diagonal(model: ModelEntry, task: Features) -> _Answer:
    if task.threshold or task.aperiodic is not False:
        return _diagonal(model, task)
    odd = sorted(task.group_primes - {2})
    if odd:
        why = f"real numbers on a diagonal make no cycle of {odd[0]}, at any depth; the task holds {task.group_names}"
        return _Answer(CANNOT, why, "grazzi2024")
    if task.passport.monoid is not None and not task.passport.monoid.complete:
        return _open("not all groups of the task are known")
    if task.twos > model.layers:
        return _open(f"{task.twos} factors C2 may need as many layers, it has {model.layers}")
    conditions = ("width is enough", "gates saturate")
    return _Answer(EVERY, f"a layer for each of {task.twos} factors C2", "krasner", "fixed", "conditional", conditions)


def _projection(model: ModelEntry, task: Features) -> _Answer:
    if task.longest_period > 1:
        why = f"eigenvalues in [0, 1]: a repeated input ends in a fixed point, not in a cycle of {task.longest_period}"
        return _Answer(CANNOT, why, "grazzi2024")
    if task.flip_flop:
        return _Answer(EVERY, "a write with b = 1 replaces, b = 0 holds", conditions=("gates saturate",))
    return _open("nothing is known of this task for eigenvalues in [0, 1]")


def _reflections(model: ModelEntry, task: Features) -> _Answer:
    r = model.reflections
    if model.layers > 1:
        return _open("the count of reflections speaks of one layer")
    if r == 1 and task.longest_period > 2:
        why = f"one reflection is symmetric: under a repeated input only the periods 1 and 2, not {task.longest_period}"
        return _Answer(CANNOT, why, "here", "exact")
    if task.flip_flop:
        return _Answer(EVERY, "a write with b = 1 replaces, b = 0 holds", conditions=("gates saturate",))
    least = task.reflections
    if least is None:
        return _open("the task is no group, or too large a one")
    if r >= least.each:
        heads = f" each in {least.heads} heads" if least.heads > 1 else ""
        why = f"a faithful real representation in which every input moves at most {least.each} dimensions{heads}"
        return _Answer(EVERY, why, "cartan", "exact", "proved", ("b may round to 2", "the state is large enough"))
    if not least.exact:
        return _open(f"{least.each} reflections are enough; whether {r} are is not known")
    condition = ("the transitions represent the group",)
    return _Answer(CANNOT, f"{least.each} reflections are needed", "here", "exact", "conditional", condition)


def _published(model: ModelEntry, task: Features) -> _Answer:
    if model.layers == 1 and task.longest_period > 2:
        return _symmetric(task)
    return _contraction(task, "every step contracts, by max(d, 1 - d) < 1")


def _symmetric(task: Features) -> _Answer:
    why = f"a symmetric tanh network under a repeated input has the periods 1 and 2 only, not {task.longest_period}"
    return _Answer(CANNOT, why, "marcus1989", "exact")


def _gain(model: ModelEntry, task: Features) -> _Answer:
    if model.layers == 1 and task.longest_period > 2:
        return _symmetric(task)
    if task.longest_period <= 2 and task.passport.group is not None and set(task.passport.group.factors) == {"C2"}:
        if task.passport.group.abelian:
            return _Answer(EVERY, "a bistable bit for each factor C2, flipped by one reflection", "here", "fixed")
        return _open("a group of order 2^k that is not abelian")
    if task.swaps == 1:
        why = "every input swaps two points: one reflection, which tanh with gain corrects"
        return _Answer(EVERY, why, conditions=("the start marks the points, by a learned start", "width is enough"))
    if task.flip_flop:
        return _Answer(EVERY, "bistable bits that a strong write sets")
    return _open("nothing is known of this task for one symmetric map with gain")


def _gain_reflections(model: ModelEntry, task: Features) -> _Answer:
    if task.swaps is not None and task.swaps <= model.reflections:
        why = f"every input is a product of at most {task.swaps} swaps of points, and tanh with gain corrects points"
        return _Answer(EVERY, why, conditions=("the state has a row for every point", "a head for every orbit"))
    needed = f"{task.swaps} swaps" if task.swaps is not None else "no group of few points"
    return _open(f"as permutations of points it takes {needed}; other ways with tanh are not known")


def _fixed_linear(model: ModelEntry, task: Features) -> _Answer:
    if task.quasi_aperiodic is False:
        why = "a sum against a threshold is monotone in a count, and words of one length make a count modulo m here"
        return _Answer(CANNOT, why, "here", "exact")
    if task.threshold and (model.bias or not task.balance):
        return _counter("the answer is a threshold of a weighted sum of the inputs")
    if task.balance and task.task.inputs == 2:
        why = (
            "without a bias a single 1, just read, would have to be above the threshold at t = 2 and below it at t = 3"
        )
        return _Answer(CANNOT, why, "here", "exact")
    return _open("whether the answers are thresholds of weighted sums is not known")


def _memoryless(model: ModelEntry, task: Features) -> _Answer:
    if task.reach is not None and task.reach <= 1:
        return _Answer(EVERY, "the present input decides the answer", "definition", "exact")
    return _Answer(CANNOT, "the answer depends on earlier inputs, which it does not see", "definition", "exact")


def _unrestricted(model: ModelEntry, task: Features) -> _Answer:
    if task.regular:
        return _Answer(EVERY, "any finite automaton, given width", "minsky1967", conditions=("width is enough",))
    if task.balance and model.cell == "lstm":
        return _Answer(EVERY, "an LSTM's cell counts", "weiss2018", "log T")
    return _open("it is no finite automaton, and the state is bounded or would need many counters")


def _attention(model: ModelEntry, task: Features) -> _Answer:
    if task.passport.circuit.name == "NC1-complete":
        why = "constant depth stays in TC0; depth log T does any automaton"
        return _Answer(GROWS, why, "merrill2023", "log T", "assumed", ("TC0 is not NC1",))
    if task.balance:
        return _Answer(EVERY, "attention to all inputs alike takes their mean", "here", "log T")
    if task.aperiodic:
        conditions = ("attention may be as sharp as hard attention", "layers are enough")
        return _Answer(EVERY, "the task is star-free", "yang2024", "log T", "conditional", conditions)
    return _open("shortcuts exist for each length (Liu et al. 2023); one set of weights for all lengths is not known")


RULES: dict[str, Callable[[ModelEntry, Features], _Answer]] = {
    "diagonal": _diagonal, "squashed-diagonal": _squashed_diagonal, "signed-diagonal": _signed_diagonal,
    "projection": _projection, "reflections": _reflections, "published": _published, "gain": _gain,
    "gain-reflections": _gain_reflections, "fixed-linear": _fixed_linear, "memoryless": _memoryless,
    "unrestricted": _unrestricted, "attention": _attention,
}  # fmt: skip


# ---- about training --------------------------------------------------------------------------------------------------


def _training(model: ModelEntry, task: Features, weights: _Answer) -> _Answer:
    """What does not exist cannot be found; for the rest, what was measured before."""
    if weights.outcome in (CANNOT, FADES, GROWS) or model.family == "memoryless":
        return weights
    seen = _measured(model, task, weights.outcome == EVERY)
    return seen or _open("no earlier measurement of this family on such a task is known here")


def _measured(model: ModelEntry, task: Features, exist: bool) -> _Answer | None:
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
    if model.family == "fixed-linear" and exist:
        why = "a linear logit: training is a convex problem once A sums"
        return _Answer(EVERY, why, "here", "log T", "conditional")
    if model.cell == "lstm" and task.task.name in ("txc", "cycle_navigation", "even_pairs", "modular_arithmetic"):
        return _seen(EVERY, "an LSTM trained to 40 scored 100 to 256", "pdssm")
    if model.cell == "tanh" and task.task.name in ("c6_composition", "s3_composition"):
        return _seen(EVERY, "trained to 60 by doubling lengths, at least 90 % to 1000", "rnn2605")
    if model.family == "attention" and two_states and task.quasi_aperiodic is False:
        return _seen(CANNOT, "a Transformer trained on parity to 40 scored .02 (scaled) beyond", "grazzi2024")
    return None


def _seen(outcome: str, why: str, source: str = "measured") -> _Answer:
    return _Answer(outcome, why, source, "fixed", "measured")
