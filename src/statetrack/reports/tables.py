"""The tables of a report: verdicts, what each model scored, what it took, and how the folder stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from statetrack.formatting import RULE, plural, shown
from statetrack.reports import figure_data
from statetrack.reports.figures import asking, diagnosis
from statetrack.reports.figures.view import slug
from statetrack.reports.folder import Folder, TrainedCell, by_model
from statetrack.reports.predictions import PredictionRow
from statetrack.reports.table import OutcomeCell, Table, TextWithNote
from statetrack.results import Record, TrainingRecord
from statetrack.results.diagnosis import UNDECODED
from statetrack.results.networks import HasEvaluations
from statetrack.results.records import DIVERGED, FAILED, SKIPPED
from statetrack.theory.predictions.predict import UNKNOWN, Prediction
from statetrack.theory.predictions.sources import SOURCES
from statetrack.verdicts import ablations as forms_of_e88
from statetrack.verdicts import patterns as section_6
from statetrack.verdicts.documents import DESIGN, predictions
from statetrack.verdicts.judge import JudgedPredictions, JudgedSentence
from statetrack.verdicts.outcomes import Verdict

MOST_SYMBOLS = 16  # of an input that is written out
MOST_STATES = 12  # of a machine whose steps are listed
MOST_LISTED = 60  # failures and damaged files that are named one by one


def verdicts(found: Sequence[PredictionRow], several_protocols: bool) -> Table:
    """One row a model and task: what exists, what training finds, what was seen."""
    place = ["task", "protocol", "model"] if several_protocols else ["task", "model"]
    numbers = _numbered(found)
    lines = []
    for line in found:
        where, said = [getattr(line, name) for name in place], line.judged.predictions
        if not said:
            lines.append([*where, "nothing is known of it", "", TextWithNote(*line.seen), "", ""])
            continue
        lines.append([
            *where, _said(said["weights"], numbers), _chip(line.judged, "weights"), TextWithNote(*line.seen),
            _said(said["training"], numbers), _chip(line.judged, "training"),
        ])  # fmt: skip
    headers = [*place, "theory: weights that exist", "verdict", "seen", "theory: training", "verdict "]
    caption = (
        "What theory says of the weights that exist, and of those that training finds, beside what was seen; the "
        "number in brackets is that of the reason, in the table below. No rows decide what holds at every length; what "
        "training finds is a rate, for which five seeds are the least, and a failure counts where controls show the "
        "training adequate."
    )
    return Table("verdicts", "Model by model", caption, headers, lines, download=True, sentences=True)


def _reason(said: Prediction) -> tuple[str, ...]:
    """Why, at which precision, how sure, and by whom."""
    why = f"{said.why}; if {', '.join(said.conditions)}" if said.conditions else said.why
    return why, said.precision, said.status, SOURCES[said.source]


def _numbered(found: Sequence[PredictionRow]) -> dict[tuple[str, ...], int]:
    """Every reason that theory gives, in the order of the page: each is told once."""
    said = (each for line in found for each in line.judged.predictions.values())
    return {reason: number for number, reason in enumerate(dict.fromkeys(map(_reason, said)), 1)}


def _said(said: Prediction, numbers: dict[tuple[str, ...], int]) -> TextWithNote:
    return TextWithNote(said.outcome, f"{said.status} [{numbers[_reason(said)]}]")


def theory(found: Sequence[PredictionRow]) -> Table | None:
    """The reasons of theory, each once; the table of verdicts has their numbers."""
    lines = [[number, *reason] for reason, number in _numbered(found).items()]
    caption = "Why theory says what it says, and of which precision of numbers, by the numbers of the table above."
    headers = ["reason", "because", "precision", "status", "source"]
    title = "The reasons of theory"
    return Table("theory", title, caption, headers, lines, download=True, sentences=True) if lines else None


def _chip(judged: JudgedPredictions, about: str) -> OutcomeCell | str:
    if judged.predictions[about].outcome == UNKNOWN:
        return ""
    return outcome_cell(judged.verdicts[about], judged.before.get(about))


def outcome_cell(now: Verdict, before: Verdict | None) -> OutcomeCell:
    return OutcomeCell(now.outcome, before.outcome if before else "")


def reasons(found: Sequence[PredictionRow]) -> Table:
    """Why each verdict was given."""
    lines = [
        [line.task, line.protocol, line.model, about, said.outcome, _chip(line.judged, about), given.because,
         given.seeds]
        for line in found for about, said in line.judged.predictions.items()
        if said.outcome != UNKNOWN and (given := line.judged.verdicts[about])
    ]  # fmt: skip
    headers = ["task", "protocol", "model", "about", "theory", "verdict", "because", "seeds"]
    return Table(
        "reasons", "Why each verdict was given", "The reason of each verdict.",
        headers, lines, folded=True, download=True, sentences=True,
    )  # fmt: skip


def claims(found: Sequence[JudgedSentence], key: str, title: str, caption: str, folded: bool) -> Table:
    several = len({each.prediction.document for each in found}) > 1
    lines = [
        [TextWithNote(each.prediction.section, each.prediction.document if several else ""), each.prediction.says,
         outcome_cell(each.verdict, each.before), each.verdict.because, each.verdict.seeds]
        for each in found
    ]  # fmt: skip
    headers = ["section", "what it says", "verdict", "because", "seeds"]
    return Table(key, title, caption, headers, lines, folded, True, True)


def accuracies(folder: Folder, task: str, protocol: str) -> Table:
    """Model by length, for papers: the median over seeds, their spread, and how many of them solved it."""
    runs = folder.of(task, protocol)
    rows = figure_data.at_length(runs)
    lengths = sorted({row["length"] for row in rows})
    lines = []
    for model in by_model(runs):
        mine = [[row for row in rows if row["model"] == model and row["length"] == length] for length in lengths]
        lines.append([model, *(_accuracy(cells) for cells in mine)])
    floors = [median(row["floor"] or 0 for row in rows if row["length"] == length) for length in lengths]
    lines.append(["floor", *(shown(floor) for floor in floors)])
    where = f"{task}, {protocol}" if len(folder.protocols(task)) > 1 else task
    caption = (
        f"Accuracy on {where} over all positions at the length trained on: median over seeds, and in brackets the "
        "lowest and the highest, where they differ, how many solved it (99 % over the last quarter, and over "
        "all positions at most half of the errors of the best guess), and how many diverged, of which the best weights "
        f"before that count. Shares are {RULE}."
    )
    headers = ["model", *(f"{length:,}" for length in lengths)]
    return Table(f"{slug(where)}-accuracy", f"{where}: accuracy", caption, headers, lines, folded=True, download=True)


def _accuracy(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    accuracies = [row["accuracy"] for row in rows]
    low, high = shown(min(accuracies)), shown(max(accuracies))
    spread = "" if low == high else f"{low}–{high}, "
    lost = sum(row["status"] == DIVERGED for row in rows)
    diverged = f", {lost} diverged" if lost else ""
    return f"{shown(median(accuracies))} ({spread}{sum(row['solved'] for row in rows)}/{len(rows)}{diverged})"


def costs(folder: Folder) -> Table | None:
    """One row a model and task: medians over cells."""
    lines = []
    for task in folder.tasks:
        rows = figure_data.cost([run for run in folder.runs if run.task == task])
        for model in dict.fromkeys(row["model"] for row in rows):
            mine = [row for row in rows if row["model"] == model]
            lines.append([
                task, model, len(mine), _middle(mine, "parameters"), _middle(mine, "state"), _middle(mine, "tokens"),
                _middle(mine, "seconds"), _total(mine, "seconds"),
                ", ".join(sorted({str(row["device"]) for row in mine})),
            ])  # fmt: skip
    headers = [
        "task", "model", "cells", "parameters", "numbers in the state", "tokens trained on", "seconds",
        "seconds in all", "device",
    ]  # fmt: skip
    caption = "What each model took: medians over its cells, and the sum of their seconds of training."
    return Table("cost", "Tokens, seconds, parameters", caption, headers, lines, download=True) if lines else None


def _middle(rows: Sequence[dict[str, Any]], name: str) -> float | int | None:
    known = [row[name] for row in rows if row[name] is not None and math.isfinite(row[name])]
    value = median(known) if known else None
    return int(value) if value is not None and name != "seconds" else value


def _total(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    known = [row[name] for row in rows if row[name] is not None]
    return float(sum(known)) if known else None


def episodes(folder: Folder, task: str) -> Table | None:
    rows = asking.summary_rows(folder, task)
    if not rows:
        return None
    dialogues = any(row[asking.HALF] for row in rows) or not any(row["episodes"] for row in rows)
    names = [name for name in rows[0] if dialogues or name not in asking.BY_TURNS]
    lasting = (
        "the turn by which half of the episodes had failed (Kaplan-Meier, with its 95 % interval, which may end "
        "beyond the turns that were seen), turns answered rightly before the first error (average with its 95 % "
        "interval over episodes), "
    )
    return Table(
        f"{slug(task)}-episodes", f"{task}: {'the dialogues' if dialogues else 'one prompt, one answer'}",
        f"Of each group: {lasting if dialogues else ''}the share of right answers, of episodes with a reply that held "
        "no answer, and what it cost. Rows that differ in the hash of their prompt were told other words, and are not "
        "alike.",
        [name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows], download=True,
    )  # fmt: skip


def failures_of(folder: Folder, task: str) -> Table | None:
    """The lengths at which diagnosed models fail, measured and predicted."""
    rows = diagnosis.reach_rows(diagnosis.of(folder, task))
    if not rows:
        return None
    lines = [
        [row["model"], row["trained"], row["seed"],
         _length(row["measured"], row["measured_low"], row["measured_high"], row["beyond"]), _predicted(row),
         row["ratio"], row["step_rate"]]
        for row in rows
    ]  # fmt: skip
    headers = ["model", "trained", "seed", "below 90 % at", "predicted", "predicted / measured", "error rate a step"]
    caption = (
        "The length at which the accuracy passes below 90 %, with 95 % intervals, and what was predicted from the "
        "separation of the states before it."
    )
    return Table(f"{slug(task)}-failures", f"{task}: where it fails", caption, headers, lines, download=True)


def _length(length: float | None, low: float | None, high: float | None, beyond: int | None) -> str:
    if length is None:
        return "" if beyond is None else "from the start" if beyond == 0 else f"not up to {beyond:,}"
    between = f" ({low:,.0f} to {high:,.0f})" if low is not None and high is not None else ""
    return f"{length:,.0f}{between}"


def _predicted(row: dict[str, Any]) -> str:
    if row["conclusion"] == UNDECODED:
        return UNDECODED
    return _length(row["predicted"], row["predicted_low"], row["predicted_high"], row["predicted_beyond"])


def ablations(folder: Folder) -> list[Table]:
    """The forms of E88 side by side."""
    made = []
    for each in forms_of_e88.ablations(folder.seen):
        lines = [
            [form["form"], form["subject"], len(form["seeds"]), _spread(form["accuracy"]),
             _spread(form["last_quarter"]),
             ", ".join(form["below_90"]), ", ".join(dict.fromkeys(filter(None, form["conclusions"])))]
            for form in each["forms"]
        ]  # fmt: skip
        missing = f" Not in this folder: {', '.join(each['missing'])}." if each["missing"] else ""
        headers = ["form", "model", "seeds", "accuracy", "last quarter", "below 90 % at", "what was found"]
        made.append(Table(
            f"ablation-{slug(each['task'])}-{each['length']}-{slug(each['base'])}",
            f"{each['task']} at {each['length']:,}: {each['base']} without its parts",
            f"{each['says']} Floor {shown(each['floor'])}.{missing}", headers, lines, download=True, sentences=True,
        ))  # fmt: skip
    return made


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = shown(min(values)), shown(max(values))
    return low if min(values) == max(values) else f"{low} to {high}"


def patterns(folder: Folder) -> Table | None:
    spoken_of = {each.test.task for each in predictions() if each.document == DESIGN and each.test}
    found = [each for each in section_6.patterns(folder.seen, folder.rules) if each["task"] in spoken_of]
    if not found:
        return None
    lines = [
        [each["section"], each["says"], each["task"], each["subject"], each["length"],
         OutcomeCell(each["outcome"], each["before"]), TextWithNote(each["why"], each["remark"]), each["seeds"]]
        for each in found
    ]  # fmt: skip
    headers = ["section", "what it expects", "task", "model", "length", "verdict", "because", "seeds"]
    caption = (
        "What section 6 of the design document (the text that proposed RTC, TXC and FSM, and predicted who solves "
        "them) expects to be seen inside the models, judged on these diagnoses."
    )
    return Table("patterns", "Expected patterns", caption, headers, lines, download=True, sentences=True)


def findings(folder: Folder, task: str) -> Table:
    """What was found of each diagnosed cell, in the words of the diagnosis."""
    known = {run.record.cell.key: run.record.said_for_ever for run in folder.runs}
    lines = [
        [each.label, each.found.trained, each.found.seed, each.found.conclusion,
         " ".join(filter(None, [*each.found.sentences, known.get(each.found.key or "", "")]))]
        for each in diagnosis.of(folder, task)
    ]  # fmt: skip
    headers = ["model", "trained", "seed", "what was found", "in words"]
    caption = "Why each model stops, or does not: the conclusion of its diagnosis and the sentences behind it."
    return Table(f"{slug(task)}-findings", f"{task}: what was found", caption, headers, lines, False, True, True)


def machines(folder: Folder, task: str) -> Table | None:
    """The machine that each network has learned, beside the task's."""
    lines = []
    for of, part in diagnosis.parts_of(diagnosis.of(folder, task), "automaton"):
        where = part["difference"] or part["error_string"]
        lines.append([
            of["model"], of["seed"], part["states"], part["task_states"], part["equal"], part["agreement"],
            _string(where), part["says"],
        ])  # fmt: skip
    headers = ["model", "seed", "states", "states of the task", "equal", "agreement", "first wrong after", "in words"]
    caption = (
        "The finite machine extracted from each network and minimised, against the task's smallest machine. "
        "`agreement` is how often machine and network say the same on other rows."
    )
    title = f"{task}: the learned machines"
    return Table(f"{slug(task)}-machines", title, caption, headers, lines, False, True, True) if lines else None


