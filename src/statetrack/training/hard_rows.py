"""Hard rows among those that a network is trained on: long runs of one symbol, sparse inputs, u v v v ..., and words
that broke this network so far.

With `hard_rows=0.25` the last quarter of every batch is made of them. Where words were found, every other hard row
begins with one of them and goes on at random; the rest take turns in the three families. A row is a function of (task,
seed, length, number of the row, words known): a run that goes on reads what an uncut one reads, a replica what it reads
alone.

The words are looked for by a beam, as `training/beams.py` has it, at checks that went well, and from seeds of their
own: what an evaluation finds never comes back here. A search takes at most a token for every SHARE of training since
the one before, and comes at most every UPDATES updates. They are counted, not timed, so that it is the same on every
machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statetrack.models import SequenceModel
from statetrack.tasks import draws
from statetrack.tasks.base import Batch, Ints, Task
from statetrack.training.beams import AT_ONCE, BeamSearch, machine_to_search
from statetrack.training.words import (
    HEAD,
    HELD,
    LOOP,
    PERIODIC,
    RARE,
    RUNS,
    DrawnWords,
    Letters,
    PeriodicWords,
    letters_of,
    silent_symbols,
)

RATES = (1 / 4, 1 / 16, 1 / 64)  # of events in sparse inputs
SHARE = 4  # a search may take a token for as many of training
UPDATES = 400  # between two searches at least: a search goes step by step, which on a GPU is what takes time
ATTACKED_FROM = 0.98  # the accuracy on validation rows: a network that is wrong everywhere needs no search
MOST_WORDS = 256  # that are known of a network; the last ones stay
MOST_FOUND = 16  # in one search


@dataclass
class Broken:
    """The words that broke one network so far, and the update at which one was last looked for."""

    words: list[list[int]]
    looked_at: int = 0
    known: tuple[Letters, ...] = field(init=False)  # the same words: the one object until there are others

    def __post_init__(self) -> None:
        self.known = tuple(map(tuple, self.words))

    @classmethod
    def read(cls, note: Any) -> Broken:
        """From a checkpoint."""
        words, looked_at = note["words"], note["looked_at"]
        if type(looked_at) is not int or not all(type(symbol) is int for word in words for symbol in word):
            raise ValueError("the words that broke it are not words")
        return cls(words, looked_at)

    def to_dict(self) -> dict[str, Any]:
        return {"words": self.words, "looked_at": self.looked_at}

    def add(self, words: list[list[int]]) -> None:
        """Each once, the last found last."""
        fresh = {tuple(word): word for word in words}
        self.words = [*(word for word in self.words if tuple(word) not in fresh), *fresh.values()][-MOST_WORDS:]
        self.known = tuple(map(tuple, self.words))


def hard_batch(
    task: Task, length: int, seed: int, first: int, count: int, known: tuple[Letters, ...], *,
    batches: int = 1, apart: int = 0,
) -> Batch:  # fmt: skip
    """Hard rows number first..first+count-1 of this seed and length, and their answers; of several batches, whose first
    rows are so far apart, those of one after those of the other.
    """
    places = np.tile(np.arange(count), batches)
    numbers = first + places + np.repeat(np.arange(batches) * apart, count)
    keys = draws.row_keys(task.name, "hard rows", seed, length, numbers)
    after = places % 2 == 0 if known else np.zeros(len(places), bool)
    turn = (places // 2 if known else places) % 3
    inputs = np.empty((len(places), length), np.int32)
    for chosen, made in (
        (after, lambda own: words_that_broke(task, own, length, known)),
        (~after & (turn == 0), lambda own: runs(task, own, length)),
        (~after & (turn == 1), lambda own: sparse(task, own, length, seed)),
        (~after & (turn == 2), lambda own: repeated(task, own, length)),
    ):
        if chosen.any():
            inputs[chosen] = made(keys[chosen])
    batch = task.batch(inputs)
    mask = batch.mask.astype(bool) & ~np.isin(batch.targets, task.never_due)
    return Batch(batch.inputs, batch.targets, mask.astype(batch.mask.dtype))


def chosen_of(keys: draws.Keys, number: int, choices: Any) -> Any:
    """One of these for each key, from the draw of this number."""
    options = np.asarray(choices)
    return options[draws.symbols(draws.lane(keys, number), 0, 1, len(options))[:, 0]]


def runs(task: Task, keys: draws.Keys, length: int) -> Ints:
    """Symbols that are held for a number of steps each."""
    held = chosen_of(keys, 1, [each for each in RUNS if each <= length // 2] or [1])
    nothing = np.zeros(len(keys), np.int32)
    return DrawnWords(HELD, letters_of(task), keys, held, nothing, np.ones(len(keys))).symbols(0, length)


def sparse(task: Task, keys: draws.Keys, length: int, seed: int) -> Ints:
    """A symbol that leaves most states as they are, and rare events."""
    silent = chosen_of(keys, 1, silent_symbols(task, seed)).astype(np.int32)
    rates, held = chosen_of(keys, 2, RATES), np.ones(len(keys), np.intp)
    return DrawnWords(RARE, letters_of(task), keys, held, silent, rates).symbols(0, length)


def repeated(task: Task, keys: draws.Keys, length: int) -> Ints:
    """u v v v ... with at most three letters in u and four in v."""
    letters = letters_of(task)
    drawn = letters[draws.symbols(keys, 0, HEAD + LOOP, len(letters))].tolist()
    heads, loops = chosen_of(keys, 1, range(HEAD + 1)).tolist(), chosen_of(keys, 2, range(1, LOOP + 1)).tolist()
    pairs = tuple((tuple(row[:u]), tuple(row[HEAD : HEAD + v])) for row, u, v in zip(drawn, heads, loops))
    return PeriodicWords(PERIODIC, pairs).symbols(0, length)


def words_that_broke(task: Task, keys: draws.Keys, length: int, known: tuple[Letters, ...]) -> Ints:
    """One of the words, and then what the data may hold."""
    inputs = draws.symbols(keys, 0, length, task.inputs, draws.thresholds(task.symbol_weights))
    for row, place in zip(inputs, chosen_of(keys, 1, range(len(known)))):
        word = known[place][:length]
        row[: len(word)] = word
    return inputs


class Attack:
    """Looks for words that break networks which are trained on one task; `machine` is None where none can be."""

    def __init__(self, task: Task, model: SequenceModel) -> None:
        self.task = task
        self.machine = machine_to_search(task, model)

    def due(self, broken: Broken, step: int, accuracy: float, length: int, count: int) -> bool:
        """Whether a network that has made `step` updates of `count` rows of this length may be searched."""
        cost = AT_ONCE * len(letters_of(self.task)) * length
        updates = step - broken.looked_at
        enough = updates >= UPDATES and updates * count * length >= SHARE * cost
        return self.machine is not None and accuracy >= ATTACKED_FROM and enough

    def make(self, model: SequenceModel, broken: Broken, seed: int, step: int, length: int) -> None:
        """Look for words of at most this length, and keep those that are found."""
        assert self.machine is not None
        digest = hashlib.sha256(f"attack\n{seed}\n{step}".encode()).digest()
        search = BeamSearch(self.task, model.eval(), self.machine, int.from_bytes(digest[:8], "little"))
        broken.add(search.wrong(AT_ONCE * len(letters_of(self.task)) * length, length, MOST_FOUND))
        broken.looked_at = step
