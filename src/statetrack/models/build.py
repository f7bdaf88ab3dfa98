"""From a name to a model: what a line of the catalogue describes, built.

>>> model("E88-1L", inputs=2, outputs=2, seed=0).parameter_count == model("e88-1l", inputs=2, outputs=2).parameter_count
True
>>> model("gru", inputs=2, outputs=2, hidden=32).state_size
32
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from statetrack import plain_yaml, spec, trust
from statetrack.errors import BadInput
from statetrack.models.catalogue import entry
from statetrack.models.chance import seeded
from statetrack.models.custom import built
from statetrack.models.sequence import SequenceModel
from statetrack.own_code import HASH, is_address, load, own_class

MODULE = nn.Module, "torch.nn.Module"  # what a model is a class of


def model(name: str, *, inputs: int, outputs: int, seed: int | None = None, **options: Any) -> SequenceModel:
    """Build a model for an alphabet of `inputs` tokens and `outputs` classes, by name or as `file.py:Class`.

    `seed` fixes the initial weights and leaves the global generator as it was. Options change the named configuration,
    by name or in the text, as elsewhere: "e88-1l[dim=64]". The model's `text` says what it is:

    >>> model("E88-1L[dim=64]", inputs=2, outputs=2, heads=16, learned_start=True).text
    'e88-1l[dim=64,learned_start=true]'
    """
    name, written = read_options(name)
    if twice := written.keys() & options.keys():
        raise BadInput(f"option {min(twice)!r} of {name} is given twice, in its text and by name")
    with trust.trusting(name):
        return trusted_model(name, inputs=inputs, outputs=outputs, seed=seed, **written, **options)


def read_options(text: str) -> tuple[str, dict[str, Any]]:
    """The name in a model's text, and its options: numbers, words, flags, nothing, or lists of such.

    >>> read_options("counter.py:Counter[width=8,tied=true,sha256=5520c018]")
    ('counter.py:Counter', {'width': 8, 'tied': True, 'sha256': '5520c018'})
    """
    name, given = spec.parse(text)
    return name, {
        key: value if key == HASH else _option(value, f"{name}: option {key}") for key, value in given.items()
    }


def _option(text: str, where: str) -> Any:
    value = plain_yaml.value(text, where)
    if any(not isinstance(part, int | float | str | None) for part in (value if isinstance(value, list) else [value])):
        raise BadInput(f"{where}={text} should be a number, a word or true or false")
    return value


def trusted_model(name: str, *, inputs: int, outputs: int, seed: int | None = None, **options: Any) -> SequenceModel:
    """As `model`, for a name that stands in a file: its code is run only where `statetrack.trust` allows it."""
    line = entry(name)
    if is_address(name):
        build, sha256 = own_class(name, options.pop(HASH, None), *MODULE)
    else:
        build, sha256 = load(line.at, *MODULE), ""
    check_options(name, build, options)
    with seeded(seed):
        made = built(name, build, inputs=inputs, outputs=outputs, **{**line.options, **options})
    made.text = text_of(name, build, line.options, options, sha256)
    return made


def text_of(
    name: str, build: Callable[..., Any], fixed: Mapping[str, Any], options: dict[str, Any], sha256: str
) -> str:
    """One text for one model: the name, the options that are not as they would be anyway, the hash of one's own code.

    `training.weights.built` reads it back.
    """
    defaults = {key: p.default for key, p in inspect.signature(build).parameters.items()} | dict(fixed)
    other = {key: options[key] for key in sorted(options) if key not in defaults or options[key] != defaults[key]}
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in other.items()}
    plain = {key: "null" if value is None else value for key, value in plain.items()}
    return spec.write(name if is_address(name) else name.lower(), plain | ({HASH: sha256} if sha256 else {}))


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
