"""Parts that figures share: scales, the legend that picks series, lines of a median over seeds, heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from statetrack.formatting import DIGITS
from statetrack.reports.figures.series import MARKS, Series
from statetrack.verdicts.tracked_length import usual_length

Spec = dict[str, Any]
SOFT = "#8b93a1"  # of floors and marks that are no model, on both themes
SKILL = ["#f4efe4", "#bcd7e6", "#5d9fcb", "#1d5fa0", "#0b3567"]  # light to dark, one hue: safe for every eye
WHITE_FROM = 0.55  # on that scale white writing is read better from here on
FADED = 0.07
AXIS_WIDTH, LETTER, BETWEEN = 420, 6.5, 6  # of a figure beside its legend, of a letter of a label, between two labels
STEP = 26  # height of a row of a heat map
EXACT = f".{DIGITS}~f"  # of shares: all the digits that are kept, as fewer would round them up to 1


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


PICK: Spec = {"name": "picked", "select": {"type": "point", "fields": ["model"], "toggle": "true"}, "bind": "legend"}


def length_axis(lengths: Iterable[int], field: str, title: str) -> Spec:
    """A logarithmic axis with a mark at every length that occurs, or at some where they are many: always at the
    longest.
    """
    values = labelled(sorted(set(lengths)))
    scale = {"type": "log", "base": 2, "nice": False, "padding": 14}
    axis = {"values": values, "format": ",", "title": title, "labelOverlap": True, "labelSeparation": 6}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def labelled(lengths: Sequence[int]) -> list[int]:
    """Those that get a label: from the longest down, each that does not overlap the one before it.

    >>> labelled([16, 32, 64])
    [16, 32, 64]
    >>> labelled([2**power for power in range(4, 21)])
    [16, 32, 64, 128, 256, 512, 2048, 8192, 32768, 131072, 1048576]
    """
    if len(lengths) < 2:
        return list(lengths)
    span = math.log2(lengths[-1] / lengths[0])
    kept: list[int] = []
    for length in reversed(lengths):
        room = math.log2(kept[-1] / length) / span * AXIS_WIDTH if kept else math.inf
        halves = sum(len(f"{each:,}") for each in (length, *kept[-1:])) / 2
        if room >= halves * LETTER + BETWEEN:
            kept.append(length)
    return kept[::-1]


def share_axis(values: Iterable[float | None], title: str = "accuracy") -> Spec:
    """From a little below the least value to 1."""
    known = [value for value in values if value is not None]
    least = min([*known, 0.95])
    bottom = max(0.0, int(least * 20 - 0.5) / 20)
    scale = {"domain": [bottom, 1.0], "nice": False, "padding": 6}
    axis = {"title": title, "format": ".2~f", "tickCount": 6}
    return {"field": "accuracy", "type": "quantitative", "scale": scale, "axis": axis}


def log_axis(values: Iterable[float], field: str, title: str) -> Spec:
    """A logarithmic axis that is no length, over a decade at least, so that what hardly changes looks flat."""
    known = list(values)
    low, high = min(known), max(known)
    missing = max(0.0, 1 - math.log10(high / low)) / 2  # decades on either side
    domain = [low * 10**-missing, high * 10**missing]
    scale = {"type": "log", "nice": False, "domain": domain, "clamp": True, "padding": 10}
    axis = {"title": title, "values": decades(domain[0], domain[1]), "format": "~g" if domain[0] >= 1e-3 else ".0e"}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def decades(low: float, high: float, most_marks: int = 8) -> list[float]:
    """The marks of such an axis: powers of ten, thinned to a few; where they are not three, with their 2 and 5 times.

    >>> decades(0.05, 1000), decades(0.3, 4)
    ([0.1, 1.0, 10.0, 100.0, 1000.0], [0.5, 1.0, 2.0])
    """
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high) + 1e-9)
    powers = [float(f"1e{power}") for power in range(first, last + 1)]
    inside = [mark for mark in powers if mark >= low * (1 - 1e-9)]
    if len(inside) >= 3:
        return inside[:: max(1, math.ceil(len(inside) / most_marks))]
    finer = [float(f"{times * power:.0e}") for power in powers for times in (1, 2, 5)]
    return [mark for mark in finer if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]


def count_axis(field: str, title: str) -> Spec:
    """Whole numbers from the first to the last."""
    axis = {"title": title, "tickMinStep": 1, "tickCount": 8}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": {"nice": False}}


def chosen(rows: Iterable[Spec]) -> tuple[list[int], list[Spec], list[Spec]]:
    """The lengths trained on; of several, the parameter "trained" chooses one and the filter leaves its rows."""
    every = [row["trained"] for row in rows]
    lengths = sorted(set(every))
    if len(lengths) < 2:
        return lengths, [], []
    return lengths, [{"name": "trained", "value": usual_length(every)}], [{"filter": "datum.trained == trained"}]


def floor_layers(x: Spec, y: Spec, keep: Sequence[Spec] = ()) -> list[Spec]:
    """What a guess scores: dashed, grey, under everything else, with its name at the right end."""
    known = [*keep, {"filter": "isValid(datum.floor)"}]
    tip = [{"field": x["field"], "type": "quantitative"}, {"field": "floor", "aggregate": "median", "format": EXACT}]
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
    middle = {**y, "aggregate": "median"}
    over = [
        _tip("model"), _tip(x["field"]), {**_tip(y["field"]), "aggregate": "median", "title": "median"},
        {"aggregate": "count", "title": "cells"},
    ]  # fmt: skip
    points: Spec = {
        "transform": list(keep), "mark": {"type": "point", "filled": True, "size": 22},
        "encoding": picked({"x": x, "y": y, **by_model(series, "shape"), "tooltip": tips(*tip), "full": 0.4}),
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
    keep: Sequence[Spec] = (), interpolate: str = "linear", seeds: Sequence[int] = (),
) -> list[Spec]:  # fmt: skip
    """A line with small marks for each model, or for each of its cells that `detail` tells apart.

    The marks are the model's, or with several `seeds` the seed's, which then has a legend of its own.
    """
    apart = {"detail": [{"field": name, "type": "nominal"} for name in detail]} if detail else {}
    line: Spec = {
        "params": [PICK], "transform": list(keep), "mark": {"type": "line", "interpolate": interpolate},
        "encoding": picked({"x": x, "y": y, **by_model(series, "strokeDash"), **apart}),
    }  # fmt: skip
    marks: Spec = {
        "transform": list(keep), "mark": {"type": "point", "filled": True, "size": 36 if len(seeds) > 1 else 20},
        "encoding": picked({"x": x, "y": y, **by_seed(series, seeds), "tooltip": list(tip), "full": 0.8}),
    }  # fmt: skip
    return [line, marks]


def band(series: Sequence[Series], x: Spec, y: Spec, detail: Sequence[str], **mark: Any) -> Spec:
    """A pale area from `low` to `high` in the colour of each model, for each of its cells that `detail` tells apart."""
    edges = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **by_model(series)}
    apart = [{"field": name, "type": "nominal"} for name in detail]
    return {"mark": {"type": "area", **mark, "line": False}, "encoding": {**edges, "detail": apart}}


def by_seed(series: Sequence[Series], seeds: Sequence[int], legend: bool = True) -> Spec:
    """The colour of the model and, where there are several seeds, the mark of the seed; else the mark of the model."""
    if len(seeds) < 2:
        return by_model(series, "shape", legend=legend)
    scale = {"domain": list(seeds), "range": [MARKS[place % len(MARKS)] for place in range(len(seeds))]}
    named = {"title": "seed", "symbolFillColor": SOFT} if legend else None
    mark = {"field": "seed", "type": "nominal", "scale": scale, "legend": named}
    return by_model(series, legend=legend) | {"shape": mark}


def _tip(name: str) -> Spec:
    shares = ("accuracy", "low", "high", "floor", "last_quarter", "share", "skill", "least", "most")
    words = ("model", "status", "of", "solved", "case", "shown", "device", "for_ever", "broken_by")
    kind = "nominal" if name in words else "quantitative"
    exact = {"format": EXACT} if name in shares else {}
    return {"field": name, "type": kind, **exact, "title": name.replace("_", " ")}


def tips(*names: str) -> list[Spec]:
    return [_tip(name) for name in names]


def heat_map(
    x: Spec, order: Sequence[str], colour: Spec, dark: str, tooltip: Sequence[Spec], keep: Sequence[Spec] = ()
) -> Spec:
    """Cells with their value written in; `dark` is the test for cells that take white writing."""
    y = {"field": "model", "type": "nominal", "sort": list(order), "axis": {"title": None, "labelPadding": 8}}
    place = {"x": x, "y": y}
    rect = {"type": "rect", "stroke": "white", "strokeOpacity": 0.25, "cornerRadius": 2, "invalid": "show"}
    coloured = {**place, "color": colour, "tooltip": list(tooltip)}
    cells: Spec = {"transform": list(keep), "mark": rect, "encoding": coloured}
    ink = {"condition": {"test": dark, "value": "white"}, "value": "#1c2128"}
    text: Spec = {
        "transform": list(keep), "mark": {"type": "text", "fontSize": 11},
        "encoding": {**place, "text": {"field": "shown", "type": "nominal"}, "color": ink},
    }  # fmt: skip
    return {"layer": [cells, text], "height": STEP * len(order)}


CROSS = "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z"  # a path: Vega's own is a plus


def marks(place: Spec, names: Sequence[str]) -> Spec:
    """In the cells of a heat map, before their numbers, the signs for what is known of them: a diamond for the first
    name, a cross for the second. Both can be seen on pale and on dark.
    """
    shape = {"field": "mark", "type": "nominal", "scale": {"domain": list(names), "range": ["diamond", CROSS]},
             "legend": {"title": "for ever", "orient": "bottom", "direction": "vertical"}}  # fmt: skip
    sign = {"type": "point", "filled": True, "fill": "#f2b705", "stroke": "#1c2128", "strokeWidth": 0.7, "size": 44,
            "opacity": 1, "xOffset": -19}  # fmt: skip
    return {
        "transform": [{"filter": "isValid(datum.mark)"}], "mark": sign,
        "encoding": {"x": place["x"], "y": place["y"], "shape": shape, "tooltip": place["tooltip"]},
    }  # fmt: skip


def skill_colour(field: str = "skill", title: str = "from floor to 1") -> Spec:
    scale = {"domain": [0, 1], "range": SKILL, "clamp": True}
    legend = {"title": title, "format": ".0%", "orient": "top", "direction": "horizontal"}
    none = {"test": f"!isValid(datum.{field})", "value": "#c9cdd3"}
    return {"field": field, "type": "quantitative", "scale": scale, "legend": legend, "condition": none}


DARK = f"isValid(datum.skill) && datum.skill > {WHITE_FROM}"
