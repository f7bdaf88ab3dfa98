"""Many cells: the YAML file that names them, the schedule, and the runners that fill a folder.

from statetrack.sweeps import Options, from_blocks, run
sweep = from_blocks("mine", [{"tasks": ["txc"], "subjects": ["mlp", "gru"], "lengths": [16], "seeds": 3}])
run(sweep, "results", Options(workers=2))
"""

from statetrack.sweeps.document import from_blocks, read, shipped
from statetrack.sweeps.kinds import sweep_of
from statetrack.sweeps.runner import Options, run

__all__ = ["Options", "from_blocks", "read", "run", "shipped", "sweep_of"]
