"""Sign noise on a state: between two steps of a scan each number of the state moves by +s or -s.

The signs are the bits of a counter-based hash, so every kernel, and a backward pass that runs a stretch again, adds the
same noise, and none of it needs to be kept:

    key(t) = mix(key + 64 t STEP)
    signs  = the 64 bits of mix(key(t) + (n + 1) STEP), for the numbers 64 n .. 64 n + 63 of a replica's rows

after step t. `mix` is SplitMix64's finaliser and STEP its constant, as in statetrack/tasks/draws.py. Which key a tensor
of a state has in an update is said in statetrack/training/noise.py.

>>> import torch
>>> noise = Noise(torch.tensor([3]), 0.25)
>>> noise.moved(torch.zeros(1, 5), 0).tolist()
[[-0.25, 0.25, -0.25, -0.25, -0.25]]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from statetrack.ops import nvrtc

STEP = 0x9E3779B97F4A7C15
MOST_TENSORS = 64  # of a state: so far apart are the keys of two times
AT_ONCE = 1 << 20  # hashes, which bounds the room for what lies between
THREADS = 256  # of a block on a GPU


class Noise(NamedTuple):
    """Noise on one tensor of a state, whose rows are those of len(keys) replicas, one replica after another."""

    keys: Tensor  # (R,) int64
    size: float
    gaussian: bool = False  # normal numbers of this deviation instead: the scans' readable loops alone put those on

    def of_tensor(self, number: int) -> Noise:
        """That on another tensor of a state, where this is that on the first."""
        return self._replace(keys=self.keys + signed(number * STEP % 2**64))

    def moved(self, state: Tensor, time: int) -> Tensor:
        """A state (R x B, ...) with the noise that it gets after step `time`."""
        draw = normals if self.gaussian else signs
        draws = draw(self.at(time), state.numel() // len(self.keys))
        return state + self.size * draws.view(state.shape).to(state.dtype)

    def moves(self, steps: int, numbers: int, dtype: torch.dtype) -> Iterator[Tensor]:
        """What each step moves this many numbers of each replica by, (R, numbers), many steps drawn at once."""
        if not self.gaussian:
            # The signs of the 8 bits of a byte, the last first; a word's bytes come in the same order.
            bits = torch.arange(256, device=self.keys.device)[:, None] >> torch.arange(8, device=self.keys.device)
            table = self.size * (2 * (bits & 1) - 1).to(dtype)
        some = max(1, AT_ONCE // (len(self.keys) * numbers))
        for first in range(0, steps, some):
            keys = self.at(torch.arange(first, min(first + some, steps), device=self.keys.device))
            if self.gaussian:
                drawn = self.size * normals(keys.flatten(), numbers).to(dtype).view(*keys.shape, numbers)
            else:
                drawn = table[hashes(keys, -(-numbers // 64)).view(torch.uint8).int()].flatten(2)[..., :numbers]
            yield from drawn.unbind(1)

    def at(self, times: int | Tensor) -> Tensor:
        """The keys of a time (R,), or of several (R, T)."""
        if isinstance(times, int):
            return mix(self.keys + signed(times * MOST_TENSORS * STEP % 2**64))
        return mix(self.keys[:, None] + times * signed(MOST_TENSORS * STEP % 2**64))

    def words(self, steps: int, numbers: int) -> Tensor:
        """The signs (R, T, words) of this many numbers of each replica after every step: 64 in a word, the last bit
        first.
        """
        count = -(-numbers // 64)
        if self.keys.is_cuda and nvrtc.available():
            return words_on_cuda(self.keys, steps, count)
        keys = self.at(torch.arange(steps, device=self.keys.device))
        out = keys.new_empty(*keys.shape, count)
        some = max(1, AT_ONCE // (len(keys) * count))
        for first in range(0, steps, some):
            out[:, first : first + some] = hashes(keys[:, first : first + some], count)
        return out


def keys_of(keys: Tensor, updates: Tensor) -> Tensor:
    """The keys of an update of each replica, from the replicas' own; both (R,)."""
    if not (keys.is_cuda and nvrtc.available() and len(keys) <= THREADS):
        return mix(keys + updates * signed(STEP))
    return on_cuda("noise_keys", torch.empty_like(keys), THREADS, [keys, updates], [len(keys)])


def words_on_cuda(keys: Tensor, steps: int, count: int) -> Tensor:
    """`Noise.words` in one launch. In torch it would be some forty, which take as long as a small model does."""
    out = keys.new_empty(len(keys), steps, count)
    return on_cuda("noise_words", out, out.numel(), [keys], [len(keys), steps, count, MOST_TENSORS])


def on_cuda(name: str, out: Tensor, threads: int, inputs: list[Tensor], sizes: list[int]) -> Tensor:
    """Let a kernel of noise.cu fill `out`."""
    nvrtc.bind(out.device)
    run = nvrtc.compiled((Path(__file__).parent / "noise.cu",), name, (("THREADS", THREADS),))
    with torch.cuda.device(out.device):
        run(grid=(-(-threads // THREADS), 1, 1), block=(THREADS, 1, 1), args=[*inputs, out, *sizes])
    return out


def hashes(keys: Tensor, count: int) -> Tensor:
    """(..., count) hashes for each of the keys (...)."""
    return mix(keys[..., None] + torch.arange(1, count + 1, device=keys.device) * signed(STEP))


def signs(keys: Tensor, count: int) -> Tensor:
    """+1 and -1, `count` for every key.

    >>> signs(torch.tensor([3, 4]), 5).tolist()
    [[1, -1, 1, 1, -1], [-1, 1, -1, 1, -1]]
    """
    words = hashes(keys, -(-count // 64))
    bits = (words[:, :, None] >> torch.arange(64, device=keys.device)) & 1
    return 2 * bits.flatten(1)[:, :count] - 1


def normals(keys: Tensor, count: int) -> Tensor:
    """Normal numbers, `count` for every key, by Box and Muller from two parts of 24 bits of a hash each.

    Their last bits may differ between devices.
    """
    drawn = hashes(keys, count)
    radius = torch.sqrt(-2 * torch.log((shifted(drawn, 40) + 1) * 2.0**-24))
    return radius * torch.cos(2 * math.pi * 2.0**-24 * (shifted(drawn, 16) & 0xFFFFFF))


def mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64."""
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def shifted(z: Tensor, bits: int) -> Tensor:
    """The shift to the right of an unsigned number, on its signed twin."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def signed(number: int) -> int:
    """An unsigned number of 64 bits as the signed one with the same bits."""
    return number - (1 << 64) if number >= 1 << 63 else number
