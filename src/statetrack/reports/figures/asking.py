"""The figures of what was asked of language models: how long they last, and how often they are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statetrack.asking import metrics
from statetrack.asking.rules import FORCED, how
from statetrack.asking.solvers import split_subject
from statetrack.asking.survival import half_failed
from statetrack.asking.survival import survival as curve_of
from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.reports.figures import charts
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.series import HOW
from statetrack.reports.figures.view import DATA, Row, View
from statetrack.reports.folder import AskedCell, FailedSample, Folder
from statetrack.results.cell import Cell
from statetrack.results.external import LengthScore
from statetrack.results.records import EpisodeRecord as KeptEpisode
from statetrack.tasks import trusted_task
from statetrack.verdicts.measurements import grouped


def is_whole(episode: AskedCell) -> bool:
    """Whether it was one prompt with the whole sequence, and one answer."""
    return bool(episode.record.cell.protocol.get("way") == "whole")


def _by_turns(view: View) -> list[AskedCell]:
    return [each for each in view.episodes if not is_whole(each)]


def groups(episodes: Sequence[AskedCell]) -> dict[Group, list[AskedCell]]:
    """Episodes that differ in their sample alone, by model, protocol and length."""
    ordered = sorted(episodes, key=lambda each: (each.protocol, each.length, each.sample))
    return grouped(ordered, lambda each: (each.model, each.protocol, each.length))


def _kept(episodes: Sequence[AskedCell]) -> list[KeptEpisode]:
    return [each.record.episode for each in episodes]


Group = tuple[str, str, int]


def _cut_off(failed: Sequence[FailedSample]) -> dict[Group, list[KeptEpisode]]:
    """What was answered of the episodes that a server failed: seen for so long, and then no more."""
    answered = [each for each in failed if each.episode is not None and each.episode.outcomes]
    same = grouped(answered, lambda each: (each.model, each.protocol, each.length))
    return {group: [each.episode for each in found if each.episode is not None] for group, found in same.items()}


def survival_rows(episodes: Sequence[AskedCell], failed: Sequence[FailedSample] = ()) -> list[Row]:
    """The Kaplan-Meier curve of each group as steps, from all at turn 0 to the last turn that was seen."""
    rows, whole, cut_off = [], groups(episodes), _cut_off(failed)
    for group in dict.fromkeys((*whole, *cut_off)):
        model, protocol, length = group
        seen = [*_kept(whole.get(group, [])), *cut_off.get(group, [])]
        shared = {"model": model, "protocol": protocol, "length": length, "episodes": len(seen)}
        points = curve_of(seen)
        last = max(len(each.outcomes) for each in seen)
        begin = {"time": 0, "share": 1.0, "low": 1.0, "high": 1.0, "at_risk": len(seen)}
        end = {**(points[-1] if points else begin), "time": last}
        ends = [end] if not points or last > points[-1]["time"] else []
        rows += [shared | point for point in (begin, *points, *ends)]
    return rows


def survival(view: View) -> Figure | None:
    task = view.where
    rows = survival_rows(_by_turns(view), view.folder.failed(task))
    if not rows:
        return None
    series = view.folder.drawn(row["model"] for row in rows)
    x = charts.count_axis("time", "turn")
    y = {
        "field": "share", "type": "quantitative", "scale": {"domain": [0, 1]},
        "axis": {"title": "episodes without an error", "format": ".0%"},
    }  # fmt: skip
    tooltip = [*charts.tips("model", "time", "share", "low", "high", "at_risk", "episodes"), {"field": "protocol"}]
    band = charts.band(series, x, y, _apart(rows), interpolate="step-after", opacity=0.13)
    drawn = charts.lines(series, x, y, tooltip, _apart(rows), interpolate="step-after")
    spec = {"data": DATA, "height": charts.height(series), "layer": [band, *drawn]}
    return Figure(
        f"{task}: how long dialogues last",
        "The share of episodes without an error after each turn (Kaplan-Meier; an episode that was cut off counts "
        "as long as it was seen), with its 95 % interval. A curve that stays high keeps track; the turn at which it "
        "passes 50 % is when half have failed.",
        f"Survival curves of {plural(len(series), 'subject')} on {task}.",
        rows, spec,
    )  # fmt: skip


def _apart(rows: Sequence[Row]) -> list[str]:
    """What tells lines of one model apart."""
    return [name for name in ("protocol", "length") if len({row[name] for row in rows}) > 1]


def _goes_on(rules: dict[str, Any]) -> bool:
    """Whether every position is answered: after an error too, or in one teacher-forced pass."""
    return rules.get("history", "stop") != "stop" or bool(rules.get(FORCED))


def by_position(view: View) -> Figure | None:
    """Only of episodes that go on after an error: with early stop the survivors are those without one."""
    task = view.where
    going_on = [each for each in _by_turns(view) if _goes_on(each.record.cell.protocol)]
    rows = [
        {"model": model, "protocol": protocol, "length": length, "position": point["position"],
         "accuracy": point["accuracy"], "low": point["interval"][0], "high": point["interval"][1], "n": point["n"]}
        for (model, protocol, length), same in groups(going_on).items()
        for point in metrics.by_position(_kept(same))
    ]  # fmt: skip
    if not rows:
        return None
    series = view.folder.drawn(row["model"] for row in rows)
    x = charts.count_axis("position", "inputs so far")
    y = charts.share_axis([0.0])
    tooltip = charts.tips("model", "position", "accuracy", "low", "high", "n")
    spec = {"data": DATA, "height": charts.height(series), "layer": charts.lines(series, x, y, tooltip, _apart(rows))}
    return Figure(
        f"{task}: answers by position",
        "The share of right answers after so many inputs, in dialogues that go on after an error or are read in one "
        "pass.",
        f"Accuracy by position of {plural(len(series), 'subject')} on {task}.",
        rows, spec,
    )  # fmt: skip


def length_rows(task: str, episodes: Sequence[AskedCell]) -> list[Row]:
    """One answer a prompt: the share that is right at each length, and what a blind guess scores."""
    floor = chance(task)
    rows = []
    for (model, protocol, length), same in groups(episodes).items():
        found = metrics.accuracy(_kept(same))
        if found["n"]:
            low, high = found["interval"]
            rows.append({
                "model": model, "protocol": protocol, "length": length, "accuracy": found["accuracy"], "low": low,
                "high": high, "n": found["n"], "floor": floor, "at_least": False,
            })  # fmt: skip
    return rows


def all_length_rows(folder: Folder, task: str, pooled: bool = False) -> list[Row]:
    """Both those of our own and those that a harness scored; `pooled`, points of few answers are made one where there
    are many.
    """
    rows = length_rows(task, [each for each in folder.asked(task) if is_whole(each)])
    for scored in folder.scored(task):
        lengths = scored.record.lengths
        for each in pools(lengths, ENOUGH if pooled and len(lengths) > MANY else 1):
            low, high = each.interval
            rows.append({
                "model": scored.model, "protocol": scored.record.how, "length": each.length, "accuracy": each.accuracy,
                "low": low, "high": high, "n": each.rows, "floor": scored.record.chance, "at_least": each.at_least,
            })  # fmt: skip
    return rows


def pools(lengths: Sequence[LengthScore], least: int) -> list[LengthScore]:
    """Neighbouring lengths as one, at the mean of theirs, so that each point has some answers; a rest of fewer is with
    the last.

    >>> at = [LengthScore(length=5 * place, accuracy=place % 2, rows=4) for place in range(1, 6)]
    >>> [(each.length, each.accuracy, each.rows) for each in pools(at, 8)]
    [(8, 0.5, 8), (20, 0.6666666666666666, 12)]
    """
    groups: list[list[LengthScore]] = []
    for each in lengths:
        if not groups or sum(one.rows for one in groups[-1]) >= least:
            groups.append([])
        groups[-1].append(each)
    if len(groups) > 1 and sum(one.rows for one in groups[-1]) < least:
        rest = groups.pop()
        groups[-1] += rest
    return [_pool(group) for group in groups]


def _pool(group: Sequence[LengthScore]) -> LengthScore:
    rows = sum(each.rows for each in group)
    right = sum(each.accuracy * each.rows for each in group)
    middle = round(sum(each.length for each in group) / len(group))
    return LengthScore(length=middle, accuracy=right / rows, rows=rows, at_least=any(each.at_least for each in group))


def chance(task: str) -> float | None:
    try:
        return 1 / trusted_task(task).outputs
    except BadInput:  # a task that is not at hand
        return None


def by_length(view: View) -> Figure | None:
    task = view.where
    rows = all_length_rows(view.folder, task, pooled=True)
    if not rows:
        return None
    series = view.folder.drawn(row["model"] for row in rows)
    x = charts.length_axis([row["length"] for row in rows], "length", "length of the sequence in the prompt")
    y = charts.share_axis([0.0])
    tooltip = [*charts.tips("model", "length", "accuracy", "low", "high", "n"), {"field": "protocol"}]
    bars: Row = {
        "mark": {"type": "rule", "strokeWidth": 3},
        "encoding": charts.picked({
            "x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **charts.by_model(series), "full": 0.25,
        }),
    }  # fmt: skip
    drawn = charts.lines(series, x, y, tooltip, [name for name in _apart(rows) if name != "length"])
    spec = {"data": DATA, "height": charts.height(series), "layer": [*charts.floor_layers(x, y), bars, *drawn]}
    return Figure(
        f"{task}: one answer a prompt",
        "The share of right final answers against the length of the sequence, with its 95 % interval (Wilson) and, "
        f"dashed, what a blind guess scores. Where a harness scored more than {MANY} lengths, neighbouring ones are "
        f"taken together until a point has {ENOUGH} answers; the table has each.",
        f"Accuracy of {plural(len(series), 'subject')} on {task} at "
        f"{plural(len({row['length'] for row in rows}), 'length')}.",
        rows, spec,
    )  # fmt: skip


ENOUGH, MANY = 10, 8  # answers behind a point, where points are more than so many
IMPLICIT, EXPLICIT = "implicit", "explicit"
LINES = {"random": [5, 4], "human": [1, 3]}  # whose results are lines, and how they are dashed


def _compat(same: Sequence[AskedCell]) -> bool:
    """Whether lengths are counted as the original Track the Stat does."""
    return bool(same[0].record.cell.protocol.get("compat"))


def _who(cell: Cell) -> tuple[str, str, str | None]:
    """The model, or the solver that needs none; whether it saw the state; and the name of a line, if it is one."""
    model, solver = split_subject(cell.subject)
    outer, _, inner = solver.partition(":")
    family = outer.partition("-")[0]
    return model or inner or outer, EXPLICIT if inner else IMPLICIT, family if not model and family in LINES else None


def bar_rows(episodes: Sequence[AskedCell]) -> list[Row]:
    """The mean length reached and the share of episodes with a violation, of every model with and without the state.
    Rules and lengths are named where they differ.
    """
    cells = [each.record.cell for each in episodes]
    sources = {each.source.program if each.source else "" for each in episodes}
    rules, lengths = len({how(cell.protocol) for cell in cells}) > 1, len({cell.length for cell in cells}) > 1
    rows = []
    for same in groups(episodes).values():
        cell = same[0].record.cell
        who, state, line = _who(cell)
        found = metrics.summary(_kept(same), _compat(same))
        (low, high), (least, most) = found["avg_interval"], found["violation_interval"]
        by = same[0].source.program if same[0].source and len(sources) > 1 else ""
        apart = [how(cell.protocol) if rules else "", f"{cell.length:,} inputs" if lengths else "", by]
        rows.append({
            "model": HOW.join(filter(None, [who, *apart])), "state": state, "line": line,
            "episodes": found["episodes"], "lasted": found["avg_max_length"], "lasted_low": low, "lasted_high": high,
            "violations": found["violation_rate"], "violations_low": least, "violations_high": most,
            "tokens_in": found["tokens"]["sent"], "tokens_out": found["tokens"]["generated"],
        })  # fmt: skip
    return rows


def lasted(view: View) -> Figure | None:
    """The first chart of Track the Stat's original: how long episodes last."""
    return _bars(view, "lasted", "turns answered before the first error, mean over episodes")


