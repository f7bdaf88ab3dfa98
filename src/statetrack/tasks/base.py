"""A task is a small exact machine: a start state, a step for each input, an answer for each state.

A new task gives its parameters as dataclass fields and says what `inputs`, `outputs` and `step` are; also `start` and
`answer`, where the state does not begin at 0 or is not the answer itself. What is the same for every task of a class is
a plain attribute of it, without a type, so that it is not a parameter. `run`, which answers many rows at once, has a
plain version here that steps the machine, and a task overrides it where speed matters (a test holds the two together).
What else people, language models and theory are told of a task is a member of it too, with a default that will do. See
`machines/txc.py` for the shortest example.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack import spec
from statetrack.display import Card, Table
from statetrack.errors import BadInput
from statetrack.formatting import without_hash
from statetrack.own_code import HASH
from statetrack.tasks import draws
from statetrack.tasks.facts import TaskFacts
from statetrack.tasks.original import OriginalWords
from statetrack.tasks.plain import plain_text

MAX_LENGTH = 2**24
MAX_VALUES = 2**31  # rows times length of one call
MAX_SEED = 2**63 - 1  # what a whole number of a data file can hold
SPLITS = ("train", "validation", "test")
SHOWN = 8  # inputs of the row that a notebook shows

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Rows of a task: integer arrays (count, length); `mask` is 1 where an answer is asked for."""

    inputs: Ints
    targets: Ints
    mask: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.inputs)


