"""What other programs measured, in tables and sentences: the scores of a harness, and where logs were read from."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from statetrack.formatting import RULE, brief, plural, shown, spread
from statetrack.reports.figures import asking
from statetrack.reports.figures.view import slug
from statetrack.reports.folder import Folder, ScoredElsewhere, label
from statetrack.reports.table import Table
from statetrack.verdicts.measurements import grouped

APART = "Read from the file of the program that measured it; it counts in no verdict."
MOST_NAMED = 8
MOST_ACROSS = 10  # lengths that are columns
MOST_OPEN = 60  # lines of a table that is shown open


def _between(interval: tuple[float, float]) -> str:
    return f"{shown(interval[0])} to {shown(interval[1])}"


def _guess(chance: float) -> str:
    """
    >>> _guess(1 / 6), _guess(1 / 20160)
    ('.167', '4.96e-05')
    """
    return shown(chance) if chance >= 0.001 else brief(chance)


def _line(scored: ScoredElsewhere) -> list[Any]:
    found = scored.record
    lengths = [each.length for each in found.lengths]
    return [
        scored.model, found.rows, shown(found.accuracy), _between(found.interval), _guess(found.chance),
        f"{lengths[0]:,} to {lengths[-1]:,} ({len(lengths)})" if lengths else "",
        found.falls_below_half, None if found.violations is None else shown(found.violations), found.too_long or None,
        found.unanswered or None, found.prompts or None, found.source.by,
    ]  # fmt: skip


HEADERS = ["model", "rows", "accuracy", "95 %", "chance", "lengths", "below a half from", "replies without an answer",
           "too long", "unanswered", "prompts", "by"]  # fmt: skip
MEANING = (
    "The share of right final answers over all rows, with Wilson's 95 % interval, beside what a blind guess scores; "
    "from which length on it is below a half beyond chance; rows left out because they do not fit into the model's "
    "context, and replies that a server left empty, which are in no mean; the harness's hash of all rows and prompts, "
    f"where it kept the samples. Shares are {RULE}."
)


def table(folder: Folder, task: str) -> Table | None:
    """A line for each model, with the columns in which something is told."""
    scored = folder.scored(task)
    if not scored:
        return None
    headers, lines = _told(HEADERS, [_line(each) for each in scored])
    title = f"{task}: scored by other programs"
    return Table(f"{slug(task)}-elsewhere", title, f"{MEANING} {APART}", headers, lines, download=True)


def _told(headers: Sequence[str], lines: Sequence[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """Without columns that are empty throughout."""
    kept = [at for at in range(len(headers)) if any(line[at] not in (None, "") for line in lines)]
    return [headers[at] for at in kept], [[line[at] for at in kept] for line in lines]


def lengths(folder: Folder, task: str) -> Table | None:
    """The share of right final answers at every length that was asked, in their order, beside a guess."""
    rows = asking.all_length_rows(folder, task)
    if not rows:
        return None
    several = len({(row["model"], row["length"]) for row in rows}) < len(rows)  # a model asked by two protocols
    place = ["model", "protocol"] if several else ["model"]
    lines = [
        [*(row[name] for name in place), row["length"], f"at least {row['n']:,}" if row["at_least"] else row["n"],
         shown(row["accuracy"]), f"{shown(row['low'])} to {shown(row['high'])}",
         None if row["floor"] is None else _guess(row["floor"])]
        for row in rows
    ]  # fmt: skip
    headers = [*place, "length", "answers", "right", "95 %", "a guess"]
    caption = (
        "The share of right final answers to prompts of each length, with Wilson's 95 % interval, and what a blind "
        "guess scores. Lengths that nobody was asked about are left out."
    )
    title = f"{task}: right final answers, length by length"
    return Table(f"{slug(task)}-lengths", title, caption, headers, lines, len(lines) > MOST_OPEN, True)


def overview(folder: Folder) -> Table | None:
    """Every task and model in one table, where not every task has a tab."""
    if {each.task for each in folder.elsewhere} <= set(folder.tasks):
        return None
    headers, lines = _told(["task", *HEADERS], [[each.task, *_line(each)] for each in folder.elsewhere])
    title = "Every task that other programs scored"
    more = "Every length is printed by `statetrack results FOLDER --long`."
    return Table("elsewhere", title, f"{MEANING} {APART} {more}", headers, lines, download=True)


def means(folder: Folder) -> Table | None:
    """The harness's means over a selector, with as many lengths as there is room for."""
    found = folder.external.means
    if not found:
        return None
    shares = [each.by_length for each in found]
    asked = sorted({length for at in shares for length in at})
    shown_lengths = spread(asked, MOST_ACROSS)
    lines = [
        [each.selector, label(each.model, each.how, each.source), len(each.tasks), shown(each.accuracy),
         _guess(each.chance), *(shown(at[length]) if length in at else "" for length in shown_lengths)]
        for each, at in zip(found, shares, strict=True)
    ]  # fmt: skip
    more = f" {len(shown_lengths)} of {len(asked)} lengths." if len(shown_lengths) < len(asked) else ""
    caption = (
        "The means of lm-evaluation-harness over the tasks of a selector, each group counted once, over all rows and "
        f"at each length; a length is in the mean of the groups that have rows of it.{more} {APART}"
    )
    headers = ["selector", "model", "groups", "mean accuracy", "chance", *map(str, shown_lengths)]
    return Table("elsewhere-means", "Means over groups", caption, headers, lines, download=True)


