"""Every named configuration in a small size, for tests of what does not depend on width."""

from __future__ import annotations

import inspect

from statetrack.models import SequenceModel, model, names
from statetrack.models.catalogue import find

INPUTS, OUTPUTS, ROWS, STEPS = 5, 3, 2, 12

SMALLER = {
    "e88": {"heads": 2, "n_state": 4, "dim": 8},
    "mamba2": {"d_model": 8, "d_state": 4, "head_dim": 4, "layers": 2},
    "deltanet": {"dim": 8, "heads": 2, "n_state": 4},
    "gated": {"dim": 8, "heads": 2, "n_state": 4},
    "deltaproduct": {"dim": 8, "heads": 2, "n_state": 4},
    "m2rnn": {"dim": 8, "heads": 2, "n_state": 4},
    "transformer": {"dim": 8, "heads": 2, "layers": 2, "positions": 16},
    "tanh": {"hidden": 8, "dim": 6, "layers": 2},
    "gru": {"hidden": 8, "dim": 6},
    "lstm": {"hidden": 8, "dim": 6, "layers": 2},
    "linear": {"hidden": 8},
    "mlp": {"hidden": 8},
}
NAMES = list(names())
WITH_STATE = [name for name in NAMES if "learned_start" in inspect.signature(find(name)[0]).parameters]
"""Those that can learn the state they start from."""


def small(name: str, seed: int = 0, **options: object) -> SequenceModel:
    return model(name, inputs=INPUTS, outputs=OUTPUTS, seed=seed, **SMALLER.get(name.split("-")[0], {}), **options)