def _string(symbols: Sequence[str] | None) -> str:
    """An input as it is typed, long ones cut."""
    if not symbols:
        return ""
    more = f" ... ({len(symbols)} inputs)" if len(symbols) > MOST_SYMBOLS else ""
    return " ".join(symbols[:MOST_SYMBOLS]) + more


def transitions(folder: Folder, task: str) -> Table | None:
    """Every step of the extracted machines that are small enough to be read."""
    lines = []
    symbols = 0
    for of, part in diagnosis.parts_of(diagnosis.of(folder, task), "automaton"):
        if max(part["states"], part["task_states"]) > MOST_STATES:
            continue
        symbols = max(symbols, len(part["task_steps"][0]))
        for state, steps in enumerate(part["steps"]):
            lines.append([of["model"], of["seed"], state, part["answers"][state], *steps])
    lines = [[*line, *[None] * (4 + symbols - len(line))] for line in lines]
    headers = ["model", "seed", "state", "answer", *(f"on input {symbol}" for symbol in range(symbols))]
    caption = f"The steps of the extracted machines of at most {MOST_STATES} states; 0 is the start."
    title = f"{task}: steps of the learned machines"
    return Table(f"{slug(task)}-steps", title, caption, headers, lines, folded=True, download=True) if lines else None


def standing(folder: Folder) -> Table:
    """Done, failed, missing, by sweep and in all."""
    names = list(folder.status.counts)
    lines = [[name, *counts.values()] for name, counts in folder.status.sweeps.items()]
    if len(lines) != 1 or folder.status.beyond:
        lines.append(["all of the folder", *folder.status.counts.values()])
    caption = "How many cells of each sweep are done, diverged, running, failed, skipped and missing."
    return Table("standing", "How the folder stands", caption, ["sweep", *names], lines)


