"""Every named configuration in a small size, for tests of what does not depend on width."""

from __future__ import annotations

import inspect
from typing import Any

from statetrack.models import SequenceModel, entry, model, names
from statetrack.models.build import MODULE
from statetrack.own_code import load

INPUTS, OUTPUTS, ROWS, STEPS = 5, 3, 2, 12

WIDTH = 8
SMALLER = {"heads": 2, "n_state": 4, "d_state": 4, "head_dim": 4, "dim": 6, "positions": 16}
"""Where a model has such an option; its own width is WIDTH."""
LAYERS = {"mamba2": 2, "transformer": 2, "tanh-rnn": 2, "lstm": 2}
"""By architecture; the others keep theirs."""
NAMES = list(names())


def options_of(name: str) -> set[str]:
    return set(inspect.signature(load(entry(name).at, *MODULE)).parameters)


WITH_STATE = [name for name in NAMES if "learned_start" in options_of(name)]
"""Those that can learn the state they start from."""


def small(name: str, seed: int = 0, **options: Any) -> SequenceModel:
    line, own = entry(name), options_of(name)
    size: dict[str, Any] = {key: value for key, value in SMALLER.items() if key in own} | {line.width: WIDTH}
    if line.architecture in LAYERS:
        size["layers"] = LAYERS[line.architecture]
    return model(name, seed=seed, **{"inputs": INPUTS, "outputs": OUTPUTS} | size | options)
