"""How fast data comes: rows of length 500 with the answer at every prefix, random numbers included.

    python -m benchmarks.data                      the whole table
    STATETRACK_NUMBA=0 python -m benchmarks.data   with numpy alone

Beside it, in the same run, the row-by-row loop `s = E[x[i, j]][s]` over the uint8 element rows, which is how the
published generator works: it gets its random numbers for free and computes only the last answer. Best of three each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import statetrack as st
from statetrack.tasks import native

GROUPS = ("s3", "a5", "s5", "psl2_7", "m11", "z5_4", "m12", "s9", "psl3_5")
LENGTH, ROWS, LOOP_ROWS = 500, 8192, 100
LARGE = 10_000


def best_of_three(work: Callable[[int], object]) -> float:
    times = []
    for seed in range(3):
        began = time.perf_counter()
        work(seed)
        times.append(time.perf_counter() - began)
    return min(times)


def row_by_row(elements: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    products = []
    for i in range(len(inputs)):
        s = np.arange(elements.shape[1])
        for j in range(inputs.shape[1]):
            s = elements[inputs[i, j]][s]
        products.append(s)
    return products


def speed() -> bool:
    """The table of groups; whether each reaches what is asked of it."""
    compiled = native.available()
    print(f"rows of length {LENGTH} a second, {native.cores()} cores, {'numba' if compiled else 'numpy alone'}")
    print(f"{'group':<8}{'order':>8}{'build, s':>10}{'loop':>10}{'statetrack':>14}{'ratio':>8}{'asked':>7}")
    good = True
    for name in GROUPS:
        began = time.perf_counter()
        task = st.task(name)
        task.sample(LENGTH, 1)  # builds the group and its tables, and compiles
        build = time.perf_counter() - began
        inputs = task.sample(LENGTH, LOOP_ROWS).inputs
        elements = np.array(st.group(name).elements)
        loop = LOOP_ROWS / best_of_three(lambda _, e=elements, x=inputs: row_by_row(e, x))
        ours = ROWS / best_of_three(lambda seed, t=task: t.sample(LENGTH, ROWS, seed))
        asked = 10 if not compiled else 100 if task.inputs <= LARGE else 30
        good &= ours / loop >= asked
        print(f"{name:<8}{task.inputs:>8}{build:>10.2f}{loop:>10.0f}{ours:>14,.0f}{ours / loop:>8.0f}{asked:>7}")
    return good


MEASURED = """
import json, resource, sys, time
from statetrack.cli import main
began = time.perf_counter()
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"code": code, "seconds": time.perf_counter() - began, "mb": peak}), file=sys.stderr)
"""


def to_parquet(count: int, lengths: str, seconds: float | None, megabytes: float) -> bool:
    """`statetrack data s5` in a process of its own, with its time and its highest memory."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "s5.parquet"
        arguments = ["data", "s5", "--length", lengths, "--count", str(count), "--out", str(out)]
        done = subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=True)
        measured = json.loads(done.stderr.strip().splitlines()[-1])
        size = out.stat().st_size / 2**20
    limit = "" if seconds is None else f" (asked: {seconds:.0f})"
    print(
        f"{count:,} rows of s5, length {lengths}, to Parquet: {measured['seconds']:.1f} s{limit}, "
        f"{measured['mb']:.0f} MB of memory (asked: {megabytes:.0f}), file of {size:.0f} MB"
    )
    return measured["mb"] < megabytes and (seconds is None or measured["seconds"] < seconds)


def imports() -> bool:
    """`import statetrack` beside `import numpy` alone, in fresh interpreters."""

    def seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)
        ]
        return min(float(run.stdout) for run in runs)

    ours, numpy = seconds("statetrack"), seconds("numpy")
    print(f"import statetrack: {1000 * ours:.0f} ms, import numpy: {1000 * numpy:.0f} ms (asked: within 150 ms)")
    return ours - numpy < 0.15


if __name__ == "__main__":
    checks = [speed(), imports()]
    if native.available():
        checks += [to_parquet(120_000, "3..1024", 8, 400), to_parquet(1_000_000, "500", None, 500)]
    sys.exit(0 if all(checks) else "not all of what is asked was reached")