class Run(NamedTuple):
    """The machine run over rows: the class after every input, whether one is defined there, and the last states."""

    targets: Ints
    defined: NDArray[np.bool_]
    state: Any


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What every task shares. `ask` is 'every' position or the 'end' alone."""

    ask: str = "every"

    base_name: ClassVar[str] = ""
    splits: ClassVar[tuple[str, ...]] = SPLITS
    unseen: ClassVar[tuple[str, ...]] = ("ask",)  # parameters that do not change which rows are drawn
    numbers: ClassVar[bool] = False  # inputs and answers are plain numbers, and data files write them as such
    opening: ClassVar[str] = "You will be shown a stream, one input a message."  # the first words of a dialogue
    tag: ClassVar[str] = "answer"  # what stands before the colon of an answer
    code_at: ClassVar[str] = ""  # of one's own, named as file.py:Class: the address, and the hash of its code
    code_sha256: ClassVar[str] = ""

    # ---- what a task defines -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The size of the input alphabet; inputs are 0..inputs-1."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of classes of an answer."""

    @abstractmethod
    def step(self, state: Any, symbol: int) -> Any:
        """The state after one more input."""

    # ---- what a task may override ------------------------------------------------------------------------------------

    def start(self) -> Any:
        """The state before any input: a value that can be hashed; 0 unless a task says otherwise."""
        return 0

    def answer(self, state: Any) -> int | None:
        """The class of the answer in this state, by default the state itself; None where nothing is asked."""
        return state

    @property
    def symbol_weights(self) -> tuple[float, ...] | None:
        """The share of each input symbol in the data; None for equal shares."""
        return None

    @property
    def never_due(self) -> tuple[int, ...]:
        """Classes of answers that are due in no row of the data, though the machine can come to them."""
        return ()

    def run(self, inputs: Ints, state: Any = None) -> Run:
        """Run the machine over rows, from the start or from the states another run ended in."""
        states = [self.start()] * len(inputs) if state is None else list(state)
        targets = np.zeros(inputs.shape, np.int32)
        defined = np.ones(inputs.shape, bool)
        for row, symbols in enumerate(inputs.tolist()):
            for t, symbol in enumerate(symbols):
                states[row] = self.step(states[row], symbol)
                answer = self.answer(states[row])
                defined[row, t] = answer is not None
                targets[row, t] = answer or 0
        return Run(targets, defined, states)

    def draw(self, keys: draws.Keys, start: int, stop: int, state: Any = None) -> Ints:
        """Inputs at the positions start..stop-1 of the rows with these keys, when the machine is in `state` there."""
        return draws.symbols(keys, start, stop, self.inputs, draws.thresholds(self.symbol_weights))

    def value(self, classes: ArrayLike) -> NDArray[Any]:
        """The real value of a class of answer."""
        return np.asarray(classes)

    def symbol_text(self, symbol: int) -> str:
        """An input as a person would write it."""
        return str(symbol)

    def answer_text(self, answer: int) -> str:
        """A class of answer as a person would write it."""
        return f"{self.value(answer):g}"

    @property
    def per_turn(self) -> int:
        """How many inputs one message of a dialogue holds; something may be asked after the last of them alone."""
        return 1

    # ---- what people, language models and theory are told ------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name that people know it by; a catalogued task can be asked for by it."""
        return self.label.replace("_", " ")

    @property
    def instruction(self) -> str:
        """What is asked, in words; by default the first paragraph of the docstring."""
        return self._first_words

    @property
    def example(self) -> tuple[int, ...] | None:
        """The inputs of the example in a dialogue's description; None for a row that is drawn."""
        return None

    @property
    def original(self) -> OriginalWords | None:
        """How the evaluation that it comes from puts it; None where there is none."""
        return None

    def state_text(self, seen: Sequence[int]) -> str:
        """The state after these inputs, in words."""
        return plain_text(self.state_after(seen))

    def guess(self, seen: Sequence[int], chance: np.random.Generator) -> int:
        """The class that one who knows nothing but the kind of answer would name after these inputs."""
        return int(chance.integers(self.outputs))

    @property
    def facts(self) -> TaskFacts | None:
        """What theory may use and cannot work out from the machine; None where there is nothing."""
        return None

    # ---- what every task can do --------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for key, kind in parameter_types(type(self)).items():
            # Equal tasks have one name: p=1 and p=1.0, [1, 2] and (1.0, 2.0) are the same.
            object.__setattr__(self, key, spec.typed(getattr(self, key), kind, f"{self.label}: {key}"))
        for field in self._own_first():
            if "range" in field.metadata:
                self.check_range(field.name, *field.metadata["range"])
        self.check()

    def check(self) -> None:
        """Refuse parameters that make no sense beyond their `between`; a task checks its own, then calls this."""
        if self.ask not in ("every", "end"):
            raise BadInput(f"{self.label}: ask={self.ask} should be 'every' or 'end'")

    def check_range(self, key: str, low: float, high: float) -> None:
        """Refuse a parameter outside low..high."""
        value = getattr(self, key)
        if not low <= value <= high:
            raise BadInput(f"{self.label}: {key}={value} should lie in {low}..{high}")

    @property
    def name(self) -> str:
        """The task's one text, with the parameters that differ from their defaults, and the hash of one's own code."""
        own = {HASH: self.code_sha256} if self.code_sha256 else {}
        return spec.write(self.code_at or self.label, self._set_parameters() | own)

    @property
    def label(self) -> str:
        """The name without parameters."""
        return self.base_name or type(self).__name__.lower()

    def _set_parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        values = {field: getattr(self, field.name) for field in self._own_first()}
        return {field.name: value for field, value in values.items() if value != field.default}

    def _own_first(self) -> list[dataclasses.Field[Any]]:
        """The parameters as declared; those that many tasks share come last."""
        return sorted(parameters(type(self)), key=lambda field: field.name in ("p", "weights", "ask"))

    def with_parameters(self, **changes: Any) -> Self:
        """The same task with other parameters."""
        return dataclasses.replace(self, **changes)

    def sample(self, length: int, count: int, seed: int = 0, split: str = "train", first: int = 0) -> Batch:
        """Rows first..first+count-1 of the data of this length, seed and split, with their exact answers."""
        check_size(length, count, seed, first)
        rows = self.rows(np.full(count, length), np.arange(first, first + count), seed, split)
        return self._answered(rows.reshape(count, length))  # no rows have no longest one

    def rows(self, lengths: NDArray[Any], indices: NDArray[Any], seed: int, split: str) -> Ints:
        """The inputs of single rows, each of its own length; a shorter row's tail is not part of it."""
        longest = int(lengths.max(initial=0))
        return self.draw(self._keys(lengths, indices, seed, split), 0, longest)

    def stream(
        self, length: int, count: int, seed: int = 0, split: str = "test", window: int = 4096
    ) -> Iterator[tuple[int, Batch]]:
        """The rows of `sample` in windows of positions, in constant memory: (position of the first column, Batch)."""
        check_window(length, count, seed, window)
        keys, state = self._keys(np.full(count, length), np.arange(count), seed, split), None
        for begin in range(0, length, window):
            inputs = self.draw(keys, begin, min(begin + window, length), state)
            run = self.run(inputs, state)
            state = run.state
            yield begin, Batch(inputs, run.targets, self._mask(run, ends=begin + window >= length))

    def batch(self, inputs: ArrayLike) -> Batch:
        """Any inputs with their exact answers."""
        return self._answered(check_inputs(inputs, self.inputs, self.name))

    def _answered(self, rows: Ints) -> Batch:
        run = self.run(rows)
        return Batch(rows, run.targets, self._mask(run, ends=True))

    def targets(self, inputs: ArrayLike) -> Ints:
        """The class of the answer after every input (0 where none is defined); a single row or many."""
        rows = check_inputs(inputs, self.inputs, self.name)
        return self.run(rows).targets.reshape(np.shape(inputs))

    def state_after(self, inputs: Sequence[int]) -> Any:
        """The state that these inputs lead to from the start."""
        return functools.reduce(self.step, inputs, self.start())

    def answers(self, inputs: ArrayLike) -> NDArray[Any]:
        """The real value of the answer after every input."""
        return self.value(self.targets(inputs))

    @property
    def _first_words(self) -> str:
        return " ".join((inspect.getdoc(type(self)) or self.name).partition("\n\n")[0].split())

    def _card(self) -> Card:
        batch = self.sample(SHOWN, 1, split="test")
        inputs = [self.symbol_text(symbol) for symbol in batch.inputs[0].tolist()]
        asked = zip(batch.targets[0].tolist(), batch.mask[0])
        answers = [self.answer_text(target) if due else "" for target, due in asked]
        example = Table(["t", *map(str, range(1, SHOWN + 1))], [["input", *inputs], ["answer", *answers]])
        sizes = f"inputs: {self.inputs:,}; classes of answers: {self.outputs:,}"
        return Card(f"{without_hash(self.name)}: {self.title}", [example], [self._first_words, sizes])

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """At IPython's prompt; `repr` stays what builds the same task again."""
        printer.text(self._card().text())

    def _mask(self, run: Run, ends: bool) -> NDArray[np.uint8]:
        mask = run.defined.astype(np.uint8)
        if self.ask == "end":
            mask[:, : -1 if ends else None] = 0
        return mask

    def _keys(self, lengths: NDArray[Any], indices: NDArray[Any], seed: int, split: str) -> draws.Keys:
        if split not in SPLITS:
            raise BadInput(f"split {split!r} of {self.name} should be one of {', '.join(self.splits)}")
        shown = {key: value for key, value in self._set_parameters().items() if key not in self.unseen}
        return draws.row_keys(spec.write(self.label, shown), split, seed, lengths, indices)


