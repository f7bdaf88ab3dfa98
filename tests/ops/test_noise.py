"""The signs of the noise on a state: what they are a function of, and that they come in any pieces."""

import torch

from statetrack.ops import noise
from statetrack.tasks import draws


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
