"""The CUDA C++ kernels run by an emulator, against the float64 reference: their arithmetic, their indices and their
barriers, where there is no GPU. test_cuda.py compares the real thing.
"""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from functools import partial

import pytest
import torch

from statetrack.ops import e88_scan, ssd_scan
from statetrack.ops.e88 import cuda
from statetrack.ops.ssd.cuda import ssd_cuda
from tests.ops.e88_cases import counted_noise, largest_error, noise_of, random_inputs, results, run, same_bits
from tests.ops.emulated import compiler

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(params=[(False, False), (True, True)], ids=["first to last", "last to first, late copies"])
def emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    backwards, late = request.param
    monkeypatch.setattr(cuda, "compiled", compiler(backwards=backwards, late=late))
    monkeypatch.setattr(cuda, "bind", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())


def emulate(inputs: list[torch.Tensor], nonlinearity: str = "tanh", approx: bool = False) -> dict[str, torch.Tensor]:
    """What e88_cases.run finds, by the emulated kernel."""

    def scan(q, k, v, decay, beta, state):
        one = (q, k.unsqueeze(2), v.unsqueeze(2), decay, beta.unsqueeze(2))  # write a step
        return cuda.e88_cuda(*one, state, nonlinearity, approx)

    return results(inputs, scan)


def error(inputs: list[torch.Tensor], nonlinearity: str = "tanh", approx: bool = False) -> tuple[float, str]:
    wanted = run([tensor.double() for tensor in inputs], "reference", nonlinearity)
    return largest_error(emulate(inputs, nonlinearity, approx), wanted)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_any_number_of_lanes_a_column(emulated: None, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "lanes_of", lambda name, form, n: lanes)
    worst, where = error([tensor.detach().float() for tensor in random_inputs(2, 11, 3, 32, 16)])
    assert worst < 1e-5, where


@pytest.mark.parametrize(
    ("n", "width", "steps", "nonlinearity"),
    [
        (32, 32, 1, "tanh"), (32, 32, 50, "tanh"), (32, 32, 24, "identity"), (32, 16, 30, "tanh"), (32, 8, 29, "tanh"),
        (8, 8, 26, "tanh"), (12, 20, 7, "tanh"),
    ],
)  # fmt: skip
def test_is_the_reference(emulated: None, n: int, width: int, steps: int, nonlinearity: str) -> None:
    inputs = [tensor.detach().float() for tensor in random_inputs(3, steps, 3, n, width)]
    worst, where = error(inputs, nonlinearity)
    assert worst < 1e-5, where


@pytest.mark.parametrize(("n", "width", "steps"), [(32, 32, 37), (8, 8, 21), (16, 32, 9)])
def test_bfloat16_inputs(emulated: None, n: int, width: int, steps: int) -> None:
    *sequence, decay, beta, state = [tensor.detach() for tensor in random_inputs(2, steps, 3, n, width)]
    inputs = [*(tensor.bfloat16() for tensor in sequence), decay.float(), beta.float(), state.float()]
    worst, where = error(inputs)
    assert worst < 1e-2, where


def test_bfloat16_inputs_and_a_start_beyond_what_a_kept_state_can_hold(emulated: None) -> None:
    *sequence, decay, beta, state = [tensor.detach() for tensor in random_inputs(2, 19, 3, 32, 16)]
    inputs = [*(tensor.bfloat16() for tensor in sequence), decay.float(), beta.float(), 9 * state.float()]
    worst, where = error(inputs)
    assert worst < 1e-2, where


NOISY = [(2, 26, 3, 8, 8), (1, 51, 3, 32, 32), (2, 37, 1, 12, 20), (1, 30, 1, 4, 4), (2, 25, 2, 16, 8)]


@pytest.mark.parametrize("shape", NOISY)
def test_noise_has_the_same_bits_in_both_passes(emulated: None, shape: tuple[int, ...]) -> None:
    found, wanted = (counted_noise(partial(e88_scan, kernel=kernel), *shape) for kernel in ("cuda", "reference"))
    same_bits(found, wanted)


@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.parametrize("shape", NOISY[:3])
def test_is_the_reference_with_noise(emulated: None, shape: tuple[int, ...], scale: float) -> None:
    """Large values saturate: there no gradient passes a state, whatever its noise."""
    replicas, *rest = shape
    q, k, v, decay, beta, state = [x.detach().float() for x in random_inputs(2 * replicas, *rest)]
    inputs = [q, k, scale * v, decay, beta, 9 * state]
    wanted = run([x.double() for x in inputs], "reference", noise=noise_of(replicas))
    worst, where = largest_error(run(inputs, "cuda", noise=noise_of(replicas)), wanted)
    assert worst < 1e-5, where


