"""What theory said and what was seen, as the page shows it: a line for each model, task and protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetrack.formatting import plural, shown
from statetrack.reports import figure_data
from statetrack.reports.folder import Folder, TrainedCell, by_model
from statetrack.verdicts import judge
from statetrack.verdicts.judge import JudgedPredictions, JudgedSentence
from statetrack.verdicts.measurements import Measurement
from statetrack.verdicts.tracked_length import reach


@dataclass(frozen=True)
class PredictionRow:
    """One model on one task under one protocol, in the words of the page, and what was seen."""

    task: str
    protocol: str
    model: str
    judged: JudgedPredictions
    seen: tuple[str, str]  # in short, and what it rests on


def lines(folder: Folder) -> list[PredictionRow]:
    """Every model on every task that theory knows, or may know, in the order of the page."""
    made = []
    for name in folder.tasks:
        for protocol in folder.protocols(name):
            runs = folder.of(name, protocol)
            results = _results(folder, [run for run in folder.runs if run.protocol == protocol])  # controls among them
            for model, same in by_model(runs).items():
                found = judge.judge(same[0].record.cell.subject, name, results, folder.rules)
                made.append(PredictionRow(name, protocol, model, found, seen(same)))
    return made


def sentences(folder: Folder) -> list[JudgedSentence]:
    """What the documents say that concerns the folder."""
    asked = [episode.record for episode in folder.episodes if episode.source is None]
    return judge.sentences(_results(folder, folder.runs), asked, folder.rules)


def _results(folder: Folder, runs: Sequence[TrainedCell]) -> list[Measurement]:
    diagnoses = {each.found.key: each.found for each in folder.diagnoses if each.found.key}
    results, refused = judge.results((run.record for run in runs), diagnoses)
    for run in runs:
        if (why := refused.get(run.record.cell)) is not None:
            folder.notices.append(f"{run.task}, {run.model}, seed {run.seed}: not judged, {why}.")
    return results


def seen(runs: Sequence[TrainedCell]) -> tuple[str, str]:
    """What was seen: how far it was right, or where it stands at the length trained on; and what that rests on."""
    found = reach(run.record for run in runs)
    where = f"trained at {found.trained:,}{_elsewhere(runs, found.trained)}{_for_ever(runs, found.trained)}"
    seeds = f"{plural(found.seeds, 'seed')}, {where}"
    if found.reach:
        guess = "; a guess scores as much there" if found.easy else ""
        if found.lost_at is None:
            return f"right to {found.reach:,}", f"the longest tested{guess}; {seeds}"
        return f"right to {found.reach:,}, lost at {found.lost_at:,}", f"{seeds}{guess}"
    ends = [each for each in figure_data.at_length(runs) if each["length"] == found.trained]
    low, high = min(each["accuracy"] for each in ends), max(each["accuracy"] for each in ends)
    spread = shown(low) if low == high else f"{shown(low)} to {shown(high)}"
    floor = f", floor {shown(ends[0]['floor'])}" if ends[0]["floor"] is not None else ""
    return f"not solved: {spread}{floor}", seeds


def _elsewhere(runs: Sequence[TrainedCell], trained: int) -> str:
    """How many of the networks that solved random rows of this length are wrong on rows of another kind."""
    tried, wrong = figure_data.wrong_elsewhere(run for run in runs if run.trained == trained)
    if not wrong:
        return ""
    lowest, kind, _ = wrong[0]
    return f"; on other rows {len(wrong)} of {tried} below 99 %, at worst {shown(lowest)} on “{kind}”"


def _for_ever(runs: Sequence[TrainedCell], trained: int) -> str:
    """How many of the networks of this length are proved for ever, how many a word breaks, and the shortest of them."""
    here = [run.record for run in runs if run.trained == trained]
    proofs = sum(record.proved is not None for record in here)
    said = f"; {proofs} proved for ever" if proofs else ""
    words = [record.broken for record in here if record.broken is not None]
    if not words:
        return said
    shortest = min(words, key=lambda word: word.tokens)
    return f"{said}; {len(words)} broken by a word such as {shortest.word}"