def files(folder: Folder) -> Table | None:
    """The files that were read, and those that were not, each with its reason."""
    lines: dict[tuple[str, str, str], list[Any]] = {}
    for each in folder.external.scores:
        source = each.source
        told = lines.setdefault((source.file, source.by, source.model), [0, _when(source.created)])
        told[0] += 1
    made = [[file, by, model, plural(count, "task"), created] for (file, by, model), (count, created) in lines.items()]
    for log in folder.external.episodes:
        source, done = log.source, sum(record.finished for record in log.records)
        held = plural(len(log.records), "sample") + ("" if done == len(log.records) else f", {done} with a result")
        again = f", {log.repeats} of later epochs not counted" if log.repeats else ""
        made.append([source.file, source.by, source.model, f"{source.task}: {held}{again}", _when(source.created)])
    made += [[left.file, "", "", f"left out: {left.why}", ""] for left in folder.external.left_out]
    headers = ["file", "by", "model", "what it holds", "date"]
    caption = "Files of other programs in this folder. They are read where they are, and not changed."
    title = "Read from other programs"
    return Table("files", title, caption, headers, made, download=True, sentences=True) if made else None


def _when(created: str) -> str:
    """
    >>> _when("2026-11-18T21:17:10+00:00")
    '2026-11-18 21:17'
    """
    return created[:16].replace("T", " ")


def sentence(folder: Folder, task: str) -> str:
    """How often each model was right, and what a guess scores."""
    scored = sorted(folder.scored(task), key=lambda each: -each.record.accuracy)
    if not scored:
        return ""
    told = ", ".join(
        f"{each.model} {shown(each.record.accuracy)} ({_between(each.record.interval)}) of "
        f"{plural(each.record.rows, 'row')}"
        for each in scored[:MOST_NAMED]
    )
    return f"On {task}, scored elsewhere: {told}; a guess scores {_guess(scored[0].record.chance)}."


def without_a_tab(folder: Folder) -> str:
    """The same of tasks that have no tab of their own, in one sentence."""
    rest = [each for each in folder.elsewhere if each.task not in folder.tasks]
    if not rest:
        return ""
    told = []
    for model, same in list(grouped(rest, lambda each: each.model).items())[:MOST_NAMED]:
        right, chance = (fmean(getattr(each.record, name) for each in same) for name in ("accuracy", "chance"))
        told.append(f"{model} {shown(right)} over {plural(len(same), 'task')}, where a guess scores {_guess(chance)}")
    return f"Right final answers, scored elsewhere, as means over tasks: {'; '.join(told)}."


def what(folder: Folder) -> str:
    """What was read from other programs, for the first sentence of a page."""
    logs, scores = folder.external.episodes, folder.external.scores
    parts = []
    if scores:
        models, tasks = len({each.model for each in scores}), len({each.task for each in scores})
        parts.append(f"{plural(models, 'model')} scored by {scores[0].source.program} on {plural(tasks, 'task')}")
    if logs:
        samples = sum(len(log.records) for log in logs)
        parts.append(f"{plural(samples, 'sample')} read from {plural(len(logs), 'log')} of {logs[0].source.program}")
    return "; ".join(parts)