def between(low: float, high: float, default: float) -> Any:
    """A parameter that is refused outside low..high."""
    return dataclasses.field(default=default, metadata={"range": (low, high)})


def parameters(kind: type[Task]) -> list[dataclasses.Field[Any]]:
    """What may stand in the brackets of a task's text."""
    return [field for field in dataclasses.fields(kind) if field.metadata.get("parameter", True)]


def needed(kind: type[Task]) -> list[str]:
    """The parameters without which a task of this kind cannot be made."""
    missing = dataclasses.MISSING
    return [field.name for field in parameters(kind) if field.default is missing and field.default_factory is missing]


@functools.cache
def parameter_types(kind: type[Task]) -> dict[str, Any]:
    """The declared type of every parameter."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in parameters(kind)}


def check_size(length: int, count: int, seed: int, first: int) -> None:
    """Refuse what cannot be sampled, and say what can."""
    check_whole(length=length, count=count, seed=seed, first=first)
    if not 1 <= length <= MAX_LENGTH:
        raise BadInput(f"length {length} should lie in 1..{MAX_LENGTH}")
    if count < 0 or first < 0 or seed < 0:
        raise BadInput(f"count {count}, first row {first} and seed {seed} should not be negative")
    check_seed(seed, first + count)
    if count * length > MAX_VALUES:
        raise BadInput(f"{count} rows of length {length} are more than {MAX_VALUES} values; ask for fewer at a time")


def check_window(length: int, count: int, seed: int, window: int) -> None:
    """Refuse what cannot be streamed: all rows of one window are in memory, the whole length is not."""
    check_size(length, 1, seed, 0)
    check_whole(window=window)
    if window < 1:
        raise BadInput(f"window {window} should be at least 1")
    check_size(min(window, length), count, seed, 0)


def check_whole(**numbers: Any) -> None:
    """Refuse what is not a whole number."""
    for name, value in numbers.items():
        if not hasattr(value, "__index__"):
            raise BadInput(f"{name} {value!r} should be a whole number")


def check_seed(seed: int, rows: int) -> None:
    """Refuse a seed, or the number of a row, that is too large to be written down."""
    if seed > MAX_SEED or rows > MAX_SEED:
        raise BadInput(f"seed {seed} and row {rows} should be at most {MAX_SEED}")


def check_inputs(inputs: ArrayLike, alphabet: int, name: str) -> Ints:
    """Inputs as rows of int32; an input outside the alphabet is named with its place."""
    try:
        rows = np.atleast_2d(np.asarray(inputs))
    except ValueError:
        raise BadInput(f"inputs of {name} should be one row, or rows of one length") from None
    if rows.size and rows.dtype.kind not in "iu":
        raise BadInput(f"inputs of {name} should be whole numbers, not {rows.dtype}")
    if rows.ndim != 2:
        raise BadInput(f"inputs of {name} should have the shape (count, length), not {rows.shape}")
    wrong = np.argwhere((rows < 0) | (rows >= alphabet))
    if len(wrong):
        row, position = wrong[0]
        raise BadInput(
            f"input {rows[row, position]} at row {row}, position {position} is outside 0..{alphabet - 1} of {name}"
        )
    return rows.astype(np.int32, copy=False)
