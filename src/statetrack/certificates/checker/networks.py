"""What the weights of a network say, in intervals: the map of every token, the start, and the read-out.

Every column of the state moves alone, and all but those of gates (gated.py) by s' = tanh(A s + c):

    tanh-rnn      one column h:                A = W_hh,  c = W_ih e_x + b_ih + b_hh
    e88-gain      n columns of each head:      A = a I - b k k^T,  c = v_j k for column j
    reflections   n columns of each head:      A = a H_R ... H_1,  H_j = I - b_j k_j k_j^T,  c = 0
    gru, lstm     one column, h or h and c

With `unit` the intervals also hold what arithmetic of that unit roundoff may give, so that a step in float32 can be
bounded (float32.py). The equations are written out here again, from the weights alone, so that the checker shares no
code with the models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from statetrack.certificates.checker.float32 import (
    FLOAT32,
    LIBRARY_ERROR,
    Tables,
    apart,
    gelu_error,
    linear_error,
    normed_error,
    step_error,
)  # fmt: skip
from statetrack.certificates.checker.gated import GRU, LSTM
from statetrack.certificates.checker.maps import Affine
from statetrack.certificates.checker.network import Covered, Ints, Network, Reading, Region, Tensors, least_margin
from statetrack.certificates.checker.rounding import Floats, Interval, Refused, gamma

NORM_EPSILON, UNIT_EPSILON = 1e-5, 1e-6  # of RMSNorm, and of keys that are divided by their length


class TanhRNN(Network):
    """h' = tanh(W_hh h + W_ih e_x + b), logits = W h + b."""

    def shape(self) -> tuple[int, int]:
        return 1, len(self.get("rnn.weight_hh_l0").lo)

    def maps_of(self) -> Affine:
        w, given = self.get("rnn.weight_hh_l0"), self.given(0.0)
        n = w.lo.shape[1]
        if w.lo.shape != (n, n) or "rnn.weight_hh_l1" in self.tensors:
            raise Refused("a tanh RNN of one layer is expected")
        start = self.get("start.0").reshape(1, n, 1) if "start.0" in self.tensors else Interval.of(np.zeros((1, n, 1)))
        low, high = (np.broadcast_to(end, (len(given.lo), 1, n, n)) for end in (w.lo, w.hi))
        return Affine(Interval(low, high), given.reshape(-1, 1, n, 1), start)

    def given(self, unit: float) -> Interval:
        """W_ih e_x + b of every token."""
        table = self.get("embedding.weight", unit) @ self.get("rnn.weight_ih_l0", unit).turned()
        return table + self.get("rnn.bias_ih_l0", unit) + self.get("rnn.bias_hh_l0", unit)

    def float32_error(self, parts: Sequence[Covered] = ()) -> float:
        w, wide = self.get("rnn.weight_hh_l0"), self.given(FLOAT32)
        sizes = w.size.sum(axis=1) + wide.size
        off = apart(wide, self.given(0.0)) + gamma(w.lo.shape[1] + 4, FLOAT32) * sizes
        return float(off.max() + LIBRARY_ERROR) * (1 + 1e-9)

    def reading(self, parts: Sequence[Region], tokens: Ints, right: Ints) -> Reading:
        n = self.maps.shape[1]
        if len(parts) != 1:
            raise Refused("a tanh RNN is one column, and has to be covered")
        features = parts[0].forms(0, Interval.of(np.eye(n)))
        weight, bias = self.get("head.weight"), self.get("head.bias")
        none = Interval.of(np.zeros((self.maps.tokens, len(bias.lo))))
        margin = least_margin(features, weight, none, bias, tokens, right, None)
        off = linear_error(weight.size, bias.size, np.ones(n), np.zeros(n))
        return Reading(margin, float(off.max()))


