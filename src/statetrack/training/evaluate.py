"""What a trained model can do: at its length, beyond it, far beyond it, and off the data it was trained on."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.errors import one_line
from statetrack.models import NO_ANSWER, SequenceModel, answers_of
from statetrack.models.independence import Peeks, piece, watched
from statetrack.models.sequence import State
from statetrack.results.evaluations import END, AllStrings, Evaluation, OffData, OnRows, OnStream
from statetrack.results.pace import duration
from statetrack.tasks.base import Batch, Task
from statetrack.tasks.finite import BinaryTask
from statetrack.training import metrics
from statetrack.training.memory import hand_back, ran_out_of_memory

TEST_ROWS = 1024
TEST_TOKENS = {"cpu": 2**19, "cuda": 2**23}  # of one evaluation
TEST_LOGITS = {"cpu": 2**32, "cuda": 2**36}  # the same, in numbers: tokens times classes
PASS_TOKENS = {"cpu": 2**15, "cuda": 2**20}  # of one forward pass
PASS_LOGITS = {"cpu": 2**26, "cuda": 2**31}  # of one forward pass: 256 MiB, 8 GiB
GENERALISE = (2, 4, 8, 16)  # times the length
STREAM_ROWS, STREAM_TAIL = 64, 1024
EXHAUSTIVE = 16  # binary strings up to this length are all tried
RATES = (0.02, 0.1, 0.9, 0.98)
LEAST_SPENT = 3.0  # seconds of a stream, before it is said how long the rest may take
NO_STREAM = "the model shows no state of constant size (a class of your own does by initial_state and forward_from)"

Tick = Callable[[str], None]


class Evaluator:
    """One model on one task and length. `seed` chooses the test rows."""

    def __init__(self, task: Task, model: SequenceModel, length: int, seed: int) -> None:
        self.task, self.model, self.length, self.seed = task, model, length, seed
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.limit = getattr(model, "positions", None)
        self.watched = watched(model, task.inputs)

    def everything(self, streams: Sequence[int] = (), tick: Tick = lambda _: None) -> list[Evaluation]:
        """All that a result holds of the trained model. The test split is read here and nowhere else."""
        tick("test")
        found: list[Evaluation | None] = [self.at_length()]
        tick("beyond the length")
        found += [self.beyond(n * self.length) for n in GENERALISE]
        tick("off the distribution")
        found += [self.off_distribution(), self.exhaustive(), *(self.stream(steps, tick) for steps in streams)]
        return [each for each in found if each is not None]

    def at_length(self) -> OnRows:
        batch = self.task.sample(self.length, self.rows_at(self.length), self.seed, "test")
        said, asked = self.answers(batch), batch.mask.astype(bool)
        right = said == batch.targets
        return OnRows(
            length=self.length, seed=self.seed, **metrics.summary(right, asked),
            **metrics.crossings(right, asked, batch.targets), accuracy_by_position=metrics.by_position(right, asked),
            accuracy_at_end=metrics.share(right[:, -1:], asked[:, -1:]), tail_accuracy=metrics.tail(right, asked),
            tail_interval=metrics.tail_interval(right, asked), last_32_accuracy=metrics.tail(right, asked, END),
            last_32_interval=metrics.tail_interval(right, asked, END),
            unanswered=metrics.share(said == NO_ANSWER, asked),
        )  # fmt: skip

    def beyond(self, length: int) -> OnRows:
        """The accuracy at another length, over all positions and over the last ones; a model may fail there."""
        if self.limit is not None and length > self.limit:
            return OnRows(length=length, seed=self.seed, reason=f"the model has {self.limit} positions")
        batch = self.task.sample(length, self.rows_at(length), self.seed, "test")
        try:
            said, asked = self.answers(batch), batch.mask.astype(bool)
        except Peeks:  # then there is no record at all
            raise
        except Exception as error:
            return OnRows(length=length, seed=self.seed, reason=one_line(error))
        right = said == batch.targets
        return OnRows(
            length=length, seed=self.seed, accuracy=metrics.share(right, asked),
            interval=list(metrics.row_interval(right, asked)), rows=len(right), n=int(asked.sum()),
            last_32_accuracy=metrics.tail(right, asked, END),
            last_32_interval=metrics.tail_interval(right, asked, END),
            unanswered=metrics.share(said == NO_ANSWER, asked),
        )  # fmt: skip

    def off_distribution(self) -> OffData | None:
        """Binary tasks at other rates of ones and on rows with a pattern; the worst stands beside the mean."""
        if not isinstance(self.task, BinaryTask):
            return None
        cases: dict[str, Batch] = {}
        for rate in RATES:
            cases[f"p={rate}"] = self.task.with_parameters(p=rate).sample(
                self.length, self.rows_at(self.length) // 4, self.seed, "test"
            )
        for name, row in patterns(self.length).items():
            cases[name] = self.task.batch(row)
        accuracy = {name: metrics.share(self.right(case), case.mask.astype(bool)) for name, case in cases.items()}
        known = [value for value in accuracy.values() if value is not None]
        mean = float(np.mean(known))
        return OffData(length=self.length, seed=self.seed, accuracy=accuracy, mean=mean, worst=min(known))

    def exhaustive(self) -> AllStrings | None:
        """The exact accuracy over all binary strings, each with the chance the task draws it, where they are few.

        A string with k ones has the weight p^k (1-p)^(T-k).
        """
        if not isinstance(self.task, BinaryTask) or self.length > EXHAUSTIVE:
            return None
        codes = np.arange(2**self.length)
        batch = self.task.batch((codes[:, None] >> np.arange(self.length)) & 1)
        right, asked = self.right(batch), batch.mask.astype(bool)
        ones = batch.inputs.sum(1)
        weights = self.task.p**ones * (1 - self.task.p) ** (self.length - ones)
        told, hits = (weights[:, None] * asked).sum(), (weights[:, None] * (right & asked)).sum()
        return AllStrings(
            length=self.length,
            seed=self.seed,
            strings=len(codes),
            accuracy=float(hits / told) if told else None,
            full_sequence_accuracy=float((weights * (right | ~asked).all(1)).sum() / weights.sum()),
        )

    def stream(self, steps: int, tick: Tick = lambda _: None) -> OnStream:
        """Accuracy over the last 1,024 positions at every doubling up to `steps`, and how many of them were left
        unanswered, in constant memory.
        """
        if not self.model.recurrent:
            return OnStream(steps=steps, seed=self.seed, reason=NO_STREAM, never=True)
        try:
            accuracy, unanswered = self._stream(steps, tick)
        except Peeks:
            raise
        except Exception as error:
            return OnStream(steps=steps, seed=self.seed, reason=one_line(error))
        return OnStream(
            steps=steps, seed=self.seed, rows=STREAM_ROWS, positions=min(STREAM_TAIL, steps), accuracy=accuracy,
            unanswered=unanswered,
        )  # fmt: skip

    @torch.no_grad()
    def _stream(self, steps: int, tick: Tick) -> tuple[dict[str, float | None], dict[str, float | None]]:
        self.model.eval()
        state = self.model.initial_state(STREAM_ROWS, self.device)
        marks = stream_marks(self.length, steps)
        accuracy: dict[str, float | None] = {}
        unanswered: dict[str, float | None] = {}
        right = silent = asked = np.zeros((STREAM_ROWS, 0), bool)  # of the last windows, as far as they count
        began = time.monotonic()
        for begin, batch in self.task.stream(steps, STREAM_ROWS, self.seed, "test", window=STREAM_TAIL):
            ids, before = to_ids(batch.inputs, self.device), self._kept(state)
            logits, state = self.model.forward_from(ids, state)
            end = begin + batch.inputs.shape[1]
            if end in marks or end > steps - STREAM_TAIL:  # the last window may be short and need the one before
                if self.watched:
                    self.watched.check(logits, partial(piece, self.model, before), ids)
                said = answers_of(logits).cpu().numpy()
                right = np.concatenate([right, said == batch.targets], axis=1)[:, -STREAM_TAIL:]
                silent = np.concatenate([silent, said == NO_ANSWER], axis=1)[:, -STREAM_TAIL:]
                asked = np.concatenate([asked, batch.mask.astype(bool)], axis=1)[:, -STREAM_TAIL:]
            if end in marks or end == steps:
                accuracy[str(end)] = metrics.share(right, asked)
                unanswered[str(end)] = metrics.share(silent, asked)
            tick(f"stream {end:,} of {steps:,}{left_said(time.monotonic() - began, end, steps)}")
        return accuracy, unanswered

    def _kept(self, state: State) -> State:
        """The state as it is now, for what tries the pass that begins with it: a module may change it in place."""
        return copy.deepcopy(state) if self.watched else ()

    def rows_at(self, length: int) -> int:
        kind = self.device.type
        tokens = min(TEST_TOKENS[kind], TEST_LOGITS[kind] // self.task.outputs)
        return max(16, min(TEST_ROWS, tokens // length))

    def right(self, batch: Batch) -> NDArray[np.bool_]:
        """Where the model's answer is the right one. Where it gives none, it is wrong."""
        right: NDArray[np.bool_] = self.answers(batch) == batch.targets
        return right

    def answers(self, batch: Batch) -> NDArray[np.int64]:
        """Classes, or NO_ANSWER. Where a pass takes too much memory, it is made with fewer rows."""
        count, length = batch.inputs.shape
        rows = min(count, pass_rows(self.device, length, self.task.outputs))
        while True:
            try:
                parts = [self._predict(batch.inputs[begin : begin + rows]) for begin in range(0, count, rows)]
                return np.concatenate(parts)
            except (RuntimeError, MemoryError) as error:
                if rows == 1 or not ran_out_of_memory(error):
                    raise
            hand_back(self.device)
            rows //= 2

    @torch.no_grad()
    def _predict(self, inputs: NDArray[Any]) -> NDArray[np.int64]:
        self.model.eval()
        ids = to_ids(inputs, self.device)
        logits = self.model(ids)
        if self.watched:
            self.watched.check(logits, self.model, ids)
        classes: NDArray[np.int64] = answers_of(logits).cpu().numpy()
        return classes


