"""The diagnostic: how large the state is at each position."""

import numpy as np

from statetrack.diagnosis.measurement import Measurement
from statetrack.diagnosis.trajectories import Trajectories
from statetrack.results.sections import Section


def brightness(walk: Trajectories) -> Section:
    """The norm of the state at the positions at which states are kept, mean over the test rows."""
    after = walk.states[:, walk.test, -1]  # (positions, rows, numbers)
    norms = np.linalg.norm(after, axis=-1).mean(axis=1)
    says = f"Its state has the norm {norms[-1]:.2f} at position {walk.plan.stops[-1]}."
    return {"position": list(walk.plan.stops), "norm": norms.tolist(), "says": says}


BRIGHTNESS = Measurement(lambda examined: brightness(examined.walk))
