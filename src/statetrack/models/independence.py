"""Whether a model's answers depend on what they may not: later inputs, other rows of the batch, batches before.

A network that reads the inputs to come reads the answer. So a model is tried at the length that it is trained on and
beyond it, before it is trained and again with its trained weights: inputs are changed from a random position on, in
every row from another one, and no logit before that position may change; nor may any if other rows are changed, or if
other batches came before. Batches that are compared have one shape, so that rounding is the same in both.

Which batch a model peeks in can depend on anything: on its size, on a row's content, on how often it was called. So the
very passes that are scored are tried as well (`Watched`): each is run once more as it is, and once with every row
changed behind a position of its own, and what was scored must come out again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models.custom import is_ours, own_name, run
from statetrack.models.sequence import SequenceModel, State

TOKENS = 2**12  # of one pass: a small part of a training step
ROWS = (4, 64)  # at least, at most
CLOSE = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True}
FLIPPED = 0.01  # of the answers: a leak that is too small for the tolerance may still decide them

FAR, NEAR = 1e-2, 1e-3  # of 1 and the largest logit: no rounding moves a logit so far; nor so far and decides
FLIPPED_IN_ROW = 1 / 8  # of a row's answers, and more than one

Forward = Callable[[Tensor], Tensor]


class Peeks(BadInput):
    """A model's answers depend on what they may not."""


def check_independent(
    model: SequenceModel, inputs: int, lengths: Iterable[int], window: int = 0,
    most_rows: Callable[[int], int] = lambda length: ROWS[1], batch: int = 0,
) -> None:  # fmt: skip
    """Refuse a model that peeks (Peeks), at the first of the lengths and at those beyond that it can run; with a
    `window`, also in the pieces of that length in which a stream is run. `most_rows` of a length fit into one pass; at
    the first of the lengths there are at least `batch` of them, as in training.
    """
    name, training = own_name(model), model.training
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    limit = getattr(model, "positions", None)

    def piece(ids: Tensor) -> Tensor:
        return model.forward_from(ids, model.initial_state(len(ids), ids.device))[0]

    model.eval()
    try:
        for number, length in enumerate(lengths):
            if limit is None or length <= limit:
                rows = max(_rows(length), batch if number == 0 else 0)
                trial = Trial(inputs, length, min(most_rows(length), rows), device)
                trial.check(name, model, may_fail=number > 0)
        if window and model.recurrent:
            trial = Trial(inputs, window, min(most_rows(window), _rows(window)), device)
            trial.check(f"forward_from of {name}", piece, may_fail=True)
    finally:
        model.train(training)


