"""The CUDA C++ kernels for several writes per step run by an emulator, against the float64 reference: their arithmetic,
their indices and their barriers, where there is no GPU. test_cuda.py compares the real thing.
"""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from statetrack.errors import BadInput
from statetrack.ops import e88_scan, nvrtc
from statetrack.ops.e88 import fastest, writes
from statetrack.ops.e88.kernels import writes_fit
from tests.ops.e88_cases import counted_noise, largest_error, noise_of, random_inputs, run, same_bits
from tests.ops.emulated import compiler

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(params=[(False, False), (True, True)], ids=["first to last", "last to first, late copies"])
def emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    backwards, late = request.param
    monkeypatch.setattr(writes, "compiled", compiler(backwards=backwards, late=late))
    monkeypatch.setattr(writes, "bind", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())


def error(inputs: list[torch.Tensor], nonlinearity: str = "tanh", **options: object) -> tuple[float, str]:
    """The largest error of outputs and gradients, and where it is."""
    given = [tensor.detach() for tensor in inputs]
    wanted = run([tensor.double() for tensor in given], "reference", nonlinearity, **options)
    return largest_error(run(given, "cuda", nonlinearity, **options), wanted)


def single(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().float() for tensor in inputs]


def halved(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().bfloat16() if i < 3 else tensor.detach().float() for i, tensor in enumerate(inputs)]