class E88(Network):
    """x + mixer(RMSNorm(x)), RMSNorm, head: what E88 with gain and its reflections share."""

    def maps_of(self) -> Affine:
        if "norms.1.weight" in self.tensors:
            raise Refused("a network of one layer is expected")
        tables = self.tables(0.0)
        return Affine(*_products(tables), self._start(*tables.keys.lo.shape[-2:]))

    def normed(self, unit: float) -> Interval:
        return rms_norm(self.get("embedding.weight", unit), self.get("norms.0.weight", unit))

    def tables(self, unit: float) -> Tables:
        return self.token_tables(self.normed(unit), unit)

    def token_tables(self, x: Interval, unit: float) -> Tables:
        raise NotImplementedError

    def float32_error(self, parts: Sequence[Covered] = ()) -> float:
        return step_error(self.tables(0.0), self.tables(FLOAT32))

    def _start(self, heads: int, n: int) -> Interval:
        if "start.0" in self.tensors:
            return self.get("start.0").reshape(heads, n, n)
        return self.default_start(heads, n)

    def default_start(self, heads: int, n: int) -> Interval:
        return Interval.of(np.zeros((heads, n, n)))

    def rate(self, x: Interval, name: str, low: float, high: float, unit: float) -> Interval:
        z = x @ self.get(f"{name}.weight", unit).turned() + self.get(f"{name}.bias", unit)
        return Interval.of(low, unit) + Interval.of(high - low, unit) * z.sigmoid()

    def read(
        self, features: Interval, off: Floats, out: Interval, base: Interval, tokens: Ints, right: Ints
    ) -> Reading:
        """Of head(RMSNorm(base of the token + out features)); `base` is (tokens, dim), `out` (dim, F). A feature in
        float32 is off by at most `off`.
        """
        scaled = self.get("head.weight") * self.get("final_norm.weight")
        stream = features @ out.turned() + base[tokens]
        squares = Interval.of(_least_size(stream)) * Interval.of(_least_size(stream))
        largest = Interval.of(stream.size) * Interval.of(stream.size)
        dim = Interval.of(float(stream.lo.shape[1]))
        rms = [(each.total() / dim + Interval.of(NORM_EPSILON)).sqrt() for each in (squares, largest)]
        length = Interval(rms[0].lo[:, 0] * (1 - 1e-9), rms[1].hi[:, 0] * (1 + 1e-9))
        margin = least_margin(
            features, scaled @ out, base @ scaled.turned(), self.get("head.bias"), tokens, right, length
        )
        return Reading(margin, self._logit_error(features, off, out, base, stream, float(length.lo.min())))

    def _logit_error(
        self, features: Interval, off: Floats, out: Interval, base: Interval, stream: Interval, least: float
    ) -> float:
        streamed = linear_error(out.size, 2 * base.size.max(axis=0), features.size.max(axis=0), off)
        weight, head, bias = (self.tensors[name] for name in ("final_norm.weight", "head.weight", "head.bias"))
        size, normed = normed_error(stream.size.max(axis=0), streamed, least, weight)
        return float(linear_error(head, bias, size, normed).max()) if np.isfinite(size).all() else np.inf


class E88Gain(E88):
    """q, k, v = silu(W x), q and k of length 1; out_h = S^T q."""

    def token_tables(self, x: Interval, unit: float) -> Tables:
        heads, n = self._sizes()
        if "mixers.0.beta.project.weight" not in self.tensors:
            raise Refused("this is not E88 with gain: it has no beta")
        _, k, v = self._qkv(x, unit)
        decay = self.rate(x, "mixers.0.decay.project", 0, 2, unit)
        beta = self.rate(x, "mixers.0.beta.project", 0, 4, unit)
        rows = len(x.lo)
        return Tables(k.reshape(rows, 1, heads, n), beta.reshape(rows, 1, heads), decay, v.reshape(rows, heads, n))

    def shape(self) -> tuple[int, int]:
        return self._sizes()

    def _sizes(self) -> tuple[int, int]:
        heads = self.tensors["mixers.0.decay.project.weight"].shape[0]
        return heads, self.tensors["mixers.0.out.weight"].shape[1] // heads

    def _qkv(self, x: Interval, unit: float) -> list[Interval]:
        heads, n = self._sizes()
        z = x @ self.get("mixers.0.project.weight", unit).turned()
        q, k, v = ((z * z.sigmoid()).reshape(len(x.lo), 3, heads, n)[:, part] for part in range(3))
        return [unit_length(q), unit_length(k), v]

    def reading(self, parts: Sequence[Region], tokens: Ints, right: Ints) -> Reading:
        heads, n = self._sizes()
        q = self._qkv(self.normed(0.0), 0.0)[0]
        lo, hi = np.empty((len(tokens), heads, n)), np.empty((len(tokens), heads, n))
        free = Interval.of(q.size).total().hi[tokens, :, 0]  # a column in [-1, 1], read by q
        lo[:], hi[:] = -free[..., None], free[..., None]
        for part in parts:
            for place, (head, column) in enumerate(part.columns):
                read = part.forms(place, q[tokens, head][:, None, :])
                lo[:, head, column], hi[:, head, column] = read.lo[:, 0], read.hi[:, 0]
        features = Interval(lo.reshape(len(tokens), -1), hi.reshape(len(tokens), -1))
        off = self._feature_error(q, self._qkv(self.normed(FLOAT32), FLOAT32)[0])
        return self.read(features, off, self.get("mixers.0.out.weight"), self.get("embedding.weight"), tokens, right)

    def _feature_error(self, q: Interval, wide: Interval) -> Floats:
        """What S^T q is off by, for each head and column."""
        n = q.lo.shape[-1]
        each = apart(wide, q).sum(axis=-1) + gamma(n, FLOAT32) * wide.size.sum(axis=-1)
        return np.repeat(each.max(axis=0), n)


