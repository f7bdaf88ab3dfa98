"""The models by name: one line for each, which says what it is without torch. `statetrack.models.build` makes it.

>>> find("Mamba2-32L").family, find("deltaproduct-3").reflections, find("gru[hidden=64]").options["hidden"]
('diagonal', 3, 64)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from statetrack import plugins, spec
from statetrack.errors import BadInput, unknown
from statetrack.own_code import HASH, is_address

UNKNOWN = "unknown"
"""The family of a model that theory has not been told about."""
RECURRENCE = ("form", "tanh", "negative", "gated", "bias", "cell", "rotary")
"""Options that make another recurrence of a model."""
SIZES = ("layers", "heads", "n_state", "dim")
"""Options in which lines of one recurrence differ."""
FACTS = ("layers", "heads", "reflections", "form", "gated", "bias", "cell")
"""Facts that are read from the options where the options have them."""


@dataclass(frozen=True)
class ModelEntry:
    """What is known of a model before it is built. A package may offer one under the entry point `statetrack.models`.

    >>> mine = ModelEntry("mine-4l", "my_package.models:Mine", "my model", {"layers": 4, "dim": 64}, width="dim")
    >>> mine.layers, mine.family
    (4, 'unknown')
    """

    name: str
    at: str  # where its class is, package.module:Class or file.py:Class
    about: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # those that make the class this model
    architecture: str = ""  # what it is a size or a variant of; models of one architecture share a colour
    family: str = UNKNOWN  # its recurrence, a key of statetrack.theory.predictions.families.FAMILIES
    width: str = ""  # the option that is its width
    ablation_of: str = ""  # the whole model that this one lacks a part of, or is a variant of
    layers: int = 1
    heads: int = 0
    reflections: int = 0  # of one token
    form: str = ""
    gated: bool = False
    bias: bool = True
    cell: str = ""
    finer: str = ""  # one that changes the number of its parameters in smaller steps

    def __post_init__(self) -> None:
        for fact in FACTS:
            if fact in self.options:
                object.__setattr__(self, fact, self.options[fact])
        object.__setattr__(self, "architecture", self.architecture or self.name)


def _e88() -> Iterator[ModelEntry]:
    """e88[-published|-gain]-{1l,4l,1l-small}[-notanh]."""
    sizes = {
        "1l": {"layers": 1, "heads": 16, "n_state": 32, "dim": 128},
        "4l": {"layers": 4, "heads": 4, "n_state": 32, "dim": 64},
        "1l-small": {"layers": 1, "heads": 4, "n_state": 8, "dim": 64},
    }
    forms = {  # form, equation, family with tanh, family without
        "e88": ("document", "decay in (0,1), beta 0", "squashed-diagonal", "diagonal"),
        "e88-published": ("published", "decay in (0,1), beta 1 (delta rule)", "published", "published-linear"),
        "e88-gain": ("gain", "decay in (0,2), beta in (0,4)", "gain", "gain-linear"),
    }
    for architecture, (form, equation, squashed, linear) in forms.items():
        for size, numbers in sizes.items():
            whole = f"{architecture}-{size}"
            shape = "{layers} x {heads} heads of {n_state}, dim {dim}".format(**numbers)
            for tanh in (True, False):
                yield ModelEntry(
                    whole if tanh else f"{whole}-notanh", "statetrack.models.e88:E88",
                    f"E88, {equation}{'' if tanh else ', without tanh'}; {shape}",
                    {**numbers, "form": form, "tanh": tanh}, architecture, squashed if tanh else linear, "dim",
                    "" if tanh else whole, reflections=int(form != "document"),
                    gated=form != "document" and not tanh,
                )  # fmt: skip


def _mamba2() -> Iterator[ModelEntry]:
    """mamba2-{4l,8l,16l,32l}[-neg]."""
    for layers in (4, 8, 16, 32):
        whole, about = f"mamba2-{layers}l", f"Mamba-2, {layers} layers of 64, state 16"
        for negative in (False, True):
            yield ModelEntry(
                f"{whole}-neg" if negative else whole, "statetrack.models.mamba2:Mamba2",
                f"{about}, eigenvalues in [-1,1]" if negative else about,
                {"layers": layers, "d_model": 64, "d_state": 16, "negative": negative}, "mamba2",
                "signed-diagonal" if negative else "diagonal", "d_model", whole if negative else "",
                finer="d_state",
            )  # fmt: skip


def _deltanet() -> Iterator[ModelEntry]:
    """[gated-]deltanet[-neg]."""
    sizes = {"layers": 1, "heads": 4, "n_state": 8, "dim": 64, "reflections": 1}
    for whole, words, gated in (("deltanet", "DeltaNet", False), ("gated-deltanet", "Gated DeltaNet", True)):
        for negative in (False, True):
            yield ModelEntry(
                f"{whole}-neg" if negative else whole, "statetrack.models.deltanet:DeltaNet",
                f"{words}, eigenvalues in [{-1 if negative else 0},1], 4 heads of 8",
                {**sizes, "gated": gated, "negative": negative}, whole,
                "reflections" if negative else "projection", "dim", whole if negative else "",
            )  # fmt: skip


def _reflections() -> Iterator[ModelEntry]:
    """deltaproduct-{2,3,4} and e88-gain-{r2,r3,r4}."""
    for count in (2, 3, 4):
        sizes = {"layers": 1, "heads": 4, "n_state": 8, "dim": 64, "reflections": count}
        yield ModelEntry(
            f"deltaproduct-{count}", "statetrack.models.deltanet:DeltaNet",
            f"DeltaProduct, {count} reflections per token, eigenvalues in [-1,1]",
            {**sizes, "gated": False, "negative": True}, "deltaproduct", "reflections", "dim",
        )  # fmt: skip
        yield ModelEntry(
            f"e88-gain-r{count}", "statetrack.models.reflections:E88Reflections",
            f"E88 with gain, {count} reflections per token, all of the state read by an MLP",
            {**sizes, "tanh": True}, "e88-gain-r", "gain-reflections", "dim",
        )  # fmt: skip


def _linear_rnn() -> Iterator[ModelEntry]:
    """linear-rnn[-nobias]."""
    for name, about in (
        ("linear-rnn", "h = Ah + Bx with an input bias, hidden 128"),
        ("linear-rnn-nobias", "h = Ah + Bx, token 0 the zero vector, hidden 128"),
    ):
        bias = name == "linear-rnn"
        yield ModelEntry(
            name, "statetrack.models.linear_rnn:LinearRNN", about, {"hidden": 128, "bias": bias},
            "linear-rnn", "fixed-linear", "hidden", "" if bias else "linear-rnn",
        )  # fmt: skip


def _classic() -> Iterator[ModelEntry]:
    """mlp, tanh-rnn, gru, lstm."""
    yield ModelEntry(
        "mlp", "statetrack.models.mlp:MLP", "4 layers of 128 on each position alone, no recurrence",
        {"layers": 4, "hidden": 128}, family="memoryless", width="hidden",
    )  # fmt: skip
    for name, cell, about in (
        ("tanh-rnn", "tanh", "h = tanh(Wh + Ux + b), hidden 128"),
        ("gru", "gru", "torch's GRU, hidden 128"),
        ("lstm", "lstm", "torch's LSTM, hidden 128"),
    ):
        options = {"layers": 1, "hidden": 128, "dim": 128, "cell": cell}
        yield ModelEntry(
            name, "statetrack.models.rnn:ClassicRNN", about, options, family="unrestricted", width="hidden"
        )


def _transformers() -> Iterator[ModelEntry]:
    """transformer[-rope]."""
    for name, about in (("transformer", "learned"), ("transformer-rope", "rotary")):
        yield ModelEntry(
            name, "statetrack.models.transformer:Transformer", f"4 layers of 64, {about} positions",
            {"layers": 4, "heads": 4, "dim": 64, "rotary": about == "rotary"}, "transformer", "attention", "dim",
            finer="feed",
        )  # fmt: skip


CATALOGUE: dict[str, ModelEntry] = {
    line.name: line
    for line in (
        *_e88(), *_mamba2(), *_linear_rnn(), *_classic(), *_transformers(), *_deltanet(), *_reflections(),
        ModelEntry("m2rnn", "statetrack.models.m2rnn:M2RNN", "M2RNN, 4 heads of 8 x 8",
                   {"layers": 1, "heads": 4, "n_state": 8, "dim": 64}, family="unrestricted", width="dim"),
    )
}  # fmt: skip


def entries() -> dict[str, ModelEntry]:
    """Every line, those of installed packages last."""
    return CATALOGUE | plugins.loaded(plugins.MODELS, CATALOGUE, _installed)


def names() -> dict[str, str]:
    """Every name that `model` knows, with a line about it; installed packages add theirs."""
    return {name: line.about for name, line in entries().items()}


@cache
def _offered() -> dict[str, EntryPoint]:
    """Models that other packages offer under the entry points `statetrack.models`."""
    return plugins.offered(plugins.MODELS, CATALOGUE)


def _installed(point: EntryPoint) -> ModelEntry:
    """The line that a package offers, or one for the class that it offers; without torch all that is its name."""
    name, at, about = point.name.lower(), point.value.partition("[")[0].strip(), f"installed, {point.value}"
    try:
        added = plugins.load(point, object)
    except BadInput as error:
        if getattr(error.__cause__, "name", "") != "torch":
            raise
        return ModelEntry(name, at, about)
    if isinstance(added, ModelEntry):
        return replace(added, name=name, about=added.about or about)
    if not callable(added):
        raise BadInput(f"{point.value} is neither a ModelEntry nor a class")
    return ModelEntry(name, at, about)


def entry(name: str) -> ModelEntry:
    """The line of a name without options, in upper or lower case; any depth of a model in several depths has one.

    >>> entry("E88-Gain-12L").layers, entry("mine.py:Model").family
    (12, 'unknown')
    """
    if is_address(name):
        return ModelEntry(name, name)
    key = name.lower()
    if key in CATALOGUE:
        return CATALOGUE[key]
    if key in _offered():
        return _installed(_offered()[key])
    deep = _another_depth(key)
    if deep is not None:
        return deep
    if name.endswith(".py"):
        raise BadInput(f"a model from a file needs its class: {name}:Class")
    raise unknown("model", name, [*CATALOGUE, *_offered()])


def _another_depth(key: str) -> ModelEntry | None:
    """The line that mamba2-12l would have: that of the shallowest catalogued one, with as many layers."""
    named = re.fullmatch(r"(.+)-([1-9][0-9]{0,2})l(|-.+)", key)
    if named is None:
        return None
    stem, layers, ending = named.groups()
    for depth in ("1l", "4l"):
        like = CATALOGUE.get(f"{stem}-{depth}{ending}")
        if like is not None:
            whole = like.ablation_of.replace(f"-{depth}", f"-{layers}l")
            about = f"{like.name} with {layers} layers"
            options = {**like.options, "layers": int(layers)}
            return replace(like, name=key, about=about, options=options, ablation_of=whole)
    return None


def find(text: str) -> ModelEntry:
    """The line of a model's text, its options counted in. Its name is the text, in lower case.

    Numbers change the numbers of the line. An option that makes another recurrence gives the line of that recurrence,
    or the family "unknown" where none is catalogued, as it is for a model of somebody's own.

    >>> find("e88-1l[form=gain,dim=64]").family, find("e88-1l-notanh[dim=64]").ablation_of
    ('gain', 'e88-1l[dim=64]')
    >>> find("e88-gain-r2[tanh=false]").family, find("mine.py:Model[dim=8]").family
    ('unknown', 'unknown')
    """
    bare, given = spec.parse(text)
    line = entry(bare)
    changes = {key: spec.read(value, type(line.options[key]), key)
               for key, value in given.items() if key in line.options}  # fmt: skip
    other = {key: changes[key] for key in RECURRENCE if key in changes}
    if any(key in given for key in RECURRENCE if key not in line.options):  # it does not say what the option changes
        line = replace(line, family=UNKNOWN)
    elif other:
        line = _recurrence(line, other)
    rest = {key: value for key, value in given.items() if key not in other}
    whole = _written(line.ablation_of, rest) if line.ablation_of else ""
    return replace(line, name=text.strip().lower(), options={**line.options, **changes}, ablation_of=whole)


def _recurrence(line: ModelEntry, changes: Mapping[str, Any]) -> ModelEntry:
    """The line with another recurrence: the catalogued one of this size; else what one of another size says of it."""
    options = {**line.options, **changes}
    lines = (line, *CATALOGUE.values())
    alike = [
        candidate for candidate in lines if candidate.at == line.at and _same_recurrence(candidate.options, options)
    ]
    same = next((candidate for candidate in alike if candidate.options == options), None)
    if same is not None:
        return same
    like = alike[0] if alike else replace(line, family=UNKNOWN)
    return replace(like, options=options, ablation_of="")


def _same_recurrence(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    return all(one.get(key) == two.get(key) for key in {*one, *two} if key not in SIZES)


def lookup(text: str) -> ModelEntry | None:
    """As `find`, and None where there is no such model."""
    try:
        return find(text)
    except BadInput:
        return None


def variant(text: str, **changes: Any) -> str | None:
    """The text of the model that differs from this one in these options alone; None where it has no line.

    >>> variant("e88-published-1l-notanh[dim=64]", form="gain", tanh=True), variant("gru", cell="gruu")
    ('e88-gain-1l[dim=64]', None)
    """
    bare, given = spec.parse(text)
    line = entry(bare)
    same = _recurrence(line, changes)
    if CATALOGUE.get(same.name) != same:
        return None
    return _written(same.name, {key: value for key, value in given.items() if key not in changes})


def without_width(text: str) -> str:
    """What a model is called at all its widths: its text without the options that `models.matching` chooses.

    >>> without_width("Transformer-Rope[dim=40,feed=212]"), without_width("e88-1l[learned_start=true,dim=48]")
    ('transformer-rope', 'e88-1l[learned_start=true]')
    """
    name, given = spec.parse(text)
    line = entry(name)
    kept = {key: given[key] for key in sorted(given) if key not in (line.width, line.finer, HASH)}
    return _written(name if is_address(name) else name.lower(), kept)


def _written(name: str, given: Mapping[str, str]) -> str:
    """The name with options that are still the text that they were parsed from."""
    return f"{name}[{','.join(f'{key}={value}' for key, value in given.items())}]" if given else name
