"""Families whose step is linear in the state, or that keep none.

Under bounded error they share theorem D: where no step brings two states further apart, nothing corrects an error, and
errors lead any two states together. So a task that needs its past for ever is held to a horizon and not beyond, however
right floats are whose errors are not the worst ones.
"""

from __future__ import annotations

from statetrack import spec
from statetrack.models.catalogue import ModelEntry
from statetrack.theory.predictions.answers import (
    ASSUMED,
    BOUNDED,
    CANNOT,
    CONDITIONAL,
    EVERY,
    EXACT,
    FADES,
    FLOATS,
    LOG,
    NOTHING,
    PROVED,
    Answer,
    Row,
    same,
    unknown,
)
from statetrack.theory.predictions.features import Features

MONOTONE = "steps are run one after the other and rounded monotonically"
START = "the start is learned"
TO_ONE = "a decay may round to 1"
FINITE = Answer(CANNOT, "floats have finitely many states, and the counter has no bound")
HORIZON = "linear steps correct no error, and errors of s lead two states together within |difference| / 2s steps"


def theorem_d(task: Features, others: dict[str, Answer], layers: int) -> Answer:
    """What bounded error leaves of a task: it fades where another column has weights for it, else it cannot.

    Weights that count with log T bits by a trick of rounding are not meant.
    """
    if task.unbounded is None:
        return unknown("whether old inputs matter is not known")
    if not task.unbounded:
        return unknown(f"only the last {task.reach} inputs matter, and errors do not add up over so few")
    somewhere = any(
        answer.outcome == EVERY and (column != LOG or answer.status == PROVED) for column, answer in others.items()
    )
    each = " in each layer" if layers > 1 else ""
    return Answer(FADES if somewhere else CANNOT, HORIZON + each, "theorem-d")


def with_theorem_d(task: Features, others: dict[str, Answer], layers: int, headline: str = "") -> Row:
    return Row({**others, BOUNDED: theorem_d(task, others, layers)}, headline)


def starts_learned(model: ModelEntry) -> bool:
    return spec.parse(model.name)[1].get("learned_start", "").lower() == "true"


def by_sign(task: Features, why: str) -> Answer:
    """A two-valued state as a sign that shrinks for ever; only where nothing else is asked of the step."""
    return Answer(EVERY, f"{why}, read as a sign, however small it has become", conditions=(START,))


# ---- diagonals -------------------------------------------------------------------------------------------------------


def diagonal(model: ModelEntry, task: Features) -> Row:
    """h <- a h + u with a in (0, 1), entry by entry."""
    others = {
        EXACT: _diagonal_exact(model, task),
        LOG: _diagonal_log(model, task),
        FLOATS: _diagonal_floats(model, task),
    }
    return with_theorem_d(task, others, model.layers)


def _diagonal_exact(model: ModelEntry, task: Features) -> Answer:
    if task.aperiodic is False and model.layers == 1:
        why = (
            f"under a repeated word entries are sums of powers, and no answer read from them cycles: {task.group_names}"
        )
        return Answer(CANNOT, why, "wilkie1996")
    return NOTHING


def _diagonal_log(model: ModelEntry, task: Features) -> Answer:
    if task.threshold:
        return counter("the answer is a threshold of a sum, and a decay of 1 sums")
    if task.passport.circuit.name == "NC1-complete":
        why = "a fixed number of layers stays in TC0"
        return Answer(CANNOT, why, "merrill2024", ASSUMED, ("TC0 is not NC1",))
    if task.flips and model.architecture == "mamba2" and model.layers >= 4:
        why = "it counts the flips, and a number rounded to even tells their parity (witnesses/even_counter.py)"
        return Answer(EVERY, why, "here", CONDITIONAL, (TO_ONE, "sums are rounded to the nearest even number"))
    return NOTHING


def _diagonal_floats(model: ModelEntry, task: Features) -> Answer:
    if task.balance:
        return FINITE
    if task.threshold:
        return Answer(EVERY, "a decay of 1 sums, and a sum that stops growing stays above", conditions=(TO_ONE,))
    if task.aperiodic is None:
        return unknown("whether it is star-free is not known")
    if not task.aperiodic:
        why = f"every entry moves by an increasing map, so no word cycles; the task holds {task.group_names}"
        return Answer(CANNOT, why, "sarrof2024", CONDITIONAL, (MONOTONE,))
    if task.flip_flop:
        return Answer(EVERY, "a write has decay 0, holding has decay 1", "sarrof2024", conditions=("gates saturate",))
    if model.layers == 1:
        return unknown("star-free, but one layer may be too few")
    conditions = ("layers and width are enough", "gates saturate")
    return Answer(EVERY, "the task is star-free", "sarrof2024", CONDITIONAL, conditions)


def counter(why: str) -> Answer:
    return Answer(EVERY, why, conditions=(TO_ONE,))


