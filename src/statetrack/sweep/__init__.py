"""Many cells: what a cell is, the folder that keeps their results, and the runners that fill it.

    from statetrack.sweep import Options, from_blocks, run
    sweep = from_blocks("mine", [{"tasks": ["txc"], "subjects": ["mlp", "gru"], "lengths": [16], "seeds": 3}])
    run(sweep, "results", Options(workers=2))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statetrack.sweep.cell import Cell
from statetrack.sweep.store import Store

if TYPE_CHECKING:
    from statetrack.sweep.document import from_blocks, read, shipped
    from statetrack.sweep.plan import Sweep, sweep_of
    from statetrack.sweep.run import Options, run
    from statetrack.sweep.status import status

_LATER = {
    "Options": "run", "Sweep": "plan", "from_blocks": "document", "read": "document", "run": "run",
    "shipped": "document", "status": "status", "sweep_of": "plan",
}  # fmt: skip
__all__ = ["Cell", "Options", "Store", "Sweep", "from_blocks", "read", "run", "shipped", "status", "sweep_of"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'statetrack.sweep' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"statetrack.sweep.{_LATER[name]}"), name)