def test_bfloat16_inputs_with_noise(emulated: None) -> None:
    *sequence, decay, beta, state = [tensor.detach() for tensor in random_inputs(2, 37, 3, 32, 32)]
    inputs = [*(tensor.bfloat16() for tensor in sequence), decay.float(), beta.float(), state.float()]
    wanted = run([x.double() for x in inputs], "reference", noise=noise_of(1, 0.9))
    worst, where = largest_error(run(inputs, "cuda", noise=noise_of(1, 0.9)), wanted)
    assert worst < 1e-2, where


def test_the_approximate_tanh(emulated: None) -> None:
    inputs = [tensor.detach().float() for tensor in random_inputs(2, 30, 2, 32, 32)]
    worst, where = error(inputs, approx=True)
    assert 1e-6 < worst < 2e-3, where


def test_no_nan_from_huge_inputs(emulated: None) -> None:
    found = emulate([1e3 * tensor.detach().float() for tensor in random_inputs(2, 9, 2, 32, 32)])
    assert all(tensor.isfinite().all() for tensor in found.values())


@pytest.mark.parametrize("scale", [2.0, 8.0, 40.0])
def test_arguments_that_are_small_at_some_steps_and_not_at_others(emulated: None, scale: float) -> None:
    """Where they are not, a state is -1 or 1 to the last bit, and no gradient passes it."""
    q, k, v, decay, beta, state = [tensor.detach().float() for tensor in random_inputs(2, 21, 3, 32, 16)]
    worst, where = error([q, k, scale * v, decay, beta, 9 * state])
    assert worst < 1e-5, where


@pytest.mark.parametrize(
    "case", ["a large start", "a start beyond 1e30", "decay below 0", "one key far from the one column"]
)
def test_arguments_that_only_the_right_bound_shows_to_be_large(emulated: None, case: str) -> None:
    """Where they are thought to be small, four numbers share a reciprocal that overflows."""
    q, k, v, decay, beta, state = [tensor.detach().float() for tensor in random_inputs(2, 9, 3, 32, 32, seed=7)]
    if case == "a large start":
        beta, state = 0 * beta, 1e3 * state
    elif case == "a start beyond 1e30":
        beta, state = 0 * beta, 1e32 * state.sign()
        decay[:, 0] = 1e-30
    elif case == "decay below 0":
        beta, decay = 0.5 * beta, -60 * decay
    else:  # each lane of a warp looks at some of the keys and has a column
        k, v, state = 0 * k, 0 * v, 0 * state
        k[..., 0], v[..., 5] = 20, 20
    inputs = [q, k, v, decay, beta, state]
    wanted = run([tensor.double() for tensor in inputs], "reference")
    found = emulate(inputs)
    assert torch.allclose(found["out"].double(), wanted["out"], atol=1e-5)
    assert all(tensor.isfinite().all() for tensor in found.values())


@pytest.mark.parametrize("which", range(6))
def test_what_is_not_a_number_stays_so(emulated: None, which: int) -> None:
    inputs = [tensor.detach().float() for tensor in random_inputs(2, 9, 3, 32, 16)]
    (inputs[which][1] if which == 5 else inputs[which][1, 4])[2] = float("nan")
    wanted = run([tensor.double() for tensor in inputs], "reference")
    for name, tensor in emulate(inputs).items():
        assert torch.equal(tensor.isnan(), wanted[name].isnan()), name


@pytest.mark.parametrize(("heads", "p", "n", "groups"), [(4, 16, 16, 1), (2, 64, 16, 1), (4, 12, 10, 2)])
def test_ssd(emulated: None, heads: int, p: int, n: int, groups: int) -> None:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    inputs = {
        "x": normal(2, 27, heads, p), "dt": normal(2, 27, heads).sigmoid(), "decay": normal(2, 27, heads).tanh(),
        "B": normal(2, 27, groups, n), "C": normal(2, 27, groups, n), "state": normal(2, heads, p, n),
    }  # fmt: skip

    def found(dtype: torch.dtype) -> list[torch.Tensor]:
        leaves = {name: tensor.to(dtype).requires_grad_() for name, tensor in inputs.items()}
        if dtype == torch.float32:
            y, last = ssd_cuda(*(leaves[name] for name in ("x", "dt", "decay", "B", "C", "state")))
        else:
            y, last = ssd_scan(**leaves, A=None, D=None, kernel="reference")
        weights = [torch.linspace(-1, 1, tensor.numel()).view_as(tensor).to(tensor) for tensor in (y, last)]
        return [y, last, *torch.autograd.grad([y, last], list(leaves.values()), weights)]

    for mine, wanted in zip(found(torch.float32), found(torch.float64)):
        assert (mine.double() - wanted).norm() / wanted.norm() < 1e-5