def signed_diagonal(model: ModelEntry, task: Features) -> Row:
    """h <- a h + u with a in (-1, 1), entry by entry."""
    if task.threshold or task.aperiodic is not False:
        return diagonal(model, task)
    return with_theorem_d(task, {FLOATS: _signed_floats(model, task)}, model.layers)


def _signed_floats(model: ModelEntry, task: Features) -> Answer:
    odd = sorted(task.group_primes - {2})
    if odd:
        why = f"real numbers on a diagonal make no cycle of {odd[0]}, at any depth; the task holds {task.group_names}"
        return Answer(CANNOT, why, "grazzi2024", CONDITIONAL, (MONOTONE,))
    if task.passport.group is None:
        return unknown("it is no group: how many layers its other parts take is not known")
    if task.twos > model.layers:
        return unknown(f"{task.twos} factors C2 may need as many layers, it has {model.layers}")
    conditions = ("width is enough", "gates saturate")
    return Answer(EVERY, f"a layer for each of {task.twos} factors C2", "krasner", CONDITIONAL, conditions)


# ---- products of reflections -----------------------------------------------------------------------------------------


def projection(model: ModelEntry, task: Features) -> Row:
    """S <- (I - b k k^T) S + b k v^T with b in (0, 1), or a product of such steps.

    One or two of them have real eigenvalues in [0, 1]: a product of two positive matrices is like a positive one. Three
    may have a negative one: projections along three axes 120 degrees apart leave -1/8 of a plane's vector.
    """
    others = {FLOATS: NOTHING, EXACT: NOTHING}
    if task.flip_flop:
        others[FLOATS] = replacing()
    if task.longest_period > 1 and model.reflections <= 2:
        ends = f"a repeated input ends in a fixed point, not in a cycle of {task.longest_period}"
        conditions = ("rounding makes no cycle of its own",)
        others[FLOATS] = Answer(CANNOT, f"eigenvalues in [0, 1]: {ends}", "grazzi2024", CONDITIONAL, conditions)
        if model.layers == 1:
            others[EXACT] = Answer(CANNOT, f"eigenvalues in [0, 1]: {ends}, however it is read", "wilkie1996")
    return with_theorem_d(task, others, model.layers)


def replacing() -> Answer:
    return Answer(EVERY, "a write with b = 1 replaces, b = 0 holds", conditions=("gates saturate",))


def reflections(model: ModelEntry, task: Features) -> Row:
    """S <- H_r ... H_1 S + writes, H = I - b k k^T with b in (0, 2): b may come as near to 2 as one likes."""
    if model.layers > 1 and not task.flip_flop:
        return with_theorem_d(task, {FLOATS: unknown("the count of reflections speaks of one layer")}, model.layers)
    others = {EXACT: _reflections_exact(model, task), FLOATS: _reflections_floats(model, task)}
    row = with_theorem_d(task, others, model.layers)
    if row[BOUNDED].outcome == CANNOT and represented(model, task):
        why = f"{task.representation}: right to any chosen length; but {HORIZON}"
        return Row({**row.answers, BOUNDED: Answer(FADES, why, "theorem-d")})
    return row


def represented(model: ModelEntry, task: Features) -> bool:
    """Whether a faithful representation fits the model's reflections, heads and size of state."""
    least, rows = task.reflections, int(model.options.get("n_state", 0))
    if least is None:
        return False
    in_one = model.reflections >= least.least and rows >= least.dimension
    return in_one or (model.reflections >= least.each and model.heads >= least.heads and rows >= least.largest)


def readable(task: Features) -> tuple[str, ...]:
    """Signs, and places on a sphere, are read by one linear map: any of them alone, and not any set of them."""
    return () if task.one_class_each else ("a linear map can read the answers",)


def _one_letter(model: ModelEntry, task: Features) -> Answer | None:
    """One symmetric step: real eigenvalues, so under a repeated input no answer has a period above 2."""
    if model.layers > 1 or model.reflections > 1 or task.longest_period <= 2:
        return None
    why = f"one reflection is symmetric: under a repeated input only the periods 1 and 2, not {task.longest_period}"
    return Answer(CANNOT, f"{why}, however it is read", "wilkie1996")


def _reflections_exact(model: ModelEntry, task: Features) -> Answer:
    symmetric, least = _one_letter(model, task), task.reflections
    if symmetric is not None:
        return symmetric
    if least is None:
        return NOTHING
    if represented(model, task):
        if task.flips:
            return by_sign(task, "a reflection with b < 2 flips a number and shrinks it")
        return unknown("right to any chosen length, with b near enough to 2; whether one b serves all is not known")
    if model.reflections >= least.each:
        return unknown(f"its parts take {least.heads} heads, it has {model.heads}")
    if not least.exact:
        return unknown(f"{least.each} reflections are enough; whether {model.reflections} are is not known")
    condition = ("the transitions represent the group",)
    return Answer(CANNOT, f"{least.each} reflections are needed", "here", CONDITIONAL, condition)


