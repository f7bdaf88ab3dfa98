"""How cost grows: tokens a second of training steps, and cells a second of a sweep that does nothing else.

python -m benchmarks.growth                    all five, on the GPU where there is one: a table each
python -m benchmarks.growth --small            small sizes, for a CPU
python -m benchmarks.growth length heads       these alone: length, batch, heads, replicas, cells
python -m benchmarks.growth --pictures FOLDER  also a figure of each, growth_NAME.svg

The model is e88-gain-1l-small; a step is forward, loss, backward and update, as training makes it. A line is marked
where twice the size costs more than 2.2 times the time; the exit code is then 1. On a CPU the seconds are those of the
process, which other work on the machine lengthens little.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from benchmarks.train import DEVICE, seconds
from statetrack.models import Replicas, model
from statetrack.sweeps import Options, run
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import plain_loss
from statetrack.training.memory import keep_memory
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.step import WARM_UPS, Stepper

NAME = "e88-gain-1l-small"
MOST = 2.2  # times the time, for twice the size


@dataclass(frozen=True)
class Growth:
    """What grows, through which sizes, and the seconds and the work (tokens, cells) of one size."""

    what: str
    unit: str
    sizes: tuple[int, ...]
    small: tuple[int, ...]
    measure: Callable[[int, bool], tuple[float, int]]

    def doublings(self, points: list[tuple[int, float, float]]) -> list[float | None]:
        """For every point what the time is multiplied by as the size doubles, from the one before."""
        found: list[float | None] = [None]
        for (size, took, _), (next_size, next_took, _) in itertools.pairwise(points):
            found.append((next_took / took) ** (1 / math.log2(next_size / size)))
        return found


def step(batch: int, length: int, replicas: int = 1, heads: int | None = None) -> tuple[float, int]:
    """Seconds of a training step, and its tokens."""
    keep_memory()
    name = NAME if heads is None else f"{NAME}[heads={heads}]"
    together = Replicas([model(name, inputs=2, outputs=2, seed=seed) for seed in range(replicas)]).to(DEVICE)
    stepper = Stepper(together, AdamW(FlatParameters(together), 0.01, 1.0), "float32", plain_loss)
    ids = torch.randint(2, (replicas, batch, length), device=DEVICE)
    rows = ReplicaRows(ids, ids, torch.ones_like(ids, dtype=torch.bool))
    rates, counts = torch.full((replicas,), 1e-3, device=DEVICE), torch.ones(replicas, device=DEVICE)

    def work() -> None:
        stepper(rows, rates, counts)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(WARM_UPS + 1):
        work()
    return seconds(work, least=0.2, tries=3), ids.numel()


def cells(count: int, _: bool) -> tuple[float, int]:
    """Seconds of a sweep of cells that do nothing, in this process, and how many."""
    from tests.sweeps.counted_cells import sweep

    planned = sweep(count)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run(planned, Path(folder) / "out", Options(workers=0))
        return time.process_time() - began, count


def doubled(first: int, last: int) -> tuple[int, ...]:
    """
    >>> doubled(64, 512)
    (64, 128, 256, 512)
    """
    return tuple(first * 2**n for n in range(int(math.log2(last // first)) + 1))


GROWTHS = {
    "length": Growth("steps of a row", "tokens", doubled(64, 65536), doubled(64, 1024),
                     lambda size, small: step(4 if small else 16, size)),
    "batch": Growth("rows of a batch", "tokens", doubled(1, 1024), doubled(1, 32),
                    lambda size, small: step(size, 64 if small else 256)),
    "heads": Growth("heads", "tokens", doubled(1, 64), doubled(1, 16),
                    lambda size, small: step(4 if small else 64, 64 if small else 256, heads=size)),
    "replicas": Growth("replicas side by side", "tokens", doubled(1, 64), doubled(1, 8),
                       lambda size, small: step(4 if small else 64, 64, replicas=size)),
    "cells": Growth("cells that do nothing", "cells", (1, 10, 100, 1000, 10_000), (1, 10, 100, 1000), cells),
}  # fmt: skip


def measured(growth: Growth, small: bool) -> list[tuple[int, float, float]]:
    """(size, seconds, work a second) of every size."""
    points = []
    for size in growth.small if small else growth.sizes:
        took, work = growth.measure(size, small)
        points.append((size, took, work / took))
    return points


def table(growth: Growth, points: list[tuple[int, float, float]]) -> bool:
    """One line a size; whether no doubling costs too much."""
    print(f"\n{growth.what}\n  {'':>10}{'ms':>12}{growth.unit + '/s':>16}{'doubled':>9}")
    good = True
    for (size, took, rate), times in zip(points, growth.doublings(points)):
        above = times is not None and times > MOST
        good &= not above
        said = "" if times is None else f"{times:>9.2f}"
        print(f"  {size:>10,}{1000 * took:>12.3f}{rate:>16,.0f}{said}{f'  above {MOST}' if above else ''}", flush=True)
    return good


WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 560, 300, 84, 48, 24


def picture(growth: Growth, points: list[tuple[int, float, float]], where: str) -> str:
    """Work a second against size, both in powers: level is a cost in proportion."""
    xs, ys = [math.log10(size) for size, *_ in points], [math.log10(rate) for *_, rate in points]
    low, high = math.floor(min(ys)), math.ceil(max(ys) + 1e-9)

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - MARGIN) * (value - xs[0]) / (xs[-1] - xs[0])

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - MARGIN) * (value - low) / (high - low)

    line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(xs, ys))
    dots = [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="#3366aa"/>' for a, b in zip(xs, ys)]
    down = [f'<line x1="{LEFT}" x2="{WIDTH - MARGIN}" y1="{y(n):.1f}" y2="{y(n):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 6}" y="{y(n) + 4:.1f}" text-anchor="end">{10**n:,}</text>'
            for n in range(max(0, low), high + 1)]  # fmt: skip
    across = [f'<text x="{x(a):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{size:,}</text>'
              for (size, *_), a in list(zip(points, xs))[:: max(1, len(points) // 6)]]  # fmt: skip
    says = f"{growth.unit} a second against {growth.what} ({where})"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{says}</title>", '<rect width="100%" height="100%" fill="white"/>', *down, *across,
        f'<polyline points="{line}" fill="none" stroke="#3366aa" stroke-width="2"/>', *dots,
        f'<text x="{LEFT}" y="14">{says}</text>',
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{growth.what}</text>', "</svg>", "",
    ])  # fmt: skip


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description="How cost grows.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(GROWTHS))
    parser.add_argument("--small", action="store_true", help="small sizes, for a CPU")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="a figure of each, as SVG")
    asked = parser.parse_args(given)
    if unknown := [name for name in asked.names if name not in GROWTHS]:
        parser.exit(2, f"nothing called {', '.join(unknown)} grows here; there are: {', '.join(GROWTHS)}\n")
    small = asked.small or DEVICE.type == "cpu"
    where = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "one thread of a CPU"
    print(f"{where}, torch {torch.__version__}, {NAME}{', small sizes' if small else ''}")
    good = True
    for name in asked.names or GROWTHS:
        points = measured(GROWTHS[name], small)
        good &= table(GROWTHS[name], points)
        if asked.pictures:
            asked.pictures.mkdir(parents=True, exist_ok=True)
            (asked.pictures / f"growth_{name}.svg").write_text(picture(GROWTHS[name], points, where))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
