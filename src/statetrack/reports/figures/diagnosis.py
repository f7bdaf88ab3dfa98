"""The figures of what `statetrack diagnose` found: why a model stops tracking. The files say what each number is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from statetrack.formatting import plural
from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.series import Series, series_of
from statetrack.reports.figures.view import DATA, Row, View
from statetrack.reports.folder import DiagnosedCell, Folder

STATES = ("#2f6fd0", "#e79a17", "#b8301f", "#3fb08c", "#c98bc4", "#6d7080", "#35c0f2", "#6a3fb5")
MOST_PANELS = 12
MANY_MODELS = 8  # beyond which one seed of each is drawn
PASSED = 0.9  # the accuracy below which a model has failed
SMALLEST = 1e-15  # of the largest norm: what is below says no more than that it is nothing


def of(folder: Folder, task: str) -> list[DiagnosedCell]:
    order = {label: place for place, label in enumerate(folder.models)}
    found = [each for each in folder.diagnoses if each.found.task == task]
    return sorted(found, key=lambda each: (order.get(each.label, len(order)), each.found.trained, each.found.seed))


def chosen(found: Sequence[DiagnosedCell]) -> list[DiagnosedCell]:
    """Those that are drawn: of each model the longest length trained on, and few enough seeds to be seen."""
    models = list(dict.fromkeys(each.label for each in found))
    seeds = 3 if len(models) <= MANY_MODELS else 1
    made = []
    for model in models:
        mine = [each for each in found if each.label == model]
        longest = max(each.found.trained for each in mine)
        made += [each for each in mine if each.found.trained == longest][:seeds]
    return made


def drawn(folder: Folder, found: Sequence[DiagnosedCell]) -> list[Series]:
    """As in the other figures; models that the folder does not hold otherwise come after them."""
    known = folder.drawn(each.label for each in found)
    have = {one.label for one in known}
    return [*known, *series_of({each.label: each.found.model for each in found if each.label not in have})]


def parts_of(found: Sequence[DiagnosedCell], section: str) -> Iterator[tuple[Row, Row]]:
    """What each cell is, and its section of this name, where it has one."""
    for each in found:
        part = each.found[section]
        if "absent" not in part:
            yield {"model": each.label, "trained": each.found.trained, "seed": each.found.seed}, part


def curves(found: Sequence[DiagnosedCell], section: str, *names: str) -> list[Row]:
    """A section's lists side by side as rows: one a cell and position."""
    rows = []
    for shared, part in parts_of(found, section):
        lists = [part[name] for name in names]
        rows += [shared | {"position": at} | dict(zip(names, values)) for at, *values in zip(part["position"], *lists)]
    return rows


def _x(rows: Sequence[Row], title: str = "position") -> Row:
    longest = max(row["position"] for row in rows)
    return charts.length_axis([2**power for power in range(int(longest).bit_length())], "position", title)


def _lines(rows: Sequence[Row], series: Sequence[Series], x: Row, y: Row, tip: Sequence[Row]) -> list[Row]:
    return charts.lines(series, x, y, tip, ("seed", "trained"), seeds=sorted({row["seed"] for row in rows}))


def _panels(field: str, order: Sequence[str], columns: int, height: int, layers: Sequence[Row]) -> Row:
    """A panel for each value of a field."""
    facet = {"field": field, "type": "nominal", "title": None, "sort": list(order)}
    return {"data": DATA, "facet": facet, "columns": columns, "spec": {"height": height, "layer": list(layers)}}


def _bounds(rows: Sequence[Row], name: str, least: float, most: float) -> list[float]:
    """The range of a column, cut to what can be told apart in a figure."""
    values = [row[name] for row in rows]
    return [max(least, 0.8 * min(values)), min(most, 1.25 * max(max(values), 1.0))]


def _level(y: Row, value: float) -> Row:
    """A dashed line at a value that counts."""
    return {
        "data": {"values": [{"level": value}]}, "mark": {"type": "rule", "strokeDash": [3, 3], "color": charts.SOFT},
        "encoding": {"y": {**y, "field": "level"}},
    }  # fmt: skip


