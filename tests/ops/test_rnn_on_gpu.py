"""The cells in Triton at the sizes of training, on a card: against the float64 reference, and recorded as a graph."""

import pytest
import torch

from statetrack.ops import rnn_scan
from tests.ops.rnn_cases import CELLS, compare, noise_on, random_inputs, run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize(("rows", "steps", "replicas"), [(128, 32, None), (37, 50, 3), (512, 3, 8), (1, 700, None)])
@pytest.mark.parametrize("hidden", [32, 64, 100, 256])
@pytest.mark.parametrize("cell", CELLS)
def test_is_the_reference(cell, hidden, rows, steps, replicas):
    error, where = compare(cell, random_inputs(cell, rows, steps, hidden, replicas), "triton", "cuda")
    assert error < 1e-5, where


@pytest.mark.parametrize("hidden", [32, 128])
@pytest.mark.parametrize("cell", CELLS)
def test_with_noise(cell, hidden):
    inputs = random_inputs(cell, 37, 50, hidden, 3)
    error, where = compare(cell, inputs, "triton", "cuda", noise=noise_on("cuda", 3, 0.2), layer=1, layers=2)
    assert error < 1e-5, where


@pytest.mark.parametrize("cell", CELLS)
def test_same_bits_twice_and_in_pieces(cell):
    inputs = {name: t.to("cuda", torch.float32) for name, t in random_inputs(cell, 128, 32, 64, 2).items()}
    once, again = (run(cell, inputs, kernel="triton") for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)
    state, parts = tuple(inputs[name] for name in ("h", "c") if name in inputs), []
    for piece in inputs["x"].split([13, 1, 18], dim=1):
        out, state = rnn_scan(cell, piece, inputs["weight"], state, bias=inputs.get("bias"), kernel="triton")
        parts.append(out)
    assert torch.equal(torch.cat(parts, dim=1).double().cpu(), once["out"])


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("hidden", [32, 128])
@pytest.mark.parametrize("cell", CELLS)
def test_recorded_as_a_graph(cell, hidden, noisy):
    """A replay on other inputs gives what a run gives."""
    first, second = (
        {name: t.to("cuda", torch.float32) for name, t in random_inputs(cell, 20, 16, hidden, 2, seed).items()}
        for seed in (0, 1)
    )
    noise = noise_on("cuda", 2, 0.2) if noisy else None
    wanted = run(cell, second, kernel="triton", noise=noise)
    leaves = {name: t.clone().requires_grad_() for name, t in first.items()}
    state = tuple(leaves[name] for name in ("h", "c") if name in leaves)

    def both_passes():
        out, _ = rnn_scan(
            cell, leaves["x"], leaves["weight"], state, bias=leaves.get("bias"), kernel="triton", noise=noise
        )
        return out, torch.autograd.grad(out, list(leaves.values()), torch.ones_like(out))

    graph = torch.cuda.CUDAGraph()
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        both_passes()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out, gradients = both_passes()
    for name, tensor in second.items():
        leaves[name].data.copy_(tensor)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out.double().cpu(), wanted["out"])
    plain = both_passes()[1]
    assert all(torch.equal(a, b) for a, b in zip(gradients, plain))