SHAPES = [  # rows, steps, heads, N, V, writes
    (3, 33, 3, 8, 8, 2), (2, 17, 4, 8, 8, 3), (1, 37, 4, 8, 8, 4), (2, 1, 1, 8, 8, 2), (2, 9, 3, 16, 16, 2),
    (1, 14, 2, 16, 8, 4), (2, 11, 3, 8, 32, 3), (1, 21, 2, 5, 7, 2), (2, 8, 3, 12, 20, 4), (1, 9, 2, 8, 16, 8),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_is_the_reference(emulated: None, shape: tuple[int, ...]) -> None:
    worst, where = error(single(random_inputs(*shape)), "tanh" if shape[1] % 2 else "identity")
    assert worst < 1e-5, where


@pytest.mark.parametrize("shape", [*SHAPES, (2, 19, 3, 8, 8, 1), (1, 6, 2, 16, 32, 1)])
def test_is_the_reference_read_whole(emulated: None, shape: tuple[int, ...]) -> None:
    worst, where = error(single(random_inputs(*shape)), "tanh" if shape[1] % 2 else "identity", whole=True)
    assert worst < 1e-5, where


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shape", [(3, 19, 3, 8, 8, 2), (2, 17, 1, 16, 32, 3), (1, 9, 2, 6, 8, 4)])
def test_bfloat16_inputs(emulated: None, shape: tuple[int, ...], whole: bool) -> None:
    worst, where = error(halved(random_inputs(*shape)), whole=whole)
    assert worst < 1e-2, where


NOISY = [(4, 18, 3, 8, 8, 2), (2, 21, 2, 5, 7, 3), (2, 13, 1, 16, 8, 4), (2, 9, 2, 16, 32, 2)]


@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shape", NOISY)
def test_with_noise_of_two_replicas(emulated: None, shape: tuple[int, ...], whole: bool, scale: float) -> None:
    """Large values saturate: there no gradient passes a state, whatever its noise."""
    q, k, v, decay, beta, state = single(random_inputs(*shape))
    worst, where = error([q, k, scale * v, decay, beta, 9 * state], whole=whole, noise=noise_of(2))
    assert worst < 1e-5, where


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shape", [(2, 26, 3, 8, 8), (2, 11, 1, 12, 20)])
def test_noise_has_the_same_bits_in_both_passes(emulated: None, shape: tuple[int, ...], whole: bool) -> None:
    """A second write of nothing leaves the state as it is."""

    def scan(q, k, v, decay, beta, *, kernel, **options):
        twice = [torch.stack([x, torch.zeros_like(x)], 2) for x in (k, v, beta)]
        return e88_scan(None if whole else q, *twice[:2], decay, twice[2], kernel=kernel, **options)

    same_bits(*(counted_noise(partial(scan, kernel=kernel), *shape) for kernel in ("cuda", "reference")))


@pytest.mark.parametrize("missing", ["out", "last"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_gradient_of_one_result_alone(emulated: None, whole: bool, missing: str) -> None:
    def found(kernel: str) -> dict[str, torch.Tensor]:
        wide = torch.float32 if kernel == "cuda" else torch.float64
        q, *leaves = [x.detach().to(wide).requires_grad_() for x in random_inputs(2, 11, 2, 8, 8, 3)]
        results = e88_scan(None if whole else q, *leaves[:4], state=leaves[4], kernel=kernel)
        result = results[missing == "out"]
        weights = torch.linspace(-1, 1, result.numel(), dtype=wide).view_as(result)
        gradients = torch.autograd.grad(result, leaves, weights)
        return {str(i): gradient.double() for i, gradient in enumerate(gradients)}

    worst, where = largest_error(found("cuda"), found("reference"))
    assert worst < 1e-5, where


@pytest.mark.parametrize("scale", [2.0, 8.0, 40.0])
def test_some_states_saturate(emulated: None, scale: float) -> None:
    """There a state is -1 or 1 to the last bit, and no gradient passes it."""
    q, k, v, decay, beta, state = single(random_inputs(2, 21, 3, 8, 8, 2))
    worst, where = error([q, k, scale * v, decay, beta, 9 * state])
    assert worst < 1e-5, where


def test_no_nan_from_huge_inputs(emulated: None) -> None:
    for whole in (False, True):
        found = run([1e3 * tensor for tensor in single(random_inputs(2, 9, 2, 8, 8, 3))], "cuda", whole=whole)
        assert all(tensor.isfinite().all() for tensor in found.values())


@pytest.mark.parametrize("which", range(6))
def test_what_is_not_a_number_stays_so(emulated: None, which: int) -> None:
    inputs = single(random_inputs(2, 9, 3, 8, 8, 2))
    (inputs[which][1] if which == 5 else inputs[which][1, 4])[-1] = float("nan")
    wanted = run([tensor.double() for tensor in inputs], "reference")
    for name, tensor in run(inputs, "cuda").items():
        assert torch.equal(tensor.isnan(), wanted[name].isnan()), name


def test_the_approximate_tanh(emulated: None) -> None:
    inputs = single(random_inputs(2, 15, 2, 8, 8, 2))
    wanted = run([tensor.double() for tensor in inputs], "reference")
    worst, where = largest_error(run(inputs, "cuda", tanh="approx"), wanted)
    assert 1e-6 < worst < 2e-3, where


@pytest.mark.parametrize(
    ("writes", "n", "width", "whole", "kernel"),
    [
        (1, 32, 32, False, "cuda"), (2, 8, 8, False, "cuda"), (4, 8, 8, True, "cuda"), (4, 16, 32, True, "cuda"),
        (8, 8, 8, False, "cuda"), (5, 9, 8, False, "triton"), (2, 17, 8, False, "triton"), (1, 17, 8, True, "triton"),
        (2, 8, 33, False, "triton"), (1, 64, 64, False, "triton"), (2, 65, 8, True, "reference"),
    ],
)  # fmt: skip
def test_which_kernel_a_card_takes(
    writes: int, n: int, width: int, whole: bool, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    monkeypatch.setattr(nvrtc, "available", lambda: True)
    on_card = SimpleNamespace(type="cuda")
    k, v = (SimpleNamespace(device=on_card, shape=(2, 3, writes, 4, size)) for size in (n, width))
    assert fastest(None if whole else k, k, v, torch.float32) == kernel


def test_heads_that_are_too_large_are_refused() -> None:
    with pytest.raises(BadInput, match="5 writes per step, or all of the state read, in heads of 12 x 8"):
        e88_scan(*random_inputs(1, 2, 1, 12, 8, 5)[:5], kernel="cuda")


def test_all_that_it_says_to_take_fits_into_shared_memory() -> None:
    """49,152 bytes are what a block has without asking."""
    for n in (8, 16):
        for count in (count for count in range(1, 9) if writes_fit(count, n, 32)):
            for width in (8, 16, 32):
                for whole in (False, True):
                    heads, backward = 32 // width, writes.staged("e88_writes_backward", n, count, whole)
                    of_step = 4 * (count * (heads * n + 32 + heads) + heads + n)  # k, v, beta, decay and signs
                    of_step += 4 * (2 * n * 32 if whole else heads * n + 32)  # out and its gradient, or q and that
                    rerun = 0 if whole else 4 * n * 32
                    assert backward * (2 * of_step + rerun) <= 49152, (n, count, width, whole)
