"""What cells took, by device, model and length: a small history in the user's settings folder, for forecasts.

    ~/.config/statetrack/pace.jsonl       a line for each cell that was trained on this machine, the last ones only

It is no result: without it a forecast knows less, and nothing else changes.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from statetrack.errors import BadInput
from statetrack.files import read_bounded, write_whole
from statetrack.results import schema
from statetrack.results.schema import BadRecord
from statetrack.trust import settings_folder

NAME = "pace.jsonl"
MOST_BYTES = 2**20  # some four thousand lines; then the older half goes
CPU = "cpu"  # of records that do not say which


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one cell took. `siblings` is the same for cells that differ in their seed alone."""

    device: str  # the name of the GPU, or of the processor
    task: str
    subject: str
    length: int
    siblings: str
    cost: float  # as its kind weighs it
    seconds: float
    step: int = 0  # tokens of a step, of one replica
    replicas: int = 1  # trained side by side
    memory: int | None = None  # bytes at most, of all replicas together


def note(took: Measured) -> None:
    """Add a line. Where the folder cannot be written to, a forecast knows less."""
    path = settings_folder() / NAME
    with suppress(OSError, BadInput):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(json.dumps(schema.plain(took)).encode() + b"\n")
            file.flush()
            if os.fstat(handle).st_size > MOST_BYTES:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one of several writers does it
                write_whole(path, _newer_half(read_bounded(path, 2 * MOST_BYTES)))


def _newer_half(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[len(lines) // 2 :])


def noted() -> Iterator[Measured]:
    """What is known of cells that ran on this machine; a line that somebody else wrote is passed by."""
    path = settings_folder() / NAME
    try:
        lines = read_bounded(path, 2 * MOST_BYTES).splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, BadRecord, RecursionError):
            took = schema.read(Measured, json.loads(line))
            if took.cost > 0 and took.seconds > 0:
                yield took


@functools.cache
def processor() -> str:
    """The name of the CPU; without one, that of its architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine() or CPU
