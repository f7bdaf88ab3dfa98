"""The figure: what the diagnostic measured, drawn in the tab Diagnostics. It needs no torch."""

from statetrack.reports.figures import charts
from statetrack.reports.figures.diagnosis import curves
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DATA, DIAGNOSED, Drawing, View


def brightness(view: View) -> Figure | None:
    """A line for each model: the norm of its state by position."""
    rows = curves(view.diagnoses, "brightness", "norm")
    if not rows:
        return None
    x = charts.count_axis("position", "position")
    y = {"field": "norm", "type": "quantitative", "axis": {"title": "norm of the state"}}
    tip = charts.tips("model", "trained", "seed", "position", "norm")
    layers = charts.lines(view.series, x, y, tip, ("seed", "trained"))
    return Figure(
        f"{view.where}: how large the state is",
        "The norm of the state by position, mean over rows. A line that goes on rising is a state without bounds.",
        f"Norm of the state by position on {view.where}.",
        rows,
        {"data": DATA, "height": charts.height(view.series), "layer": layers},
    )


BRIGHTNESS = Drawing(DIAGNOSED, brightness)
