"""Random M2RNN inputs and what a kernel makes of them, for every kernel's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from statetrack.ops import m2rnn_scan
from tests.ops.e88_cases import noise_of

NAMES = ("q", "k", "v", "f", "W", "state")


def random_inputs(
    batch: int, steps: int, heads: int, n: int, width: int, replicas: int | None = None, *,
    seed: int = 0, forget: tuple[float, float] = (0.0, 1.0), gain: float = 1.0,
) -> list[Tensor]:  # fmt: skip
    """q and k of unit length, v normal, f uniform, W near `gain` times the identity, a state inside (-1, 1)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)

    own = (heads,) if replicas is None else (replicas, heads)
    return [
        torch.nn.functional.normalize(normal(batch, steps, heads, n), dim=-1),
        torch.nn.functional.normalize(normal(batch, steps, heads, n), dim=-1),
        normal(batch, steps, heads, width),
        uniform(*forget, batch, steps, heads),
        gain * torch.eye(width) + 0.5 * normal(*own, width, width) / width**0.5,
        uniform(-0.9, 0.9, batch, heads, n, width),
    ]


def run(inputs: list[Tensor], kernel: str | None, **options: Any) -> dict[str, Tensor]:
    """What a kernel of m2rnn_scan gives."""
    return results(inputs, lambda *x, state: m2rnn_scan(*x, state=state, kernel=kernel, **options))


def results(inputs: list[Tensor], scan: Callable[..., tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Outputs, last state and every gradient of a fixed random loss, by name."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    *sequence, state = leaves
    out, last = scan(*sequence, state=state)
    generator = torch.Generator().manual_seed(99)
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x) for x in (out, last)]
    gradients = torch.autograd.grad([out, last], leaves, weights)
    found = {"out": out, "last": last} | {f"d{name}": x for name, x in zip(NAMES, gradients)}
    return {name: tensor.detach().double().cpu() for name, tensor in found.items()}


def counted_noise(
    scan: Callable[..., tuple[Tensor, Tensor]], replicas: int, steps: int, heads: int, n: int, width: int
) -> dict[str, Tensor]:
    """Outputs and gradients of a state that its noise alone moves, in numbers that every order of adding leaves exact.

    Nothing is forgotten, f = 1, and W = 0, so that Z = 0: the gradient of f is the sum, with whole weights, of the
    states that the backward pass finds again.
    """
    batch = 2 * replicas
    q = torch.eye(n)[torch.arange(steps) % n, None].expand(batch, steps, heads, n).clone()
    k, v, f = torch.zeros_like(q), torch.zeros(batch, steps, heads, width), torch.ones(batch, steps, heads)
    W, start = torch.zeros(replicas, heads, width, width), torch.zeros(batch, heads, n, width)
    leaves = [x.requires_grad_() for x in (q, k, v, f, W, start)]
    out, last = scan(*leaves[:5], state=leaves[5], noise=noise_of(replicas))
    weights = [torch.arange(x.numel()).view_as(x) % 5 - 2.0 for x in (out, last)]
    gradients = torch.autograd.grad([out, last], leaves, weights)
    return {"out": out, "last": last} | {f"d{name}": x for name, x in zip(NAMES, gradients)}
