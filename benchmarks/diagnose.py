"""What a diagnosis costs on one core: every part of it, for an E88 of 16 heads of 32 at 1,024 positions.

Seconds are those of the process on its one core, which other work on the machine does not lengthen; the time on the
clock stands beside them.

python -m benchmarks.diagnose            both tables
python -m benchmarks.diagnose untrained  e88-1l and e88-gain-1l with random weights; the stream ends early
python -m benchmarks.diagnose solved     an E88 of the same state that keeps parity for ever, so that all is run

Exit code 1 if one of them takes more than 60 seconds.
"""

from __future__ import annotations

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch

import statetrack as st
from statetrack.models import SequenceModel
from statetrack.models.witnesses import toggle

MOST = 60.0  # seconds
LENGTH = 1024


def timed(name: str, model: SequenceModel) -> bool:
    """One diagnosis with the seconds of each part."""
    began, wall, marks = time.process_time(), time.perf_counter(), []
    diagnosis = st.diagnose(
        "txc", model, trained=LENGTH, length=LENGTH, tick=lambda part: marks.append((part, time.process_time()))
    )
    end, wall = time.process_time(), time.perf_counter() - wall
    ends = [*(when for _, when in marks[1:]), end]
    parts = ", ".join(f"{part} {until - when:.1f}" for (part, when), until in zip(marks, ends))
    seconds = end - began
    print(
        f"{name}: {seconds:.1f} s of {MOST:.0f} allowed ({wall:.1f} s on the clock); {diagnosis['conclusion']}, "
        f"streamed {diagnosis['error']['streamed']} steps of {diagnosis['error']['rows']} rows\n  {parts}"
    )
    return seconds <= MOST


def untrained() -> bool:
    return all([timed(name, st.model(name, inputs=2, outputs=2, seed=0)) for name in ("e88-1l", "e88-gain-1l")])


def solved() -> bool:
    setting = sys.modules["statetrack.models.witnesses.toggle"]
    setting.HEADS, setting.N = 16, 32  # as many numbers in the state as e88-gain-1l
    return timed("parity by hand, 16 heads of 32", toggle([[0, 1], [1, 0]]))


def main() -> int:
    torch.set_num_threads(1)
    tables = {"untrained": untrained, "solved": solved}
    chosen = sys.argv[1:] or list(tables)
    return 0 if all([tables[name]() for name in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
