"""The Triton kernels against the float64 reference: in Triton's interpreter, or on a GPU where there is one."""

import os

import pytest
import torch

from tests.ops.e88_cases import largest_error, random_inputs, run

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined, that is, at their first use
pytest.importorskip("triton", reason="pip install 'statetrack[dev]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def compare(inputs, nonlinearity, dtype=torch.float32):
    """The largest error of outputs and gradients, and where it is, on inputs rounded to dtype."""
    rounded = [tensor.detach().to(DEVICE, dtype) for tensor in inputs]
    found = run(rounded, "triton", nonlinearity)
    return largest_error(found, run([tensor.double() for tensor in rounded], "reference", nonlinearity))


@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
@pytest.mark.parametrize(
    ("shape", "writes"),
    [
        ((1, 1, 1, 8, 8), 1),
        ((2, 17, 2, 8, 16), 1),
        ((1, 33, 1, 16, 8), 2),
        ((1, 18, 2, 5, 9), 3),
        ((1, 3, 1, 64, 64), 1),
    ],
)
def test_is_the_reference(shape, writes, nonlinearity):
    error, where = compare(random_inputs(*shape, writes), nonlinearity)
    assert error < 1e-5, where


@pytest.mark.parametrize("beta", [(0.0, 0.0), (1.0, 1.0)])
def test_document_and_published_forms(beta):
    error, where = compare(random_inputs(1, 20, 2, 8, 8, beta=beta), "tanh")
    assert error < 1e-5, where


def test_with_gain():
    error, where = compare(random_inputs(1, 20, 1, 8, 8, decay=(0.0, 2.0), beta=(0.0, 4.0)), "tanh")
    assert error < 1e-4, where


def test_bfloat16_inputs():
    error, where = compare(random_inputs(1, 20, 2, 8, 8), "tanh", torch.bfloat16)
    assert error < 1e-2, where


def test_huge_inputs_saturate():
    inputs = [1e3 * tensor.detach().to(DEVICE, torch.float32) for tensor in random_inputs(1, 20, 1, 8, 8)]
    assert all(tensor.isfinite().all() for tensor in run(inputs, "triton").values())
