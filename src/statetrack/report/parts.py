"""Parts that figures share: scales, the legend that picks series, lines of a median over seeds, heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from statetrack.report.series import Series

Spec = dict[str, Any]
SOFT = "#8b93a1"  # of floors and marks that are no model, on both themes
SKILL = ["#f4efe4", "#bcd7e6", "#5d9fcb", "#1d5fa0", "#0b3567"]  # light to dark, one hue: safe for every eye
WHITE_FROM = 0.55  # on that scale white writing is read better from here on
FADED = 0.07
STEP = 26  # height of a row of a heat map


def by_model(series: Sequence[Series], *channels: str, legend: bool = True) -> Spec:
    """Colour, and dash or mark where they are asked for, of the models; one legend for all of them."""
    names = [one.label for one in series]
    ranges = {
        "color": [one.colour for one in series], "shape": [one.mark for one in series],
        "strokeDash": [list(one.dash) for one in series],
    }  # fmt: skip
    shared = {"field": "model", "type": "nominal", "legend": {"title": None} if legend else None}
    return {name: shared | {"scale": {"domain": names, "range": ranges[name]}} for name in ("color", *channels)}


def picked(inside: Spec) -> Spec:
    """Encoding in which a click on the legend leaves the picked models and fades the others."""
    full = inside.pop("full", 1)
    return inside | {"opacity": {"condition": {"param": "picked", "value": full}, "value": FADED}}


PICK: Spec = {
    "name": "picked", "select": {"type": "point", "fields": ["model"], "toggle": "true"}, "bind": "legend",
}  # fmt: skip


def length_axis(lengths: Iterable[int], field: str, title: str) -> Spec:
    """A logarithmic axis with a mark at every length that occurs, or at some where they are many."""
    values = sorted(set(lengths))
    while len(values) > 12:
        values = values[::2]
    scale = {"type": "log", "base": 2, "nice": False, "padding": 14}
    axis = {"values": values, "format": ",", "title": title, "labelOverlap": True, "labelSeparation": 6}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def share_axis(values: Iterable[float | None], field: str = "accuracy", title: str = "accuracy") -> Spec:
    """From a little below the least value to 1."""
    known = [value for value in values if value is not None]
    least = min([*known, 0.95])
    bottom = max(0.0, int(least * 20 - 0.5) / 20)
    scale = {"domain": [bottom, 1.0], "nice": False, "padding": 6}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": title, "format": ".2~f", "tickCount": 6},
    }


def decades(low: float, high: float, most_marks: int = 8) -> list[float]:
    """Powers of ten from low to high, thinned to a few: the marks of a logarithmic axis that is no length.

    >>> decades(0.05, 1000)
    [0.1, 1.0, 10.0, 100.0, 1000.0]
    """
    powers = list(range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1))
    every = max(1, math.ceil(len(powers) / most_marks))
    return [float(f"1e{power}") for power in powers[::every]]


def chosen(lengths: Sequence[int]) -> tuple[list[Spec], list[Spec]]:
    """The parameter "trained" and the filter that leaves its rows; nothing of both where one length was trained on."""
    if len(set(lengths)) < 2:
        return [], []
    return [{"name": "trained", "value": default_length(lengths)}], [{"filter": "datum.trained == trained"}]


def default_length(lengths: Sequence[int]) -> int:
    """The length that is shown first: that of most rows, the longer one of equals."""
    return max(set(lengths), key=lambda length: (lengths.count(length), length))


def floor_layers(x: Spec, y: Spec, keep: Sequence[Spec] = ()) -> list[Spec]:
    """What a guess scores: dashed, grey, under everything else, with its name at the right end."""
    known = [*keep, {"filter": "isValid(datum.floor)"}]
    tip = [{"field": x["field"], "type": "quantitative"}, {"field": "floor", "aggregate": "median", "format": ".4f"}]
    line: Spec = {
        "transform": known, "mark": {"type": "line", "strokeDash": [3, 3], "strokeWidth": 1.5, "color": SOFT},
        "encoding": {"x": x, "y": {**y, "field": "floor", "aggregate": "median"}, "tooltip": tip},
    }  # fmt: skip
    last = {"aggregate": [{"op": "argmax", "field": x["field"], "as": "last"}]}
    at = [{"calculate": f"datum.last['{name}']", "as": name} for name in (x["field"], "floor")]
    name: Spec = {
        "transform": [*known, last, *at],
        "mark": {"type": "text", "text": "floor", "align": "right", "dx": -3, "dy": 11, "color": SOFT, "fontSize": 11},
        "encoding": {"x": x, "y": {**y, "field": "floor"}},
    }  # fmt: skip
    return [line, name]


def height(series: Sequence[Series], least: int = 300) -> int:
    """High enough for the legend beside it."""
    return max(least, 20 * len(series) + 40)


def seed_lines(series: Sequence[Series], x: Spec, y: Spec, tip: Sequence[str], keep: Sequence[Spec] = ()) -> list[Spec]:
    """Every seed as a faint point, and the median over seeds as a line with marks. `keep` filters the rows."""
    tooltip = [_tip(name) for name in tip]
    middle = {**y, "aggregate": "median"}
    over = [
        _tip("model"), _tip(x["field"]), {**_tip(y["field"]), "aggregate": "median", "title": "median"},
        {"aggregate": "count", "title": "cells"},
    ]  # fmt: skip
    points: Spec = {
        "transform": list(keep), "mark": {"type": "point", "filled": True, "size": 22},
        "encoding": picked({"x": x, "y": y, **by_model(series, "shape"), "tooltip": tooltip, "full": 0.4}),
    }  # fmt: skip
    line: Spec = {
        "params": [PICK], "transform": list(keep), "mark": {"type": "line"},
        "encoding": picked({"x": x, "y": middle, **by_model(series, "strokeDash")}),
    }  # fmt: skip
    marks: Spec = {
        "transform": list(keep), "mark": {"type": "point", "filled": True, "size": 55},
        "encoding": picked({"x": x, "y": middle, **by_model(series, "shape"), "tooltip": over}),
    }  # fmt: skip
    return [line, points, marks]


def lines(
    series: Sequence[Series], x: Spec, y: Spec, tip: Sequence[Spec], detail: Sequence[str] = (),
    keep: Sequence[Spec] = (), interpolate: str = "linear",
) -> list[Spec]:  # fmt: skip
    """A line with small marks for each model, or for each of its cells that `detail` tells apart."""
    apart = {"detail": [{"field": name, "type": "nominal"} for name in detail]} if detail else {}
    line: Spec = {
        "params": [PICK], "transform": list(keep), "mark": {"type": "line", "interpolate": interpolate},
        "encoding": picked({"x": x, "y": y, **by_model(series, "strokeDash"), **apart}),
    }  # fmt: skip
    marks: Spec = {
        "transform": list(keep), "mark": {"type": "point", "filled": True, "size": 20},
        "encoding": picked({"x": x, "y": y, **by_model(series, "shape"), "tooltip": list(tip), "full": 0.8}),
    }  # fmt: skip
    return [line, marks]


def _tip(name: str) -> Spec:
    numbers = {"accuracy": ".4f", "low": ".4f", "high": ".4f", "floor": ".4f", "last_quarter": ".4f"}
    kind = "nominal" if name in ("model", "status", "of", "solved", "case", "shown", "device") else "quantitative"
    tip: Spec = {"field": name, "type": kind}
    if name in numbers:
        tip["format"] = numbers[name]
    return tip | {"title": name.replace("_", " ")}


def tips(*names: str) -> list[Spec]:
    return [_tip(name) for name in names]


def heat_map(
    x: Spec, order: Sequence[str], colour: Spec, dark: str, tooltip: Sequence[Spec], keep: Sequence[Spec] = ()
) -> Spec:
    """Cells with their value written in; `dark` is the test for cells that take white writing."""
    y = {"field": "model", "type": "nominal", "sort": list(order), "axis": {"title": None, "labelPadding": 8}}
    place = {"x": x, "y": y}
    rect = {"type": "rect", "stroke": "white", "strokeOpacity": 0.25, "cornerRadius": 2, "invalid": "show"}
    cells: Spec = {
        "transform": list(keep), "mark": rect,
        "encoding": {**place, "color": colour, "tooltip": list(tooltip)},
    }  # fmt: skip
    ink = {"condition": {"test": dark, "value": "white"}, "value": "#1c2128"}
    text: Spec = {
        "transform": list(keep), "mark": {"type": "text", "fontSize": 11},
        "encoding": {**place, "text": {"field": "shown", "type": "nominal"}, "color": ink},
    }  # fmt: skip
    return {"layer": [cells, text], "height": STEP * len(order)}


def skill_colour(field: str = "skill", title: str = "from floor to 1") -> Spec:
    scale = {"domain": [0, 1], "range": SKILL, "clamp": True}
    legend = {"title": title, "format": ".0%", "orient": "top", "direction": "horizontal"}
    none = {"test": f"!isValid(datum.{field})", "value": "#c9cdd3"}
    return {"field": field, "type": "quantitative", "scale": scale, "legend": legend, "condition": none}


DARK = f"isValid(datum.skill) && datum.skill > {WHITE_FROM}"
