"""How far depth carries a model: the largest length that all seeds solve at each depth, beside 2^D and c D."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DATA, Row, View
from statetrack.verdicts.depth_law import DepthLaw, laws
from statetrack.verdicts.judge import results

DOUBLING = "2^D"
COLOURS = (charts.SKILL[3], "#2f7d4f", "#7a4fa3", "#8a6d1d")  # of models, one after the other


def depth(view: View) -> Figure | None:
    """The largest T solved by all seeds against depth, on two logarithmic axes; of models of three depths or more."""
    found = laws(results(run.record for run in view.runs)[0], view.runs[0].task) if view.runs else []
    return depth_law(view.where, found) if found else None


def depth_law(where: str, found: Sequence[DepthLaw]) -> Figure:
    rows = rows_of(found)
    colours = {DOUBLING: "#b4512b"}
    for place, law in enumerate(found):
        colours |= {measured(law): COLOURS[place % len(COLOURS)], fitted(law): charts.SOFT}
    shared = {
        "x": charts.length_axis([row["layers"] for row in rows if row["law"] != DOUBLING], "layers", "layers D"),
        "y": charts.length_axis([row["length"] for row in rows], "length", "longest length T"),
        "color": {
            "field": "law", "type": "nominal", "legend": {"title": None},
            "scale": {"domain": list(colours), "range": list(colours.values())},
        },
        "tooltip": [{"field": name} for name in ("law", "layers", "length")],
    }  # fmt: skip
    marks = {"datum.seen": {"type": "line", "point": {"size": 70, "filled": True}},
             "!datum.seen": {"type": "line", "strokeDash": [5, 3]}}  # fmt: skip
    layers = [{"transform": [{"filter": which}], "mark": mark, "encoding": shared} for which, mark in marks.items()]
    models = ", ".join(law.model for law in found)
    exponents = ", ".join(f"{law.slope:.2f} ({law.model})" for law in found)
    return Figure(
        f"{where}: how far depth carries",
        f"The largest T that all seeds solve at each depth D, beside T = {DOUBLING} (as far as the axis goes) and the "
        f"best T = c D. As a power of D it grows with the exponent {exponents}.",
        f"Longest length solved by {models} on {where} against depth, beside {DOUBLING} and the best multiple of D.",
        rows, {"data": DATA, "height": 260, "layer": layers},
    )  # fmt: skip


def measured(law: DepthLaw) -> str:
    return f"{law.model}: all seeds solve it"


def fitted(law: DepthLaw) -> str:
    return f"{law.model}: {law.per_layer:.1f} D, fitted"


def rows_of(found: Sequence[DepthLaw]) -> list[Row]:
    """What was measured, then the laws; 2^D is left out where it is above four times the longest measured."""
    rows: list[Row] = []
    for law in found:
        rows += [_row(measured(law), layers, length, True) for layers, length in law.known.items()]
        rows += [_row(fitted(law), layers, round(law.per_layer * layers, 1)) for layers in law.reach]
    depths = [layers for law in found for layers in law.reach]
    most = 4 * max(length for law in found for length in law.reach.values())
    return rows + [_row(DOUBLING, d, 2**d) for d in range(min(depths), max(depths) + 1) if 2**d <= most]


def _row(law: str, layers: int, length: float, seen: bool = False) -> Row:
    return {"law": law, "layers": layers, "length": length, "seen": seen}
