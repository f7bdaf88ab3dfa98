"""The GPU kernels of M2RNN against the float64 reference, on the card."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from statetrack.ops import m2rnn_scan
from tests.ops.e88_cases import largest_error, noise_of, same_bits
from tests.ops.m2rnn_cases import counted_noise, random_inputs, run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.parametrize("kernel", ["triton"]),
]


def compare(kernel, inputs, dtype=torch.float32, **options):
    rounded = [tensor.to("cuda", dtype) for tensor in inputs]
    wanted = run([tensor.double() for tensor in rounded], "reference", **options)
    return largest_error(run(rounded, kernel, **options), wanted)


def forgetting(steps):
    """What f is drawn from. Over hundreds of steps W drives states apart where much is forgotten: there the reference
    in float32 is up to 2e-2 off its own gradients in float64.
    """
    return (0.0, 1.0) if steps < 100 else (0.9, 1.0)


@pytest.mark.parametrize("replicas", [None, 3])
@pytest.mark.parametrize("steps", [1, 17, 300])
@pytest.mark.parametrize(("n", "width"), [(8, 8), (16, 8), (8, 32), (32, 16), (32, 32), (12, 20)])
def test_is_the_reference(kernel, n, width, steps, replicas):
    error, where = compare(kernel, random_inputs(9, steps, 3, n, width, replicas, forget=forgetting(steps)))
    assert error < 1e-4, where


def test_a_long_sequence(kernel):
    error, where = compare(kernel, random_inputs(3, 2000, 2, 8, 8, forget=(0.9, 1.0)))
    assert error < 1e-4, where


@pytest.mark.parametrize("steps", [1, 17, 300])
@pytest.mark.parametrize("size", [8, 32])
def test_bfloat16_inputs(kernel, size, steps):
    inputs = random_inputs(3, steps, 3, size, size, forget=forgetting(steps))
    error, where = compare(kernel, inputs, torch.bfloat16)
    assert error < 2e-2, where


def test_same_bits_twice_and_no_nan_from_huge_inputs(kernel):
    q, k, v, f, W, state = (tensor.to("cuda", torch.float32) for tensor in random_inputs(4, 100, 3, 32, 32))
    inputs = [1e3 * q, 1e3 * k, 1e3 * v, f, 1e3 * W, 1e3 * state]
    once, again = run(inputs, kernel), run(inputs, kernel)
    assert all(tensor.isfinite().all() for tensor in once.values())
    assert largest_error(once, again)[0] == 0


def on_device(noise):
    return noise._replace(keys=noise.keys.cuda())


@pytest.mark.parametrize("shape", [(6, 50, 2, 8, 8, 2), (2, 37, 1, 12, 20), (2, 50, 3, 32, 32)])
def test_with_noise(kernel, shape):
    replicas = shape[5] if len(shape) > 5 else 1
    error, where = compare(kernel, random_inputs(*shape), noise=on_device(noise_of(replicas, 0.1)))
    assert error < 1e-4, where


@pytest.mark.parametrize("shape", [(2, 100, 3, 8, 8), (1, 51, 3, 32, 32), (2, 37, 1, 12, 20)])
def test_noise_has_the_same_bits_in_both_passes(kernel, shape):
    def scan(*inputs, noise, state):
        *inputs, state = (x.cuda() for x in (*inputs, state))
        return tuple(x.cpu() for x in m2rnn_scan(*inputs, state=state, noise=on_device(noise), kernel=kernel))

    same_bits(counted_noise(scan, *shape), counted_noise(partial(m2rnn_scan, kernel="reference"), *shape))
