"""The maps of a GRU and an LSTM as float64, for the search: the image of a state, and boxes around that of a box.

The equations, and the two forms that bound them, are those of `checker/gated.py`; here nothing has to be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from statetrack.certificates.checker.gated import Gated
from statetrack.certificates.cover import Columns, Floats

Ends = tuple[Floats, Floats]  # below and above
FAR, LEAP = 1.0, 25.0  # from here on, outward, the cell of an LSTM is as good as full: there boxes grow by so much more
MOST_H, MOST_C = 2.0, 1e5
TABLES, BESIDE = 1e-7, 50.0  # what the checker's tables are off by, as a share of a number and beside it


class GatedPoints:
    """One column, of h, or of h and c."""

    def __init__(self, maps: Gated) -> None:
        self.n, self.tokens = maps.n, maps.tokens
        self.weights = np.split(maps.weight.lo, len(maps.weight.lo) // self.n)
        self.given = [np.split(each, len(self.weights)) for each in maps.given.middle]
        self.inner = np.split(maps.inner.lo, len(self.weights))
        self.start = maps.start.lo[0, :, 0]

    @property
    def columns(self) -> Columns:
        return ((0, 0),)

    def start_of(self, columns: Columns) -> Floats:
        return self.start[None]

    def image(self, columns: Columns, token: int, states: Floats) -> Floats:
        """states (..., 1, n)."""
        low, _ = self.plain(token, states, states)
        return np.asarray(low)

    def box_image(self, columns: Columns, token: int, lo: Floats, hi: Floats, slack: float) -> Ends:
        low, high = self.narrow(token, lo[0], hi[0])
        wider = slack + TABLES * (BESIDE + np.maximum(np.abs(low), np.abs(high)))
        return (low - wider)[None], (high + wider)[None]

    def seen(self, values: Floats) -> Floats:
        return values

    def room(self, ends: Floats, side: int) -> Floats:
        return np.ones_like(ends)

    def anywhere(self, lo: Floats, hi: Floats, widest: float, slack: float) -> Ends | None:
        """Nothing keeps a number for free, where every step has an error."""
        return None if np.maximum(-lo, hi).max() > MOST_H or (hi - lo > widest).all() else (lo, hi)

    def plain(self, token: int, lo: Floats, hi: Floats) -> Ends:
        raise NotImplementedError

    def narrow(self, token: int, lo: Floats, hi: Floats) -> Ends:
        raise NotImplementedError

    def arguments(self, token: int, lo: Floats, hi: Floats) -> list[Ends]:
        """Of each gate, but for the biases within."""
        middle, radii = (lo + hi) / 2, (hi - lo) / 2
        return [
            (middle @ w.T - radii @ np.abs(w).T, middle @ w.T + radii @ np.abs(w).T) for w in self.weights
        ]  # fmt: skip


class GRUPoints(GatedPoints):
    def plain(self, token: int, lo: Floats, hi: Floats) -> Ends:
        return self._plain(self._gates(token, lo, hi), lo, hi)

    def narrow(self, token: int, lo: Floats, hi: Floats) -> Ends:
        r, z, m, n = gates = self._gates(token, lo, hi)
        shut = (1 - z[1], 1 - z[0])
        bends = times(shut, flat(n))
        slopes = [(times((lo - n[1], hi - n[0]), bump(z)), 1), (times(bends, r), 2),
                  (times(times(bends, m), bump(r)), 0)]  # fmt: skip
        middle, wide = self._slopes(slopes)
        reach = (np.abs(middle + np.diag((z[0] + z[1]) / 2)) + wide + np.diag((z[1] - z[0]) / 2)) @ ((hi - lo) / 2)
        centre = (lo + hi) / 2
        return meet(self._plain(gates, lo, hi), around(self.plain(token, centre, centre)[0], reach))

    def _gates(self, token: int, lo: Floats, hi: Floats) -> list[Ends]:
        (r, z, m), given = self.arguments(token, lo, hi), self.given[token]
        r, z = (sigmoid(shifted(each, given[k] + self.inner[k])) for k, each in enumerate((r, z)))
        m = shifted(m, self.inner[2])
        return [r, z, m, tanh(shifted(times(r, m), given[2]))]

    @staticmethod
    def _plain(gates: Sequence[Ends], lo: Floats, hi: Floats) -> Ends:
        _, z, _, n = gates
        low = [n[0] + each * (lo - n[0]) for each in z]
        high = [n[1] + each * (hi - n[1]) for each in z]
        return np.minimum(*low), np.maximum(*high)

    def _slopes(self, terms: Sequence[tuple[Ends, int]]) -> tuple[Floats, Floats]:
        return slopes_of([(a, self.weights[gate]) for a, gate in terms])


class LSTMPoints(GatedPoints):
    def seen(self, values: Floats) -> Floats:
        return np.concatenate([values[..., : self.n], np.tanh(values[..., self.n :])], axis=-1)

    def room(self, ends: Floats, side: int) -> Floats:
        """A cell goes on counting where it is full, and its box has to reach the end at once."""
        return np.where((np.arange(ends.shape[-1]) >= self.n) & (side * ends > FAR), LEAP, 1.0)

    def anywhere(self, lo: Floats, hi: Floats, widest: float, slack: float) -> Ends | None:
        h = hi[..., : self.n] - lo[..., : self.n]
        return None if np.maximum(-lo, hi).max() > MOST_C or (h > widest).all() else (lo, hi)

    def plain(self, token: int, lo: Floats, hi: Floats) -> Ends:
        i, f, g, o, c = self._gates(token, lo, hi)
        cell = plus(times(f, c), times(i, g))
        return beside(times(o, tanh(cell)), cell)

    def narrow(self, token: int, lo: Floats, hi: Floats) -> Ends:
        n, radii = self.n, (hi - lo) / 2
        i, f, g, o, c = self._gates(token, lo, hi)
        wi, wf, wg, wo = self.weights
        centre = (lo + hi) / 2
        at = self.plain(token, centre, centre)[0]
        middle, wide = slopes_of([(times(c, bump(f)), wf), (times(g, bump(i)), wi), (times(i, flat(g)), wg)])
        of_h, of_c = radii[:n], f[1] * radii[n:]
        cell = meet(plus(times(f, c), times(i, g)), around(at[n:], (np.abs(middle) + wide) @ of_h + of_c))
        out = tanh(cell)
        bends = times(o, flat(out))
        most, mean = bends[1], (bends[0] + bends[1]) / 2
        own, spread = slopes_of([(times(out, bump(o)), wo)])
        inner = np.abs(own + mean[:, None] * middle) + spread
        inner = inner + (most - mean)[:, None] * np.abs(middle) + most[:, None] * wide
        return beside(meet(times(o, out), around(at[:n], inner @ of_h + most * of_c)), cell)

    def _gates(self, token: int, lo: Floats, hi: Floats) -> list[Ends]:
        n, given = self.n, self.given[token]
        found = [
            shifted(each, given[k] + self.inner[k])
            for k, each in enumerate(self.arguments(token, lo[..., :n], hi[..., :n]))
        ]
        return [sigmoid(found[0]), sigmoid(found[1]), tanh(found[2]), sigmoid(found[3]), (lo[..., n:], hi[..., n:])]


def points_of_cell(maps: Gated) -> GatedPoints:
    return (LSTMPoints if len(maps.start.lo[0]) == 2 * maps.n else GRUPoints)(maps)


def slopes_of(terms: Sequence[tuple[Ends, Floats]]) -> tuple[Floats, Floats]:
    """The sum of [a] W: its middle, and how far it may be from there."""
    middle = sum((a + b)[:, None] / 2 * w for (a, b), w in terms)
    return np.asarray(middle), np.asarray(sum((b - a)[:, None] / 2 * np.abs(w) for (a, b), w in terms))


def sigmoid(x: Ends) -> Ends:
    low, high = (np.tanh(end / 2) / 2 + 0.5 for end in x)
    return low, high


def tanh(x: Ends) -> Ends:
    return np.tanh(x[0]), np.tanh(x[1])


def shifted(x: Ends, by: Floats) -> Ends:
    return x[0] + by, x[1] + by


def plus(x: Ends, y: Ends) -> Ends:
    return x[0] + y[0], x[1] + y[1]


def times(x: Ends, y: Ends) -> Ends:
    ends = [a * b for a in x for b in y]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def bump(s: Ends) -> Ends:
    """s (1 - s)."""
    ends = [end * (1 - end) for end in s]
    return np.minimum(*ends), np.where((s[0] < 0.5) & (s[1] > 0.5), 0.25, np.maximum(*ends))


def flat(t: Ends) -> Ends:
    """1 - t^2."""
    ends = [1 - end * end for end in t]
    return np.minimum(*ends), np.where((t[0] < 0) & (t[1] > 0), 1.0, np.maximum(*ends))


def around(middle: Floats, reach: Floats) -> Ends:
    return middle - reach, middle + reach


def meet(one: Ends, other: Ends) -> Ends:
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


def beside(one: Ends, other: Ends) -> Ends:
    return np.concatenate([one[0], other[0]], axis=-1), np.concatenate([one[1], other[1]], axis=-1)
