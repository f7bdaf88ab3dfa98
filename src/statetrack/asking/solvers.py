"""Who answers: a language model, a baseline, a person; each can be shown the state as well.

A solver that needs a model says what the model is sent (`prepare`); one that does not answers by itself (`reply`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from statetrack.asking import engines
from statetrack.asking.episode import Request
from statetrack.errors import BadInput, unknown

ROLES = ("assistant", "user", "system")


class Solver:
    """One who answers requests."""

    shows_state = False

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @property
    def needs_model(self) -> bool:
        return False

    @property
    def costs(self) -> bool:
        """Whether a reply costs something that is not given again: a model's work, or a person's."""
        return self.needs_model

    def prepare(self, request: Request) -> Request:
        """The request as it is sent to the model."""
        return request

    def reply(self, request: Request) -> str:
        """The reply of a solver that needs no model."""
        raise BadInput(f"solver {self.name} needs a model: --model SPEC")


@dataclass(frozen=True)
class Implicit(Solver):
    """The model itself, which sees the dialogue and nothing else."""

    needs_model = True


@dataclass(frozen=True)
class Explicit(Solver):
    """Another solver that is also shown the state after each input, in a message that does not stay in the history."""

    inner: Solver
    role: str = "assistant"
    shows_state = True

    @property
    def name(self) -> str:
        return f"explicit{'' if self.role == 'assistant' else f'-{self.role}'}:{self.inner.name}"

    @property
    def needs_model(self) -> bool:
        return self.inner.needs_model

    @property
    def costs(self) -> bool:
        return self.inner.costs

    def prepare(self, request: Request) -> Request:
        inner = self.inner.prepare(request)
        state = {"role": self.role, "content": request.dialogue.state_message(request.turn)}
        return replace(inner, messages=[*inner.messages, state], transient=inner.transient + 1)

    def reply(self, request: Request) -> str:
        return self.inner.reply(request)


@dataclass(frozen=True)
class Random(Solver):
    """A guess, as the task makes it: any answer there is, or one that fits what was seen."""

    seed: int = 0

    @property
    def name(self) -> str:
        return "random" if self.seed == 0 else f"random-{self.seed}"

    def reply(self, request: Request) -> str:
        chance = np.random.default_rng([self.seed, request.sample, len(request.messages), len(request.turn.seen)])
        return written(request, request.dialogue.task.guess(request.turn.seen, chance))


@dataclass(frozen=True)
class Oracle(Solver):
    """The exact machine."""

    def reply(self, request: Request) -> str:
        return request.dialogue.reply(request.turn)


@dataclass(frozen=True)
class Window(Solver):
    """The exact machine, started anew on the last w inputs."""

    width: int

    @property
    def name(self) -> str:
        return f"window-{self.width}"

    def reply(self, request: Request) -> str:
        return written(request, after(request, self.width))


@dataclass(frozen=True)
class CopyLast(Solver):
    """The last answer in the history once more; at first the answer to the input alone."""

    name = "copy-last"

    def reply(self, request: Request) -> str:
        form = request.dialogue.form
        for message in reversed(request.messages):
            if message["role"] == "assistant" and (last := form.find(message["content"])):
                return last[0]
        return written(request, after(request, 1))


@dataclass(frozen=True)
class Human(Solver):
    """A person, who types the bare answer; the form around it is added."""

    read: Callable[[Request], str] = lambda request: input(f"{request.turn.text} > ")
    costs = True

    def reply(self, request: Request) -> str:
        return request.dialogue.form.write(self.read(request).strip())


def written(request: Request, target: int) -> str:
    """The canonical reply for a class of answer."""
    return request.dialogue.form.write(request.dialogue.wording.answer(target))


def after(request: Request, width: int) -> int:
    """The class of the answer after the inputs of the last `width` turns alone."""
    task = request.dialogue.task
    return int(task.targets([list(request.turn.seen[-width * task.per_turn :])])[0, -1])


SOLVERS = {
    "implicit": "the model itself",
    "explicit:NAME": "NAME, shown the state before each answer (explicit-user:NAME, explicit-system:NAME for the role)",
    "random": "a guess among what was seen (random-SEED)",
    "human": "a person at the terminal",
    "oracle": "the exact machine",
    "copy-last": "the last answer again",
    "window-W": "the exact machine on the last W inputs",
}


def subject_of(model: str, solver: Solver) -> str:
    """What the cells of a solver are filed under: its name, after that of the model if it needs one."""
    return f"{engines.subject(model)} {solver.name}" if solver.needs_model else solver.name


def split_subject(subject: str) -> tuple[str, str]:
    """The model and the solver's name in what a cell is filed under; no model is an empty text.

    >>> split_subject("hf:my models/tiny explicit:implicit"), split_subject("oracle")
    (('hf:my models/tiny', 'explicit:implicit'), ('', 'oracle'))
    """
    model, _, name = subject.rpartition(" ")
    return model, name


def solver(name: str) -> Solver:
    """The solver of a name.

    >>> solver("explicit-user:implicit").name, solver("window-64")
    ('explicit-user:implicit', Window(width=64))
    """
    text = name.strip().lower()
    outer, colon, inner = text.partition(":")
    if colon and (match := re.fullmatch(r"explicit(?:-(\w+))?", outer)):
        role = match[1] or "assistant"
        if role not in ROLES:
            raise unknown("role", role, ROLES)
        return Explicit(solver(inner), role)
    if match := re.fullmatch(r"window-([0-9]{1,8})", text):
        if int(match[1]) < 1:
            raise BadInput(f"solver {name}: a window holds at least 1 input")
        return Window(int(match[1]))
    if match := re.fullmatch(r"random(?:-([0-9]{1,8}))?", text):
        return Random(int(match[1] or 0))
    plain = {"implicit": Implicit, "explicit": lambda: Explicit(Implicit()), "human": Human, "oracle": Oracle,
             "copy-last": CopyLast}  # fmt: skip
    if text not in plain:
        raise unknown("solver", name, [*plain, "explicit:implicit", "random", "window-64"])
    return plain[text]()
