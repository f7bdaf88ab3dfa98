"""The cells in Triton against the float64 reference: in Triton's interpreter, or on a GPU where there is one."""

import os

import pytest
import torch

from statetrack.ops import rnn_scan
from statetrack.ops.noise import Noise
from tests.ops.e88_cases import same_bits
from tests.ops.rnn_cases import CELLS, compare, noise_on, random_inputs, run

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined, that is, at their first use
pytest.importorskip("triton", reason="pip install 'statetrack[dev]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Weights in registers with and without filling up, several programs; weights that do not fit there.
SHAPES = ((1, 1, 16, None), (3, 5, 8, None), (18, 3, 20, 2), (2, 3, 132, None))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cell", CELLS)
def test_is_the_reference(cell, shape, noisy):
    noise = noise_on(DEVICE, shape[-1] or 1, 0.1) if noisy else None
    error, where = compare(cell, random_inputs(cell, *shape), "triton", DEVICE, noise=noise)
    assert error < 2e-6, where


@pytest.mark.parametrize("cell", CELLS)
def test_without_a_gradient_nothing_is_kept(cell):
    """Weights in registers, and those that come in stretches, where the state has one place in memory."""
    for hidden in (20, 132):
        inputs = {name: t.to(DEVICE, torch.float32) for name, t in random_inputs(cell, 3, 4, hidden).items()}
        state = tuple(inputs[name] for name in ("h", "c") if name in inputs)
        given = (cell, inputs["x"], inputs["weight"], state)
        out, last = rnn_scan(*given, bias=inputs.get("bias"), kernel="triton")
        wanted = run(cell, inputs, kernel="triton")
        assert torch.equal(out.double().cpu(), wanted["out"])
        assert torch.equal(last[-1].double().cpu(), wanted["last c" if cell == "lstm" else "last h"])


@pytest.mark.parametrize("cell", CELLS)
def test_noise_has_the_bits_of_the_reference(cell):
    """A state that is moved beyond what the cell saturates at says by its sign alone which way it went."""
    replicas, rows, steps, hidden, layers = 2, 3, 6, 20, 3
    gates = {"tanh": 1, "gru": 3, "lstm": 4}[cell]
    noise = noise_on(DEVICE, replicas, 64.0)

    def found(kernel):
        x = torch.zeros(replicas * rows, steps, gates * hidden, device=DEVICE)
        weight = torch.eye(hidden, device=DEVICE).repeat(gates, 1).expand(replicas, -1, -1)
        state = tuple(torch.zeros(replicas * rows, hidden, device=DEVICE) for _ in range(2 if cell == "lstm" else 1))
        out, last = rnn_scan(cell, x, weight, state, noise=noise, layer=2, layers=layers, kernel=kernel)
        return {"out": out.sign().cpu(), **{f"last {i}": part.sign().cpu() for i, part in enumerate(last)}}

    wanted = found("reference")
    assert set(wanted["out"][:, 1:].unique().tolist()) >= {-1.0, 1.0}
    same_bits(found("triton"), wanted)


def test_gaussian_noise_goes_to_the_reference():
    inputs = random_inputs("gru", 2, 3, 5)
    noise = Noise(torch.tensor([3], device=DEVICE), 0.1, gaussian=True)
    error, where = compare("gru", inputs, "triton", DEVICE, noise=noise)
    assert error < 1e-6, where


@pytest.mark.parametrize("cell", CELLS)
def test_huge_inputs_saturate(cell):
    inputs = {name: 1e3 * t.to(DEVICE, torch.float32) for name, t in random_inputs(cell, 2, 20, 8).items()}
    assert all(tensor.isfinite().all() for tensor in run(cell, inputs, kernel="triton").values())
