"""What each task asks, in words that need no number of a class: one entry a task, filled in from its parameters.

A task without an entry is told by the first paragraph of its own docstring. Every description is followed by an example
that the task itself works out, so words and machine cannot part.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from string import ascii_lowercase
from typing import Any

from statetrack.tasks import Task

MOST_STEPS = 400  # the steps of an automaton that are written out

BITS = "Each input is a bit, 0 or 1."
NUMBERS = "Each input is an integer from 0 to 99."


def _variables(task: Any) -> str:
    names = ", ".join(ascii_lowercase[: task.v])
    return (
        f"There are {task.v} variables ({names}), all 0 at the start. Each input sets a variable to a value, copies one"
        " variable to another ('copy a to b' gives b the value of a), or swaps two of them. Answer with the current"
        f" value of {ascii_lowercase[task.query]}."
    )


def _cups(task: Any) -> str:
    about = f"There are {task.n} cups in a row, numbered from 0. Each input swaps what lies under two cups."
    if task.items == "one":
        return f"{about} A ball starts under cup 0. Answer with the cup that the ball is under now."
    return (
        f"{about} Item i starts under cup i. Answer with the cups of items 0, 1, 2, ... in this order, separated by"
        " single spaces."
    )


def _dyck(task: Any) -> str:
    kinds = " ".join("([{<"[i] + ")]}>"[i] for i in range(task.kinds))
    return (
        f"Each input is one bracket, of the kinds {kinds}. Answer with the innermost bracket that is still open, with"
        f" '{task.answer_text(0)}' if none is open, and with '{task.answer_text(task.kinds + 1)}' from the first"
        f" mistake on. A mistake is a closing bracket that does not fit, or more than {task.depth} open at once."
    )


def _automaton(task: Any) -> str:
    machine = task.machine
    if len(machine.steps) > MOST_STEPS:
        return "A machine with too many steps to list moves from state to state. Answer with the state's output."
    steps = "; ".join(f"{state}, {symbol} -> {after}" for (state, symbol), after in machine.steps.items())
    given = "; ".join(f"{state}: {answer}" for state, answer in machine.answers.items() if answer is not None)
    return (
        f"A machine starts in state {machine.start}. Each input moves it, as follows (state, input -> next state):"
        f" {steps}. Answer with the output of the state it is in: {given}."
    )


WORDS: dict[str, str | Callable[[Any], str]] = {
    "rtc": f"{BITS} Answer 1 if at least half of the bits so far are ones, else 0.",
    "txc": f"{BITS} Answer with the parity of the bits so far: 1 if the number of ones is odd, 0 if it is even.",
    "fsm": BITS + " Answer 1 as soon as at least {task.k} ones have been shown, and ever after; before that, 0.",
    "xor_lag": BITS + " Answer with the exclusive or of the newest bit and the bit {task.k} inputs before it; bits"
    " before the first count as 0.",
    "mod_counter": BITS + " Answer with the number of ones so far, modulo {task.m}.",
    "flip_flop": "A memory holds one bit, 0 at the start. Each input sets it ('set 0', 'set 1') or leaves it ('hold')."
    " Answer with the bit that it holds now.",
    "dyck": _dyck,
    "cycle_navigation": "You stand on a circle of {task.m} places, numbered from 0, at place 0. Each input"
    " is a move: 'right' goes to the next higher number (from the last place to 0), 'left' to the next lower (from 0 to"
    " the last place), 'stay' nowhere. Answer with the number of your place.",
    "even_pairs": f"{BITS} Count the pairs of neighbouring bits that differ. Answer 0 if their number is even, 1 if it"
    " is odd.",
    "modular_arithmetic": "Each input is the next piece of an expression of numbers and the operators + - *, where *"
    " binds stronger than + and -. Answer with the value so far, modulo {task.m} (never negative). You are"
    " asked after numbers only.",
    "regex": "Each input is one character. Answer 'yes' if the whole text so far matches the regular expression"
    " {task.pattern} from its beginning to its end, else 'no'.",
    "automaton": _automaton,
    "track_the_stat.median": "Report the running median of all integers shown so far. The median is the middle value"
    " once the integers are put in order. When their count is even there are two middle values, and the median is the"
    " arithmetic mean of these two, which may end in .5.",
    "track_the_stat.mode": "Report the running mode of all integers shown so far. The mode is the value that has been"
    " shown most often. When several values share the highest count, report the largest of them.",
    "stream.max": f"{NUMBERS} Answer with the largest integer so far.",
    "stream.min": f"{NUMBERS} Answer with the smallest integer so far.",
    "stream.distinct": f"{NUMBERS} Answer with how many different integers have been shown so far.",
    "stream.sum_mod": NUMBERS + " Answer with the sum of all integers so far, modulo {task.m}.",
    "stream.xor": "Each input is an integer. Answer with the bitwise exclusive or of all integers so far, in decimal.",
    "stream.majority": f"{NUMBERS} Answer 1 if at least half of the integers so far are 50 or more, else 0.",
    "stream.window_median": NUMBERS + " Answer with the median of the last {task.k} integers (of all, while there are"
    " fewer). For an even count it is the mean of the middle two.",
    "stream.echo": NUMBERS + " Answer with the integer that was shown {task.k} inputs before the newest one. You are"
    " not asked before there is one.",
    "variables": _variables,
    "cups": _cups,
    "boxes": "There are {task.objects} objects and {task.boxes} boxes, both numbered from 0. Object i starts in box i"
    " modulo {task.boxes}. Each input moves one object to a box, or pours all that is in one box into another. Answer"
    " with the box that object {task.query} is in now.",
}  # fmt: skip


def words(task: Task) -> str:
    """What the task asks.

    >>> from statetrack.tasks import task
    >>> words(task("mod_counter[m=3]"))
    'Each input is a bit, 0 or 1. Answer with the number of ones so far, modulo 3.'
    """
    entry = WORDS.get(task.base_name)
    if entry is None:
        return " ".join((inspect.getdoc(type(task)) or task.name).partition("\n\n")[0].split())
    return entry(task) if callable(entry) else entry.format(task=task)
