"""What the recurrence of each model family can do, as data, and which family a model's name belongs to.

>>> find("Mamba2-32L").family, find("deltaproduct-3").reflections
('diagonal', 3)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from statetrack import spec
from statetrack.errors import unknown


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


@dataclass(frozen=True)
class Model:
    """What a model's name says of it. `reflections` are those of one token."""

    name: str
    family: str
    layers: int = 1
    reflections: int = 0
    gated: bool = False
    bias: bool = True
    cell: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def _models() -> Iterator[Model]:
    for size, layers in (("1l", 1), ("4l", 4), ("1l-small", 1)):
        yield Model(f"e88-{size}", "squashed-diagonal", layers)
        yield Model(f"e88-{size}-notanh", "diagonal", layers)
        yield Model(f"e88-published-{size}", "published", layers, 1)
        yield Model(f"e88-published-{size}-notanh", "reflections", layers, 1, gated=True)
        yield Model(f"e88-gain-{size}", "gain", layers, 1)
        yield Model(f"e88-gain-{size}-notanh", "reflections", layers, 1, gated=True)
    for layers in (4, 8, 16, 32):
        yield Model(f"mamba2-{layers}l", "diagonal", layers)
        yield Model(f"mamba2-{layers}l-neg", "signed-diagonal", layers)
    yield Model("deltanet", "projection", 1, 1)
    yield Model("gated-deltanet", "projection", 1, 1, gated=True)
    yield Model("deltanet-neg", "reflections", 1, 1)
    yield Model("gated-deltanet-neg", "reflections", 1, 1, gated=True)
    for r in (2, 3, 4):
        yield Model(f"deltaproduct-{r}", "reflections", 1, r)
        yield Model(f"e88-gain-r{r}", "gain-reflections", 1, r)
    yield Model("linear-rnn", "fixed-linear")
    yield Model("linear-rnn-nobias", "fixed-linear", bias=False)
    yield Model("mlp", "memoryless", 4)
    for cell in ("tanh-rnn", "gru", "lstm", "m2rnn"):
        yield Model(cell, "unrestricted", cell=cell)
    yield Model("transformer", "attention", 4)
    yield Model("transformer-rope", "attention", 4)


MODELS = {model.name: model for model in _models()}


UNKNOWN = "unknown"
"""The family of a model that theory has not been told about."""
CHANGING = ("form", "tanh", "negative", "gated", "bias", "cell", "rotary")
"""Options that make another recurrence of a model."""


def find(name: str) -> Model:
    """The model of a name, in upper or lower case, with or without options; any depth of Mamba-2 and E88 is understood.

    A model of somebody's own, by its address or from an installed package, is of the family "unknown".

    >>> find("e88-gain-r2[learned_start=true]").family, find("mine.py:Model").family
    ('gain-reflections', 'unknown')
    """
    bare, options = spec.parse(name)
    known = _named(bare.lower())
    if known is None and not _exists(bare):
        raise unknown("model", bare, MODELS)
    if known is None or any(option in CHANGING for option in options):
        return Model(name.strip().lower(), UNKNOWN)
    numbers = {key: spec.read(options[key], int, key) for key in ("layers", "reflections") if key in options}
    return replace(known, name=name.strip().lower(), **numbers)


def has_family(name: str) -> bool:
    """Whether something is known here of a model's recurrence; asked of names alone, so that it needs no torch.

    >>> has_family("mamba2-12l"), has_family("mine.py:Model")
    (True, False)
    """
    return _named(spec.parse(name)[0].lower()) is not None


def _named(lower: str) -> Model | None:
    if lower in MODELS:
        return MODELS[lower]
    other = re.fullmatch(r"(mamba2|e88|e88-published|e88-gain)-(\d+)l((?:-neg|-notanh)?)", lower)
    if other:
        stem, layers, ending = other[1], int(other[2]), other[3]
        like = MODELS.get(f"{stem}-{'4l' if stem == 'mamba2' else '1l'}{ending}")
        if like is not None and layers > 0:
            return Model(lower, like.family, layers, like.reflections, like.gated)
    return None


def _exists(bare: str) -> bool:
    """Whether a name that theory does not know is an address, or a model that is catalogued or installed."""
    if ":" in bare or bare.lower() in {point.name.lower() for point in entry_points(group="statetrack.models")}:
        return True
    if find_spec("torch") is None:
        return False
    from statetrack.models import names

    return bare.lower() in names()