def _reflections_floats(model: ModelEntry, task: Features) -> Answer:
    if task.flip_flop:
        return replacing()
    if task.elementary_two and represented(model, task):
        why = f"a sign for each of {task.twos} factors C2, along an axis: b = 2 flips it without rounding"
        gate = (TO_ONE,) if model.gated else ()
        return Answer(EVERY, why, conditions=("b may round to 2", *gate, START, *readable(task)))
    if task.reflections is None:
        return unknown("the task is no group, or too large a one")
    return unknown("rounding adds up, as nothing corrects it")


def published_linear(model: ModelEntry, task: Features) -> Row:
    """S <- d S + k (v - S^T k)^T with d in (0, 1): eigenvalues d and d - 1."""
    others = {EXACT: _one_letter(model, task) or NOTHING, FLOATS: NOTHING}
    if task.flips:
        others = {EXACT: by_sign(task, "d - 1 flips a number and d keeps it"), FLOATS: rounding_to_ends("v - s")}
    elif task.flip_flop:
        others[FLOATS] = Answer(
            EVERY, "with d = 1 a write replaces, and a key that is not read holds", conditions=(TO_ONE,)
        )
    return with_theorem_d(task, others, model.layers, BOUNDED)


def rounding_to_ends(flip: str) -> Answer:
    why = f"d = 0 flips, s <- {flip}, and d = 1 holds"
    return Answer(EVERY, why, "here", CONDITIONAL, ("d may round to 0 and 1",))


def gain_linear(model: ModelEntry, task: Features) -> Row:
    """S <- a S + k (v - b S^T k)^T with a in (0, 2), b in (0, 4): a = 1 and b = 2 lie inside, and reflect exactly."""
    others = {EXACT: _one_letter(model, task) or NOTHING, FLOATS: NOTHING}
    if model.layers == 1 and represented(model, task):
        why, conditions = f"{task.representation}, with a = 1 and b = 2", (START, *readable(task))
        others[EXACT] = Answer(EVERY, why, "cartan", conditions=conditions)
    if task.elementary_two and represented(model, task):
        why = f"a sign for each of {task.twos} factors C2, along an axis, with a = 1 and b = 2"
        others[FLOATS] = Answer(EVERY, why, conditions=(START, *readable(task)))
    elif task.flip_flop:
        others[FLOATS] = Answer(EVERY, "with a = b = 1 a write replaces, and a key that is not read holds")
    grows = "steps may make differences grow, which theorem D leaves out; a state that grows overflows in floats"
    return Row({**others, BOUNDED: unknown(grows)})


# ---- a fixed matrix, or no state -------------------------------------------------------------------------------------


def fixed_linear(model: ModelEntry, task: Features) -> Row:
    """h <- A h + B x with one A, and a threshold of C h."""
    others = {EXACT: _fixed_exact(model, task), LOG: NOTHING, FLOATS: FINITE if task.balance else NOTHING}
    if task.threshold and (model.bias or not task.balance):
        others[LOG] = counter("the answer is a threshold of a weighted sum of the inputs")
        if not task.balance:
            others[FLOATS] = counter("a sum that stops growing stays above the threshold")
    if task.flips and task.task.inputs == 1:
        others[FLOATS] = others[EXACT]
    bounded = theorem_d(task, others, 1)
    if bounded.decided:
        bounded = Answer(bounded.outcome, bounded.why, bounded.source, CONDITIONAL, ("powers of A stay bounded",))
    return Row({**others, BOUNDED: bounded}, EXACT if others[EXACT].decided else "")


def _fixed_exact(model: ModelEntry, task: Features) -> Answer:
    if task.quasi_aperiodic is False:
        why = "a sum against a threshold is monotone in a count, and words of one length make a count modulo m here"
        return Answer(CANNOT, why)
    if task.balance and task.task.inputs == 2 and not model.bias:
        if starts_learned(model):
            return Answer(EVERY, "A has a Jordan block that moves a learned start by -1/2 in every step, and 1s add 1")
        why = (
            "without a bias a single 1, just read, would have to be above the threshold at t = 2 and below it at t = 3"
        )
        return Answer(CANNOT, why, conditions=("the start is 0",))
    if task.flips and task.task.inputs == 1:
        # Where the one token there is adds nothing, h must begin away from 0.
        return Answer(EVERY, "h <- c - h alternates", conditions=() if model.bias else (START,))
    if task.flip_flop and task.passport.states == 2:
        return Answer(EVERY, "h <- h/2 +- 1 writes a sign, and h <- h/2 holds it, however small", conditions=(START,))
    return unknown("whether the answers are thresholds of weighted sums is not known")


def memoryless(model: ModelEntry, task: Features) -> Row:
    """y = f(x_t)."""
    if task.reach is not None and task.reach <= 1:
        return same(Answer(EVERY, "the present input decides the answer", "definition"))
    return same(Answer(CANNOT, "the answer depends on earlier inputs, which it does not see", "definition"))
