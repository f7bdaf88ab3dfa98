"""What can be known of a task before anything runs: its passport, its floors, what each architecture can do with it."""

from statetrack.theory.floors import Floor, Floors, floors, position_floor
from statetrack.theory.passport import Passport, passport
from statetrack.theory.predictions import Prediction, predict

__all__ = ["Floor", "Floors", "Passport", "Prediction", "floors", "passport", "position_floor", "predict"]
