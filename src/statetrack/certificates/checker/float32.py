"""What float32 makes of one step and of the read-out, at most, whatever the order of its sums.

An operation is off by at most 2^-24 of its result, a sum of n products by gamma(n) of the sum of their sizes, and tanh,
exp and erf by eight units in the last place, which is assumed of the library. The tables of the tokens are bounded
number by number (intervals with a unit); what follows, by the 2-norm of a column:

A step:

    write j:   z <- f z + k (v - b (k . z)),   f = a at the first write and 1 at the others

Its map f I - b k k^T has the norm max(|f|, |f - b|), as |k| <= 1. Tables that are off by df, db, dv and |dk| move the
result by at most (df + db + b |dk| (2 + |dk|)) |z| + dv + |v| |dk|, and n + 6 roundings lie on the way of every number.

The read-out: what goes into a layer is off by so much, number by number, and what comes out by that times the sizes of
the weights, and the rounding of its sums. The division by the root of the mean square uses the least that this can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetrack.certificates.checker.rounding import LIBRARY, Floats, Interval, gamma

FLOAT32 = 2.0**-24
LIBRARY_ERROR = 2 * LIBRARY * FLOAT32  # of tanh, at 1
ROUNDED = 1 + 1e-9  # this module adds up in float64


@dataclass(frozen=True)
class Tables:
    """What a scan reads of every token: keys (V, R, H, n), rates b (V, R, H), decay a (V, H), values (V, H, n) of the
    first write, or none.
    """

    keys: Interval
    rates: Interval
    decay: Interval
    values: Interval | None


def apart(wide: Interval, exact: Interval) -> Floats:
    """At most how far a number of one is from one of the other."""
    return np.maximum(wide.hi - exact.lo, exact.hi - wide.lo) * ROUNDED


def step_error(exact: Tables, wide: Tables) -> float:
    """At least what a step of a scan is off by in any number, from columns in [-1, 1]."""
    _, writes, _, n = exact.keys.lo.shape
    key_off = np.linalg.norm(apart(wide.keys, exact.keys), axis=-1) * ROUNDED
    rate_off, decay_off = apart(wide.rates, exact.rates), apart(wide.decay, exact.decay)
    size = np.full(
        (*exact.decay.lo.shape, 1), np.sqrt(n) * (1 + 1e-5)
    )  # |z|: a number of float32's may pass 1 a little
    off = np.zeros_like(size)
    for j in range(writes):
        factor = exact.decay if j == 0 else Interval.of(np.ones_like(exact.decay.lo))
        rate, moved = exact.rates[:, j], key_off[:, j]
        value, value_off = np.zeros((1, 1, 1)), np.zeros((1, 1, 1))
        if j == 0 and exact.values is not None and wide.values is not None:
            value, value_off = exact.values.size, apart(wide.values, exact.values)
        norm = np.maximum(factor.size, (factor - rate).size)
        tables = rate_off[:, j] + rate.size * moved * (2 + moved) + (decay_off if j == 0 else 0.0)
        norm, tables, moved = norm[..., None], tables[..., None], moved[..., None]
        reached = size + off
        sums = (factor.size[..., None] + rate.size[..., None] + tables) * reached + value + value_off
        off = (norm + tables) * off + tables * size + value_off + value * moved + gamma(n + 6, FLOAT32) * sums
        size = norm * size + value
    return float((off.max() + LIBRARY_ERROR) * ROUNDED)


def linear_error(weight: Floats, bias: Floats, size: Floats, off: Floats) -> Floats:
    """What W x + b is off by, where x has at most this size and is off by so much."""
    sums = np.abs(weight) @ (size + off) + np.abs(bias)
    return (np.abs(weight) @ off + gamma(weight.shape[1] + 2, FLOAT32) * sums) * ROUNDED


def gelu_error(size: Floats, off: Floats) -> Floats:
    """What x (1 + erf(x / sqrt 2)) / 2 is off by; its slope lies between -0.13 and 1.13."""
    return (1.13 * off + (size + off) * (LIBRARY + 6) * FLOAT32) * ROUNDED


def normed_error(size: Floats, off: Floats, least: float, weight: Floats) -> tuple[Floats, Floats]:
    """The size of w x / rms(x), and what it is off by; rms(x) is at least `least`."""
    dim = len(size)
    bent = float(np.linalg.norm(off)) / np.sqrt(dim)  # how far rms(x) may be off by what x is
    if not least > 2 * bent:
        return np.full(dim, np.inf), np.full(dim, np.inf)
    share = np.minimum(size / least, np.sqrt(dim))
    moved = off / (least - bent) + share * (bent / (least - bent) + gamma(dim + 8, FLOAT32))
    return np.abs(weight) * share * ROUNDED, np.abs(weight) * moved * ROUNDED
