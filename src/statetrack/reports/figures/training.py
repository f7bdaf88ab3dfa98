"""The figures of what was trained: one set for each task and protocol, and those over all tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from statetrack.formatting import RULE, plural, shortened, shown
from statetrack.reports import figure_data
from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DATA, Row, View
from statetrack.reports.folder import by_model
from statetrack.results.evaluations import BROKEN, PROVED, OnStream
from statetrack.results.networks import broken_by
from statetrack.verdicts import tracked_length as verdicts
from statetrack.verdicts.tracked_length import TrackedLength

CASES = (
    "worst", "as trained", "p=0.02", "p=0.1", "p=0.9", "p=0.98", "all zeros", "all ones", "alternating",
    "one event, then silence",
)  # fmt: skip
COLUMNS_WITH_WORDS, MOST_BROKEN = 2, 3  # of the map of reaches: up to how many words fit in, and are named below
DAGGER = " †"
HEAT_WIDTH, LINE = 480, 13  # of its columns together, about; of a line of their titles, which grow downwards
NOT_SOLVED, SOLVED_FROM = 0.35, 0.45  # of the colours: up to where, and from where on


def accuracy(view: View) -> Figure:
    where, series = view.where, view.series
    rows = figure_data.at_length(view.runs)
    if len({row["length"] for row in rows}) == 1:
        return strip(view, rows)
    x = charts.length_axis([row["length"] for row in rows], "length", "length trained and tested on")
    y = charts.share_axis([row[name] for row in rows for name in ("accuracy", "floor")])
    tip = ("model", "length", "seed", "accuracy", "low", "high", "floor", "last_quarter", "status")
    layers = [*charts.floor_layers(x, y), *charts.seed_lines(series, x, y, tip)]
    spec = {"data": DATA, "height": charts.height(series), "layer": layers}
    return Figure(
        f"{where}: accuracy against length",
        "Each model was trained and tested at the length below it. Faint marks are seeds, the line is their median, "
        "the dashed grey line is the floor: the score of the best answer for each position without looking at the "
        "input. Only what lies above it is skill. " + one_seed(rows, "length"),
        f"Accuracy of {plural(len(series), 'model')} on {where} at "
        f"{plural(len({row['length'] for row in rows}), 'length')}, with the floor.",
        rows, spec,
    )  # fmt: skip


def one_seed(rows: Sequence[dict[str, Any]], field: str) -> str:
    """Which lengths rest on a single seed."""
    seeds: dict[Any, set[int]] = {}
    for row in rows:
        seeds.setdefault((row["model"], row[field]), set()).add(row["seed"])
    alone = sorted({length for (_, length), found in seeds.items() if len(found) == 1})
    if not alone:
        return ""
    if len(alone) == len({length for _, length in seeds}):
        return "Some or all of these points rest on one seed." if len(alone) > 1 else "These points rest on one seed."
    return f"At {', '.join(f'{length:,}' for length in alone)} some or all points rest on one seed."


def strip(view: View, rows: list[dict[str, Any]]) -> Figure:
    """One length: a row a model, a point a seed, its interval, and the floor as a line."""
    where, series, length = view.where, view.series, rows[0]["length"]
    y = {"field": "model", "type": "nominal", "sort": [one.label for one in series], "axis": {"title": None}}
    x = charts.share_axis([row[name] for row in rows for name in ("low", "floor")])
    colour = charts.by_model(series, legend=False)
    tooltip = charts.tips("model", "seed", "accuracy", "low", "high", "floor", "last_quarter", "status")
    low = {**x, "field": "low"}
    floor = {**x, "field": "floor", "aggregate": "median"}
    spec = {
        "data": DATA,
        "height": 30 * len(series),
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [3, 3], "strokeWidth": 1.5, "color": charts.SOFT},
             "encoding": {"x": floor}},
            {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.35},
             "encoding": {"x": low, "x2": {"field": "high"}, "y": y, **colour}},
            {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.8},
             "encoding": {"x": x, "y": y, **colour, "tooltip": tooltip}},
        ],
    }  # fmt: skip
    return Figure(
        f"{where}: accuracy at length {length:,}",
        f"Trained and tested at length {length:,}, over all positions. A point is a seed, the bar its 95 % interval, "
        "the dashed line the floor: the score of the best answer for each position without looking at the input. "
        + one_seed(rows, "length"),
        f"Accuracy of {plural(len(series), 'model')} on {where} at length {length}, with the floor "
        f"{shown(rows[0]['floor'] or 0)}.",
        rows, spec,
    )  # fmt: skip


def heat(view: View) -> Figure:
    where, series, runs = view.where, view.series, view.runs
    rows = figure_data.heat(runs)
    several = len({run.trained for run in runs}) > 1
    title = "length trained and tested on" if several else f"length tested (trained at {runs[0].trained:,})"
    what = "over all positions" if several else "over the last 32 positions"
    seeds = "of one seed" if all(row["seeds"] == 1 for row in rows) else "median over seeds (* one seed)"
    axis = {"title": title, "labelAngle": 0, "format": ",", "labelOverlap": True}
    x = {"field": "length", "type": "ordinal", "axis": axis}
    known = any(row.get("for_ever") for row in rows)
    more = ["for_ever"] if known else []
    tooltip = charts.tips("model", "length", "accuracy", "floor", "skill", "seeds", *more)
    order = [one.label for one in series]
    spec = {"data": DATA, **charts.heat_map(x, order, charts.skill_colour(), charts.DARK, tooltip)}
    if any(row.get("mark") for row in rows):
        spec["layer"].append(charts.marks(spec["layer"][0]["encoding"], (PROVED, BROKEN)))
    marked = f" A diamond: every network is {PROVED}, for every length. A cross: one is {BROKEN}." if known else ""
    return Figure(
        f"{where}: every model at every length",
        f"The number is the accuracy {what}, {seeds}, {RULE}. The colour is how much of the way from the floor to 1 "
        "is made: pale is no better than a guess, dark is right, grey means that a guess is right already." + marked,
        f"Heat map of {plural(len(series), 'model')} by {plural(len({row['length'] for row in rows}), 'length')} on "
        f"{where}.",
        rows, spec,
    )  # fmt: skip


def generalisation(view: View) -> Figure | None:
    where, series, rows = view.where, view.series, figure_data.tested(view.runs)
    if len({row["tested"] for row in rows}) < 2:
        return None
    lengths, params, keep = charts.chosen(rows)
    x = charts.length_axis([row["tested"] for row in rows], "tested", "length tested")
    shares = [row[name] for row in rows for name in ("accuracy", "floor")]
    y = charts.share_axis(shares, "accuracy at the end of a row")
    tip = ("model", "trained", "tested", "seed", "accuracy", "low", "high", "floor", "of")
    mark = {
        "transform": [*keep, {"aggregate": [{"op": "min", "field": "trained", "as": "trained"}]}],
        "mark": {"type": "rule", "strokeWidth": 1, "color": charts.SOFT, "opacity": 0.7},
        "encoding": {"x": {**x, "field": "trained"}},
    }
    layers = [mark, *charts.floor_layers(x, y, keep), *charts.seed_lines(series, x, y, tip, keep)]
    spec = {"data": DATA, "height": charts.height(series), "params": params, "layer": layers}
    streamed = any(row["of"] == OnStream.kind for row in rows)
    stream = ", along a stream of the last 1,024 before the mark" if streamed else ""
    return Figure(
        f"{where}: length generalisation",
        "Trained at the length of the thin vertical line, tested at longer rows (logarithmic axis). The accuracy is "
        f"that of the last 32 positions{stream}. A model that keeps its state is a flat line at 1; one that fades "
        "bends down to the dashed floor. Lines that lie on one another part when a name in the legend is clicked. "
        + one_seed(rows, "trained"),
        f"Accuracy at the end of rows up to {max(row['tested'] for row in rows):,} steps on {where}, "
        f"{plural(len(series), 'model')}.",
        rows, spec, lengths=lengths,
    )  # fmt: skip


def positions(view: View) -> Figure | None:
    where, series, rows = view.where, view.series, figure_data.positions(view.runs)
    if not rows:
        return None
    lengths, params, keep = charts.chosen(rows)
    marks = [2**power for power in range(lengths[-1].bit_length())]
    x = charts.length_axis(marks, "position", "position in the row")
    y = charts.share_axis([row[name] for row in rows for name in ("accuracy", "floor")])
    tooltip = charts.tips("model", "position", "accuracy", "least", "most", "floor", "seeds")
    layers = [*charts.floor_layers(x, y, keep), *charts.lines(series, x, y, tooltip, keep=keep)]
    spec = {"data": DATA, "height": charts.height(series, 280), "params": params, "layer": layers}
    return Figure(
        f"{where}: accuracy by position",
        "Where in a row the errors are, at the length trained on: the median over seeds at each position (long rows "
        "in geometric bins), above the dashed floor of that position. A line that falls along the row loses its "
        "state; a line that is low from the start never had it.",
        f"Accuracy by position on {where} for {plural(len(series), 'model')}, with the floor by position.",
        rows, spec, lengths=lengths,
    )  # fmt: skip


def off_distribution(view: View) -> Figure | None:
    where, series = view.where, view.series
    measured = figure_data.off_distribution(view.runs)
    if not measured:
        return None
    rows = [{**row, "skill": row["accuracy"], "shown": shown(row["accuracy"])} for row in measured]
    lengths, params, keep = charts.chosen(rows)
    known = [case for case in CASES if any(row["case"] == case for row in rows)]
    order = [*known, *sorted({row["case"] for row in rows} - set(known))]
    turned = {"labelAngle": -35, "labelAlign": "left", "labelExpr": "split(datum.label, ',')[0]"}
    x = {"field": "case", "type": "nominal", "sort": order, "axis": {"title": None, "orient": "top", **turned}}
    colour = charts.skill_colour(title="accuracy")
    colour["scale"] = {**colour["scale"], "domain": [0.4, 1]}
    colour["legend"] = {**colour["legend"], "orient": "bottom"}
    tooltip = charts.tips("model", "trained", "case", "accuracy", "seeds")
    names = [one.label for one in series if any(row["model"] == one.label for row in rows)]
    spec = {"data": DATA, "params": params, **charts.heat_map(x, names, colour, "datum.skill > 0.73", tooltip, keep)}
    return Figure(
        f"{where}: off the data trained on",
        "The accuracy at the length trained on, for other rates of ones (p) and for rows that random data never "
        "shows; medians over seeds. `worst` is the worst case of each seed: a model that has learned the task, and "
        "not the data, is dark everywhere.",
        f"Heat map of {plural(len(names), 'model')} by {len(order)} kinds of input on {where}.",
        rows, spec, lengths=lengths,
    )  # fmt: skip


def reach(view: View) -> Figure | None:
    """How far each model keeps track of each task."""
    folder = view.folder
    rows: list[Row] = []
    for task in folder.tasks:
        for protocol in folder.protocols(task):
            runs = folder.of(task, protocol)
            where = task if len(folder.protocols(task)) == 1 else f"{task}, {protocol}"
            for model, same in by_model(runs).items():
                found = verdicts.reach(run.record for run in same)
                here = figure_data.middle(run for run in same if run.trained == found.trained)
                told = {"shown": reach_text(found, here["accuracy"]), "times": found.reach / found.trained}
                breaking = broken_by(run.record for run in same)
                known = {"broken_by": breaking[0].word if breaking else ""}
                rows.append({"task": where, "model": model, **asdict(found), **here, **told, **known})
    if not rows:
        return None
    names = [one.label for one in folder.drawn(row["model"] for row in rows)]
    columns = list(dict.fromkeys(row["task"] for row in rows))
    broken = _mark_broken(rows, len(columns))
    x = {
        "field": "task", "type": "nominal", "sort": columns,
        "axis": {"title": None, "labelAngle": 0, "orient": "top", "labelFontWeight": "bold",
                 "labelExpr": "split(datum.label, ', ')", "labelLimit": max(120, HEAT_WIDTH // len(columns)),
                 "labelLineHeight": LINE, "labelPadding": 4 + LINE * max(name.count(", ") for name in columns)},
    }  # fmt: skip
    most = max(4, math.ceil(math.log2(max(row["times"] for row in rows) or 1)))  # doublings
    for row in rows:
        row["level"] = _level(row["times"], row["skill"], most)
    solved = [_level(2**n, None, most) for n in (0, most // 2, most)]
    words = (
        f"datum.value == 0 ? 'a guess' : format(pow(2, round({most} * (datum.value - 1) / {1 - SOLVED_FROM} + {most}))"
    )
    legend = {
        "title": "not solved: how near to right; solved: times the length trained on", "values": [0, *solved],
        "labelExpr": f"{words}, ',') + '×'", "orient": "bottom", "direction": "horizontal", "gradientLength": 360,
        "titleLimit": 400,
    }  # fmt: skip
    colour = {
        "field": "level", "type": "quantitative", "scale": {"domain": [0, 1], "range": charts.SKILL, "clamp": True},
        "legend": legend, "condition": {"test": "datum.easy", "value": "#c9cdd3"},
    }  # fmt: skip
    named = ("model", "trained", "reach", *(["broken_by"] if any(row["broken_by"] for row in rows) else []),
             "lost_at", "longest", "accuracy", "floor", "skill", "seeds")  # fmt: skip
    tooltip = [*charts.tips(*named), {"field": "task"}]
    dark = f"datum.level > {charts.WHITE_FROM} && !datum.easy"
    spec = {"data": DATA, **charts.heat_map(x, names, colour, dark, tooltip)}
    return Figure(
        "How far each model keeps track",
        "The longest rows to which most seeds have solved every length tested (99 % at the end, and at most half of "
        "the errors of a guess); ≥ where it is the longest tested. The colour compares it with the length trained on. "
        "Where not even that is solved, the number is a share, such as .950: the accuracy over all positions, median "
        "over seeds, and the colour is how much of the way from a guess to 1 is made. Grey: a guess scores 99 % there "
        "as well, so the number says nothing." + broken,
        f"Heat map of the longest length solved, {plural(len(names), 'model')} by {plural(len(columns), 'task')}.",
        rows, spec,
    )  # fmt: skip


def _mark_broken(rows: list[Row], columns: int) -> str:
    """Write into the cells of what is right on random rows that a word breaks it: the word, where there is room, else
    a mark. What the caption says of them.
    """
    broken = [row for row in rows if row["reach"] and row["broken_by"]]
    for row in broken:
        word = shortened(row["broken_by"], 14)
        row["shown"] += f", broken by {word}" if columns <= COLUMNS_WITH_WORDS else DAGGER
    if not broken:
        return ""
    named = [f"{row['model']} on {row['task']} by {shortened(row['broken_by'], 24)}" for row in broken[:MOST_BROKEN]]
    more = f", and {len(broken) - MOST_BROKEN} more" if len(broken) > MOST_BROKEN else ""
    sign = "" if columns <= COLUMNS_WITH_WORDS else f"{DAGGER.strip()}: "
    return f" The rows are random ones. {sign}Some or all seeds are broken by a word: {'; '.join(named)}{more}."


def _level(times: float, skill: float | None, most: int) -> float:
    """Where a cell stands between a guess (0) and the most doublings (1): in the lower part what is not solved."""
    if times:
        return SOLVED_FROM + (1 - SOLVED_FROM) * math.log2(times) / most
    return NOT_SOLVED * (skill or 0.0)


def reach_text(found: TrackedLength, accuracy: float) -> str:
    """
    >>> not_solved = TrackedLength(0, 192, 64, None, 3, False)
    >>> reach_text(TrackedLength(192, 192, 64, None, 3, False), 1.0), reach_text(not_solved, 0.95)
    ('≥ 192', '.950')
    """
    if not found.reach:
        return shown(accuracy)
    return f"{'≥ ' if found.reach == found.longest else ''}{found.reach:,}"


def cost(view: View) -> Figure | None:
    """What it took, against how far it got."""
    task = view.where
    rows = [row for row in figure_data.cost(view.runs) if row["seconds"] and row["accuracy"] is not None]
    if not rows:
        return None
    series = view.folder.drawn(row["model"] for row in rows)
    x = {
        "field": "seconds", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 16},
        "axis": {"title": "seconds of training a seed", "format": "~g", "labelOverlap": True, "tickCount": 6},
    }  # fmt: skip
    y = charts.share_axis([row["accuracy"] for row in rows], title="accuracy at the end of the longest rows")
    size = {
        "field": "parameters", "type": "quantitative", "scale": {"type": "log", "range": [50, 320]},
        "legend": {"title": "parameters", "format": "~s", "tickCount": 3, "symbolFillColor": charts.SOFT},
    }  # fmt: skip
    tooltip = charts.tips("model", "trained", "seed", "seconds", "tokens", "parameters", "state", "tested", "accuracy")
    spec = {
        "data": DATA, "height": charts.height(series, 280), "params": [charts.PICK],
        "mark": {"type": "point", "filled": True},
        "encoding": charts.picked(
            {"x": x, "y": y, **charts.by_model(series, "shape"), "size": size, "tooltip": tooltip, "full": 0.75}
        ),
    }  # fmt: skip
    return Figure(
        f"{task}: what it took",
        "One mark a cell: seconds of training (logarithmic, one seed's share where seeds were trained together) "
        "against the accuracy at the end of the longest rows tested. Larger marks have more parameters. Up and "
        "to the left is better. Seconds compare only where the device is the same.",
        f"Training time against accuracy at the longest length for {plural(len(series), 'model')} on {task}.",
        rows, spec,
    )  # fmt: skip
