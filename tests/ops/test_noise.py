"""The signs of the noise on a state: what they are a function of, and that they come in any pieces."""

import shutil
from contextlib import nullcontext

import pytest
import torch

from statetrack.ops import noise, nvrtc
from statetrack.tasks import draws
from tests.ops.emulated import compiler


def test_the_constant_is_that_of_the_draws():
    assert noise.STEP == draws.STEP


def test_words_hold_the_signs(monkeypatch):
    """Those of every time, whether they are drawn at once or a few times at a time."""
    each = noise.Noise(torch.tensor([5, -7]), 0.5).of_tensor(3)
    at_once = each.words(9, 150)
    monkeypatch.setattr(noise, "AT_ONCE", 13)
    assert torch.equal(each.words(9, 150), at_once)
    bits = (at_once[..., None] >> torch.arange(64)) & 1
    for time in range(9):
        moved = each.moved(torch.zeros(2, 150), time)
        assert torch.equal(moved, bits[:, time].flatten(1)[:, :150] - 0.5)


def test_times_and_tensors_do_not_meet():
    first = noise.Noise(torch.tensor([5]), 0.5)
    keys = [int(first.of_tensor(number).at(time)) for number in range(noise.MOST_TENSORS) for time in range(50)]
    assert len(set(keys)) == len(keys)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_words_and_keys_of_a_gpu_are_the_same(monkeypatch):
    monkeypatch.setattr(nvrtc, "compiled", compiler(backwards=False, late=False))
    monkeypatch.setattr(nvrtc, "bind", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    keys, updates = torch.tensor([5, -7, 2**62]), torch.tensor([0, 1, 40_000])
    each = noise.Noise(keys, 0.5).of_tensor(3)
    assert torch.equal(noise.words_on_cuda(each.keys, 37, 11), each.words(37, 11 * 64))
    found = noise.on_cuda("noise_keys", torch.empty_like(keys), noise.THREADS, [keys, updates], [3])
    assert torch.equal(found, noise.keys_of(keys, updates))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_steps_at_once_move_as_each_alone(dtype, gaussian, monkeypatch):
    each = noise.Noise(torch.tensor([5, -7]), 0.3, gaussian).of_tensor(1)
    monkeypatch.setattr(noise, "AT_ONCE", 4 * 2 * 150)
    zeros = torch.zeros(2, 150, dtype=dtype)
    moves = list(each.moves(9, 150, dtype))
    assert len(moves) == 9
    assert all(torch.equal(zeros + by, each.moved(zeros, time)) for time, by in enumerate(moves))
