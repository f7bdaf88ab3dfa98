"""What Inspect finds by the entry point: `statetrack/...` tasks, solvers, scorers."""

from statetrack.integrations.inspect.scorer import answer, episode
from statetrack.integrations.inspect.solvers import copy_last, explicit, human, implicit, oracle, random, window
from statetrack.integrations.inspect.tasks import ask, permutation_composition, track_the_stat

__all__ = [
    "answer", "ask", "copy_last", "episode", "explicit", "human", "implicit", "oracle", "permutation_composition",
    "random", "track_the_stat", "window",
]  # fmt: skip
