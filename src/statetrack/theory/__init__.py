"""What can be known of a task before anything runs: its passport, its floors, what each architecture can do with it."""

from statetrack.theory.algebra.passport import Passport, passport
from statetrack.theory.floors.strategies import Floor, Floors, floors, position_floor
from statetrack.theory.predictions.predict import Prediction, predict

__all__ = ["Floor", "Floors", "Passport", "Prediction", "floors", "passport", "position_floor", "predict"]
