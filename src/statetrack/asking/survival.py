"""The Kaplan-Meier estimate of how long episodes last, those cut off counted as long as they were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from statetrack.intervals import Z95


def kaplan_meier(times: Sequence[int], failed: Sequence[bool]) -> list[dict[str, float]]:
    """The survival curve: one point for every time at which something failed.

    S(t) = prod over t_i <= t of (1 - d_i / n_i), where d_i of the n_i that are still under observation fail at t_i. The
    interval is Greenwood's on the scale log(-log S), which stays inside 0..1:

        var log(-log S) = sum d_i / (n_i (n_i - d_i)) / (log S)^2

    Three episodes: one fails at turn 2, one is cut off after turn 3, one fails at turn 4. After turn 2 there are 2 of 3
    left, 2/3; at turn 4 a single one is left, and it fails.

    >>> [(point["time"], round(point["share"], 3)) for point in kaplan_meier([2, 3, 4], [True, False, True])]
    [(2, 0.667), (4, 0.0)]
    """
    share, greenwood, curve = 1.0, 0.0, []
    for time in sorted({time for time, event in zip(times, failed) if event}):
        at_risk = sum(each >= time for each in times)
        failures = sum(event and each == time for each, event in zip(times, failed))
        share *= 1 - failures / at_risk
        greenwood += failures / (at_risk * (at_risk - failures)) if failures < at_risk else 0.0
        low, high = _interval(share, greenwood)
        curve.append({"time": time, "share": share, "low": low, "high": high, "at_risk": at_risk})
    return curve


def median_survival(curve: Sequence[dict[str, float]]) -> float | None:
    """The first time by which at least half have failed; None where it was not seen."""
    return next((point["time"] for point in curve if point["share"] <= 0.5), None)


def _interval(share: float, greenwood: float) -> tuple[float, float]:
    if share <= 0:
        return 0.0, 0.0
    width = Z95 * math.sqrt(greenwood) / abs(math.log(share))
    return share ** math.exp(width), share ** math.exp(-width)
