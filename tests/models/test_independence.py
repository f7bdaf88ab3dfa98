"""A model that reads later inputs, other rows or earlier batches is refused, wherever it does so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import check, model, names
from statetrack.models.custom import as_model
from statetrack.models.independence import _decides, check_independent
from statetrack.training import train, train_many
from statetrack.training.breaking import on_words
from statetrack.training.evaluate import Evaluator
from statetrack.training.protocol import PROTOCOLS

SHORT = {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 4, "warmup": 0, "validation_rows": 16}
LENGTH = 16


class Own(nn.Module):
    """A running mean over inputs, with a place for what it should not see."""

    def __init__(self, leak: Callable[[Own, Tensor], Tensor], inputs: int = 2, outputs: int = 2) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(inputs, 8), nn.Linear(8, outputs)
        self.scale = nn.Parameter(torch.ones(()))
        self.leak, self.last, self.tokens, self.large = leak, torch.zeros(8), 0, 0

    def forward(self, ids: Tensor) -> Tensor:
        self.tokens += ids.numel()
        self.ids = ids
        seen = self.table(ids)
        past = seen.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None]
        return self.head(past + self.scale * self.leak(self, seen))


def ahead(seen: Tensor, steps: int) -> Tensor:
    return torch.cat([seen[:, steps:], torch.zeros_like(seen[:, :steps])], 1)


def nothing(own: Own, seen: Tensor) -> Tensor:
    return torch.zeros_like(seen)


def peek_at_8(own: Own, seen: Tensor) -> Tensor:
    return ahead(seen, 8)


def bidirectional_beyond_7(own: Own, seen: Tensor) -> Tensor:
    return seen.mean(1, keepdim=True) if seen.shape[1] > 7 else torch.zeros_like(seen)


def bidirectional_beyond_the_length(own: Own, seen: Tensor) -> Tensor:
    return seen.mean(1, keepdim=True) if seen.shape[1] > LENGTH else torch.zeros_like(seen)


def one_position(own: Own, seen: Tensor) -> Tensor:
    leak = torch.zeros_like(seen)
    if seen.shape[1] > 10:
        leak[:, 9] = seen[:, 10]
    return leak


def rows_mixed(own: Own, seen: Tensor) -> Tensor:
    return seen.mean(0, keepdim=True).expand_as(seen)


def rows_mixed_in_large_batches(own: Own, seen: Tensor) -> Tensor:
    return seen.roll(1, 0) if len(seen) > 3 else torch.zeros_like(seen)


def state_kept(own: Own, seen: Tensor) -> Tensor:
    before, own.last = own.last, seen[:, -1].mean(0).detach()
    return before.expand_as(seen)


REFUSED = [
    (peek_at_8, "Own is not causal at length 16"),
    (bidirectional_beyond_7, "Own is not causal at length 16"),
    (bidirectional_beyond_the_length, "Own is not causal at length 32"),
    (one_position, "Own is not causal at length 16"),
    (rows_mixed, "Own mixes the rows of a batch at length 16"),
    (rows_mixed_in_large_batches, "Own mixes the rows of a batch at length 16"),
    (state_kept, "Own keeps something from batch to batch at length 16"),
]


@pytest.mark.parametrize(("leak", "said"), REFUSED)
def test_what_may_not_be_seen(leak: Callable[[Own, Tensor], Tensor], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_independent(as_model(Own(leak), "Own", 2, 2), 2, (LENGTH, 2 * LENGTH))


@pytest.mark.parametrize("leak", [peek_at_8, bidirectional_beyond_7, rows_mixed_in_large_batches])
def test_it_is_refused_before_it_is_trained(leak: Callable[[Own, Tensor], Tensor]) -> None:
    steps: list[object] = []
    with pytest.raises(BadInput, match="Own "):
        train("txc", Own(leak), length=LENGTH, settings=SHORT, report=steps.append)
    assert not steps


def test_the_check_of_seven_positions_saw_none_of_it() -> None:
    for leak in (peek_at_8, bidirectional_beyond_7):
        check(as_model(Own(leak), "Own", 2, 2), 2, 2)


def test_a_leak_below_the_tolerance_that_decides() -> None:
    own = Own(lambda own, seen: 1e-6 * ahead(seen, 1) - seen.cumsum(1) / torch.arange(1, seen.shape[1] + 1)[:, None])
    with torch.no_grad():
        own.table.weight.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
        own.head.weight.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
        own.head.bias.zero_()
    with pytest.raises(BadInput, match="not causal"):
        check_independent(as_model(own, "Own", 2, 2), 2, (LENGTH,))


def only(rows: Tensor, seen: Tensor) -> Tensor:
    """Ahead by 3 in these rows alone."""
    return ahead(seen, 3) * rows.to(seen.dtype)[:, None, None]


def above_64_rows(own: Own, seen: Tensor) -> Tensor:
    return ahead(seen, 3) if len(seen) > 64 else torch.zeros_like(seen)


def one_row_of_256(own: Own, seen: Tensor) -> Tensor:
    return only(torch.arange(len(seen)) % 256 == 255, seen)


def rows_of_one_content(own: Own, seen: Tensor) -> Tensor:
    """About one row of five hundred, which another row in its place is not."""
    weights = torch.arange(1, seen.shape[1] + 1) ** 2
    return only((own.ids * weights).sum(1) % 509 == 5, seen)


def every_seventh_large_batch(own: Own, seen: Tensor) -> Tensor:
    own.large += len(seen) > 64
    return ahead(seen, 3) if len(seen) > 64 and own.large % 7 == 0 else torch.zeros_like(seen)


def mixed_in_large_batches(own: Own, seen: Tensor) -> Tensor:
    return seen.roll(1, 0) if len(seen) > 64 else torch.zeros_like(seen)


@pytest.mark.parametrize(
    "leak", [above_64_rows, one_row_of_256, rows_of_one_content, every_seventh_large_batch, mixed_in_large_batches]
)
def test_a_peek_that_no_trial_meets_is_found_where_it_is_scored(leak: Callable[[Own, Tensor], Tensor]) -> None:
    with pytest.raises(BadInput, match=r"Own .* at length \d+"):
        train("txc", Own(leak), length=LENGTH, settings=SHORT | {"rates": [0.1]}, words=0)


@pytest.mark.parametrize("leak", [above_64_rows, mixed_in_large_batches])
def test_the_batches_of_training_are_tried_before_it(leak: Callable[[Own, Tensor], Tensor]) -> None:
    steps: list[object] = []
    with pytest.raises(BadInput, match="Own "):
        train("txc", Own(leak), length=LENGTH, settings=SHORT | {"batch": 100}, report=steps.append)
    assert not steps


def test_rounding_is_no_peek_and_what_decides_an_answer_is() -> None:
    one = torch.randn(64, 32, 2, generator=torch.Generator().manual_seed(0))
    seen = torch.ones(64, 32, dtype=torch.bool)
    assert not _decides(one, one + 1e-5 * torch.randn_like(one), seen)
    row = one.clone()
    row[3] = row[3].flip(-1)
    assert _decides(one, row, seen)
    seen[3] = False
    assert not _decides(one, row, seen)
    silent = one.clone()
    silent[5, 7] = float("nan")
    assert _decides(one, silent, seen)
    assert not _decides(silent, silent, seen)


class Learned(Own):
    """It peeks with a weight that is 0 at first."""

    def __init__(self) -> None:
        super().__init__(peek_at_8)
        nn.init.zeros_(self.scale)


class Far(Own):
    """It is bidirectional from four times the length on, where only the evaluation goes."""

    def __init__(self) -> None:
        super().__init__(lambda own, seen: seen.mean(1, keepdim=True) * (seen.shape[1] >= 4 * LENGTH))


@pytest.mark.parametrize(("kind", "said"), [(Learned, "at length 16"), (Far, "at length 64")])
def test_a_peek_that_shows_only_later_gets_no_record(kind: type[Own], said: str) -> None:
    check_independent(as_model(kind(), "Own", 2, 2), 2, (LENGTH, 2 * LENGTH))
    with pytest.raises(BadInput, match=f"{kind.__name__} is not causal {said}"):
        train("txc", kind(), length=LENGTH, settings=SHORT | {"rates": [0.1]})


class InPieces(Own):
    """Whole it is causal; in the windows of a stream it peeks."""

    def __init__(self) -> None:
        super().__init__(nothing)

    def initial_state(self, batch: int, device: torch.device | None = None) -> Tensor:
        return torch.zeros(batch, 1, device=device)

    def forward_from(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        self.leak = bidirectional_beyond_the_length
        try:
            return self.forward(ids), state
        finally:
            self.leak = nothing


def test_the_pieces_of_a_stream() -> None:
    own = as_model(InPieces(), "InPieces", 2, 2)
    check_independent(own, 2, (LENGTH, 2 * LENGTH))
    with pytest.raises(BadInput, match="forward_from of InPieces is not causal at length 64"):
        check_independent(own, 2, (LENGTH,), window=64)


def test_the_pieces_of_hard_words() -> None:
    """Which are run in windows that no trial has: wherever an answer counts, it is tried."""
    with pytest.raises(BadInput, match="InPieces is not causal, or mixes the rows of a batch, at length"):
        on_words(st.task("txc"), as_model(InPieces(), "InPieces", 2, 2), LENGTH, 0, 20_000)


def test_an_honest_model_is_trained_and_left_as_it_was() -> None:
    own = Own(nothing).train()
    check_independent(as_model(own, "Own", 2, 2), 2, (LENGTH, 2 * LENGTH))
    assert own.training
    assert len(train_many("txc", Own(nothing), length=LENGTH, seeds=[0, 1], settings=SHORT)) == 2


def test_it_costs_no_more_than_two_steps_of_training() -> None:
    own, length = Own(nothing), 64
    batch = PROTOCOLS["curriculum"].batch_at(length)
    check_independent(as_model(own, "Own", 2, 2), 2, (length, 2 * length), batch=batch)
    step = 3 * length * batch  # forward, and backward as two of them
    assert own.tokens <= 2 * step


def test_testing_costs_three_times_as_much() -> None:
    own = Own(nothing)
    evaluator = Evaluator(st.task("txc"), as_model(own, "Own", 2, 2), LENGTH, 0)
    assert evaluator.at_length().rows == 1024
    assert own.tokens == 3 * 1024 * LENGTH


DEEP = ("mamba2-8l", "mamba2-16l", "mamba2-32l")


@pytest.mark.parametrize("name", [name for name in names() if not name.startswith(DEEP)])
def test_our_own_models_are_independent(name: str) -> None:
    check_independent(model(name, inputs=3, outputs=5, seed=0), 3, (12, 24), window=20)