def violations(view: View) -> Figure | None:
    """The second: how often a reply has no answer in the right format."""
    return _bars(view, "violations", "share of episodes with a reply in the wrong format")


def _bars(view: View, what: str, title: str) -> Figure | None:
    """A bar for each model, implicit and explicit, with its 95 % interval; who guesses and who is a person as lines."""
    rows = bar_rows([each for each in _by_turns(view) if FORCED not in each.record.cell.protocol])
    bars = [row for row in rows if not row["line"]]
    if not bars:
        return None
    order = list(dict.fromkeys(row["model"] for row in sorted(bars, key=lambda row: -row["lasted"])))
    states = [state for state in (EXPLICIT, IMPLICIT) if any(row["state"] == state for row in bars)]
    most = 1.15 * max(row[f"{what}_high"] for row in rows) or 1.0  # with room for the numbers behind the bars
    x = {
        "field": what,
        "type": "quantitative",
        "axis": {"title": title, "tickCount": 6},
        "scale": {"domain": [0, most]},
    }
    place = {
        "y": {"field": "model", "type": "nominal", "sort": order, "axis": {"title": None, "labelLimit": 300}},
        "yOffset": {"field": "state", "type": "nominal", "sort": states},
    }  # fmt: skip
    ends = {"x": {**x, "field": f"{what}_low"}, "x2": {"field": f"{what}_high"}}
    colours = {"domain": states, "range": [charts.SKILL[1 if state == EXPLICIT else 3] for state in states]}
    colour = {"field": "state", "type": "nominal", "scale": colours, "legend": {"title": "state"}}
    tip = [
        *charts.tips("model", "episodes"),
        *({"field": name, "type": "quantitative", "format": ".3~f"} for name in (what, f"{what}_low", f"{what}_high")),
    ]
    only = [{"filter": "!isValid(datum.line)"}]
    value = {"text": {"field": what, "type": "quantitative", "format": ".2f"}, "x": {**x, "field": f"{what}_high"}}
    layers: list[Row] = [
        {"transform": only, "mark": "bar", "encoding": {**place, "x": x, "color": colour, "tooltip": tip}},
        {"transform": only, "mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {**place, **ends}},
        {"transform": only, "mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {**place, **value}},
        *_baselines(rows, x, tip),
    ]
    said = "how long dialogues last" if what == "lasted" else "replies in the wrong format"
    return Figure(
        f"{view.where}: {said}, model by model",
        f"{title[0].upper()}{title[1:]}, with its 95 % interval. Explicit: the state was shown before each answer. "
        "Lines are what a guess among the values seen (random) and a person (human) come to.",
        f"Bars of {plural(len(bars), 'subject')} on {view.where}.",
        rows, {"data": DATA, "height": max(90, 22 * len(bars) + 20), "layer": layers},
    )  # fmt: skip


def _baselines(rows: Sequence[Row], x: Row, tip: Sequence[Row]) -> list[Row]:
    """Lines across the chart, told apart by their dashes."""
    names = [name for name in LINES if any(row["line"] == name for row in rows)]
    if not names:
        return []
    dashes = {"domain": names, "range": [LINES[name] for name in names]}
    legend = {"title": "line", "symbolType": "stroke", "symbolStrokeWidth": 2, "symbolStrokeColor": charts.SOFT}
    dash = {"field": "line", "type": "nominal", "scale": dashes, "legend": legend}
    drawn = {"type": "rule", "strokeWidth": 2, "color": charts.SOFT}
    return [{"transform": [{"filter": "isValid(datum.line)"}], "mark": drawn,
             "encoding": {"x": x, "strokeDash": dash, "tooltip": list(tip)}}]  # fmt: skip


HALF, LASTED, RIGHT = "half failed by turn", "right before the first error", "right answers"
BY_TURNS = (HALF, f"{HALF}, 95 %", LASTED, "95 %")  # what there is of dialogues alone


def summary_rows(folder: Folder, task: str) -> list[Row]:
    """A row for each group of episodes: how long they last, what they cost, and how many the server failed. These are
    in no mean beside it, and count for the turn by which half have failed as long as they were seen; a group without
    answers has no numbers.
    """
    finished = groups(folder.asked(task))
    failed = grouped(folder.failed(task), lambda each: (each.model, each.protocol, each.length))
    cut_off = _cut_off(folder.failed(task))
    rows = []
    for key in dict.fromkeys((*finished, *failed)):
        (model, _, length), same = key, finished.get(key, [])
        seen = cut_off.get(key, [])
        told = {"without a result": no_answers(failed.get(key, []), len(same), bool(same or seen))} if failed else {}
        numbers = {**_lasting(same, seen), **_counted(same)}
        asked = metrics.terms_in([*_kept(same), *(each.episode for each in failed.get(key, []) if each.episode)])
        rows.append({"model": model, "length": length, "episodes": len(same), **numbers, **asked, **told})
    rows = metrics.without_zeros(rows)
    return sorted(rows, key=lambda row: (row[RIGHT] is None, -(row[LASTED] or 0.0), -(row[RIGHT] or 0.0)))


def _lasting(same: Sequence[AskedCell], cut_off: Sequence[KeptEpisode]) -> Row:
    """How long dialogues last; nothing of whole prompts, which have one turn."""
    seen = [*_kept(same), *cut_off]
    if not seen or (same and is_whole(same[0])):
        return dict.fromkeys(BY_TURNS)
    half = half_failed(seen)
    told = dict.fromkeys(BY_TURNS) | {HALF: half.text, f"{HALF}, 95 %": half.between}
    if not same:
        return told
    found = metrics.summary(_kept(same), _compat(same))
    low, high = found["avg_interval"]
    return told | {LASTED: round(found["avg_max_length"], 2), "95 %": f"{low:.1f} to {high:.1f}"}


def _counted(same: Sequence[AskedCell]) -> Row:
    if not same:
        return dict.fromkeys((RIGHT, "replies without an answer", "tokens in", "tokens out", "seconds"))
    found = metrics.summary(_kept(same))
    return {
        RIGHT: found["accuracy"]["accuracy"], "replies without an answer": found["violation_rate"],
        "tokens in": found["tokens"]["sent"], "tokens out": found["tokens"]["generated"], "seconds": _seconds(same),
    }  # fmt: skip


def _seconds(same: Sequence[AskedCell]) -> float | None:
    told = [each.record.seconds for each in same if each.record.seconds is not None]
    return round(sum(told), 1) if told else None


def no_answers(failed: Sequence[FailedSample], finished: int, answered: bool) -> str:
    """How many episodes of a group the server failed, or were cut off; nothing where all are whole. `answered`: some
    replies came, of an episode that was not whole too.
    """
    count, whole = sum(each.by_server for each in failed), len(failed) + finished
    parts = [f"the server failed {count} of {plural(whole, 'episode')}"] if count else []
    parts += [f"{len(failed) - count} of {plural(whole, 'episode')} cut off"] if len(failed) > count else []
    return ("" if answered or not parts else "no answers: ") + ", ".join(parts)
