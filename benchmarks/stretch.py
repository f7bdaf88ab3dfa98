"""A sweep from start to end, and where the time of its workers went.

python -m benchmarks.stretch DIR groups
python -m benchmarks.stretch DIR length-generalisation
python -m benchmarks.stretch DIR benchmarks/design-tenth.yaml
python -m benchmarks.stretch DIR design --limit 560   a stretch; the same command goes on where it stopped
python -m benchmarks.stretch DIR groups --words       with hard words, which cd22af2 did not try

Nothing is set by hand: workers, their number to a GPU and all else are as `statetrack sweep` has them. Each stretch
adds a line to DIR/stretches.txt, and the sum of them is printed. `worker seconds` are the clock times the workers, and
what they went into: updates (compiling and recording among them), compiling alone as torch counts it, evaluations,
starting and what is between cells, and waiting at the end for those that were not done yet.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from statetrack.results import Store, TrainingRecord
from statetrack.sweeps import Options, read, run
from statetrack.sweeps.schedule import Schedule

LINES = "stretches.txt"
COMPILED = "STRETCH_COMPILED"
# Read by every worker when it starts: at its end it says what torch.compile took, if there was any.
AT_EXIT = """
import atexit, json, os, sys

def tell():
    if "torch._dynamo.utils" in sys.modules:
        metrics = sys.modules["torch._dynamo.utils"].compilation_time_metrics
        took = metrics.get("_compile.compile_inner", [])
        with open(os.path.join(os.environ["STRETCH_COMPILED"], str(os.getpid())), "w") as file:
            json.dump([len(took), sum(took)], file)

if "statetrack.sweeps.worker" in getattr(sys, "orig_argv", []):
    atexit.register(tell)
"""


class Watch:
    """When cells were settled, and how many workers there were."""

    def __init__(self) -> None:
        self.workers, self.done, self.ends = 1, -1, [time.monotonic()]

    def __call__(self, schedule: Schedule, workers: int) -> None:
        self.workers = workers
        if (done := schedule.tally.settled) != self.done:
            self.done = done
            self.ends.append(time.monotonic())

    def tail(self) -> float:
        """Worker seconds between the moment from which fewer cells than workers were left, and the end."""
        last = self.ends[-self.workers :]
        return sum(last[-1] - each for each in last)


def compiled(folder: str) -> tuple[int, float]:
    """How often something was compiled, and for how many seconds, over all workers."""
    told = [json.loads(path.read_text()) for path in Path(folder).iterdir() if path.name.isdecimal()]
    return sum(count for count, _ in told), sum(seconds for _, seconds in told)


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.stretch", description="A sweep from start to end.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("sweep", help="a shipped sweep, or a file")
    parser.add_argument("--limit", type=float, help="seconds of this stretch")
    parser.add_argument("--words", action="store_true", help="try hard words as well")
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args(given)
    sweep = read(asked.sweep)
    if not asked.words:
        sweep = replace(sweep, entries=tuple(replace(entry, words=0) for entry in sweep.entries))
    watch = Watch()
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "sitecustomize.py").write_text(AT_EXIT)
        os.environ[COMPILED] = place
        sys.path.insert(0, place)  # which workers take over
        began = time.monotonic()
        tally = run(sweep, asked.folder, Options(device=asked.device, limit_seconds=asked.limit), watch)
        clock = time.monotonic() - began
        count, seconds = compiled(place)
    tell(sweep.name, asked.folder, tally.seconds, clock, watch, (count, seconds))
    for failure in tally.failures:
        print(f"  failed: {failure.cell}: {failure.reason}")
    return 1 if tally.failures else 0


def tell(
    name: str, folder: Path, finished: Collection[str], clock: float, watch: Watch, compiling: tuple[int, float]
) -> None:
    """The line of this stretch, and where its time went."""
    stretches = folder / LINES
    before = [float(line.split()[0]) for line in stretches.read_text().splitlines()] if stretches.exists() else []
    stretches.write_text("".join(f"{each:.1f} s\n" for each in (*before, clock)))
    entries = dict(Store(folder).entries())
    records = [entry for key in finished if isinstance(entry := entries.get(key), TrainingRecord)]
    total = clock * watch.workers
    fits: dict[tuple[str, ...], float] = {}
    for record in records:  # seeds that were trained together say the same seconds
        cell = record.cell
        alike = (cell.task, cell.subject, str(cell.length), str(cell.protocol), str(record.training.train_seconds))
        fits[alike] = record.training.train_seconds or 0.0
    parts = {
        "updates and checks": sum(fits.values()),
        "evaluations": sum(record.evaluation_seconds or 0.0 for record in records),
        "waiting at the end": watch.tail(),
    }
    print(
        f"{name}: {len(records)} cells in {clock:.1f} s on {watch.workers} workers; {sum(before) + clock:.1f} s in all"
    )
    print(f"  {'worker seconds':<34}{total:>9.1f}")
    for what, took in (parts | {"starting, and between cells": total - sum(parts.values())}).items():
        print(f"  {what:<34}{took:>9.1f}{took / total:>7.0%}")
    print(f"  {f'of the updates: {compiling[0]} compilings':<34}{compiling[1]:>9.1f}{compiling[1] / total:>7.0%}")
    for (task, subject, length, *_), took in sorted(fits.items(), key=lambda each: -each[1])[:5]:
        print(f"  longest: {subject} on {task} at {length}: {took:.1f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
