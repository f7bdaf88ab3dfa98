"""Draw the points that a column of the proved network on S5 settles at: python docs/pictures/points.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statetrack.certificates.checker.cover import unpacked
from statetrack.reports.figures.figure import Figure

HERE = Path(__file__).parent
PROOF = HERE.parents[1] / "tests" / "certificates" / "proved" / "s5-reflections.proof"
NEAR = 0.5  # a number that is no further from 0 belongs to no point


def settled(cover: dict[str, Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which numbers of a column settle, and where: the mean centre of the regions around each point, nan elsewhere."""
    centres, radii = (unpacked(cover[name], "<f8")[:, 0] for name in ("centres", "radii"))
    kept = (radii < 1).mean(axis=0) > 0.5
    around = centres[(np.abs(centres[:, kept]) > NEAR).all(axis=1)]
    signs, which = np.unique(np.sign(around[:, kept]), axis=0, return_inverse=True)
    points = np.full((len(signs), len(kept)), np.nan)
    for point in range(len(signs)):
        points[point, kept] = around[which.ravel() == point][:, kept].mean(axis=0)
    return kept, points


def figure(points: NDArray[np.float64]) -> Figure:
    """A row for each number of the column, a column for each point."""
    rows = [
        {"point": point + 1, "number": number + 1, "value": None if np.isnan(value) else round(float(value), 3),
         "said": "any" if np.isnan(value) else f"{value:+.2f}"}
        for point, values in enumerate(points) for number, value in enumerate(values)
    ]  # fmt: skip
    across = {"field": "point", "type": "ordinal", "title": "point", "axis": {"labelAngle": 0}}
    up = {"field": "number", "type": "ordinal", "title": "number of the column"}
    spec = {
        "data": {"name": "rows"}, "height": 190,
        "layer": [
            {"transform": [{"filter": "isValid(datum.value)"}], "mark": {"type": "rect"},
             "encoding": {"x": across, "y": up, "color": {
                 "field": "value", "type": "quantitative", "legend": None,
                 "scale": {"domain": [-1, 0, 1], "range": ["#c8553d", "#f4f1ea", "#0b6e99"]}}}},
            {"mark": {"type": "text", "fontSize": 11},
             "encoding": {"x": across, "y": up, "text": {"field": "said"},
                          "color": {"condition": {"test": "isValid(datum.value)", "value": "white"},
                                    "value": "#5b6470"}}},
        ],
    }  # fmt: skip
    caption = f"The {len(points)} points of a column."
    return Figure("The points of a column", caption, caption, rows, spec)


if __name__ == "__main__":
    cover = json.loads(PROOF.read_bytes())["covers"][0]
    print(figure(settled(cover)[1]).save(HERE / "for_ever_points.svg"))
