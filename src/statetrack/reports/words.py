"""What the numbers say, in sentences. Every number in them is worked out from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from statetrack.formatting import plural, shown, verb
from statetrack.reports import asked, diagnosed, judged, measured
from statetrack.reports.folder import Folder, Run
from statetrack.reports.judged import Claim, Judged
from statetrack.reports.parts import default_length
from statetrack.theory.families import find, has_family
from statetrack.verdicts.measured import SEEDS

APART = 0.1  # between the best and the worst median: below it a task does not tell the models apart
MOST_NAMED = 4
VERBS = {
    "stays apart": "keeps its states apart",
    "never represented": "never represents the state",
    "no state": "shows no state",
    "not read out": "does not read its state out",
    "unclear": "is unclear",
}


@dataclass(frozen=True)
class Separation:
    """The medians of the models with a state, at the end of the longest rows that all of them were tested on."""

    task: str
    protocol: str
    trained: int
    tested: int
    best: float
    worst: float
    floor: float | None
    models: int

    @property
    def apart(self) -> bool:
        return self.best - self.worst >= APART

    def text(self) -> str:
        floor = f", and a guess scores {shown(self.floor)}" if self.floor is not None else ""
        span = f"from {shown(self.worst)} to {shown(self.best)}" if self.best > self.worst else shown(self.best)
        scores = (
            f"Trained at {self.trained:,}, at the end of rows of {self.tested:,} the {self.models} models with a "
            f"state score {span}{floor}"
        )
        if self.apart:
            return f"{scores}: this task tells them apart."
        room = " There is hardly room for a difference." if self.floor is not None and self.floor > 1 - APART else ""
        return f"{scores}: this task does not tell them apart.{room}"


def separation(runs: Sequence[Run]) -> Separation | None:
    """None where fewer than two models with a state share a length."""
    keeping = [run for run in runs if not _memoryless(run.subject)]
    if not keeping:
        return None
    trained = default_length([run.trained for run in keeping])
    rows = [row for row in measured.tested([run for run in keeping if run.trained == trained]) if row["of"] == "rows"]
    models = {row["model"] for row in rows}
    shared = [n for n in {row["tested"] for row in rows} if {r["model"] for r in rows if r["tested"] == n} == models]
    if len(models) < 2 or not shared:
        return None
    longest = max(shared)
    here = [row for row in rows if row["tested"] == longest]
    middles = [median(row["accuracy"] for row in here if row["model"] == model) for model in models]
    floors = [row["floor"] for row in here if row["floor"] is not None]
    floor = median(floors) if floors else None
    return Separation(
        runs[0].task, runs[0].protocol, trained, longest, max(middles), min(middles), floor, len(models)
    )  # fmt: skip


def _memoryless(subject: str) -> bool:
    return has_family(subject) and find(subject).family == "memoryless"


def summary(folder: Folder, rows: Sequence[Judged], claims: Sequence[Claim]) -> list[str]:
    """The lines under the title: what was done, one for each task, what was looked into, what was predicted."""
    if not folder.cells:
        return ["This folder holds no results yet." + _planned(folder)]
    if not folder.runs and not folder.episodes:
        return [f"No cell of this folder has a result: {_standing(folder)}."]
    tasks = [_task(folder, task) for task in folder.tasks]
    said = [_what(folder), *tasks, *_diagnosed(folder), _judged(rows), _claimed(claims), _seeds(folder)]
    return [sentence for sentence in said if sentence]


def _planned(folder: Folder) -> str:
    missing = folder.status.counts["missing"]
    return f" {plural(missing, 'cell')} {verb(missing)} planned." if missing else ""


def _standing(folder: Folder) -> str:
    return ", ".join(f"{count} {name}" for name, count in folder.status.counts.items() if count)


def _what(folder: Folder) -> str:
    parts = []
    if folder.runs:
        lengths = sorted({run.trained for run in folder.runs})
        between = f"{lengths[0]:,}" if len(lengths) == 1 else f"{lengths[0]:,} to {lengths[-1]:,}"
        models = len({run.model for run in folder.runs})
        tasks = len({run.task for run in folder.runs})
        parts.append(
            f"{plural(models, 'model')} trained on {plural(tasks, 'task')} at length {between}, "
            f"{plural(len(folder.runs), 'cell')} in all"
        )
    if folder.episodes:
        subjects = len({each.model for each in folder.episodes})
        parts.append(f"{plural(subjects, 'subject')} asked in {plural(len(folder.episodes), 'episode')}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _task(folder: Folder, task: str) -> str:
    """Who keeps track of a task, and how far, under its first protocol."""
    protocols = folder.protocols(task)
    if not protocols:
        return _asked(folder, task)
    runs = folder.of(task, protocols[0])
    found = [
        measured.reach([run for run in runs if run.model == model]) for model in dict.fromkeys(r.model for r in runs)
    ]
    under = f" under {protocols[0]}" if len(protocols) > 1 else ""
    whole = [row for row in found if row["reach"] and row["reach"] == row["longest"]]
    some = sorted((row for row in found if 0 < row["reach"] < row["longest"]), key=lambda row: -row["reach"])
    none = [row for row in found if not row["reach"]]
    said = []
    if whole:
        guess = ", but a guess scores 99 % there as well" if all(row["easy"] for row in whole) else ""
        said.append(f"{_names(whole)} {verb(len(whole))} right {_as_far([row['reach'] for row in whole])}{guess}")
    if some:
        said.append(_lost(some))
    if none:
        said.append(f"{_names(none)} {'does' if len(none) == 1 else 'do'} not solve it")
    return f"On {task}{under}, {'; '.join(said)}."


def _as_far(lengths: Sequence[int]) -> str:
    """
    >>> _as_far([192, 192]), _as_far([4096, 32768])
    ('to 192, the longest tested', 'as far as tested, 4,096 to 32,768')
    """
    low, high = min(lengths), max(lengths)
    return f"to {low:,}, the longest tested" if low == high else f"as far as tested, {low:,} to {high:,}"


def _asked(folder: Folder, task: str) -> str:
    """How long each subject lasts in dialogues, or how often it is right in one answer, the best first."""
    rows = asked.summary_rows(folder, task)
    turns = {each.model for each in folder.asked(task) if each.record["cell"]["protocol"].get("way") != "whole"}
    last = {row["model"]: row["right before the first error"] for row in rows if row["model"] in turns}
    share = {row["model"]: row for row in rows if row["model"] not in turns and row["right answers"] is not None}
    said = []
    if last:
        best = sorted(last, key=lambda model: -last[model])[: 2 * MOST_NAMED]
        said.append("turns before the first error: " + ", ".join(f"{model} {last[model]:,.1f}" for model in best))
    if share:
        best = sorted(share, key=lambda model: -share[model]["right answers"])[: 2 * MOST_NAMED]
        told = (f"{model} {shown(share[model]['right answers'])} at {share[model]['length']:,}" for model in best)
        said.append("right final answers: " + ", ".join(told))
    return f"On {task}, {'; '.join(said)}." if said else ""


def _lost(rows: Sequence[dict[str, Any]]) -> str:
    if len(rows) > MOST_NAMED:
        lost = [row["lost_at"] for row in rows]
        return f"{len(rows)} models lose it, between {min(lost):,} and {max(lost):,}"
    at = {row["lost_at"]: [each for each in rows if each["lost_at"] == row["lost_at"]] for row in rows}
    return ", ".join(f"{_names(same)} {'loses' if len(same) == 1 else 'lose'} it by {n:,}" for n, same in at.items())


def _names(rows: Sequence[dict[str, Any]]) -> str:
    if len(rows) > MOST_NAMED:
        return f"{len(rows)} models"
    names = [row["model"] for row in rows]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _diagnosed(folder: Folder) -> list[str]:
    """What the diagnoses of each task conclude of each model, with the lengths at which those that fade do."""
    said = []
    for task in dict.fromkeys(record["task"] for record in folder.diagnoses):
        found: dict[str, list[dict[str, Any]]] = {}
        for record in diagnosed.of(folder, task):
            found.setdefault(record["label"], []).append(record)
        parts = [f"{label} {_concluded(records)}" for label, records in found.items()]
        if len(parts) <= 2 * MOST_NAMED:
            said.append(f"Looked into on {task}: {'; '.join(parts)}.")
    return said


def _concluded(records: Sequence[dict[str, Any]]) -> str:
    conclusions = " or ".join(dict.fromkeys(VERBS.get(each["conclusion"], each["conclusion"]) for each in records))
    lengths = [
        row["measured"] for row in diagnosed.reach_rows(records) if row["conclusion"] == "fades" and row["measured"]
    ]
    if not lengths:
        return conclusions
    span = f"{min(lengths):,.0f}" if min(lengths) == max(lengths) else f"{min(lengths):,.0f} to {max(lengths):,.0f}"
    return f"{conclusions}, below 90 % at {span}"


def _judged(rows: Sequence[Judged]) -> str:
    return _verdicts("theory", judged.counts(rows))


def _claimed(claims: Sequence[Claim]) -> str:
    """Of what results stand beside; the rest an argument refutes before anything runs."""
    return _verdicts("the design documents", Counter(each.verdict.outcome for each in claims if each.measured))


def _verdicts(whose: str, counts: Counter[str]) -> str:
    if not counts:
        return ""
    return (
        f"Of {plural(sum(counts.values()), 'prediction')} of {whose} {counts['confirmed']} "
        f"{verb(counts['confirmed'])} confirmed, {counts['refuted']} refuted and {counts['undecided']} undecided."
    )


def _seeds(folder: Folder) -> str:
    groups: dict[tuple[str, str, str, int], set[int]] = {}
    for run in folder.runs:
        groups.setdefault((run.task, run.model, run.protocol, run.trained), set()).add(run.seed)
    few = sum(len(seeds) < SEEDS for seeds in groups.values())
    if not few:
        return ""
    which = "All" if few == len(groups) else f"{few} of {len(groups)}"
    return f"{which} settings rest on fewer than {SEEDS} seeds, too few to judge what training finds."
