"""How far weights are right that were evaluated and not trained."""

from __future__ import annotations

from statetrack.formatting import plural, verb
from statetrack.reports.brought import APART, tested
from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DATA, View


def brought(view: View) -> Figure | None:
    """The accuracy at the end of rows and along streams, over the length; None where fewer than two were tested."""
    where, series, rows = view.where, view.series, tested(view.brought)
    if len({row["tested"] for row in rows}) < 2:
        return None
    x = charts.length_axis([row["tested"] for row in rows], "tested", "length tested")
    shares = [row[name] for row in rows for name in ("accuracy", "floor")]
    y = charts.share_axis(shares, "accuracy at the end of a row")
    tip = charts.tips("model", "seed", "tested", "accuracy", "low", "high", "floor", "of")
    layers = [*charts.floor_layers(x, y), *charts.lines(series, x, y, tip, ("seed", "trained"))]
    return Figure(
        f"{where}: weights that were only evaluated",
        f"Weights that were tested as they are. {APART} The accuracy is that of the last 32 positions of rows, along a "
        "stream of the last 1,024 before the mark (logarithmic axis); the dashed line is the floor.",
        f"Accuracy at the end of rows up to {max(row['tested'] for row in rows):,} steps on {where} of "
        f"{plural(len(series), 'network')} that {verb(len(series), 'was', 'were')} only evaluated.",
        rows, {"data": DATA, "height": charts.height(series), "layer": layers},
    )  # fmt: skip
