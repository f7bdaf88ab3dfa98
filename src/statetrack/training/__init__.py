"""Fit one model to one task, and say honestly what came of it.

>>> import statetrack as st
>>> result = st.train("txc", "mlp", length=8, seed=0, most_checks=1, polish=50)
>>> result.solved, result.record["parameters"] > 0
(False, True)
"""

from statetrack.training.curves import TrainingCheck
from statetrack.training.protocol import PROTOCOLS, Protocol, protocol
from statetrack.training.result import Result, Results
from statetrack.training.seeds import train, train_many

__all__ = ["PROTOCOLS", "Protocol", "Result", "Results", "TrainingCheck", "protocol", "train", "train_many"]
