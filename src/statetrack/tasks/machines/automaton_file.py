"""Any finite automaton, from a transition table in a file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput, shortened, unknown
from statetrack.tasks.finite import Automaton, TableTask, WeightedTask, explore

KEYS = ("states", "alphabet", "start", "steps", "answers")
NO_ANSWER = ("null", "~", "")
MAX_ANSWER = 100_000
MOST_STEPS = 400  # that are written out in words


@dataclass(frozen=True)
class Machine:
    """What a file says, with every name checked; `steps` maps (state, symbol) to a state."""

    alphabet: tuple[str, ...]
    start: str
    steps: dict[tuple[str, str], str]
    answers: dict[str, int | None]

    def automaton(self, name: str) -> Automaton:
        """The smallest automaton with the same answers."""

        def step(state: str, symbol: int) -> str:
            return self.steps[state, self.alphabet[symbol]]

        return explore(self.start, step, lambda state: self.answers[state], len(self.alphabet), name).minimised()


@dataclass(frozen=True, kw_only=True)
class AutomatonFile(TableTask, WeightedTask):
    """The automaton of a YAML or JSON file, minimised: `automaton[file=lamp.yaml]`.

    A lamp whose button works only while the power is on:

        states: [off, on, dead]
        alphabet: [press, cut]
        start: off
        steps:
          off: {press: on, cut: dead}
          on: {press: off, cut: dead}
          dead: {press: dead, cut: dead}
        answers: {off: 0, on: 1, dead: 0}

    The alphabet numbers the inputs; an answer is a class 0, 1, 2, ..., or null where nothing is asked:

        inputs   0 0 0 1 0
        answers  1 0 1 0 0

    `sha256` holds the first eight digits of the file's hash. It is filled in where it is not given and checked where it
    is, so that a result names the machine and not only a path.
    """

    file: str
    sha256: str = ""
    machine: Machine = field(init=False, repr=False, compare=False, metadata={"parameter": False})

    base_name = "automaton"
    title = "automaton from a file"
    unseen = ("ask", "file")  # the hash stands for the machine, wherever its file lies

    def check(self) -> None:
        content = _content(self.file)
        digest = hashlib.sha256(content).hexdigest()[:8]
        if self.sha256 not in ("", digest):
            raise BadInput(f"{self.file} has changed: its sha256 begins with {digest}, not with {self.sha256}")
        object.__setattr__(self, "sha256", digest)
        object.__setattr__(self, "machine", read_machine(content, self.file))
        super().check()

    @cached_property
    def automaton(self) -> Automaton:
        return self.machine.automaton(self.name)

    @property
    def inputs(self) -> int:
        return len(self.machine.alphabet)

    @property
    def outputs(self) -> int:
        return 1 + max(answer for answer in self.machine.answers.values() if answer is not None)

    def symbol_text(self, symbol: int) -> str:
        return self.machine.alphabet[symbol]

    @property
    def instruction(self) -> str:
        machine = self.machine
        if len(machine.steps) > MOST_STEPS:
            return "A machine with too many steps to list moves from state to state. Answer with the state's output."
        steps = "; ".join(f"{state}, {symbol} -> {after}" for (state, symbol), after in machine.steps.items())
        given = "; ".join(f"{state}: {answer}" for state, answer in machine.answers.items() if answer is not None)
        return (
            f"A machine starts in state {machine.start}. Each input moves it, as follows (state, input -> next state):"
            f" {steps}. Answer with the output of the state it is in: {given}."
        )

    def state_text(self, seen: Sequence[int]) -> str:
        """The state's name in the file, where equal states have names of their own."""
        state = self.machine.start
        for symbol in seen:
            state = self.machine.steps[state, self.machine.alphabet[symbol]]
        return f"state {state}"


def _content(path: str) -> bytes:
    from statetrack import plain_yaml

    try:
        return plain_yaml.content(Path(path))
    except (OSError, ValueError) as error:  # a NUL in its name, too
        raise BadInput(f"automaton: cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def read_machine(content: bytes, path: str) -> Machine:
    """The machine that a file's content describes; what is wrong with it is named with its place."""
    table = _parse(content, path)
    if not isinstance(table, dict):
        raise BadInput(f"{path} should be a table with the keys {', '.join(KEYS)}")
    for key in table:
        if key not in KEYS:
            raise unknown(f"key of {path}", key, KEYS)
    for key in KEYS:
        if key not in table:
            raise BadInput(f"{path} has no {key!r}; it needs {', '.join(KEYS)}")
    states, alphabet = (_names(table[key], key, path) for key in ("states", "alphabet"))
    return Machine(
        alphabet=alphabet,
        start=_known(table["start"], states, f"start of {path}"),
        steps=_steps(table["steps"], states, alphabet, path),
        answers=_answers(table["answers"], states, path),
    )


def _parse(content: bytes, path: str) -> Any:
    """The content as tables and lists of text: 0, on and null are names like any other."""
    from statetrack import plain_yaml

    if not path.lower().endswith(".json"):
        return plain_yaml.read(content, path, words=True)  # safe: it makes nothing but text
    try:
        return _as_text(json.loads(content, parse_int=str))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {' '.join(str(error).split())}") from error


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_text(part) for part in value]
    return value if isinstance(value, str) else json.dumps(value)


def _names(value: Any, key: str, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise BadInput(f"{key!r} in {path} should be a list of names")
    for name, count in Counter(value).items():
        if count > 1:
            raise BadInput(f"{name!r} appears twice in {key!r} of {path}")
    return tuple(value)


def _known(name: Any, allowed: Iterable[str], what: str) -> str:
    if not isinstance(name, str) or name not in allowed:
        raise unknown(what, name if isinstance(name, str) else shortened(name), allowed)
    return name


def _table(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{what} should be a table")
    return value


def _steps(value: Any, states: tuple[str, ...], alphabet: tuple[str, ...], path: str) -> dict[tuple[str, str], str]:
    table = _table(value, f"'steps' in {path}")
    for state, row in table.items():
        _known(state, states, f"state in 'steps' of {path}")
        for symbol, following in _table(row, f"the steps of state {state!r} in {path}").items():
            _known(symbol, alphabet, f"symbol in the steps of state {state!r} in {path}")
            _known(following, states, f"state after {state!r} on symbol {symbol!r} in {path}")
    for state in states:
        for symbol in alphabet:
            if symbol not in table.get(state, {}):
                raise BadInput(f"{path} has a hole: no step from state {state!r} on symbol {symbol!r}")
    return {(state, symbol): table[state][symbol] for state in states for symbol in alphabet}


def _answers(value: Any, states: tuple[str, ...], path: str) -> dict[str, int | None]:
    table = _table(value, f"'answers' in {path}")
    for state in table:
        _known(state, states, f"state in 'answers' of {path}")
    answers = {state: _answer(table.get(state), state, path) for state in states}
    if all(answer is None for answer in answers.values()):
        raise BadInput(f"{path} has no answer in any state")
    return answers


def _answer(text: Any, state: str, path: str) -> int | None:
    if isinstance(text, str) and text in NO_ANSWER:
        return None
    digits = text.lstrip("0") or "0" if isinstance(text, str) and text.isdecimal() else ""
    if not digits or len(digits) > len(str(MAX_ANSWER)) or int(digits) > MAX_ANSWER:
        given = "has no answer" if text is None else f"has the answer {shortened(text)}"
        raise BadInput(f"state {state!r} in {path} {given}; it should be a whole number 0..{MAX_ANSWER}, or null")
    return int(digits)
