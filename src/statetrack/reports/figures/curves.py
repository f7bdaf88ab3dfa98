"""How trainings went: accuracy, loss, gradient norm and length over updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from statetrack.formatting import plural
from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DATA, Row, View
from statetrack.reports.folder import TrainedCell
from statetrack.results.curve import kept
from statetrack.verdicts.measurements import grouped

PANELS = {  # a column and what its panel is called
    "accuracy": "accuracy on validation rows", "loss": "training loss", "gradient_norm": "norm of the gradient",
    "length": "length of the stage",
}  # fmt: skip
POINTS = 32  # of a curve: a line in a panel of this size shows no more
MOST_SEEDS = 3  # of a model and a length
MOST_MARKS = 400  # of a length, in each panel; of more there are lines alone: a browser draws them sooner


def curves(view: View) -> Figure | None:
    """A panel for each measure, a line for each seed; None where no record holds a curve."""
    rows = list(rows_of(view.runs))
    if not rows:
        return None
    series = [one for one in view.series if any(row["model"] == one.label for row in rows)]
    lengths, params, keep = charts.chosen(rows)
    names = f"[{', '.join(repr(name) for name in PANELS.values())}][indexof({list(PANELS)}, datum.value)]"
    facet = {"field": "measure", "type": "nominal", "title": None, "sort": list(PANELS), "header": {"labelExpr": names}}
    x = charts.count_axis("update", "updates") | {"axis": {"title": "updates", "tickCount": 5}}
    y = {
        "field": "value", "type": "quantitative", "axis": {"title": None, "tickCount": 5},
        "scale": {"zero": False},
    }  # fmt: skip
    tip = charts.tips("model", "trained", "seed", "update", "length", "accuracy", "loss", "gradient_norm")
    unfolded = [*keep, {"fold": list(PANELS), "as": ["measure", "value"]}, {"filter": "isValid(datum.value)"}]
    line, marks = charts.lines(series, x, y, tip, ("seed", "trained"))
    many = max(Counter(row["trained"] for row in rows).values()) > MOST_MARKS
    spec = {
        "data": DATA, "params": params, "transform": unfolded, "facet": facet, "columns": 2,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"height": 190, "layer": [line, marks][: 1 if many else 2]},
    }  # fmt: skip
    return Figure(
        f"{view.where}: how the trainings went",
        "Each line is a seed. The accuracy is on validation rows of the length that the training had come to, which "
        "the last panel shows; loss and gradient norm (before clipping) are means over the updates between two checks. "
        f"At most {MOST_SEEDS} seeds and {POINTS} points of each are drawn, among them every change of length.",
        f"Accuracy, loss, gradient norm and length over updates on {view.where}, {plural(len(series), 'model')}.",
        rows, spec, panel=260, lengths=lengths,
    )  # fmt: skip


def rows_of(runs: Iterable[TrainedCell]) -> Iterator[Row]:
    """The points that are drawn, of the first seeds of every model and length that have a curve."""
    told = (run for run in runs if run.record.training.curve is not None)
    for same in grouped(told, lambda run: (run.model, run.trained)).values():
        for run in sorted(same, key=lambda run: run.seed)[:MOST_SEEDS]:
            yield from _points(run)


def _points(run: TrainedCell) -> Iterator[Row]:
    curve = run.record.training.curve
    assert curve is not None
    for at in kept(curve.lengths, curve.accuracy, POINTS):
        yield {
            "model": run.model, "trained": run.trained, "seed": run.seed, "update": curve.updates[at],
            "length": curve.lengths[at], "accuracy": curve.accuracy[at], "loss": curve.loss[at],
            "gradient_norm": curve.gradient_norm[at],
        }  # fmt: skip
