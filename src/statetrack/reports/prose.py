"""What the numbers say, in sentences. Every number in them is worked out from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from statetrack.asking import metrics
from statetrack.asking.solvers import split_subject
from statetrack.formatting import plural, shown, verb
from statetrack.reports import brought, elsewhere, figure_data, for_ever
from statetrack.reports.figures import asking, diagnosis
from statetrack.reports.folder import AskedCell, DiagnosedCell, Folder, TrainedCell, by_model
from statetrack.reports.predictions import PredictionRow
from statetrack.results.diagnosis import FADES, NO_STATE, SHRINKS, STAYS, UNDECODED, UNREAD, UNUSED
from statetrack.verdicts.judge import JudgedSentence, counts
from statetrack.verdicts.measurements import grouped
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED
from statetrack.verdicts.rates import LEAST
from statetrack.verdicts.tracked_length import ModelContrast, TrackedLength, reach

MOST_NAMED = 4
MOST_PROTOCOLS = 3  # that have a sentence each
VERBS = {
    STAYS: "keeps its states apart",
    SHRINKS: "shrinks and is still read",
    UNDECODED: "has no state that a probe decodes",
    NO_STATE: "shows no state",
    UNREAD: "does not read its state out",
    UNUSED: "reads no state",
    "unclear": "is unclear",
}


def apart(found: ModelContrast) -> str:
    """Whether a task tells the models with a state apart."""
    floor = f", and a guess scores {shown(found.floor)}" if found.floor is not None else ""
    span = f"from {shown(found.worst)} to {shown(found.best)}" if found.best > found.worst else shown(found.best)
    scores = (
        f"Trained at {found.trained:,}, at the end of rows of {found.tested:,} the {found.models} models with a "
        f"state score {span}{floor}"
    )
    if found.apart:
        return f"{scores}: this task tells them apart."
    room = "" if found.room else " There is hardly room for a difference."
    return f"{scores}: this task does not tell them apart.{room}"


def summary(folder: Folder, lines: Sequence[PredictionRow], sentences: Sequence[JudgedSentence]) -> list[str]:
    """The lines under the title: what was done, one for each task, what was looked into, what was predicted."""
    if not folder.cells and not folder.external:
        return ["This folder holds no results yet." + _planned(folder)]
    tasks = [sentence for task in folder.tasks for sentence in _task(folder, task)]
    if not (folder.runs or folder.episodes or folder.brought or folder.elsewhere):
        return [f"No cell of this folder has a result: {_standing(folder)}.", *filter(None, tasks)]
    tasks.append(elsewhere.without_a_tab(folder))
    said = [_what(folder), *tasks, *_diagnosed(folder), _judged(lines), _claimed(sentences), _seeds(folder)]
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
    if folder.brought:
        parts.append(f"{plural(len(folder.brought), 'network')} brought and tested, not trained here")
    if asked := [each for each in folder.episodes if each.source is None]:
        parts.append(f"{_who(asked)} asked in {plural(len(asked), 'episode')}")
    text = "; ".join(filter(None, [*parts, elsewhere.what(folder)]))
    return f"{text[0].upper()}{text[1:]}."


def _who(asked: Iterable[AskedCell]) -> str:
    """How many models, each once however it was asked, and how many others, such as a guess."""
    found = {split_subject(each.record.cell.subject) for each in asked}
    models = {model for model, _ in found if model}
    others = {who for model, who in found if not model}
    counts = [plural(len(models), "model")] if models else []
    return " and ".join([*counts, *([plural(len(others), "baseline")] if others else [])])


def _task(folder: Folder, task: str) -> list[str]:
    """Who keeps track of a task, and how far: every model, under every protocol, and what it is on other inputs. With
    many protocols each model is named once, at its best.
    """
    protocols = folder.protocols(task)
    found = {protocol: _reaches(folder.of(task, protocol)) for protocol in protocols}
    if len(protocols) > MOST_PROTOCOLS:
        best = _best(found.values())
        said = [f"On {task}, each model in the best of {len(protocols)} ways to train, {_far(best)}."]
    else:
        under = [f" under {protocol}" if len(protocols) > 1 else "" for protocol in protocols]
        said = [f"On {task}{where}, {_far(rows)}." for where, rows in zip(under, found.values(), strict=True)]
    if said:
        runs = [run for run in folder.runs if run.task == task]
        said[-1] += _elsewhere(runs) + _broken(runs) + for_ever.sentence(runs)
    return [*said, brought.sentence(folder, task), _asked(folder, task), elsewhere.sentence(folder, task)]


def _reaches(runs: Iterable[TrainedCell]) -> dict[str, TrackedLength]:
    return {model: reach(run.record for run in same) for model, same in by_model(runs).items()}


def _best(found: Iterable[dict[str, TrackedLength]]) -> dict[str, TrackedLength]:
    """Of each model the row that reaches furthest."""
    best: dict[str, TrackedLength] = {}
    for rows in found:
        for model, row in rows.items():
            if model not in best or row.reach > best[model].reach:
                best[model] = row
    return best


def _elsewhere(runs: Sequence[TrainedCell]) -> str:
    """How many networks that solved random rows are wrong on rows of another kind, and the worst of them."""
    tried, wrong = figure_data.wrong_elsewhere(runs)
    if not wrong:
        return ""
    lowest, kind, run = wrong[0]
    if tried == 1:
        return f" {run.model} solves random rows; on “{kind}” {shown(lowest)} of its answers are right."
    return (
        f" Of {plural(tried, 'network')} that solved random rows {len(wrong)} {verb(len(wrong))} below 99 % on other "
        f"rows, at worst {run.model}: {shown(lowest)} on “{kind}”."
    )


def _broken(runs: Sequence[TrainedCell]) -> str:
    """How many networks that solved random rows are broken by a word, and the shortest such word."""
    solved = [run for run in runs if run.record.solved and run.record.broken_by]
    words = [(run.record.broken.tokens, run.model, run.record.broken.word) for run in solved if run.record.broken]
    if not words:
        return ""
    _, model, word = min(words)
    if len(solved) == 1:
        return f" {model} solves random rows, and is broken by the word {word}."
    return (
        f" Of {plural(len(solved), 'network')} that solved random rows and met hard words {len(words)} "
        f"{verb(len(words))} broken by one: {model} by {word}."
    )


def _far(found: dict[str, TrackedLength]) -> str:
    whole = {model: row for model, row in found.items() if row.reach and row.reach == row.longest}
    some = {model: row for model, row in found.items() if 0 < row.reach < row.longest}
    none = [model for model, row in found.items() if not row.reach]
    said = []
    if whole:
        guess = ", but a guess scores 99 % there as well" if all(row.easy for row in whole.values()) else ""
        far = _as_far([row.reach for row in whole.values()])
        said.append(f"{_names(list(whole))} {verb(len(whole))} right {far}{guess}")
    if some:
        said.append(_lost(some))
    if none:
        said.append(f"{_names(none)} {'does' if len(none) == 1 else 'do'} not solve it")
    return "; ".join(said)


def _as_far(lengths: Sequence[int]) -> str:
    """
    >>> _as_far([192, 192]), _as_far([4096, 32768])
    ('to 192, the longest tested', 'as far as tested, 4,096 to 32,768')
    """
    low, high = min(lengths), max(lengths)
    return f"to {low:,}, the longest tested" if low == high else f"as far as tested, {low:,} to {high:,}"


def _asked(folder: Folder, task: str) -> str:
    """How long each subject lasts in dialogues, or how often it is right in one answer, the best first; and whose
    server failed, which is no answer.
    """
    every = asking.summary_rows(folder, task)
    last = {row["model"]: row for row in every if row[asking.HALF]}
    said = []
    if last:
        best = sorted(last, key=lambda model: -(last[model][asking.LASTED] or 0.0))[: 2 * MOST_NAMED]
        said.append("half of the episodes have failed by turn: " + ", ".join(_half(last[model]) for model in best))
    if shares := _shares(folder, task):
        said.append("right final answers: " + ", ".join(shares))
    said += [f"{row['model']}: {row['without a result']}" for row in every if row.get("without a result")]
    return f"On {task}, {'; '.join(said)}." if said else ""


def _shares(folder: Folder, task: str) -> list[str]:
    """How often each subject was right in one answer, over all lengths that it was asked, the best first."""
    asked = grouped(filter(asking.is_whole, folder.asked(task)), lambda each: each.model)
    found = {model: metrics.accuracy([each.record.episode for each in same]) for model, same in asked.items()}
    told = []
    for model in sorted((model for model in found if found[model]["n"]), key=lambda model: -found[model]["accuracy"]):
        share, (low, high) = found[model]["accuracy"], found[model]["interval"]
        told.append(f"{model} {shown(share)} ({shown(low)} to {shown(high)}) of {found[model]['n']:,}")
    return told[: 2 * MOST_NAMED]


def _half(row: dict[str, Any]) -> str:
    """
    >>> _half({"model": "hf:tiny", asking.HALF: "4", f"{asking.HALF}, 95 %": "2 to 9"})
    'hf:tiny 4 (2 to 9)'
    """
    between = row[f"{asking.HALF}, 95 %"]
    return f"{row['model']} {row[asking.HALF]}" + (f" ({between})" if between != row[asking.HALF] else "")


def _lost(found: dict[str, TrackedLength]) -> str:
    lost = {model: row.lost_at or 0 for model, row in sorted(found.items(), key=lambda each: -each[1].reach)}
    if len(lost) > MOST_NAMED:
        return f"{len(lost)} models lose it, between {min(lost.values()):,} and {max(lost.values()):,}"
    at = {n: [model for model, where in lost.items() if where == n] for n in lost.values()}
    return ", ".join(f"{_names(same)} {'loses' if len(same) == 1 else 'lose'} it by {n:,}" for n, same in at.items())


def _names(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _diagnosed(folder: Folder) -> list[str]:
    """What the diagnoses of each task conclude of each model, with the lengths at which those that fade do."""
    said = []
    for task in dict.fromkeys(each.found.task for each in folder.diagnoses):
        found = grouped(diagnosis.of(folder, task), lambda each: each.label)
        parts = [f"{label} {_concluded(same)}" for label, same in found.items()]
        if len(parts) <= 2 * MOST_NAMED:
            said.append(f"Looked into on {task}: {'; '.join(parts)}.")
    return said


def _concluded(found: Sequence[DiagnosedCell]) -> str:
    words = [each.found.conclusion for each in found]
    conclusions = " or ".join(dict.fromkeys(VERBS.get(word, word) for word in words))
    fading = [row for row in diagnosis.reach_rows(found) if row["conclusion"] == FADES]
    lengths = [row["measured"] for row in fading if row["measured"]]
    if not lengths:
        return conclusions
    span = f"{min(lengths):,.0f}" if min(lengths) == max(lengths) else f"{min(lengths):,.0f} to {max(lengths):,.0f}"
    return f"{conclusions}, below 90 % at {span}"


def _judged(lines: Sequence[PredictionRow]) -> str:
    return _verdicts("theory", counts(line.judged for line in lines))


def _claimed(sentences: Sequence[JudgedSentence]) -> str:
    """Of what results stand beside; the rest an argument refutes before anything runs."""
    return _verdicts("the design documents", Counter(each.verdict.outcome for each in sentences if each.measured))


def _verdicts(whose: str, found: Counter[str]) -> str:
    if not found:
        return ""
    return (
        f"Of {plural(sum(found.values()), 'prediction')} of {whose} {found[CONFIRMED]} "
        f"{verb(found[CONFIRMED])} confirmed, {found[REFUTED]} refuted and {found[UNDECIDED]} undecided."
    )


def _seeds(folder: Folder) -> str:
    groups: dict[tuple[str, str, str, int], set[int]] = {}
    for run in folder.runs:
        groups.setdefault((run.task, run.model, run.protocol, run.trained), set()).add(run.seed)
    few = sum(len(seeds) < LEAST for seeds in groups.values())
    if not few:
        return ""
    which = "All" if few == len(groups) else f"{few} of {len(groups)}"
    return f"{which} settings rest on fewer than {LEAST} seeds, too few to judge what training finds."
