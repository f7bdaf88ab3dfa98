"""The figures by name, in their order. A new figure is one function and one line here.

The name ends the address of a figure and the names of its files: "heat" of txc is `#figure-txc-heat` and txc-heat.svg.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from statetrack import plugins
from statetrack.errors import BadInput, one_line
from statetrack.reports.figures import asking, brought, curves, depth, diagnosis, training, vega
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import ASKED, BROUGHT, COST, DIAGNOSED, OVERALL, TRAINED, Drawing, View
from statetrack.reports.folder import Folder

CATALOGUE: dict[str, Drawing] = {
    "reach": Drawing(OVERALL, training.reach),
    "accuracy": Drawing(TRAINED, training.accuracy),
    "heat": Drawing(TRAINED, training.heat),
    "generalisation": Drawing(TRAINED, training.generalisation),
    "positions": Drawing(TRAINED, training.positions),
    "off": Drawing(TRAINED, training.off_distribution),
    "depth": Drawing(TRAINED, depth.depth),
    "curves": Drawing(TRAINED, curves.curves),
    "brought": Drawing(BROUGHT, brought.brought),
    "survival": Drawing(ASKED, asking.survival),
    "asked-positions": Drawing(ASKED, asking.by_position),
    "asked": Drawing(ASKED, asking.by_length),
    "asked-lasted": Drawing(ASKED, asking.lasted),
    "asked-violations": Drawing(ASKED, asking.violations),
    "diagnosed-positions": Drawing(DIAGNOSED, diagnosis.positions),
    "separation": Drawing(DIAGNOSED, diagnosis.separation),
    "failure": Drawing(DIAGNOSED, diagnosis.errors),
    "gradient": Drawing(DIAGNOSED, diagnosis.gradients),
    "probes": Drawing(DIAGNOSED, diagnosis.probes),
    "portrait": Drawing(DIAGNOSED, diagnosis.portraits),
    "eigenvalues": Drawing(DIAGNOSED, diagnosis.eigenvalues),
    "cost": Drawing(COST, training.cost),
}


def overall(folder: Folder) -> list[Figure]:
    """Over all that was trained."""
    return drawn(OVERALL, View(folder, runs=folder.runs, series=folder.drawn(run.model for run in folder.runs)))


def of_training(folder: Folder, task: str, protocol: str) -> list[Figure]:
    """Of one task under one protocol."""
    runs = folder.of(task, protocol)
    where = task if len(folder.protocols(task)) == 1 else f"{task}, {protocol}"
    return drawn(TRAINED, View(folder, where, runs=runs, series=folder.drawn(run.model for run in runs)))


def of_brought(folder: Folder, task: str) -> list[Figure]:
    """Of weights on one task that were not trained here."""
    cells = folder.brought_on(task)
    return drawn(BROUGHT, View(folder, task, brought=cells, series=folder.drawn(each.model for each in cells)))


def of_asking(folder: Folder, task: str) -> list[Figure]:
    """Of the episodes of one task."""
    episodes = folder.asked(task)
    models = [*(each.model for each in episodes), *(each.model for each in folder.scored(task))]
    return drawn(ASKED, View(folder, task, episodes=episodes, series=folder.drawn(models)))


def of_diagnosis(folder: Folder, task: str) -> list[Figure]:
    """Of the diagnoses of one task."""
    found = diagnosis.chosen(diagnosis.of(folder, task))
    return drawn(DIAGNOSED, View(folder, task, diagnoses=found, series=diagnosis.drawn(folder, found)))


def of_cost(folder: Folder, task: str) -> list[Figure]:
    """Of what the cells of one task took, whatever their protocol."""
    runs = [run for run in folder.runs if run.task == task]
    return drawn(COST, View(folder, task, runs=runs, series=folder.drawn(run.model for run in runs)))


def drawn(place: str, view: View) -> list[Figure]:
    """Every figure of this place that has something to show; an installed one that fails is named and left out."""
    made = []
    for name, each in drawings().items():
        if each.place == place:
            figure = each.draw(view) if name in CATALOGUE else _installed(name, each, view)
            made += [replace(figure, key=view.key(name))] if figure else []
    return made


def drawings() -> dict[str, Drawing]:
    """All of them by name, those of installed packages last."""
    return CATALOGUE | plugins.loaded(plugins.FIGURES, CATALOGUE, lambda point: plugins.load(point, Drawing))


def _installed(name: str, drawing: Drawing, view: View) -> Figure | None:
    try:
        figure = drawing.draw(view)
        if figure is None:
            return None
        if not isinstance(figure, Figure):
            raise BadInput(f"it gives a {type(figure).__name__}, not a Figure")
        figure.csv()
        if find_spec("vl_convert"):
            vega.drawings(figure)  # a specification that Vega-Lite refuses would stop the whole page
        return figure
    except Exception as error:  # somebody's own figure may raise anything
        plugins.say(f"the figure {view.key(name)} is left out: {one_line(error)}")
        return None
