"""Many cells: what a cell is, the folder that keeps their results, and the runners that fill it.

from statetrack.sweeps import Options, from_blocks, run
sweep = from_blocks("mine", [{"tasks": ["txc"], "subjects": ["mlp", "gru"], "lengths": [16], "seeds": 3}])
run(sweep, "results", Options(workers=2))
"""

from statetrack.sweeps.archive import merge, pack, unpack
from statetrack.sweeps.cell import Cell
from statetrack.sweeps.document import from_blocks, read, shipped
from statetrack.sweeps.overview import Status, status
from statetrack.sweeps.plan import Sweep, sweep_of
from statetrack.sweeps.runner import Options, run
from statetrack.sweeps.store import Store

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
