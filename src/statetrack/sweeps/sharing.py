"""Let workers that share a GPU compute at the same time, by NVIDIA's Multi-Process Service (MPS).

Without it processes take turns: while a kernel of one runs those of the others wait, though that of a small model fills
a few of the GPU's hundred multiprocessors. A sweep starts a service of its own for its workers, in a folder of its own,
and ends it with itself. Where there is none, where it does not work, or where the user runs one already, nothing is
started; STATETRACK_MPS=0 turns it off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
SWITCH = "STATETRACK_MPS"
USUAL = "/tmp/nvidia-mps"  # where a service of the machine would be found without being told
BEGIN, SECONDS = 5.0, 20.0  # for the service to begin; for a trial, and for the service to end
TOGETHER, IN_TURNS = 8, 4  # workers to a GPU

# The service ends when this ends, or dies, since then its standard input does.
KEEPER = f"{CONTROL} -f & read gone; echo quit | {CONTROL}; wait"
# Whether a GPU can be had through the service: what a worker does first, without torch, which takes seconds to import.
TRIAL = """
import ctypes, sys
cuda, context, place = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
sys.exit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
         or cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(1024)))
"""


def may_share() -> bool:
    """Whether a service could be started here, or the user runs one."""
    return os.environ.get(SWITCH) != "0" and (_runs_already() or shutil.which(CONTROL) is not None)


def workers_per_gpu() -> int:
    """How many workers share a GPU where nobody says it."""
    return min(TOGETHER, max(IN_TURNS, len(os.sched_getaffinity(0)))) if may_share() else IN_TURNS


@contextmanager
def shared(gpus: Sequence[int | None]) -> Iterator[dict[str, str]]:
    """What to add to the environment of workers on these GPUs, one entry for each worker."""
    several = any(count > 1 for gpu, count in Counter(gpus).items() if gpu is not None)
    if not several or not may_share() or _runs_already():
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        added = {PIPES: folder, LOGS: folder}
        # It numbers the GPUs as the machine does, and so do the workers.
        environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"} | added
        keeper = subprocess.Popen(
            ["sh", "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,  # Ctrl-C is for the sweep, which then ends it
        )  # fmt: skip
        try:
            yield added if _begins(folder, keeper) and _works(environment) else _told_that_they_take_turns()
        finally:
            _end(keeper)


def _runs_already() -> bool:
    return PIPES in os.environ or os.path.exists(os.path.join(USUAL, "control"))


def _begins(folder: str, keeper: subprocess.Popen[bytes]) -> bool:
    """Whether the service is there soon. A process that comes before it would take its turns, and say nothing."""
    deadline = time.monotonic() + BEGIN
    while not os.path.exists(os.path.join(folder, "control")):
        if keeper.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _works(environment: dict[str, str]) -> bool:
    try:
        trial = subprocess.run(
            [sys.executable, "-I", "-c", TRIAL], env=environment, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return trial.returncode == 0


def _told_that_they_take_turns() -> dict[str, str]:
    print("statetrack: NVIDIA's MPS did not start, so workers take turns on a GPU", file=sys.stderr, flush=True)
    return {}


def _end(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        keeper.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(keeper.pid, 9)
        keeper.wait()
