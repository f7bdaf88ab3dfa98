"""What the recurrence of each family can do, in every column of precision: the table of docs/theory.md, as data.

Which family a model belongs to, its catalogue line says. `rules/` works the answers out for one model on one task.

>>> from statetrack.models.catalogue import find
>>> FAMILIES[find("Mamba2-32L").family].recurrence
'h <- a h + u, a in (0, 1), entry by entry'
"""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.models.catalogue import lookup


@dataclass(frozen=True)
class ModelFamily:
    """Models that share a recurrence, and what is known of it: "?" where nothing is."""

    recurrence: str
    members: str
    exact: str
    bounded: str
    log: str
    floats: str


FAMILIES = {
    "diagonal": ModelFamily(
        "h <- a h + u, a in (0, 1), entry by entry", "Mamba-2, E88 as designed without tanh",
        "one layer: no groups (Wilkie)", "nothing for ever (D)",
        "RTC; not NC1-complete tasks, unless TC0 = NC1; parity by rounding to even numbers, from 4 layers on",
        "flip-flops, FSM; star-free tasks given layers and width; no groups if rounding is monotone",
    ),
    "signed-diagonal": ModelFamily(
        "h <- a h + u, a in (-1, 1), entry by entry", "Mamba-2 -neg", "?", "nothing for ever (D)", "as above",
        "as above, and groups of order 2^k, with a layer for each factor C2; no other groups if rounding is monotone",
    ),
    "projection": ModelFamily(
        "S <- (I - b k k^T) S + b k v^T, b in (0, 1)", "DeltaNet",
        "one layer, at most two steps a token: no input with a period (Wilkie)", "nothing for ever (D)", "?",
        "flip-flops; no input with a period if rounding makes no cycle",
    ),
    "reflections": ModelFamily(
        "S <- H_r ... H_1 S + writes, H = I - b k k^T, b in (0, 2)", "DeltaNet -neg, DeltaProduct",
        "parity by a sign; groups that r reflections represent, to any chosen length; r = 1: no input with a period"
        " above 2 (Wilkie)",
        "nothing for ever (D)", "?", "flip-flops; Z2^k with a head for each factor",
    ),
    "published-linear": ModelFamily(
        "S <- d S + k (v - S^T k)^T, d in (0, 1)", "E88 as published without tanh",
        "parity by a sign; one layer: no input with a period above 2 (Wilkie)", "nothing for ever (D)", "?",
        "flip-flops; parity where d rounds to 0 and 1",
    ),
    "gain-linear": ModelFamily(
        "S <- a S + k (v - b S^T k)^T, a in (0, 2), b in (0, 4)", "E88 with gain without tanh",
        "groups that one reflection represents; no input with a period above 2 (Wilkie)",
        "? (differences may grow, and then overflow)", "?", "flip-flops; Z2^k with a head for each factor",
    ),
    "fixed-linear": ModelFamily(
        "h <- A h + B x, a threshold of C h", "linear RNN",
        "no automaton outside of AC0; flip-flop by a sign; RTC only with an input bias or a learned start",
        "nothing for ever while powers of A stay bounded (D)", "RTC", "FSM",
    ),
    "memoryless": ModelFamily("y = f(x_t)", "MLP", *["what the present input decides, and nothing else"] * 4),
    "squashed-diagonal": ModelFamily(
        "S <- tanh(d S + v k^T), d in (0, 1), entry by entry", "E88 as designed", "flip-flop by a sign",
        "nothing for ever (A)", "RTC among tiny numbers",
        "flip-flops and FSM among tiny numbers; no groups if tanh is increasing: the CPU kernel's is not",
    ),
    "published": ModelFamily(
        "S <- tanh(d S + k (v - S^T k)^T), d in (0, 1)", "E88 as published", "parity by a sign",
        "nothing for ever (A); one layer: no input with a period above 2 (C)", "?",
        "parity among tiny numbers, where d rounds to 0 and 1",
    ),
    "gain": ModelFamily(
        "S <- tanh(a S + k (v - b S^T k)^T), a in (0, 2), b in (0, 4)", "E88 with gain", "as under bounded error",
        "Z2^k with a head for each factor; products of swaps of points; flip-flops; one layer: no input with a period"
        " above 2 (C)",
        "?", "as under bounded error",
    ),
    "gain-reflections": ModelFamily(
        "S <- tanh(a H_r ... H_1 S), a in (1, 2), b in (0, 2)", "E88 with gain, -r", "as under bounded error",
        "permutations of points, if every input is a product of at most r swaps", "?", "as under bounded error",
    ),
    "unrestricted": ModelFamily(
        "h <- tanh(W h + U x) and its gated forms", "tanh RNN, GRU, LSTM, M2RNN", "as under bounded error",
        "any finite automaton, given width; no counter without bound (but for an LSTM's cell: ?)", "LSTM: RTC",
        "any finite automaton, given width",
    ),
    "attention": ModelFamily(
        "softmax over everything so far, in a fixed number of layers", "transformer", "?", "?",
        "RTC, star-free tasks; not NC1-complete tasks, unless TC0 = NC1, but each to a length that grows with depth",
        "nothing beyond its positions",
    ),
}  # fmt: skip


def table() -> str:
    """The families by columns, as docs/theory.md has them.

    >>> print(table().splitlines()[0])
    | recurrence | models | exact reals | bounded error | log T bits | floats |
    """
    lines = ["| recurrence | models | exact reals | bounded error | log T bits | floats |", "|---|---|---|---|---|---|"]
    for family in FAMILIES.values():
        cells = (family.members, family.exact, family.bounded, family.log, family.floats)
        lines.append(f"| `{family.recurrence}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def has_family(text: str) -> bool:
    """Whether something is known here of a model's recurrence, its options counted in.

    >>> has_family("mamba2-12l"), has_family("mine.py:Model")
    (True, False)
    """
    line = lookup(text)
    return line is not None and line.family in FAMILIES