class Reflections(E88):
    """k = W x of length 1, y = W_2 gelu(W_1 S + b_1) + b_2."""

    alike_columns = True

    def token_tables(self, x: Interval, unit: float) -> Tables:
        if "mixers.0.gain.project.weight" not in self.tensors:
            raise Refused("these are not reflections with gain: they have no gain")
        heads, writes, n = self._sizes()
        k = (x @ self.get("mixers.0.keys.weight", unit).turned()).reshape(len(x.lo), writes, heads, n)
        beta = self.rate(x, "mixers.0.rate.project", 0, 2, unit).reshape(len(x.lo), writes, heads)
        gain = self.rate(x, "mixers.0.gain.project", 1, 2, unit)
        first = beta[:, :1] * gain.reshape(len(x.lo), 1, heads)  # a (I - b k k^T) = a I - (a b) k k^T
        low, high = (np.concatenate([a, b[:, 1:]], axis=1) for a, b in ((first.lo, beta.lo), (first.hi, beta.hi)))
        return Tables(unit_length(k), Interval(low, high, unit), gain, None)

    def shape(self) -> tuple[int, int]:
        heads, _, n = self._sizes()
        return heads, n

    def _sizes(self) -> tuple[int, int, int]:
        heads = self.tensors["mixers.0.gain.project.weight"].shape[0]
        writes = self.tensors["mixers.0.rate.project.weight"].shape[0] // heads
        return heads, writes, self.tensors["mixers.0.keys.weight"].shape[0] // heads // writes

    def default_start(self, heads: int, n: int) -> Interval:
        marked = float(np.float32(0.9)) * (2 * np.eye(n) - 1)
        return Interval.of(np.broadcast_to(marked, (heads, n, n)))

    def reading(self, parts: Sequence[Region], tokens: Ints, right: Ints) -> Reading:
        heads, _, n = self._sizes()
        first = self.get("mixers.0.read.weight")
        hidden = len(first.lo)
        by_column = first.reshape(hidden, n, heads, n)  # row, head, column of the state
        total = self.get("mixers.0.read.bias")
        covered = {column for part in parts for column in part.columns}
        for part in parts:
            for place, (head, column) in enumerate(part.columns):
                total = total + part.forms(place, by_column[:, :, head, column])
        for head, column in np.ndindex(heads, n):
            if (head, column) not in covered:
                free = Interval.of(by_column[:, :, head, column].size).total().hi[:, 0]
                total = total + Interval(-free, free)
        base = self.get("embedding.weight") + self.get("mixers.0.out.bias")
        every = np.ones(first.lo.shape[1])
        inner = linear_error(first.size, self.get("mixers.0.read.bias").size, every, 0 * every)
        off = gelu_error(total.size.max(axis=0), inner)
        return self.read(total.gelu(), off, self.get("mixers.0.out.weight"), base, tokens, right)


NETWORKS: dict[str, Callable[[Tensors, int], Network]] = {
    "tanh-rnn": TanhRNN, "e88-gain": E88Gain, "e88-gain-reflections": Reflections, "gru": GRU, "lstm": LSTM,
}  # fmt: skip


def rms_norm(x: Interval, weight: Interval) -> Interval:
    mean = (x * x).total() / Interval.of(float(x.lo.shape[-1]), x.unit)
    return x / (mean + Interval.of(NORM_EPSILON, x.unit)).sqrt() * weight


def unit_length(x: Interval) -> Interval:
    return x / ((x * x).total().sqrt() + Interval.of(UNIT_EPSILON, x.unit))


def _least_size(x: Interval) -> Floats:
    return np.maximum(np.maximum(x.lo, -x.hi), 0)


def _products(tables: Tables) -> tuple[Interval, Interval]:
    """A = (I - b_R k_R k_R^T) ... (a I - b_1 k_1 k_1^T) as (V, H, n, n), and c = k v^T as (V, H, n, n)."""
    k = tables.keys
    tokens, writes, heads, n = k.lo.shape
    key = [k[:, j].reshape(tokens, heads, n, 1) for j in range(writes)]
    rate = [tables.rates[:, j].reshape(tokens, heads, 1, 1) for j in range(writes)]
    identity = Interval.of(np.broadcast_to(np.eye(n), (tokens, heads, n, n)))
    matrix = identity * tables.decay.reshape(tokens, heads, 1, 1) - rate[0] * (key[0] @ key[0].turned())
    for j in range(1, writes):
        matrix = matrix - rate[j] * (key[j] @ (key[j].turned() @ matrix))
    if tables.values is None:
        return matrix, Interval.of(np.zeros((tokens, heads, n, n)))
    return matrix, key[0] @ tables.values.reshape(tokens, heads, 1, n)