def _rows(length: int) -> int:
    return min(ROWS[1], max(ROWS[0], TOKENS // length))


class Trial:
    """Batches of one shape that differ where the answers may not."""

    def __init__(self, inputs: int, length: int, rows: int, device: torch.device) -> None:
        self.inputs, self.length, self.rows, self.device = inputs, length, rows, device
        self.chance = torch.Generator().manual_seed(length)

    def drawn(self) -> Tensor:
        return torch.randint(self.inputs, (self.rows, self.length), generator=self.chance)

    def check(self, name: str, model: Forward, may_fail: bool) -> None:
        def answers(ids: Tensor) -> Tensor:
            logits: Tensor = run(name, model, ids.to(self.device))
            return logits.float()

        ids = self.drawn()
        try:
            first = answers(ids)
        except BadInput:
            if may_fail:  # it has no such length; the record says so where it is tested there
                return
            raise
        place = f"at length {self.length}"
        even = torch.arange(self.rows) % 2 == 0
        mixed = answers(torch.where(even[:, None], ids, self.drawn()))
        if _differ(first, answers(ids)):
            raise Peeks(f"{name} keeps something from batch to batch {place}: logits change with the batch before")
        if _differ(first[even], mixed[even]):
            raise Peeks(f"{name} mixes the rows of a batch {place}: logits of a row change with other rows")
        for _ in range(-(-ROWS[0] // self.rows) if self.length > 1 else 0):
            before = self.before()
            changed = answers(torch.where(before, ids, self.drawn()))
            seen = before.to(self.device)
            if _differ(first[seen], changed[seen]):
                raise Peeks(f"{name} is not causal {place}: logits change with inputs that come later")

    def before(self) -> Tensor:
        return _before(self.rows, self.length, self.chance)


def piece(model: SequenceModel, state: State, ids: Tensor) -> Tensor:
    """The logits of a piece behind this state, which stays as it is."""
    return model.forward_from(ids, copy.deepcopy(state))[0]


def watched(model: SequenceModel, inputs: int) -> Watched | None:
    """What to try the passes of a model with that is tested; of ours, none: they are tried beforehand."""
    return None if is_ours(model) else Watched(own_name(model), inputs)


class Watched:
    """Somebody's own model while it is tested: every pass that is scored is tried on the spot."""

    def __init__(self, name: str, inputs: int) -> None:
        self.name, self.inputs, self.passes = name, inputs, 0

    def check(self, logits: Tensor, model: Forward, ids: Tensor) -> None:
        """Refuse (Peeks) the logits of a pass whose answers do not come out again: when it is run once more, or when
        each row is another one from a random position on. Both batches have the shape of the one that is scored.
        """
        rows, length = ids.shape
        self.passes += 1
        chance = torch.Generator().manual_seed(self.passes)
        place = f"at length {length}, on the rows that are scored"
        if _decides(logits, model(ids), torch.ones(rows, length, dtype=torch.bool)):
            raise Peeks(f"{self.name} keeps something from batch to batch {place}: asked again, it answers otherwise")
        if length == 1:
            return
        before = _before(rows, length, chance)[torch.randperm(rows, generator=chance)]
        other = torch.randint(self.inputs, (rows, length), generator=chance).to(ids)
        changed = model(torch.where(before.to(ids.device), ids, other))
        if _decides(logits, changed, before):
            raise Peeks(
                f"{self.name} is not causal, or mixes the rows of a batch, {place}: answers change with inputs that "
                "come later, or with other rows"
            )


def _before(rows: int, length: int, chance: torch.Generator) -> Tensor:
    """Where inputs stay as they are: in every row up to another position, spread over the length."""
    spread = (torch.arange(rows) + torch.rand(rows, generator=chance)) / rows
    border = (1 + (spread * (length - 1)).long()).clamp(max=length - 1)
    return torch.arange(length) < border[:, None]


def _decides(one: Tensor, two: Tensor, seen: Tensor) -> bool:
    """Whether what differs between logits (rows, length, classes), where they are `seen`, is more than rounding: a
    logit far off, an answer that changes with it, or many answers of one row or of all.
    """
    if one.shape != two.shape:
        return True
    seen = seen.to(one.device)
    if bool(((one.isnan() != two.isnan()).any(-1) & seen).any()):
        return True
    gap = (one - two).abs().nan_to_num(0.0).amax(-1).float()  # between infinities there is none
    scale = 1 + one.abs().nan_to_num(0.0).amax(-1).float()
    flipped = seen & (one.argmax(-1) != two.argmax(-1))
    if bool((seen & (gap > FAR * scale)).any()) or bool((flipped & (gap > NEAR * scale)).any()):
        return True
    in_row = flipped.sum(1)
    many = (in_row > 1) & (in_row > FLIPPED_IN_ROW * seen.sum(1))
    return bool(many.any()) or int(flipped.sum()) > max(1, FLIPPED * int(seen.sum()))


def _differ(one: Tensor, two: Tensor) -> bool:
    """Whether logits (..., classes) are not the same: beyond rounding, or in more than a few of their answers."""
    if one.shape != two.shape or not torch.allclose(one, two, **CLOSE):  # type: ignore[arg-type]
        return True
    return bool((one.argmax(-1) != two.argmax(-1)).float().mean() > FLIPPED)
