"""What the recurrence of each model family can do, as data. Which family a model belongs to, its catalogue line says.

>>> from statetrack.models.catalogue import find
>>> FAMILIES[find("Mamba2-32L").family].recurrence
'h <- a h + u with a in (0, 1), entry by entry'
"""

from __future__ import annotations

from dataclasses import dataclass

from statetrack.models.catalogue import lookup


@dataclass(frozen=True)
class Statement:
    """One statement: its source, the precision of numbers it assumes, whether it is about weights or training."""

    says: str
    source: str
    precision: str  # fixed, log T or exact
    about: str = "weights"


@dataclass(frozen=True)
class ModelFamily:
    """Models that share a recurrence."""

    recurrence: str
    claims: tuple[Statement, ...]


FAMILIES = {
    "diagonal": ModelFamily("h <- a h + u with a in (0, 1), entry by entry", (
        Statement("every entry moves by its own increasing map: no cycle of states, at any depth",
                  "sarrof2024", "fixed"),
        Statement("any star-free task, given layers and width, with gates that saturate", "sarrof2024", "fixed"),
        Statement("a decay that rounds to 1 counts: RTC and FSM", "here", "log T"),
        Statement("constant depth: no NC1-complete task, unless TC0 = NC1", "merrill2024", "log T"),
    )),
    "squashed-diagonal": ModelFamily("S <- tanh(d S + v k^T) with d in (0, 1), entry by entry", (
        Statement("every entry moves by its own increasing map: no cycle of states, at any depth", "here", "fixed"),
        Statement("every step contracts: what came long ago fades", "here", "exact"),
    )),
    "signed-diagonal": ModelFamily("h <- a h + u with a in (-1, 1), entry by entry", (
        Statement("parity, and 2-groups given a layer for each factor C2", "krasner", "fixed"),
        Statement("no counting modulo m unless m is a power of two, at any depth", "grazzi2024", "fixed"),
    )),
    "projection": ModelFamily("S <- (I - b k k^T) S + b k v^T with b in (0, 1)", (
        Statement("eigenvalues in [0, 1]: under a repeated input no cycle, at any depth", "grazzi2024", "fixed"),
    )),
    "reflections": ModelFamily("S <- H_r ... H_1 S + writes, H_j = I - b_j k_j k_j^T with b_j in (0, 2)", (
        Statement("a group whose faithful real representation has every input move at most r dimensions",
              "cartan", "exact"),
        Statement("one reflection: under a repeated input only the periods 1 and 2, in one layer", "here", "exact"),
        Statement("nothing corrects an error, so what training finds fades", "measured", "fixed", "training"),
    )),
    "published": ModelFamily("S <- tanh(d S + k (v - S^T k)^T) with d in (0, 1)", (
        Statement("eigenvalues d and d - 1: a sign can flip", "here", "exact"),
        Statement("every step contracts, by max(d, 1 - d) at most: memory fades", "here", "exact"),
    )),
    "gain": ModelFamily("S <- tanh(a S + k (v - b S^T k)^T) with a in (0, 2), b in (0, 4)", (
        Statement("bistable: it holds and flips a bit and corrects itself", "here", "fixed"),
        Statement("the map is symmetric: under a repeated input only the periods 1 and 2, in one layer",
              "marcus1989", "exact"),
    )),
    "gain-reflections": ModelFamily("S <- tanh(a H_r ... H_1 S) with a in (1, 2), b_j in (0, 2)", (
        Statement("a reflection along e_i - e_j swaps two entries, and tanh with gain corrects them", "here", "fixed"),
        Statement("so permutations of the points, if every input is a product of at most r swaps", "here", "fixed"),
    )),
    "fixed-linear": ModelFamily("h <- A h + B x, y = C h", (
        Statement("one threshold of a weighted sum of the inputs: RTC and FSM", "here", "log T"),
        Statement("no task outside of AC0 that an automaton does: a count modulo m is no threshold", "here", "exact"),
    )),
    "memoryless": ModelFamily("y = f(x_t)", (
        Statement("what the present input decides, and nothing else", "definition", "exact"),
    )),
    "unrestricted": ModelFamily("h <- tanh(W h + U x) and its gated forms", (
        Statement("any finite automaton, given width", "minsky1967", "fixed"),
        Statement("an LSTM counts, a GRU and a tanh RNN do not", "weiss2018", "log T"),
    )),
    "attention": ModelFamily("softmax over everything so far, in a fixed number of layers", (
        Statement("constant depth: no NC1-complete task as length grows, unless TC0 = NC1", "merrill2023", "log T"),
        Statement("any automaton up to a length that grows with depth, like 2^depth", "liu2023", "log T"),
    )),
}  # fmt: skip


def has_family(text: str) -> bool:
    """Whether something is known here of a model's recurrence, its options counted in.

    >>> has_family("mamba2-12l"), has_family("mine.py:Model")
    (True, False)
    """
    line = lookup(text)
    return line is not None and line.family in FAMILIES
