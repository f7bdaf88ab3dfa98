"""Many cells: what a cell is, the folder that keeps their results, and the runners that fill it.

from statetrack.sweep import Options, from_blocks, run
sweep = from_blocks("mine", [{"tasks": ["txc"], "subjects": ["mlp", "gru"], "lengths": [16], "seeds": 3}])
run(sweep, "results", Options(workers=2))
"""

from statetrack.sweep.archive import merge, pack, unpack
from statetrack.sweep.cell import Cell
from statetrack.sweep.document import from_blocks, read, shipped
from statetrack.sweep.overview import Status, status
from statetrack.sweep.plan import Sweep, sweep_of
from statetrack.sweep.runner import Options, run
from statetrack.sweep.store import Store

__all__ = [
    "Cell",
    "Options",
    "Status",
    "Store",
    "Sweep",
    "from_blocks",
    "merge",
    "pack",
    "read",
    "run",
    "shipped",
    "status",
    "sweep_of",
    "unpack",
]
