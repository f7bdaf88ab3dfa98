"""Linear probes: what a linear map of the state can tell, by position, on rows that it was not fitted on.

Ridge in closed form. With X = U diag(s) V^T centred, the fitted values are U diag(s^2 / (s^2 + strength)) U^T y, and
the error at a row that is left out is (y - fitted) / (1 - h - 1/n) with h the row's diagonal entry: the strength with
the least such error is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.diagnosis.trajectories import Floats, Trajectories
from statetrack.diagnosis.true_states import MOST_CLASSES, count_says

STRENGTHS = 10.0 ** np.arange(-6, 3)  # times the mean square of the singular values


class Ridge:
    """Linear maps from the rows of x, y = (x - centre) weights + offset; x is taken apart once for all of them.

    Each number of x is measured by its own spread, so that a small one counts as much as a large one.

    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> Ridge(x).fit(x[:, :1] * 2 + 1)(np.array([[3.0, 0.0, 0.0]])).round(2).tolist()
    [[7.0]]
    """

    def __init__(self, x: Floats) -> None:
        x = x.astype(np.float64)  # what is left of a state that fades may be as small as 1e-45
        self.centre, spread = x.mean(0), x.std(0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.u, self.s, self.vt = np.linalg.svd((x - self.centre) / self.spread, full_matrices=False)

    def fit(self, y: Floats) -> Linear:
        """The map to the columns of y."""
        u, s, offset = self.u, self.s, y.mean(0)
        along = u.T @ (y - offset)
        best = min((STRENGTHS * max(float((s**2).mean()), 1e-30)).tolist(), key=lambda b: _left_out(u, s, along, y, b))
        weights = self.vt.T @ (along * (s / (s**2 + best))[:, None]) / self.spread[:, None]
        return Linear(weights, self.centre, offset)


@dataclass(frozen=True)
class Linear:
    """x -> (x - centre) weights + offset."""

    weights: Floats
    centre: Floats
    offset: Floats

    def __call__(self, x: Floats) -> Floats:
        return (x - self.centre) @ self.weights + self.offset


def _left_out(u: Floats, s: Floats, along: Floats, y: Floats, strength: float) -> float:
    shrink = s**2 / (s**2 + strength)
    missed = y - y.mean(0) - u @ (along * shrink[:, None])
    share = 1 - (u**2 @ shrink) - 1 / len(u)
    return float(((missed / np.maximum(share, 1e-6)[:, None]) ** 2).sum())


def r_squared(ridge: Ridge, y: Floats, x_test: Floats, y_test: Floats) -> float | None:
    """The share of the variance of y that the probe explains; 0 is knowing the mean, None where y does not vary."""
    varies = float(((y_test - y_test.mean()) ** 2).sum())
    if not varies:
        return None
    missed = y_test - ridge.fit(y[:, None])(x_test)[:, 0]
    return max(-1.0, 1 - float((missed**2).sum()) / varies)


def told(ridge: Ridge, classes: NDArray[Any], x_test: Floats, wanted: NDArray[Any]) -> float:
    """The accuracy of the class whose indicator, fitted by ridge, is largest."""
    return told_and_gap(ridge, classes, x_test, wanted)[0]


def told_and_gap(ridge: Ridge, classes: NDArray[Any], x_test: Floats, wanted: NDArray[Any]) -> tuple[float, float]:
    """That accuracy, and how far apart the classes are along the probe's direction (the mean over classes).

    For the indicator f_k of class k: the mean of f_k over rows of k less that over the others, divided by |grad f_k|,
    is how far a state must be moved to be told as another. NaN where there is but one class.
    """
    kinds, which = np.unique(classes, return_inverse=True)
    if len(kinds) == 1:
        return float((wanted == kinds[0]).mean()), float("nan")
    fitted = ridge.fit(np.eye(len(kinds))[which])
    scores = fitted(x_test)
    steep = np.linalg.norm(fitted.weights, axis=0)
    gaps = [
        (scores[wanted == kind, i].mean() - scores[wanted != kind, i].mean()) / steep[i]
        for i, kind in enumerate(kinds)
        if 0 < (wanted == kind).sum() < len(wanted) and steep[i] > 0
    ]
    return float((kinds[scores.argmax(1)] == wanted).mean()), float(np.mean(gaps)) if gaps else float("nan")


def guessed(classes: NDArray[Any], wanted: NDArray[Any]) -> float:
    """The accuracy of the class that is most frequent where the probe was fitted: a probe that sees nothing."""
    kinds, counts = np.unique(classes, return_counts=True)
    return float((wanted == kinds[counts.argmax()]).mean())


def probe(walk: Trajectories) -> dict[str, Any]:
    """Probes for the running count and for the true state, at every stop."""
    assert walk.states is not None
    rows, window = walk.plan.rows, walk.plan.window
    count, state, chance, gap = [], [], [], []
    few = walk.truth_of.classes <= MOST_CLASSES
    for stop, states in zip(walk.plan.stops, walk.states):
        seen = slice(stop - window, stop)
        x, x_test = (part.reshape(-1, states.shape[-1]) for part in (states[:rows], states[rows:]))
        ones, ones_test = (part[:, seen].ravel().astype(float) for part in (walk.count[:rows], walk.count[rows:]))
        ridge = Ridge(x)
        count.append(r_squared(ridge, ones, x_test, ones_test))
        true, true_test = (part[:, seen].ravel() for part in (walk.truth[:rows], walk.truth[rows:]))
        accuracy, apart = told_and_gap(ridge, true, x_test, true_test) if few else (None, None)
        state.append(accuracy)
        gap.append(apart)
        chance.append(guessed(true, true_test) if few else None)
    symbols = walk.truth_of.task.inputs
    return {
        "position": list(walk.plan.stops),
        "count": {"says": count_says(symbols), "measure": "R^2", "score": count, "chance": [0.0] * len(count)},
        "state": {"says": walk.truth_of.says, "measure": "accuracy", "score": state, "chance": chance, "gap": gap},
        "fitted_on": rows,
        "tested_on": rows,
        "numbers": walk.numbers,
    }
