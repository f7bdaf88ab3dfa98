"""What can be known of a task before anything runs (passport, floors, predictions), and what results make of it
(verdict).
"""

from statetrack.theory.documents import DocumentPrediction
from statetrack.theory.floors import Floor, Floors, floors
from statetrack.theory.passport import Passport, passport
from statetrack.theory.predictions import Prediction, predict
from statetrack.theory.results import Measured
from statetrack.theory.verdict import Verdict, verdict

__all__ = [
    "DocumentPrediction",
    "Floor",
    "Floors",
    "Measured",
    "Passport",
    "Prediction",
    "Verdict",
    "floors",
    "passport",
    "predict",
    "verdict",
]
