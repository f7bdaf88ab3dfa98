"""The state's path in its two leading principal directions, coloured by the true state."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.diagnosis.trajectories import Trajectories
from statetrack.diagnosis.true_states import MOST_CLASSES

PATHS = 12  # rows that are followed
MOST = 1024  # states that the directions are found from


def portrait(walk: Trajectories) -> dict[str, Any]:
    """Paths of test rows over all stops. The directions are those in which states of all rows and stops vary most."""
    assert walk.states is not None
    states = walk.states[:, walk.test, -1].astype(np.float64)  # (stops, rows, numbers)
    cloud = states.reshape(-1, states.shape[-1])
    sample = cloud[:: max(1, len(cloud) // MOST)]
    centre = sample.mean(0)
    _, strengths, directions = np.linalg.svd(sample - centre, full_matrices=False)
    shares = strengths**2 / max(float((strengths**2).sum()), 1e-30)
    seen = states[:, :PATHS] - centre
    flat = np.zeros((*seen.shape[:2], 2))  # a state of one number has one direction
    flat[..., : len(directions[:2])] = seen @ directions[:2].T
    truth, few = walk.truth[walk.test], walk.truth_of.classes <= MOST_CLASSES
    paths = [
        [[*flat[i, row].tolist(), int(truth[row, stop - 1]), stop] for i, stop in enumerate(walk.plan.stops)]
        for row in range(flat.shape[1])
    ]
    return {
        "explained": [*shares[:2].tolist(), 0.0][:2],
        "paths": paths,
        "labels": [walk.truth_of.label(state) for state in range(walk.truth_of.classes)] if few else [],
    }
