"""Figures and rows of whatever is shown at a prompt or in a notebook: `statetrack.display` asks for them here."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from statetrack.display import Measured, Shown
from statetrack.errors import BadInput, pip_line, unknown
from statetrack.reports.figures import catalogue, vega
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import ASKED, BROUGHT, COST, DIAGNOSED, OVERALL, PLACES, TRAINED
from statetrack.reports.folder import Folder, of_records
from statetrack.results import Cell
from statetrack.results.long_table import long_rows
from statetrack.results.long_table import to_pandas as frame
from statetrack.verdicts.measurements import tested


class Figures(dict[str, Figure]):
    """Figures by name. What is shown of all of them is what they are called."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {figure.title}" for name, figure in self.items()) or "no figures"


def figures(thing: Shown) -> Figures:
    """Those of the report that have something to show, by the names that they have there: txc-generalisation."""
    folder = of_records(*thing.contents())
    return Figures({each.key: each for place in PLACES for each in _at(place, folder)})


def _at(place: str, folder: Folder) -> Iterator[Figure]:
    """The figures of one place of the page."""
    if place == OVERALL:
        yield from catalogue.overall(folder)
    for task in folder.tasks:
        if place == TRAINED:
            for protocol in folder.protocols(task):
                yield from catalogue.of_training(folder, task, protocol)
        elif place == BROUGHT and folder.brought_on(task):
            yield from catalogue.of_brought(folder, task)
        elif place == ASKED and folder.asked(task):
            yield from catalogue.of_asking(folder, task)
        elif place == COST:
            yield from catalogue.of_cost(folder, task)
    for task in dict.fromkeys(each.found.task for each in folder.diagnoses):
        if place == DIAGNOSED:
            yield from catalogue.of_diagnosis(folder, task)


def figure(thing: Shown, name: str | None = None) -> Figure:
    """The figure of this name, which need not say the task where there is one; without a name the first."""
    if name is None:
        first = _first(thing)
        if first is None:
            raise BadInput("there is nothing to draw")
        return first
    made = figures(thing)
    found = [each for key, each in made.items() if name in (key, _bare(key))]
    exact = [each for each in found if each.key == name]
    if len(found) > 1 and not exact:
        called = ", ".join(each.key for each in found)
        raise BadInput(f"there are several figures {name!r}: {called}; give one of these names{_narrower(thing)}")
    if not found:
        raise unknown("figure", name, made)
    return (exact or found)[0]


def _narrower(thing: Shown) -> str:
    """By what its cells can be narrowed, so that those of one task and protocol are left: `where(length=16)`."""
    cells = [record.cell for record in thing.contents()[0]]
    of: dict[str, Callable[[Cell], Any]] = {
        "task": lambda cell: cell.task, "protocol": lambda cell: cell.protocol.get("name"),
        "length": lambda cell: cell.length, "model": lambda cell: cell.subject, "seed": lambda cell: cell.seed,
    }  # fmt: skip
    for name, read in of.items():
        values = list(dict.fromkeys(map(read, cells)))
        if len(values) > 1:
            for value in values:
                left = {json.dumps([cell.task, cell.protocol], sort_keys=True) for cell in cells if read(cell) == value}
                if len(left) == 1:
                    return f", or narrow it by where({name}={value!r})"
    return ""


def _first(thing: Shown) -> Figure | None:
    """Of the figures that it names for that, the first that there is; of the others none is drawn."""
    folder = of_records(*thing.contents())
    for name in thing.drawn_first:
        for each in _at(catalogue.CATALOGUE[name].place, folder):
            if _bare(each.key) == name:
                return each
    return None


def _bare(key: str) -> str:
    """The name of a figure without the task that it is of.

    >>> _bare("fsm-k-5-asked-positions"), _bare("reach")
    ('asked-positions', 'reach')
    """
    named = [name for name in catalogue.drawings() if key == name or key.endswith(f"-{name}")]
    return max(named, key=len, default=key)


def inline(thing: Shown) -> str:
    """Its first figure as HTML, with the caption; nothing where there is none."""
    if find_spec("vl_convert") is None:
        return f"<div><small>A figure would be here: {html.escape(pip_line('notebook'))}</small></div>"
    drawn = _first(thing)
    if drawn is None:
        return ""
    # A picture of its own: marks in SVG have names, which those of another figure on the page would take.
    picture = base64.b64encode(vega.svg(drawn).encode()).decode()
    image = f'<img src="data:image/svg+xml;base64,{picture}" alt="{html.escape(drawn.alt)}">'
    return f"<div><b>{html.escape(drawn.title)}</b></div>{image}<div><small>{html.escape(drawn.caption)}</small></div>"


def to_pandas(thing: Measured) -> Any:
    """Its rows of the long table."""
    return frame(long_rows(thing.contents()[0], tested))
