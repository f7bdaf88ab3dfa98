"""The models by name. A new model is one file and one line here.

>>> model("E88-1L", inputs=2, outputs=2, seed=0).parameter_count == model("e88-1l", inputs=2, outputs=2).parameter_count
True
>>> model("gru", inputs=2, outputs=2, hidden=32).state_size
32
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import torch

from statetrack import spec
from statetrack.errors import BadInput, unknown
from statetrack.models.custom import built, file_hash, is_address, load
from statetrack.models.deltanet import DeltaNet
from statetrack.models.e88 import E88
from statetrack.models.linear_rnn import LinearRNN
from statetrack.models.m2rnn import M2RNN
from statetrack.models.mamba2 import Mamba2
from statetrack.models.mlp import MLP
from statetrack.models.reflections import E88Reflections
from statetrack.models.rnn import ClassicRNN
from statetrack.models.sequence import SequenceModel
from statetrack.models.transformer import Transformer

ENTRY_POINTS = "statetrack.models"


@dataclass(frozen=True)
class Configuration:
    """A class, the options that make it this model, and a line about it."""

    build: Callable[..., SequenceModel]
    about: str
    options: dict[str, Any] = field(default_factory=dict)


def e88_family() -> Iterator[tuple[str, Configuration]]:
    """e88[-published|-gain]-{1l,4l,1l-small}[-notanh]."""
    sizes = {
        "1l": {"layers": 1, "heads": 16, "n_state": 32, "dim": 128},
        "4l": {"layers": 4, "heads": 4, "n_state": 32, "dim": 64},
        "1l-small": {"layers": 1, "heads": 4, "n_state": 8, "dim": 64},
    }
    forms = {
        "e88": ("document", "decay in (0,1), beta 0"),
        "e88-published": ("published", "decay in (0,1), beta 1 (delta rule)"),
        "e88-gain": ("gain", "decay in (0,2), beta in (0,4)"),
    }
    for family, (form, equation) in forms.items():
        for size, numbers in sizes.items():
            for tanh in (True, False):
                name = f"{family}-{size}" + ("" if tanh else "-notanh")
                shape = "{layers} x {heads} heads of {n_state}, dim {dim}".format(**numbers)
                about = f"E88, {equation}{'' if tanh else ', without tanh'}; {shape}"
                yield name, Configuration(E88, about, {**numbers, "form": form, "tanh": tanh})


def mamba2_family() -> Iterator[tuple[str, Configuration]]:
    """mamba2-{4l,8l,16l,32l}[-neg]."""
    for layers in (4, 8, 16, 32):
        about = f"Mamba-2, {layers} layers of 64, state 16"
        yield f"mamba2-{layers}l", Configuration(Mamba2, about, {"layers": layers})
        about += ", eigenvalues in [-1,1]"
        yield f"mamba2-{layers}l-neg", Configuration(Mamba2, about, {"layers": layers, "negative": True})


def reflection_families() -> Iterator[tuple[str, Configuration]]:
    """deltaproduct-{2,3,4} and e88-gain-{r2,r3,r4}."""
    for count in (2, 3, 4):
        about = f"DeltaProduct, {count} reflections a token, eigenvalues in [-1,1]"
        yield f"deltaproduct-{count}", Configuration(DeltaNet, about, {"reflections": count, "negative": True})
        about = f"E88 with gain, {count} reflections a token, all of the state read by an MLP"
        yield f"e88-gain-r{count}", Configuration(E88Reflections, about, {"reflections": count})


CATALOGUE: dict[str, Configuration] = {
    **dict(e88_family()),
    **dict(mamba2_family()),
    "linear-rnn": Configuration(LinearRNN, "h = Ah + Bx with an input bias, hidden 128"),
    "linear-rnn-nobias": Configuration(LinearRNN, "h = Ah + Bx, token 0 the zero vector, hidden 128", {"bias": False}),
    "mlp": Configuration(MLP, "4 layers of 128 on each position alone, no recurrence"),
    "tanh-rnn": Configuration(ClassicRNN, "h = tanh(Wh + Ux + b), hidden 128", {"cell": "tanh"}),
    "gru": Configuration(ClassicRNN, "torch's GRU, hidden 128", {"cell": "gru"}),
    "lstm": Configuration(ClassicRNN, "torch's LSTM, hidden 128", {"cell": "lstm"}),
    "transformer": Configuration(Transformer, "4 layers of 64, learned positions"),
    "transformer-rope": Configuration(Transformer, "4 layers of 64, rotary positions", {"rotary": True}),
    "deltanet": Configuration(DeltaNet, "DeltaNet, eigenvalues in [0,1], 4 heads of 8"),
    "deltanet-neg": Configuration(DeltaNet, "DeltaNet, eigenvalues in [-1,1], 4 heads of 8", {"negative": True}),
    "gated-deltanet": Configuration(DeltaNet, "Gated DeltaNet, eigenvalues in [0,1], 4 heads of 8", {"gated": True}),
    "gated-deltanet-neg": Configuration(
        DeltaNet, "Gated DeltaNet, eigenvalues in [-1,1], 4 heads of 8", {"gated": True, "negative": True}
    ),
    **dict(reflection_families()),
    "m2rnn": Configuration(M2RNN, "M2RNN, 4 heads of 8 x 8"),
}


def names() -> dict[str, str]:
    """Every name that `model` knows, with a line about it; installed packages add theirs."""
    installed = {name: f"installed, {point.value}" for name, point in plugins().items()}
    return {name: entry.about for name, entry in CATALOGUE.items()} | installed


def plugins() -> dict[str, EntryPoint]:
    """Models that other packages offer under the entry points `statetrack.models`."""
    return {point.name.lower(): point for point in entry_points(group=ENTRY_POINTS)}


def model(name: str, *, inputs: int, outputs: int, seed: int | None = None, **options: Any) -> SequenceModel:
    """Build a model for an alphabet of `inputs` tokens and `outputs` classes, by name or as `file.py:Class`.

    `seed` fixes the initial weights and leaves the global generator as it was. `options` change the named
    configuration: model("e88-1l", inputs=2, outputs=2, dim=64, learned_start=True). The model's `text` says what it is:

    >>> model("E88-1L", inputs=2, outputs=2, dim=64, heads=16, learned_start=True).text
    'e88-1l[dim=64,learned_start=true]'
    """
    sha256 = file_hash(name) if is_address(name) else None
    if sha256 is not None and options.pop("sha256", sha256) != sha256:
        raise BadInput(f"the file of {name} has changed: its sha256 begins with {sha256}")
    build, fixed = find(name)
    check_options(name, build, options)
    with seeded(seed):
        made = built(name, build, inputs=inputs, outputs=outputs, **{**fixed, **options})
    made.text = text_of(name, build, fixed, options, sha256)
    return made


def text_of(
    name: str, build: Callable[..., Any], fixed: dict[str, Any], options: dict[str, Any], sha256: str | None
) -> str:
    """One text for one model: the name, the options that are not as they would be anyway, a file's hash.

    `training.train.built` reads it back.
    """
    defaults = {key: p.default for key, p in inspect.signature(build).parameters.items()} | fixed
    other = {key: options[key] for key in sorted(options) if key not in defaults or options[key] != defaults[key]}
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in other.items()}
    plain = {key: "null" if value is None else value for key, value in plain.items()}
    return spec.write(name if is_address(name) else name.lower(), plain | ({"sha256": sha256} if sha256 else {}))


def find(name: str) -> tuple[Callable[..., torch.nn.Module], dict[str, Any]]:
    """What a name builds, and with which options."""
    if is_address(name):
        return load(name), {}
    key = name.lower()
    if key in CATALOGUE:
        return CATALOGUE[key].build, CATALOGUE[key].options
    others = plugins()
    if key in others:
        return others[key].load(), {}
    if name.endswith(".py"):
        raise BadInput(f"a model from a file needs its class: {name}:Class")
    raise unknown("model", name, [*CATALOGUE, *others])


def check_options(name: str, build: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse an option that the model does not have, naming those it has."""
    try:
        parameters = inspect.signature(build).parameters
    except ValueError:
        raise BadInput(f"{name} does not say what it takes; give a class that takes inputs=..., outputs=...") from None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    allowed = [option for option in parameters if option not in ("inputs", "outputs", "self")]
    for option in options:
        if option not in allowed:
            has = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise BadInput(f"model {name} has no option {option!r}; {has}")


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Draw from a generator of this seed, then give the old one back."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
