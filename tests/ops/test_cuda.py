"""The CUDA C++ kernel against the float64 reference, behind e88_scan and behind ssd_scan."""

import pytest
import torch

from statetrack.ops import e88_scan, ssd_scan
from tests.ops.e88_cases import counted_noise, largest_error, random_inputs, run, same_bits

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def compare(inputs, nonlinearity="tanh", dtype=torch.float32, **options):
    rounded = [tensor.detach().to("cuda", dtype) for tensor in inputs]
    wanted = run([tensor.double() for tensor in rounded], "reference", nonlinearity)
    return largest_error(run(rounded, "cuda", nonlinearity, **options), wanted)


@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
@pytest.mark.parametrize("beta", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("steps", [1, 17, 1000])
@pytest.mark.parametrize(("n", "width"), [(8, 8), (16, 8), (8, 32), (32, 16), (32, 32), (12, 20)])
def test_is_the_reference(n, width, steps, beta, nonlinearity):
    error, where = compare(random_inputs(3, steps, 3, n, width, beta=beta), nonlinearity)
    assert error < 1e-4, where


@pytest.mark.parametrize("steps", [1, 17, 1000])
def test_bfloat16_inputs(steps):
    error, where = compare(random_inputs(3, steps, 3, 32, 32), dtype=torch.bfloat16)
    assert error < 2e-2, where


@pytest.mark.parametrize("steps", [1, 17, 1000])
def test_the_approximate_tanh(steps):
    error, where = compare(random_inputs(3, steps, 3, 32, 32), tanh="approx")
    assert error < 2e-3, where


def test_with_gain():
    error, where = compare(random_inputs(4, 64, 2, 32, 32, decay=(0.0, 2.0), beta=(0.0, 4.0)))
    assert error < 1e-4, where


def test_same_bits_twice_and_no_nan_from_huge_inputs():
    inputs = [1e3 * tensor.detach().to("cuda", torch.float32) for tensor in random_inputs(4, 100, 3, 32, 32)]
    once, again = run(inputs, "cuda"), run(inputs, "cuda")
    assert all(tensor.isfinite().all() for tensor in once.values())
    assert largest_error(once, again)[0] == 0


@pytest.mark.parametrize("shape", [(2, 100, 3, 8, 8), (1, 51, 3, 32, 32), (2, 37, 1, 12, 20)])
def test_noise_has_the_same_bits_in_both_passes(shape):
    def scan(*inputs, noise, state, **options):
        *inputs, state = (x.cuda() for x in (*inputs, state))
        noise = noise._replace(keys=noise.keys.cuda())
        return tuple(x.cpu() for x in e88_scan(*inputs, state=state, noise=noise, kernel="cuda", **options))

    same_bits(counted_noise(scan, *shape), counted_noise(lambda *x, **y: e88_scan(*x, **y, kernel="reference"), *shape))


@pytest.mark.parametrize(("heads", "p", "n", "groups"), [(8, 16, 16, 1), (2, 64, 16, 1), (4, 12, 10, 2)])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("steps", [1, 17, 300])
def test_ssd(heads, p, n, groups, signed, steps):
    torch.manual_seed(0)
    inputs = {
        "x": torch.randn(3, steps, heads, p), "dt": torch.rand(3, steps, heads), "A": -torch.rand(heads),
        "B": torch.randn(3, steps, groups, n), "C": torch.randn(3, steps, groups, n),
        "D": torch.randn(heads), "state": torch.randn(3, heads, p, n),
    }  # fmt: skip
    if signed:
        inputs["decay"] = 2 * torch.rand(3, steps, heads) - 1
        del inputs["A"]

    def results(kernel, dtype):
        leaves = {name: tensor.to("cuda", dtype).requires_grad_() for name, tensor in inputs.items()}
        y, last = ssd_scan(**{"A": None, **leaves}, kernel=kernel)
        weights = [
            torch.linspace(-1, 1, tensor.numel(), device="cuda").view_as(tensor).to(tensor) for tensor in (y, last)
        ]
        return [y, last, *torch.autograd.grad([y, last], list(leaves.values()), weights)]

    for found, wanted in zip(results("cuda", torch.float32), results("reference", torch.float64)):
        assert (found.double() - wanted).norm() / wanted.norm() < 1e-5
