"""The section `separation` of a diagnosis: how true states fare by position, and what that predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.diagnosis import forecast
from statetrack.diagnosis.failure_length import NOTHING_SAID
from statetrack.diagnosis.state_distances import MEASURE, Apart, Fade
from statetrack.diagnosis.trajectories import LEAST_ROWS, Floats, Trajectories, cost_of
from statetrack.models import SequenceModel

WORK = 4e6  # microseconds, about
ENOUGH = 16  # positions, whose second half shows a trend; the first half shows what the start does


SHRUNK = 1e-2  # of the gap at the start: below, true states do not stay apart, whatever their means seem to do
TELLS = 0.5  # of the way from chance to 1: where the probe makes it, its gap is one between true states


def separation_section(
    walk: Trajectories, model: SequenceModel, floor: Floats, last: int, learned: bool, probed: dict[str, Any]
) -> dict[str, Any]:
    """Distances by position, their trend up to position `last`, and the lengths predicted from nothing beyond it.

    Where nothing was learned, nothing is predicted; nor where the true state is not known, but the answer alone: rows
    with one answer are then in many true states, and their means say little of what is kept apart; nor where the state
    grows out of all bounds. `probed` is the section of the probe: its gap shows a state that shrinks also where that is
    far smaller than what else is in the state, and means of rows show chance alone.
    """
    apart = Apart.of(walk)
    if not np.isfinite(apart.distance).any():
        return {"absent": "too few rows share a true state and a last input to compare means"}
    fade = apart.fade(last // 2 if last >= ENOUGH else 1, last)
    seen, healed = None, None
    predicts = learned and walk.truth_of.by_state and walk.exploded_at is None
    if fade is not None and predicts:
        rows = some_rows(walk, model, last)
        states = forecast.states_at(rows, forecast.looked_at(last))
        seen, healed = forecast.faded_accuracy(rows, states), forecast.healing(rows, states, last)
    future = predictions(walk, floor, last, fade, seen, healed) if predicts else unpredicted(apart, last, learned)
    left = shrunk(probed)
    if future["says"] == "stay apart" and left is not None and left < SHRUNK:
        future["says"], fade, healed = "shrink", None, None  # the trend was one of chance
    return {
        "position": apart.stops.tolist(), "separation": apart.separation.tolist(),
        "distance": apart.distance.tolist(), "spread": apart.spread.tolist(), "measure": MEASURE,
        "fitted_from": fade.first if fade else None, "fitted_to": last,
        "per_step": float(np.exp(-fade.rate)) if fade else None, "low": float(np.exp(-fade.high)) if fade else None,
        "high": float(np.exp(-fade.low)) if fade else None, "healed": healed, "heal_steps": forecast.HEAL, **future,
        "shrunk": left,
    }  # fmt: skip


def shrunk(probed: dict[str, Any]) -> float | None:
    """The probe's gap at the last stop at which it tells true states, over that at the first ones (a median).

    >>> shrunk({"state": {"score": [1, 1, 1, 1, 0.5], "chance": [0.5] * 5, "gap": [2.0, 1.0, 0.5, 0.02, 9.0]}})
    0.01
    """
    state = probed["state"]
    gaps = [gap for score, chance, gap in zip(state["score"], state["chance"], state["gap"])
            if gap is not None and gap > 0 and score - chance > TELLS * (1 - chance)]  # fmt: skip
    return gaps[-1] / float(np.median(gaps[: max(1, len(gaps) // 4)])) if gaps else None


def some_rows(walk: Trajectories, model: SequenceModel, last: int) -> forecast.Row:
    """As many rows up to position `last` as can be run again in little time."""
    count = int(np.clip(WORK / (last * cost_of(model)), LEAST_ROWS, len(walk.inputs)))
    cut, truth = (slice(0, count), slice(0, last + 1)), walk.truth_of
    return forecast.Row(model, walk.inputs[cut], walk.targets[cut], walk.asked[cut], walk.truth[cut], truth.classes,
                        truth.task.inputs)  # fmt: skip


def predictions(
    walk: Trajectories, floor: Floats, last: int, fade: Fade | None, seen: Floats | None, healed: float | None
) -> dict[str, Any]:
    """The lengths by each way to fail, the sooner of them, and what that says of true states."""
    known = np.nan_to_num(floor[:last], nan=1.0)
    right, asked = walk.right[walk.test, :last], walk.asked[walk.test, :last]
    by_fading, by_slips = {}, {}
    for name, level in forecast.levels(float(known[-1])).items():
        if fade is None or seen is None or forecast.stays(fade, healed):
            by_fading[name] = forecast.NO_END
        else:
            by_fading[name] = forecast.by_fading(fade, seen, level)
        by_slips[name] = forecast.by_slips(right, asked, known, level)
    both = {name: forecast.sooner(by_fading[name], by_slips[name]) for name in by_fading}
    said = forecast.says(fade, healed, by_fading, by_slips)
    return {"by_fading": by_fading, "by_slips": by_slips, "predicted": both, "says": said}


def unpredicted(apart: Apart, last: int, learned: bool) -> dict[str, Any]:
    """Nothing, and of a model that fails from the start whether true states are apart all the same."""
    nothing = dict.fromkeys(("at_90", "at_half"), NOTHING_SAID)
    here = apart.separation[apart.stops <= max(last, int(apart.stops[0]))][-1]
    said = "never apart" if here < forecast.NEVER and not learned else "unclear"
    return {"by_fading": nothing, "by_slips": nothing, "predicted": nothing, "says": said}