def pass_rows(device: torch.device, length: int, outputs: int) -> int:
    """How many rows one forward pass takes: bounded in tokens, and in logits where there are very many classes.

    >>> pass_rows(torch.device("cpu"), 64, 2), pass_rows(torch.device("cpu"), 64, 362_880)
    (512, 2)
    """
    return max(1, min(PASS_TOKENS[device.type], PASS_LOGITS[device.type] // outputs) // length)


def to_ids(inputs: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(inputs.astype(np.int64)).to(device)


def left_said(spent: float, done: int, steps: int) -> str:
    """How long the rest of a stream may take, once that can be told.

    >>> left_said(30.0, 10_240, 1_048_576), left_said(0.5, 1024, 1_048_576), left_said(30.0, 1024, 1024)
    (', 51 min left', '', '')
    """
    if spent < LEAST_SPENT or done >= steps:
        return ""
    return f", {duration(spent * (steps - done) / done)} left"


def stream_marks(length: int, steps: int) -> set[int]:
    """Doublings from the first whole window beyond the length."""
    mark, marks = STREAM_TAIL, set()
    while mark <= steps:
        if mark >= length:
            marks.add(mark)
        mark *= 2
    return marks


def patterns(length: int) -> dict[str, NDArray[np.int64]]:
    """Rows that random data never shows, two of each so that a batch is a batch."""
    zeros = np.zeros((2, length), np.int64)
    event = zeros.copy()
    event[:, 0] = 1
    alternating = np.tile(np.arange(length) % 2, (2, 1))
    return {"all zeros": zeros, "all ones": zeros + 1, "alternating": alternating, "one event, then silence": event}
