"""The same work for networks that share nothing: on a GPU each in a branch of its own, a stream, all side by side.

The branches fork from the current stream and join it again. So they may be recorded as a CUDA graph, in which they stay
side by side, and whoever calls sees nothing of them. Autograd runs the backward pass of each on the stream of its
forward pass.

>>> side_by_side(torch.add, [torch.tensor(1), torch.tensor(2)], [10, 20], device=torch.device("cpu"))
[tensor(11), tensor(22)]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

MOST = 16  # streams of a device; torch has 32, for whatever else runs beside us as well


def side_by_side(work: Callable[..., Any], *given: Iterable[Any], device: torch.device) -> list[Any]:
    """As `map`: what `work` gives for the first of everything that is given, for the second, and so on."""
    rows = list(zip(*given))
    if device.type != "cuda" or len(rows) < 2:
        return [work(*row) for row in rows]
    current, streams = torch.cuda.current_stream(device), streams_of(device)[: len(rows)]
    begun, done = current.record_event(), []
    try:
        for row, stream in zip(rows, cycle(streams)):
            stream.wait_event(begun)
            in_use_on(stream, row)
            with torch.cuda.stream(stream):
                done.append(work(*row))
    finally:
        for stream in streams:
            current.wait_stream(stream)
    in_use_on(current, done)
    return done


@functools.cache
def streams_of(device: torch.device) -> tuple[torch.cuda.Stream, ...]:
    """The same for all who ask: torch keeps memory for every stream apart."""
    return tuple(torch.cuda.Stream(device) for _ in range(MOST))


def in_use_on(stream: torch.cuda.Stream, given: object) -> None:
    """Memory that one stream asked for and another one uses is not to be given away before both are through."""
    for tensor in tensors_in(given):
        if tensor.is_cuda:
            tensor.record_stream(stream)


def tensors_in(given: object) -> Iterator[Tensor]:
    """A tensor, or those in a tuple or list, at any depth.

    >>> [t.item() for t in tensors_in((torch.tensor(1), [torch.tensor(2), "no tensor"]))]
    [1, 2]
    """
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, (tuple, list)):
        for part in given:
            yield from tensors_in(part)
