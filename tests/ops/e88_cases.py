"""Random E88 inputs and the comparison with the float64 reference, for every kernel's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from statetrack.ops import Noise, e88_scan

NAMES = ("q", "k", "v", "decay", "beta", "state")


def random_inputs(
    batch: int,
    steps: int,
    heads: int,
    n: int,
    width: int,
    writes: int | None = None,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    decay: tuple[float, float] = (0.3, 1.0),
    beta: tuple[float, float] = (0.0, 1.0),
    device: str = "cpu",
) -> list[Tensor]:
    """q, k of unit length, v normal, decay and beta uniform on their ranges, a state inside (-1, 1)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)

    many = (batch, steps) if writes is None else (batch, steps, writes)
    tensors = [
        torch.nn.functional.normalize(normal(batch, steps, heads, n), dim=-1),
        torch.nn.functional.normalize(normal(*many, heads, n), dim=-1),
        normal(*many, heads, width),
        uniform(*decay, batch, steps, heads),
        uniform(*beta, *many, heads),
        uniform(-0.9, 0.9, batch, heads, n, width),
    ]
    return [tensor.to(device, dtype).requires_grad_() for tensor in tensors]


def run(
    inputs: list[Tensor], kernel: str | None, nonlinearity: str = "tanh", whole: bool = False, **options: Any
) -> dict[str, Tensor]:
    """What a kernel of e88_scan gives; `whole`: of all of the state, without q."""

    def scan(q: Tensor, *sequence: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return e88_scan(
            None if whole else q, *sequence, state=state, nonlinearity=nonlinearity, kernel=kernel, **options
        )

    return results(inputs, scan)


def results(inputs: list[Tensor], scan: Callable[..., tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """Outputs, last state and every gradient of a fixed random loss, by name."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    *sequence, state = leaves
    out, last = scan(*sequence, state=state)
    generator = torch.Generator().manual_seed(99)
    weigh_out, weigh_last = (
        torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor) for tensor in (out, last)
    )
    gradients = torch.autograd.grad([out, last], leaves, [weigh_out, weigh_last], allow_unused=True)
    of_inputs = {f"d{name}": gradient for name, gradient in zip(NAMES, gradients) if gradient is not None}
    found = {"out": out, "last": last, **of_inputs}
    return {name: tensor.detach().double().cpu() for name, tensor in found.items()}


def counted_noise(
    scan: Callable[..., tuple[Tensor, Tensor]], replicas: int, steps: int, heads: int, n: int, width: int
) -> dict[str, Tensor]:
    """Outputs and gradients of a state that only its noise moves, in numbers that every order of adding leaves exact:
    a row of the state at a time, and the last.

    The gradient of decay is the sum, with whole weights, of the states that the backward pass finds again.
    """
    batch = 2 * replicas
    k, v = torch.zeros(batch, steps, heads, n), torch.zeros(batch, steps, heads, width)
    q = torch.eye(n)[torch.arange(steps) % n, None].expand(batch, steps, heads, n).clone()
    decay, beta = torch.ones(batch, steps, heads), torch.zeros(batch, steps, heads)
    leaves = [x.requires_grad_() for x in (q, k, v, decay, beta, torch.zeros(batch, heads, n, width))]
    out, last = scan(*leaves[:5], state=leaves[5], noise=noise_of(replicas), nonlinearity="identity")
    weights = [torch.arange(x.numel()).view_as(x) % 5 - 2.0 for x in (out, last)]
    gradients = torch.autograd.grad([out, last], leaves, weights, allow_unused=True)
    return {"out": out, "last": last} | {f"d{name}": x for name, x in zip(NAMES, gradients) if x is not None}


def noise_of(replicas: int, size: float = 0.25) -> Noise:
    return Noise(torch.arange(7, 7 + replicas), size)


def same_bits(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(found[name], tensor), name


def largest_error(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> tuple[float, str]:
    """The largest |found - wanted| / |wanted| over outputs and gradients, and where it is; NaN counts as infinite."""
    errors = {}
    for name, tensor in wanted.items():
        error = (found[name] - tensor).norm() / tensor.norm().clamp_min(1e-30)
        errors[name] = error.nan_to_num(torch.inf).item()
    worst = max(errors, key=lambda name: errors[name])
    return errors[worst], worst


def differences(found: dict[str, Tensor], wanted: dict[str, Tensor], limit: float) -> str:
    """Each result that is further off than the limit: by how much, and where it is worst. Empty if there is none."""
    lines = []
    for name, tensor in wanted.items():
        off = (found[name] - tensor).abs()
        error = (off.norm() / tensor.norm().clamp_min(1e-30)).nan_to_num(torch.inf).item()
        if error > limit:
            place = off.nan_to_num(torch.inf).argmax().item()
            at = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), off.shape))
            wrong = (off > limit * tensor.abs().max()).float().mean().item()
            nan = found[name].isnan().float().mean().item()
            lines.append(
                f"{name} {tuple(off.shape)}: {error:.1e} off, {wrong:.1%} of it wrong, {nan:.1%} not a number; "
                f"worst at {at}: {found[name][at].item():.6g} instead of {tensor[at].item():.6g}"
            )
    return "\n".join(lines)
