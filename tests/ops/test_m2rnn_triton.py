"""M2RNN in Triton against the float64 reference: in the interpreter, or on a GPU where there is one."""

from __future__ import annotations

import os
from functools import partial

import pytest
import torch

from statetrack.ops import m2rnn_scan
from tests.ops.e88_cases import largest_error, noise_of, same_bits
from tests.ops.m2rnn_cases import counted_noise, random_inputs, run

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined, that is, at their first use
pytest.importorskip("triton", reason="pip install 'statetrack[dev]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def compare(inputs, dtype=torch.float32, **options):
    """The largest error of outputs and gradients, and where it is, on inputs rounded to dtype."""
    rounded = [tensor.to(DEVICE, dtype) for tensor in inputs]
    found = run(rounded, "triton", **options)
    return largest_error(found, run([tensor.double() for tensor in rounded], "reference", **options))


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1, 8, 8), (3, 18, 2, 8, 8), (2, 17, 1, 5, 7), (1, 20, 2, 16, 32), (1, 3, 1, 20, 64), (1, 2, 1, 1, 1),
        (2, 17, 2, 8, 8, 1), (6, 5, 2, 8, 4, 2), (3, 5, 1, 16, 16, 3),
    ],
)  # fmt: skip
def test_is_the_reference(shape):
    error, where = compare(random_inputs(*shape))
    assert error < 1e-5, where


@pytest.mark.parametrize("forget", [(0.0, 0.0), (1.0, 1.0), (0.999, 1.0)])
def test_all_and_nothing_forgotten(forget):
    inputs = random_inputs(2, 18, 1, 8, 8, forget=forget)
    error, where = compare(inputs)
    assert error < 1e-5, where


def on_device(noise):
    return noise._replace(keys=noise.keys.to(DEVICE))


@pytest.mark.parametrize("shape", [(4, 18, 2, 5, 7, 2), (2, 17, 1, 8, 8), (1, 4, 1, 16, 16)])
def test_with_noise(shape):
    replicas = shape[5] if len(shape) > 5 else 1
    error, where = compare(random_inputs(*shape), noise=on_device(noise_of(replicas, 0.1)))
    assert error < 1e-5, where


@pytest.mark.parametrize("shape", [(1, 18, 1, 8, 8), (2, 17, 2, 5, 7), (3, 4, 1, 16, 8)])
def test_noise_has_the_same_bits_in_both_passes(shape):
    def scan(*inputs, noise, state):
        *inputs, state = (x.to(DEVICE) for x in (*inputs, state))
        return tuple(x.cpu() for x in m2rnn_scan(*inputs, state=state, noise=on_device(noise), kernel="triton"))

    same_bits(counted_noise(scan, *shape), counted_noise(partial(m2rnn_scan, kernel="reference"), *shape))


def test_bfloat16_inputs():
    error, where = compare(random_inputs(1, 20, 2, 8, 8), torch.bfloat16)
    assert error < 1e-2, where


def test_huge_inputs_saturate():
    inputs = [1e3 * tensor.to(DEVICE, torch.float32) for tensor in random_inputs(1, 20, 1, 8, 8)]
    inputs[3] /= 1e3
    assert all(tensor.isfinite().all() for tensor in run(inputs, "triton").values())
