"""Families with a nonlinearity in time, and attention.

Where steps contract, theorem A bounds how long two states stay apart under errors; with gain, a state corrects errors
and holds for ever, and theorem C says what one symmetric step cannot hold.
"""

from __future__ import annotations

import math

from statetrack import spec
from statetrack.models.catalogue import ModelEntry
from statetrack.theory.predictions import horizons
from statetrack.theory.predictions.answers import (
    ASSUMED,
    BOUNDED,
    CANNOT,
    CONDITIONAL,
    EVERY,
    EXACT,
    FADES,
    FLOATS,
    GROWS,
    LOG,
    NOTHING,
    Answer,
    Row,
    unknown,
)
from statetrack.theory.predictions.features import Features
from statetrack.theory.predictions.rules.linear import (
    FINITE,
    MONOTONE,
    START,
    TO_ONE,
    by_sign,
    readable,
    rounding_to_ends,
    starts_learned,
)

TINY = "numbers so small that tanh rounds to what it is given"


def learned_start(model: ModelEntry) -> tuple[str, ...]:
    """The condition that the start is learned, unless this model's is."""
    return () if starts_learned(model) else (START,)


# ---- steps that contract ---------------------------------------------------------------------------------------------


def contraction(task: Features, outcome: str, why: str) -> Answer:
    if task.unbounded is None:
        return unknown("whether old inputs matter is not known")
    if not task.unbounded:
        return unknown(f"only the last {task.reach} inputs matter, so that fading does no harm")
    return Answer(outcome, why, "theorem-a")


def squashed_diagonal(model: ModelEntry, task: Features) -> Row:
    """S <- tanh(d S + v k^T) with d in (0, 1), entry by entry."""
    many = " in each layer" if model.layers > 1 else ""
    why = (
        "two states come closer under every input, and errors of s lead them together within"
        f" {horizons.squashing(1e-3)} steps at s = .001{many}"
    )
    cycles = task.aperiodic is False
    if cycles:
        why = f"every entry moves by an increasing map, and {why}; the task holds {task.group_names}"
    answers = {BOUNDED: contraction(task, CANNOT if cycles else FADES, why), LOG: NOTHING, EXACT: NOTHING}
    if task.balance:
        counts = f"it sums among {TINY} (witnesses/tiny_counter.py)"
        answers[LOG] = Answer(EVERY, counts, "here", CONDITIONAL, ("d may round to 1", TINY))
    answers[FLOATS] = _squashed_floats(task)
    if task.flip_flop and task.passport.states == 2:
        answers[EXACT] = by_sign(task, "a write outweighs what was there, and d keeps it")
    return Row(answers, BOUNDED if answers[BOUNDED].decided else "")


def _squashed_floats(task: Features) -> Answer:
    if task.balance:
        return FINITE
    if task.aperiodic is False:
        why = "every entry moves by an increasing map, so no word cycles"
        but = "the CPU kernel's tanh is not increasing, and holds parity by that (witnesses/falling_pair.py)"
        return Answer(CANNOT, f"{why}; {but}", "here", CONDITIONAL, (f"tanh is increasing, and {MONOTONE}",))
    if task.flip_flop or task.threshold:
        why = f"d = 1 holds and sums among {TINY}, d = 0 overwrites"
        return Answer(EVERY, why, "here", CONDITIONAL, ("gates saturate", TINY))
    return NOTHING


def published(model: ModelEntry, task: Features) -> Row:
    """S <- tanh(d S + k (v - S^T k)^T) with d in (0, 1): eigenvalues d and d - 1."""
    size = int(model.options.get("n_state", 1))
    many = " in each layer" if model.layers > 1 else ""
    why = (
        "every step contracts, by max(d, 1 - d) < 1, and errors of s lead two states together within"
        f" {math.ceil(math.sqrt(size) / 1e-3):,} steps at s = .001{many}"
    )
    answers = {BOUNDED: contraction(task, FADES, why), EXACT: NOTHING, FLOATS: NOTHING}
    if model.layers == 1 and task.longest_period > 2:
        answers[BOUNDED] = theorem_c(task)
    if task.flips:
        answers[EXACT] = by_sign(task, "d - 1 flips a number and d keeps it (witnesses/sign.py)")
        answers[FLOATS] = rounding_to_ends(f"v - s, among {TINY}")
    return Row(answers, BOUNDED if answers[BOUNDED].decided else "")


# ---- steps with gain -------------------------------------------------------------------------------------------------


def theorem_c(task: Features) -> Answer:
    why = (
        "one symmetric step under tanh, the same input over and over: an energy falls until the state is within 2s of"
        f" what it was two steps before, so no input has a period above 2, and one here has {task.longest_period}"
    )
    return Answer(CANNOT, why, "theorem-c")


def gain(model: ModelEntry, task: Features) -> Row:
    """S <- tanh(a S + k (v - b S^T k)^T) with a in (0, 2), b in (0, 4)."""
    if model.layers == 1 and task.longest_period > 2:
        return Row({BOUNDED: theorem_c(task)}, BOUNDED)
    answer = _bits(model, task) or _swaps(model, task) or _latches(model, task)
    if answer is None:
        answer = unknown("nothing is known of this task for one symmetric step with gain")
    if answer.outcome == EVERY:
        return Row({BOUNDED: answer, EXACT: answer, FLOATS: answer})
    return Row({BOUNDED: answer})