def troubles(folder: Folder) -> Table | None:
    """Each cell or file without a result, with the reason; reasons of skipped cells once, with their count."""
    lines: list[list[Any]] = [[FAILED, str(each.cell), each.reason] for each in folder.status.failures]
    lines += [[SKIPPED, plural(count, "cell"), why] for why, count in folder.status.skipped.items()]
    lines += [["damaged", each.path.name, each.why] for each in folder.status.damaged]
    if not lines:
        return None
    more = f" The first {MOST_LISTED} of {len(lines)}." if len(lines) > MOST_LISTED else ""
    return Table(
        "troubles", "What has no result", f"Why there is no result; running the sweep again tries it again.{more}",
        ["status", "what", "why"], lines[:MOST_LISTED], sentences=True,
    )  # fmt: skip


def cells(folder: Folder) -> Table:
    """Every cell, for the CSV file."""
    found = {id(run.record): run for run in folder.runs}
    lines = [_cell(record, found.get(id(record))) for record in folder.cells]
    headers = [
        "key", "task", "model", "length", "seed", "protocol", "status", "accuracy", "floor", "last quarter",
        "broken by", "for ever", "version", "reason",
    ]  # fmt: skip
    caption = "One row a cell, as `statetrack results` prints them."
    return Table("cells", "Every cell", caption, headers, lines, folded=True, download=True)


def _cell(record: Record, run: TrainedCell | None) -> list[Any]:
    cell, here = record.cell, record.at_length if isinstance(record, TrainingRecord) else None
    return [
        cell.key, cell.task, cell.subject, cell.length or None, cell.seed,
        run.protocol if run else str(cell.protocol.get("name", "")), record.status,
        here.accuracy if here and run else None, here.floor if here and run else None,
        here.tail_accuracy if here else None, record.broken_by if isinstance(record, HasEvaluations) else "",
        record.standing if isinstance(record, HasEvaluations) else "", record.version, record.reason,
    ]  # fmt: skip
