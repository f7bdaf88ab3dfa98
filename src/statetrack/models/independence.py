"""Whether a model's answers depend on what they may not: later inputs, other rows of the batch, batches before.

A network that reads the inputs to come reads the answer. So a model is tried at the length that it is trained on and
beyond it, before it is trained and again with its trained weights: inputs are changed from a random position on, in
every row from another one, and no logit before that position may change; nor may any if other rows are changed, or if
other batches came before. Batches that are compared have one shape, so that rounding is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models.custom import own_name, run
from statetrack.models.sequence import SequenceModel

TOKENS = 2**12  # of one pass: a small part of a training step
ROWS = (4, 64)  # at least, at most
CLOSE = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True}
FLIPPED = 0.01  # of the answers: a leak that is too small for the tolerance may still decide them

Forward = Callable[[Tensor], Tensor]


def check_independent(
    model: SequenceModel, inputs: int, lengths: Iterable[int], window: int = 0,
    most_rows: Callable[[int], int] = lambda length: ROWS[1],
) -> None:  # fmt: skip
    """Refuse a model that peeks (BadInput), at the first of the lengths and at those beyond that it can run; with a
    `window`, also in the pieces of that length in which a stream is run. `most_rows` of a length fit into one pass.
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
                trial = Trial(inputs, length, min(most_rows(length), _rows(length)), device)
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
            raise BadInput(f"{name} keeps something from batch to batch {place}: logits change with the batch before")
        if _differ(first[even], mixed[even]):
            raise BadInput(f"{name} mixes the rows of a batch {place}: logits of a row change with other rows")
        for _ in range(-(-ROWS[0] // self.rows) if self.length > 1 else 0):
            before = self.before()
            changed = answers(torch.where(before, ids, self.drawn()))
            seen = before.to(self.device)
            if _differ(first[seen], changed[seen]):
                raise BadInput(f"{name} is not causal {place}: logits change with inputs that come later")

    def before(self) -> Tensor:
        """Where inputs stay as they are: in every row up to another position, spread over the length."""
        spread = (torch.arange(self.rows) + torch.rand(self.rows, generator=self.chance)) / self.rows
        border = (1 + (spread * (self.length - 1)).long()).clamp(max=self.length - 1)
        return torch.arange(self.length) < border[:, None]


def _differ(one: Tensor, two: Tensor) -> bool:
    """Whether logits (..., classes) are not the same: beyond rounding, or in more than a few of their answers."""
    if one.shape != two.shape or not torch.allclose(one, two, **CLOSE):  # type: ignore[arg-type]
        return True
    return bool((one.argmax(-1) != two.argmax(-1)).float().mean() > FLIPPED)
