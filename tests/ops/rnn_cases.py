"""Random inputs of the classic cells and the comparison with the float64 reference, for every kernel's tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from statetrack.ops import rnn_scan
from statetrack.ops.rnn.reference import GATES
from tests.ops.e88_cases import largest_error, noise_of

CELLS = tuple(GATES)


def random_inputs(
    cell: str, rows: int, steps: int, hidden: int, replicas: int | None = None, seed: int = 0
) -> dict[str, Tensor]:
    """x, weight, bias of a GRU, h and c of an LSTM, float64; rows of each replica."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    all_rows, gates = rows * (replicas or 1), GATES[cell]
    several = () if replicas is None else (replicas,)
    found = {
        "x": normal(all_rows, steps, gates * hidden),
        "weight": normal(*several, gates * hidden, hidden) / hidden**0.5,
        "h": 0.5 * normal(all_rows, hidden),
    }
    if cell == "lstm":
        found["c"] = normal(all_rows, hidden)
    if cell == "gru":
        found["bias"] = normal(*several, hidden)
    return found


def run(cell: str, inputs: dict[str, Tensor], **options: Any) -> dict[str, Tensor]:
    """Outputs, last state and every gradient of a fixed random loss, by name."""
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    state = tuple(leaves[name] for name in ("h", "c") if name in leaves)
    out, last = rnn_scan(cell, leaves["x"], leaves["weight"], state, bias=leaves.get("bias"), **options)
    given = [out, *last]
    generator = torch.Generator().manual_seed(99)
    weigh = [torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t) for t in given]
    gradients = torch.autograd.grad(given, list(leaves.values()), weigh)
    found = dict(zip(("out", "last h", "last c"), given)) | {f"d{name}": g for name, g in zip(leaves, gradients)}
    return {name: tensor.detach().double().cpu() for name, tensor in found.items()}


def compare(
    cell: str, inputs: dict[str, Tensor], kernel: str, device: str, dtype: torch.dtype = torch.float32, **options: Any
) -> tuple[float, str]:
    """The largest error of outputs and gradients, and where it is, on inputs rounded to dtype."""
    rounded = {name: tensor.to(device, dtype) for name, tensor in inputs.items()}
    found = run(cell, rounded, kernel=kernel, **options)
    wanted = run(cell, {name: tensor.double() for name, tensor in rounded.items()}, kernel="reference", **options)
    return largest_error(found, wanted)


def noise_on(device: str, replicas: int, size: float = 0.25) -> Any:
    noise = noise_of(replicas, size)
    return noise._replace(keys=noise.keys.to(device))
