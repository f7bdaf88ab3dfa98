"""A GRU and an LSTM of one layer, in intervals: the image of a box, what float32 makes of a step, and the read-out.

    gru     r, z = sigmoid(W h + x),   n = tanh(x_n + r m),  m = W_n h + b,    h' = n + z (h - n)
    lstm    i, f, o = sigmoid(W h + x),  g = tanh(W_g h + x_g),  c' = f c + i g,  h' = o tanh(c')

x is W_ih e_x with its biases. The state of a GRU is one column, h; that of an LSTM is one as well, h and then c.

The image of a box is what two forms have in common. One puts in the ends of every gate: h' rises with n and with h, and
is linear in z. The other is the mean value theorem: the image of the centre, and on each side |J| times the radii,
where J holds all slopes on the box. It is the narrower one in small boxes, where a state that leaves its place also
moves the gates that pull it back. With the slopes of a gate s (1 - s), and of tanh 1 - t^2,

    gru     J   = diag(z) + [(h - n) z (1 - z)] W_z + [(1 - z) (1 - n^2)] (r W_n + [m r (1 - r)] W_r)
    lstm    J_c = [c f (1 - f)] W_f + [g i (1 - i)] W_i + [i (1 - g^2)] W_g      and diag(f) for c itself
            J_h = [tanh(c') o (1 - o)] W_o + [o (1 - tanh(c')^2)] J_c            and diag(o (1 - tanh(c')^2) f)

In float32 the argument of a gate is a sum of n + dim + 2 terms in some order; a gate moves by its largest slope times
what that is off by, and what follows is bounded term by term. c may be large, so the slopes are those of each region.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from statetrack.certificates.checker.float32 import FLOAT32, LIBRARY_ERROR, ROUNDED, linear_error
from statetrack.certificates.checker.network import Covered, Ints, Network, Reading, Region, least_margin
from statetrack.certificates.checker.rounding import Floats, Interval, Refused, gamma, outward

AT_ONCE = 2**20  # numbers of the slopes of regions that are held
ONE = Interval.of(1.0)


class Gated:
    """The maps of a cell with so many gates, and of so many numbers for each of its units."""

    def __init__(self, network: Network, gates: int, parts: int) -> None:
        self.weight = network.get("rnn.weight_hh_l0")
        n = self.n = self.weight.lo.shape[1]
        if self.weight.lo.shape != (gates * n, n) or "rnn.weight_hh_l1" in network.tensors:
            raise Refused("a cell of one layer, and with other gates, is expected")
        self.weights = [self.weight[gate * n : (gate + 1) * n] for gate in range(gates)]
        inputs, embedding = network.get("rnn.weight_ih_l0"), network.get("embedding.weight")
        self.given = embedding @ inputs.turned() + network.get("rnn.bias_ih_l0")
        self.inner = network.get("rnn.bias_hh_l0")
        self.terms = embedding.lo.shape[1] + n + 4
        sizes = Interval.of(embedding.size) @ Interval.of(inputs.size).turned()
        self.sizes = (sizes + Interval.of(network.get("rnn.bias_ih_l0").size)).hi  # of the terms in `given`
        starts = [f"start.{part}" for part in range(parts)]
        begins = [network.tensors[each].reshape(n) if each in network.tensors else np.zeros(n) for each in starts]
        self.start = Interval.of(np.concatenate(begins).reshape(1, parts * n, 1))

    @property
    def tokens(self) -> int:
        return len(self.given.lo)

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.start.lo.shape[1], 1

    def box(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> Interval:
        """Boxes (regions, n) that hold the images of boxes."""
        some = max(1, AT_ONCE // self.n**2)
        pieces = [
            self.image(token, centres[begin : begin + some], radii[begin : begin + some])
            for begin in range(0, len(centres), some)
        ]
        low, high = (np.concatenate([getattr(each, end) for each in pieces]) for end in ("lo", "hi"))
        return Interval(low, high)

    def ball(self, column: tuple[int, int], token: int, centres: Floats, radii: Floats) -> tuple[Interval, Floats]:
        raise Refused("of a GRU and an LSTM regions are boxes")

    def image(self, token: int, centres: Floats, radii: Floats) -> Interval:
        raise NotImplementedError

    def off(self, token: int, centres: Floats, radii: Floats) -> Floats:
        """What a step in float32 is off by from each box, in any number, at most."""
        raise NotImplementedError

    def products(self, h: Floats, radii: Floats) -> list[Interval]:
        """W h of each gate, over boxes."""
        middle = Interval.of(h) @ self.weight.turned()
        spread = (Interval.of(radii) @ Interval.of(self.weight.size).turned()).hi
        whole = outward(middle.lo - spread, middle.hi + spread, 0.0)
        return [whole[:, begin : begin + self.n] for begin in range(0, whole.lo.shape[1], self.n)]

    def part(self, values: Interval, gate: int) -> Interval:
        return values[..., gate * self.n : (gate + 1) * self.n]

    def slopes(self, terms: Sequence[tuple[Interval, Interval]]) -> Interval:
        """The sum of [a] W, as (regions, n, n)."""
        rows = [a.reshape(*a.lo.shape, 1) * w for a, w in terms]
        return sum(rows[1:], rows[0])

    def argument_error(self, token: int, size: Floats) -> tuple[Floats, Floats]:
        """What the argument of every gate is off by, (regions, gates x n), and the sizes of its terms, where a state is
        of at most this size.
        """
        sums = size @ self.weight.size.T + self.sizes[token] + self.inner.size
        return gamma(self.terms, FLOAT32) * sums * ROUNDED, sums * ROUNDED


class GRUMaps(Gated):
    def image(self, token: int, centres: Floats, radii: Floats) -> Interval:
        r, z, m, n, h = self.gates(token, centres, radii)
        ends = [Interval.of(a) + z * (Interval.of(b) - Interval.of(a)) for a, b in ((n.lo, h.lo), (n.hi, h.hi))]
        plain = Interval(ends[0].lo, ends[1].hi)
        if not radii.any():
            return plain
        shut = ONE - z
        bends = shut * flat(n)
        slopes = self.slopes([
            ((h - n) * bump(z), self.weights[1]), (bends * r, self.weights[2]),
            (bends * m * bump(r), self.weights[0]),
        ]) + z.reshape(*z.lo.shape, 1) * Interval.of(np.eye(self.n))  # fmt: skip
        return meet(plain, around(self.image(token, centres, 0 * radii), times(slopes, radii)))

    def gates(self, token: int, centres: Floats, radii: Floats, off: Floats | None = None) -> tuple[Interval, ...]:
        """r, z, m, n and h over boxes; with `off` what r and z may be where their arguments are off by that."""
        products, given = self.products(centres, radii), self.given[token]
        r, z = (
            gate(widened(products[k] + self.part(given, k) + self.part(self.inner, k),
                         None if off is None else off[:, k * self.n : (k + 1) * self.n]))
            for k in (0, 1)
        )  # fmt: skip
        m = products[2] + self.part(self.inner, 2)
        n = (self.part(given, 2) + r * m).tanh()
        return r, z, m, n, Interval.of(centres) + Interval(-radii, radii)

    def off(self, token: int, centres: Floats, radii: Floats) -> Floats:
        size, n = np.abs(centres) + radii, self.n
        off, sums = self.argument_error(token, size)
        r, z, *_ = self.gates(token, centres, radii, off)
        off_r = bump(r).hi * off[:, :n] + LIBRARY_ERROR
        off_z = bump(z).hi * off[:, n : 2 * n] + LIBRARY_ERROR
        # x_n + r m, in parts: each has some of the terms, so that the sum of all bounds both
        of_m, reached = off[:, 2 * n :], sums[:, 2 * n :]
        inside = (2 + off_r) * of_m + off_r * reached + gamma(4, FLOAT32) * (2 + off_r) * (reached + of_m)
        off_n = inside + LIBRARY_ERROR
        ends = 2 * (size + 2 + off_n)
        return np.asarray((1 + off_z) * off_n + off_z * (size + 1) + gamma(6, FLOAT32) * (1 + off_z) * ends) * ROUNDED


class LSTMMaps(Gated):
    def image(self, token: int, centres: Floats, radii: Floats) -> Interval:
        n = self.n
        i, f, g, o, c = self.gates(token, centres, radii)
        cell = f * c + i * g
        if not radii.any():
            return beside(o * cell.tanh(), cell)
        middle, of_h, of_c = self.image(token, centres, 0 * radii), radii[:, :n], radii[:, n:]
        inner = self.slopes(
            [(c * bump(f), self.weights[1]), (g * bump(i), self.weights[0]), (i * flat(g), self.weights[2])]
        )  # fmt: skip
        cell = meet(cell, around(middle[:, n:], times(inner, of_h) + f * Interval.of(of_c)))
        out = cell.tanh()
        bends = o * flat(out)
        slopes = self.slopes([(out * bump(o), self.weights[3])]) + bends.reshape(*bends.lo.shape, 1) * inner
        reach = times(slopes, of_h) + bends * f * Interval.of(of_c)
        return beside(meet(o * out, around(middle[:, :n], reach)), cell)

    def gates(self, token: int, centres: Floats, radii: Floats, off: Floats | None = None) -> tuple[Interval, ...]:
        """i, f, g, o and c over boxes; with `off` what the gates may be where their arguments are off by that."""
        n, given = self.n, self.given[token] + self.inner
        products = self.products(centres[:, :n], radii[:, :n])
        i, f, g, o = (
            widened(each + self.part(given, k), None if off is None else off[:, k * n : (k + 1) * n])
            for k, each in enumerate(products)
        )
        return gate(i), gate(f), g.tanh(), gate(o), Interval.of(centres[:, n:]) + Interval(-radii[:, n:], radii[:, n:])

    def off(self, token: int, centres: Floats, radii: Floats) -> Floats:
        size, n = np.abs(centres) + radii, self.n
        off, _ = self.argument_error(token, size[:, :n])
        gates = self.gates(token, centres, radii, off)[:4]
        steep = (bump, bump, flat, bump)
        off_i, off_f, off_g, off_o = (
            slope(each).hi * off[:, k * n : (k + 1) * n] + LIBRARY_ERROR
            for k, (slope, each) in enumerate(zip(steep, gates))
        )
        held = size[:, n:]
        off_c = off_f * held + off_i * (1 + off_g) + off_g
        off_c = off_c + gamma(4, FLOAT32) * ((1 + off_f) * held + (1 + off_i) * (1 + off_g))
        off_t = off_c + LIBRARY_ERROR
        off_h = off_o * (1 + off_t) + off_t + gamma(4, FLOAT32) * (1 + off_o) * (1 + off_t)
        return np.concatenate([off_h, off_c], axis=1) * ROUNDED


class Cell(Network):
    """logits = W h + b."""

    own: type[Gated]
    gates: int
    numbers = 1  # of each unit

    def shape(self) -> tuple[int, int]:
        return 1, self.numbers * self.get("rnn.weight_hh_l0").lo.shape[1]

    def maps_of(self) -> Gated:
        return self.own(self, self.gates, self.numbers)

    def float32_error(self, parts: Sequence[Covered] = ()) -> float:
        maps = self.maps_of()
        boxes = [(each.centres[:, 0], each.radii[:, 0]) for each in parts]
        boxes = boxes or [(np.zeros((1, maps.shape[1])), np.ones((1, maps.shape[1])))]
        return float(max(maps.off(token, *box).max() for token in range(maps.tokens) for box in boxes) * ROUNDED)

    def reading(self, parts: Sequence[Region], tokens: Ints, right: Ints) -> Reading:
        weight, bias = self.get("head.weight"), self.get("head.bias")
        n = self.maps.shape[1] // self.numbers
        if len(parts) != 1 or weight.lo.shape[1] != n:
            raise Refused("the state of a cell is one column, and h has to be covered and read")
        features = parts[0].forms(0, Interval.of(np.eye(n, self.maps.shape[1])))
        none = Interval.of(np.zeros((self.maps.tokens, len(bias.lo))))
        margin = least_margin(features, weight, none, bias, tokens, right, None)
        off = linear_error(weight.size, bias.size, features.size.max(axis=0), np.zeros(n))
        return Reading(margin, float(off.max()))


class GRU(Cell):
    own, gates = GRUMaps, 3


class LSTM(Cell):
    own, gates, numbers = LSTMMaps, 4, 2


def gate(x: Interval) -> Interval:
    """The sigmoid, which lies between 0 and 1."""
    s = x.sigmoid()
    return Interval(np.maximum(s.lo, 0), np.minimum(s.hi, 1))


def bump(s: Interval) -> Interval:
    """s (1 - s), for an s between 0 and 1: it rises to a quarter at one half, and falls."""
    ends = [end * (ONE - end) for end in (Interval.of(s.lo), Interval.of(s.hi))]
    turns = (s.lo < 0.5) & (s.hi > 0.5)
    low, high = np.minimum(ends[0].lo, ends[1].lo), np.maximum(ends[0].hi, ends[1].hi)
    return Interval(np.maximum(low, 0), np.where(turns, 0.25, high))


def flat(t: Interval) -> Interval:
    """1 - t^2, for a t between -1 and 1."""
    far, near = Interval.of(t.size), Interval.of(np.maximum(np.maximum(t.lo, -t.hi), 0))
    return Interval(np.maximum((ONE - far * far).lo, 0), np.minimum((ONE - near * near).hi, 1))


def widened(x: Interval, off: Floats | None) -> Interval:
    return x if off is None else outward(x.lo - off, x.hi + off, 0.0)


def around(middle: Interval, reach: Interval) -> Interval:
    return outward(middle.lo - reach.hi, middle.hi + reach.hi, 0.0)


def times(slopes: Interval, radii: Floats) -> Interval:
    """|J| r."""
    return (Interval.of(slopes.size) @ Interval.of(radii[..., None]))[..., 0]


def meet(one: Interval, other: Interval) -> Interval:
    """What both hold, of which there is something, as each holds the image."""
    return Interval(np.maximum(one.lo, other.lo), np.minimum(one.hi, other.hi))


def beside(one: Interval, other: Interval) -> Interval:
    return Interval(np.concatenate([one.lo, other.lo], axis=1), np.concatenate([one.hi, other.hi], axis=1))