def _bits(model: ModelEntry, task: Features) -> Answer | None:
    """A bistable bit in a head for each factor C2 of an abelian group."""
    if task.passport.group is None or set(task.passport.group.factors) != {"C2"}:
        return None
    if not task.passport.group.abelian:
        return unknown("a group of order 2^k that is not abelian")
    if task.twos > model.heads:
        return unknown(f"a bistable bit for each of {task.twos} factors C2 takes as many heads, it has {model.heads}")
    why = f"a bistable bit for each of {task.twos} factors C2, flipped by one reflection"
    return Answer(EVERY, why, conditions=(*_room(model, task.twos), *readable(task)))


def _room(model: ModelEntry, bits: int) -> tuple[str, ...]:
    """Each bit has a dimension by which a token moves it and one in which it is read, and one is the same for all."""
    return () if int(model.options.get("dim", 0)) > 2 * bits else ("dim is enough",)


def _swaps(model: ModelEntry, task: Features) -> Answer | None:
    if task.swaps != 1:
        return None
    size = int(model.options.get("n_state", 0))
    if task.orbits > model.heads:
        return unknown(f"{task.orbits} sets of points take as many heads, it has {model.heads}")
    if task.points > size:
        return unknown(f"it swaps {task.points} points, and a state of {size} rows has no row for each")
    why = "every input swaps two points: one reflection, which tanh with gain corrects (witnesses/swaps.py)"
    conditions = (*learned_start(model), "dim is enough to read it")
    return Answer(EVERY, why, "here", CONDITIONAL, conditions)


def _latches(model: ModelEntry, task: Features) -> Answer | None:
    if not task.flip_flop or task.passport.states is None:
        return None
    bits, size = max(1, math.ceil(math.log2(task.passport.states))), int(model.options.get("n_state", 0))
    if bits > size:
        return unknown(f"{bits} bits take as many columns, it has {size}")
    return Answer(EVERY, "bistable bits that a write erases and sets", conditions=_room(model, bits))


def gain_reflections(model: ModelEntry, task: Features) -> Row:
    """S <- tanh(a H_r ... H_1 S) with a in (1, 2), b_j in (0, 2)."""
    if task.swaps is None or task.swaps > model.reflections:
        needed = f"{task.swaps} swaps" if task.swaps is not None else "no group of few points"
        return Row(
            {BOUNDED: unknown(f"as permutations of points it takes {needed}; other ways with tanh are not known")}
        )
    size = int(model.options.get("n_state", 0))
    if task.orbits > model.heads:
        lacking = f"{task.orbits} sets of points take as many heads, it has {model.heads}"
        return Row({BOUNDED: unknown(lacking)})
    if task.points > size:
        return Row({BOUNDED: unknown(f"it moves {task.points} points, and a state of {size} rows has no row for each")})
    why = f"every input is a product of at most {task.swaps} swaps of points, and tanh with gain corrects points"
    conditions = (*learned_start(model), "the MLP that reads it is wide enough")
    answer = Answer(EVERY, f"{why} (witnesses/permutations.py)", "here", CONDITIONAL, conditions)
    return Row({BOUNDED: answer, EXACT: answer, FLOATS: answer})


# ---- any automaton, and attention ------------------------------------------------------------------------------------


def unrestricted(model: ModelEntry, task: Features) -> Row:
    """h <- tanh(W h + U x) and its gated forms."""
    if task.regular and task.passport.states is not None:
        answer = _automaton(model, task.passport.states * task.task.inputs + 1)
        return Row({BOUNDED: answer, EXACT: answer, FLOATS: answer})
    if task.balance and model.cell == "lstm":
        counts = Answer(EVERY, "an LSTM's cell counts", "weiss2018", conditions=(TO_ONE,))
        return Row({LOG: counts, FLOATS: FINITE}, LOG)
    if task.balance:
        why = (
            "the state is bounded and the counter is not: two counts come within 2s of each other, and errors join them"
        )
        return Row({BOUNDED: Answer(CANNOT, why), FLOATS: FINITE})
    return Row({BOUNDED: unknown("it is no finite automaton, or too large a one")})


def _automaton(model: ModelEntry, units: int) -> Answer:
    """A unit for each pair of a state and an input, and one more (witnesses/automaton.py)."""
    why, hidden = "any finite automaton, given width", int(model.options.get("hidden", 0))
    if model.cell and hidden >= units:
        return Answer(EVERY, f"{why}: {units} units are enough, it has {hidden} (witnesses/automaton.py)", "minsky1967")
    enough = f"width is enough ({units:,} units are, it has {hidden})" if model.cell else "width is enough"
    return Answer(EVERY, why, "minsky1967", CONDITIONAL, (enough,))


def attention(model: ModelEntry, task: Features) -> Row:
    """Softmax over everything so far, in a fixed number of layers."""
    positions = spec.read(spec.parse(model.name)[1].get("positions", "2048"), int, "positions")
    long_enough = (f"it has as many positions as inputs (this one has {positions:,} and refuses more)",)
    floats = Answer(CANNOT, f"it refuses more than {positions:,} inputs", "definition")
    if task.passport.circuit.name == "NC1-complete":
        why = "constant depth stays in TC0; depth log T does any automaton"
        log = Answer(GROWS, why, "merrill2023", ASSUMED, ("TC0 is not NC1", *long_enough))
    elif task.balance:
        log = Answer(EVERY, "attention to all inputs alike takes their mean", "here", CONDITIONAL, long_enough)
    elif task.aperiodic:
        conditions = ("attention may be as sharp as hard attention", "layers are enough", *long_enough)
        log = Answer(EVERY, "the task is star-free", "yang2024", CONDITIONAL, conditions)
    else:
        log = unknown("shortcuts exist for each length (Liu et al. 2023); one set of weights for all is not known")
    return Row({LOG: log, FLOATS: floats}, LOG)
