"""The Triton kernels against the float64 reference: in Triton's interpreter, or on a GPU where there is one."""

import os

import pytest
import torch

from statetrack.ops import e88_scan
from tests.ops.e88_cases import counted_noise, largest_error, noise_of, random_inputs, run, same_bits

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined, that is, at their first use
pytest.importorskip("triton", reason="pip install 'statetrack[dev]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def compare(inputs, nonlinearity, dtype=torch.float32, **options):
    """The largest error of outputs and gradients, and where it is, on inputs rounded to dtype."""
    rounded = [tensor.detach().to(DEVICE, dtype) for tensor in inputs]
    found = run(rounded, "triton", nonlinearity, **options)
    return largest_error(found, run([tensor.double() for tensor in rounded], "reference", nonlinearity, **options))


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


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("shape", "writes"), [((2, 18, 2, 5, 7), 2), ((1, 17, 1, 8, 8), 1)])
def test_without_q_and_with_noise(shape, writes, noisy):
    noise = noise_on_device(1, 0.1) if noisy else None
    error, where = compare(random_inputs(*shape, writes), "tanh", whole=True, noise=noise)
    assert error < 1e-5, where


@pytest.mark.parametrize("shape", [(1, 18, 1, 8, 8), (2, 17, 2, 5, 7)])
def test_noise_has_the_same_bits_in_both_passes(shape):
    def scan(*inputs, noise, state, **options):
        *inputs, state = (x.to(DEVICE) for x in (*inputs, state))
        noise = noise._replace(keys=noise.keys.to(DEVICE))
        return tuple(x.cpu() for x in e88_scan(*inputs, state=state, noise=noise, kernel="triton", **options))

    same_bits(counted_noise(scan, *shape), counted_noise(lambda *x, **y: e88_scan(*x, **y, kernel="reference"), *shape))


def noise_on_device(replicas, size):
    noise = noise_of(replicas, size)
    return noise._replace(keys=noise.keys.to(DEVICE))


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