def separation(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    rows = [row for row in curves(found, "separation", "separation", "distance", "spread") if row["separation"]]
    if not rows:
        return None
    x = _x(rows)
    y = charts.log_axis(_bounds(rows, "separation", 0.05, 1000), "separation", "distance over spread")
    tip = charts.tips("model", "trained", "seed", "position", "separation", "distance", "spread")
    spec = {"data": DATA, "height": charts.height(series), "layer": [_level(y, 1), *_lines(rows, series, x, y, tip)]}
    return Figure(
        f"{task}: how far apart true states stay",
        "The distance between the network's states for different true states over the spread inside one (both axes "
        "logarithmic). A flat line keeps its states apart at any length; a falling one fades, and is lost where it "
        "nears the dashed 1; one that starts near 1 never kept them apart. Above 1,000 it is cut.",
        f"Separation of true states by position on {task}, {plural(len(series), 'model')}.",
        rows, spec,
    )  # fmt: skip


def positions(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    measured = curves(found, "positions", "accuracy", "low", "high", "floor")
    rows = [row for row in measured if row["accuracy"] is not None]
    if not rows:
        return None
    x = _x(rows)
    y = charts.share_axis([row[name] for row in rows for name in ("low", "floor")])
    band = charts.band(series, x, y, ("seed", "trained"), opacity=0.12)
    tip = charts.tips("model", "trained", "seed", "position", "accuracy", "low", "high", "floor")
    layers = [*charts.floor_layers(x, y), band, *_lines(rows, series, x, y, tip)]
    return Figure(
        f"{task}: accuracy by position, far beyond the length trained on",
        "The accuracy at each position of rows much longer than those trained on, with its 95 % interval over rows, "
        "above the dashed floor of that position.",
        f"Accuracy by position on {task} with intervals, {plural(len(series), 'model')}.",
        rows, {"data": DATA, "height": charts.height(series), "layer": layers},
    )  # fmt: skip


def errors(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    measured = curves(found, "error", "accuracy", "low_curve", "high_curve", "floor")
    rows = [row for row in measured if row["accuracy"] is not None]
    if not rows:
        return None
    x = _x(rows, "steps of a stream")
    y = charts.share_axis([row[name] for row in rows for name in ("accuracy", "floor")])
    tip = charts.tips("model", "trained", "seed", "position", "accuracy", "low_curve", "high_curve")
    layers = [*charts.floor_layers(x, y), *_lines(rows, series, x, y, tip), *_predicted(found, series, x, y)]
    return Figure(
        f"{task}: the length at which it fails, seen and predicted",
        "The accuracy along a stream. An open mark on the dashed line of 90 % is the length at which a model was "
        "predicted to pass below it, from the separation of its states before any failure: the curve of that colour "
        "and mark (of that seed, where there are several) should pass through it.",
        f"Accuracy along a stream on {task} with the predicted lengths of failure.",
        rows, {"data": DATA, "height": charts.height(series), "layer": layers},
    )  # fmt: skip


def _predicted(found: Sequence[DiagnosedCell], series: Sequence[Series], x: Row, y: Row) -> list[Row]:
    """Where each cell was predicted to pass below 90 %: an open mark, as those of its curve, with a line down to it."""
    said = [
        {"model": row["model"], "trained": row["trained"], "seed": row["seed"], "position": row["predicted"],
         "accuracy": PASSED, "measured": row["measured"]}
        for row in reach_rows(found) if row["predicted"] is not None
    ]  # fmt: skip
    if not said:
        return []
    tip = [*charts.tips("model", "trained", "seed", "measured"), {**charts.tips("position")[0], "title": "predicted"}]
    rule: Row = {
        "data": {"values": said}, "mark": {"type": "rule", "strokeDash": [2, 4], "strokeWidth": 1},
        "encoding": charts.picked({"x": x, **charts.by_model(series), "full": 0.6}),
    }  # fmt: skip
    seeds = sorted({each.found.seed for each in found})
    marks: Row = {
        "data": {"values": said}, "mark": {"type": "point", "filled": False, "size": 160, "strokeWidth": 2},
        "encoding": charts.picked({"x": x, "y": y, **charts.by_seed(series, seeds, legend=False), "tooltip": tip}),
    }  # fmt: skip
    return [_level(y, PASSED), rule, marks]


def reach_rows(found: Sequence[DiagnosedCell]) -> list[Row]:
    """One row a cell: the length at which it passes below 90 %, measured and predicted."""
    rows = []
    for each in found:
        for shared, part in parts_of([each], "error"):
            seen, said = part["measured"]["at_90"], part["predicted"]["at_90"]
            rows.append({
                **shared, "measured": seen["length"], "measured_low": seen["low"], "measured_high": seen["high"],
                "beyond": seen["beyond"], "predicted": said["length"], "predicted_low": said["low"],
                "predicted_high": said["high"], "predicted_beyond": said["beyond"], "ratio": part["ratio"]["at_90"],
                "step_rate": part["step_rate"], "conclusion": each.found.conclusion,
            })  # fmt: skip
    return rows


def gradients(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    rows = [row for row in curves(found, "gradient", "norm", "low", "high") if row["norm"]]
    if not rows:
        return None
    least = max(row["norm"] for row in rows) * SMALLEST
    longest = max(row["position"] for row in rows)
    axis = {"title": "position of the state", "tickCount": 8}
    x = {"field": "position", "type": "quantitative", "axis": axis, "scale": {"domain": [0, longest]}}
    y = charts.log_axis([row["norm"] for row in rows if row["norm"] >= least], "norm", "norm of the gradient")
    tip = charts.tips("model", "trained", "seed", "position", "norm", "low", "high")
    return Figure(
        f"{task}: gradient of the loss in the state",
        "How strongly the loss at the last position depends on the state at each earlier one (median over rows, "
        "logarithmic). A straight line down to the left is a gradient that vanishes by a constant factor a step; a "
        "flat one reaches all the way back. What is smaller than 1e-15 of the largest is left out.",
        f"Gradient norm by position on {task}, {plural(len(series), 'model')}.",
        rows, {
            "data": DATA, "height": charts.height(series), "transform": [{"filter": f"datum.norm >= {least!r}"}],
            "layer": _lines(rows, series, x, y, tip),
        },
    )  # fmt: skip


def probe_rows(found: Sequence[DiagnosedCell]) -> Iterator[Row]:
    for shared, part in parts_of(found, "probe"):
        for name in ("state", "count"):
            probe = part.get(name) or {"absent": ""}
            if "absent" in probe:
                continue
            for at, score, chance in zip(part["position"], probe["score"], probe["chance"]):
                if score is not None:
                    says = f"{probe['says']} ({probe['measure']})"
                    yield shared | {"probe": says, "position": at, "score": max(score, -0.25), "chance": chance}


def probes(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    rows = list(probe_rows(found))
    if not rows:
        return None
    x = _x(rows)
    scale = {"domain": [-0.25, 1], "clamp": True}
    y = {"field": "score", "type": "quantitative", "axis": {"title": "score"}, "scale": scale}
    tip = [*charts.tips("model", "trained", "seed", "position", "score", "chance"), {"field": "probe"}]
    chance = {
        "mark": {"type": "line", "strokeDash": [3, 3], "color": charts.SOFT},
        "encoding": {"x": x, "y": {**y, "field": "chance", "aggregate": "median"}},
    }
    names = sorted({row["probe"] for row in rows})
    spec = _panels("probe", names, 2, 240, [chance, *_lines(rows, series, x, y, tip)])
    return Figure(
        f"{task}: what a linear probe reads from the state",
        "A linear map of the state was fitted to the true state and to the running count, and tested on other rows. "
        "Dashed is what it scores without the state. A model may hold what it needs and still answer wrong, or "
        "answer right without holding the count.",
        f"Probe scores by position on {task}.",
        rows, spec, panel=300,
    )  # fmt: skip


def portraits(view: View) -> Figure | None:
    task, found = view.where, view.diagnoses
    rows = []
    for shared, part in islice(parts_of(found, "portrait"), MOST_PANELS):
        name = f"{shared['model']}, seed {shared['seed']}"
        for number, path in enumerate(part["paths"]):
            for x, y, state, position in path:
                label = part["labels"][int(state)] if int(state) < len(part["labels"]) else str(int(state))
                rows.append({"model": name, "path": number, "x": x, "y": y, "state": label, "position": int(position)})
    if not rows:
        return None
    states = sorted({row["state"] for row in rows})
    scale = {"domain": states, "range": [STATES[place % len(STATES)] for place in range(len(states))]}
    axis = {"grid": False, "labels": False, "ticks": False}
    x = {"field": "x", "type": "quantitative", "axis": {**axis, "title": "first direction"}}
    y = {"field": "y", "type": "quantitative", "axis": {**axis, "title": "second"}}
    tip = [{"field": "state"}, {"field": "position", "type": "quantitative"}, {"field": "path", "type": "nominal"}]
    legend = {"title": "true state"} if len(states) <= 12 else None
    dots = {
        "mark": {"type": "point", "filled": True, "size": 26},
        "encoding": {
            "x": x, "y": y, "color": {"field": "state", "type": "nominal", "scale": scale, "legend": legend},
            "opacity": {"field": "position", "type": "quantitative", "scale": {"range": [0.25, 0.95]}, "legend": None},
            "tooltip": tip,
        },
    }  # fmt: skip
    lines = {
        "mark": {"type": "line", "strokeWidth": 0.5, "opacity": 0.12, "color": charts.SOFT},
        "encoding": {"x": x, "y": y, "detail": {"field": "path"}, "order": {"field": "position"}},
    }
    names = list(dict.fromkeys(row["model"] for row in rows))
    spec = _panels("model", names, 3, 190, [lines, dots])
    spec["resolve"] = {"scale": {"x": "independent", "y": "independent"}}
    return Figure(
        f"{task}: portrait of the state",
        "A few rows followed over time, in the two directions in which the state varies most, coloured by the true "
        "state; later positions are stronger. Separate clouds of one colour are states that the network keeps "
        "apart; clouds that run into each other are states that it confuses.",
        f"State trajectories of {plural(len(names), 'trained model')} on {task}, coloured by true state.",
        rows, spec, panel=200, square=True,
    )  # fmt: skip


def eigenvalues(view: View) -> Figure | None:
    task, found, series = view.where, view.diagnoses, view.series
    rows = []
    for shared, part in parts_of(found, "eigenvalues"):
        for symbol in part["symbols"]:
            for re, im in symbol["leading"]:
                rows.append({
                    "model": shared["model"], "seed": shared["seed"], "input": f"input {symbol['symbol']}", "re": re,
                    "im": im, "size": (re * re + im * im) ** 0.5,
                })  # fmt: skip
    if not rows:
        return None
    inputs = list(dict.fromkeys(row["input"] for row in rows))[:MOST_PANELS]
    rows = [row for row in rows if row["input"] in inputs]
    reach = max(1.05, *(abs(row[name]) for row in rows for name in ("re", "im")))
    scale = {"domain": [-reach, reach], "nice": False}
    x = {"field": "re", "type": "quantitative", "scale": scale, "axis": {"title": "real", "values": [-1, 0, 1]}}
    y = {"field": "im", "type": "quantitative", "scale": scale, "axis": {"title": "imaginary", "values": [-1, 0, 1]}}
    ring = {
        "data": {"sequence": {"start": 0, "stop": 6.2832, "step": 0.0873, "as": "angle"}},
        "transform": [{"calculate": "cos(datum.angle)", "as": "re"}, {"calculate": "sin(datum.angle)", "as": "im"}],
        "mark": {"type": "line", "strokeDash": [3, 3], "color": charts.SOFT, "strokeWidth": 1},
        "encoding": {"x": x, "y": y, "order": {"field": "angle"}},
    }  # fmt: skip
    dots = {
        "params": [charts.PICK], "mark": {"type": "point", "filled": True, "size": 45},
        "encoding": charts.picked({
            "x": x, "y": y, **charts.by_model(series, "shape"), "full": 0.75,
            "tooltip": [*charts.tips("model", "seed", "re", "im", "size"), {"field": "input"}],
        }),
    }  # fmt: skip
    spec = _panels("input", inputs, 3, 220, [ring, dots])
    return Figure(
        f"{task}: eigenvalues of a step",
        "The leading eigenvalues of the state's one-step map at real inputs, in the complex plane, a panel for each "
        "input symbol; the dashed ring has the size 1. Inside it a step forgets; a value near -1 flips a sign, as "
        "parity needs; outside it a difference grows until tanh bounds it.",
        f"Leading eigenvalues of the transition on {task}, by input symbol.",
        rows, spec, panel=220, square=True,
    )  # fmt: skip
