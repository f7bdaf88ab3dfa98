"""All that judges records: what is solved far out, what became of predictions, which models a task tells apart."""

from statetrack.verdicts.documents import DocumentPrediction
from statetrack.verdicts.measurements import Measurement
from statetrack.verdicts.outcomes import Verdict
from statetrack.verdicts.rules import verdict

__all__ = ["DocumentPrediction", "Measurement", "Verdict", "verdict"]
