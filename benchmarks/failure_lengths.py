"""How far a network gets, measured where the truth is known: how near, and how often the interval holds it.

python -m benchmarks.failure_lengths [RUNS]    RUNS simulated networks of every kind and number of rows (1,000)

    fades at once   a contracting rotation read with a bias: right until gain^t = bias, a coin from then on
    fades           a contracting rotation read with noise that is uniform: (1 + gain^t / noise) / 2 are right
    slips           every step flips the answer with chance q: (1 + (1 - 2 q)^t) / 2 are right

Rates are drawn anew for every network. Only the answers are simulated, so that a thousand take seconds.
`measured / true`: median over networks, and 5 % to 95 % of them; `held`: the share of intervals with the truth inside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statetrack.diagnosis.failure_length import LEVEL, passes_below

Draws = np.random.Generator
Bools = NDArray[np.bool_]
BITS = 24  # of the noise: u_t = sum over j of 2^-j (x_{t-j} - 1/2)


def fades_at_once(rows: int, draws: Draws) -> tuple[Bools, float]:
    true = int(draws.uniform(60, 600))
    length = 3 * true
    return (np.arange(1, length + 1) <= true) | (draws.random((rows, length)) < 0.5), true


def fades(rows: int, draws: Draws) -> tuple[Bools, float]:
    gain, noise = 1 - 10 ** draws.uniform(-2.5, -1.5), draws.uniform(0.1, 0.5)
    true = float(np.log(0.8 * noise) / np.log(gain))
    length = int(3 * true)
    bits = draws.integers(0, 2, (rows, length + BITS)) - 0.5
    u = sum(bits[:, BITS - j : BITS - j + length] / 2**j for j in range(BITS))
    sign = np.cumprod(-2 * bits[:, BITS:], axis=1) * draws.choice([-1, 1], (rows, 1))
    return gain ** np.arange(1, length + 1) + noise * u * sign > 0, true


def slips(rows: int, draws: Draws) -> tuple[Bools, float]:
    chance = 10 ** draws.uniform(-3.3, -2.3)
    true = float(np.log(2 * LEVEL - 1) / np.log(1 - 2 * chance))
    flips = draws.random((rows, int(6 * true))) < chance
    return np.cumsum(flips, axis=1) % 2 == 0, true


@dataclass(frozen=True)
class Kind:
    name: str
    make: Callable[[int, Draws], tuple[Bools, float]]
    sharp: bool  # whether a few hundred answers around the failure tell it within a few percent


KINDS = (Kind("fades at once", fades_at_once, True), Kind("fades", fades, True), Kind("slips", slips, False))


@dataclass(frozen=True)
class Held:
    middle: float
    low: float
    high: float
    coverage: float


def held(kind: Kind, rows: int, runs: int, seed: int) -> Held:
    """Measured over true, and how often the interval holds the truth, over simulated networks."""
    draws, ratios, inside = np.random.default_rng(seed), [], 0
    for _ in range(runs):
        right, true = kind.make(rows, draws)
        found = passes_below(right, np.ones_like(right), LEVEL)
        length, low, high = (np.inf if found[name] is None else found[name] for name in ("length", "low", "high"))
        ratios.append(length / true)
        inside += low <= true < high + 1  # `high` is the last position at or above: the curve passes before the next
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95], method="nearest")
    return Held(float(middle), float(low), float(high), inside / runs)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{'kind':16}{'rows':>6}{'networks':>10}{'measured / true':>18}{'5 % to 95 %':>16}{'held':>8}")
    worst = 1.0
    for kind in KINDS:
        for rows in (36, 100, 256):
            found = held(kind, rows, runs, seed=rows)
            worst = min(worst, found.coverage)
            spread = f"{found.low:.2f} to {found.high:.2f}"
            print(
                f"{kind.name:16}{rows:>6}{runs:>10}{found.middle:>18.3f}{spread:>16}{found.coverage:>8.3f}", flush=True
            )
    return 0 if worst >= 0.93 else 1


if __name__ == "__main__":
    sys.exit(main())
