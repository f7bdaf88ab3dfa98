"""Without beta E88's loops on a CPU write and do not correct, as Mamba-2 does: bit for bit what beta = 0 makes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from statetrack.ops import e88_scan

pytest.importorskip("numba")


def made(seed: int, writes: int, n: int) -> list[Tensor]:
    """q, k, v, decay and a first state, of 13 rows and 3 heads: a block of lanes that is not full."""
    generator = torch.Generator().manual_seed(seed)
    sizes = ((13, 37, 3, n), (13, 37, writes, 3, n), (13, 37, writes, 3, 5), (13, 37, 3), (13, 3, n, 5))
    return [torch.randn(size, generator=generator).requires_grad_() for size in sizes]


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
@pytest.mark.parametrize("n", [3, 8])  # with numbers left over from fours, and without
def test_no_beta_is_a_beta_of_zero(writes: int, nonlinearity: str, n: int) -> None:
    from statetrack.ops.e88.cpu import e88_cpu

    q, k, v, decay, state = made(writes + n, writes, n)
    zero = torch.zeros(13, 37, writes, 3)
    found = e88_cpu(q, k, v, decay, None, state, nonlinearity)
    expected = e88_cpu(q, k, v, decay, zero, state, nonlinearity)
    leaves = [q, k, v, decay, state]
    gradients = [torch.autograd.grad(out.square().sum() + last.sum(), leaves) for out, last in (found, expected)]
    for one, other in zip((*found, *gradients[0]), (*expected, *gradients[1])):
        assert torch.equal(one, other)


def test_a_last_state_that_nobody_reads_has_no_part_in_the_gradients() -> None:
    q, k, v, decay, state = made(0, 1, 4)
    beta = torch.rand(13, 37, 1, 3)
    out, last = e88_scan(q, k, v, decay, beta, state=state, kernel="cpu")
    alone = torch.autograd.grad(out.sum(), [q, k, v, decay, state], retain_graph=True)
    both = torch.autograd.grad(out.sum() + 0 * last.sum(), [q, k, v, decay, state])
    for one, other in zip(alone, both):
        assert torch.equal(one, other)


def test_gradients_are_those_of_the_reference_where_the_first_state_needs_none() -> None:
    leaves = made(1, 1, 4)
    state = leaves.pop().detach()
    beta = torch.rand(13, 37, 1, 3)
    found, expected = (
        torch.autograd.grad(e88_scan(*leaves, beta, state=state, kernel=kernel)[0].sum(), leaves)
        for kernel in ("cpu", "reference")
    )
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
