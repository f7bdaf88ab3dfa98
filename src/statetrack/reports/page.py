"""The report as data: a title, a summary, notices, and sections of figures, tables and sentences in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from statetrack.errors import BadInput
from statetrack.formatting import first_sentence, not_ours, plural, verb
from statetrack.reports import brought, elsewhere, for_ever, measures, predictions, prose, provenance, tables
from statetrack.reports.figures import catalogue
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import slug
from statetrack.reports.folder import Folder
from statetrack.reports.predictions import PredictionRow
from statetrack.reports.table import Table
from statetrack.results.plans import RULES
from statetrack.tasks import trusted_task
from statetrack.verdicts.documents import DESIGN, PERMUTATIONS
from statetrack.verdicts.judge import JudgedSentence, counts
from statetrack.verdicts.outcomes import OUTCOMES
from statetrack.verdicts.tracked_length import separation

Block = Figure | Table
DOCUMENTS = (
    f"The design documents are the two texts that statetrack grew from: “{DESIGN}” proposed the tasks RTC, TXC and "
    f"FSM, “{PERMUTATIONS}” the composition of permutations, each with predictions of who solves them."
)
NOT_DONE = {
    "failed": "each with its reason under “About this run”",
    "missing": "they are planned and not run yet",
    "skipped": "shorter lengths made them pointless",
    "running": "they run while this page is made",
}


@dataclass(frozen=True)
class Section:
    """A tab of the page."""

    key: str
    title: str
    lead: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """Everything that is written, whatever it is written as."""

    title: str
    summary: list[str]
    facts: list[tuple[str, str]]  # a few numbers under the summary
    notices: list[str]
    sections: list[Section]
    provenance: list[tuple[str, str]]

    @property
    def figures(self) -> list[Figure]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]

    @property
    def tables(self) -> list[Table]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Table)]


def page(folder: Folder, title: str, command: str) -> Page:
    """The whole report of a folder."""
    lines = predictions.lines(folder)
    # What documents say of language models counts beside cells that were trained, and does not open a page without one.
    sentences = predictions.sentences(folder) if folder.runs else []
    sections = [
        _verdicts(folder, lines, sentences) if folder.cells or not folder.external else None,
        *(_task(folder, task) for task in folder.tasks),
        *_diagnosis(folder),
        *_cost(folder),
        *_elsewhere(folder),
        _about(folder),
    ]
    return Page(
        title, prose.summary(folder, lines, sentences), _facts(folder, lines), _notices(folder),
        [section for section in sections if section is not None], provenance.lines(folder, command),
    )  # fmt: skip


def _facts(folder: Folder, lines: Sequence[PredictionRow]) -> list[tuple[str, str]]:
    given, found = counts(line.judged for line in lines), folder.status.counts
    done = found["done"] + found["diverged"]
    facts = [(f"{done:,}", "cell done" if done == 1 else "cells done")] if folder.cells or not folder.external else []
    if files := len(folder.external.files):
        facts.append((f"{files:,}", "file read" if files == 1 else "files read"))
    facts += [(f"{found[name]:,}", name) for name in ("failed", "missing", "skipped", "running") if found[name]]
    if folder.status.damaged:
        facts.append((f"{len(folder.status.damaged):,}", "damaged"))
    tasks = len({*folder.tasks, *(each.task for each in folder.elsewhere)})
    facts += [(f"{tasks:,}", "task" if tasks == 1 else "tasks")]
    if models := len(folder.models_here):
        facts.append((f"{models:,}", "model" if models == 1 else "models"))
    if given:
        facts += [(str(given[name]), name) for name in OUTCOMES]
    return facts


def _notices(folder: Folder) -> list[str]:
    counts = folder.status.counts
    made = list(dict.fromkeys(folder.notices))
    if folder.status.foreign:
        made.append(f"{not_ours(folder.status.foreign)}.")
    made += [f"{notice}." for notice in folder.external.notices]
    for name, why in NOT_DONE.items():
        if counts[name]:
            made.append(f"{plural(counts[name], 'cell')} {verb(counts[name])} {name}: {why}.")
    if folder.status.damaged:
        count = len(folder.status.damaged)
        made.append(
            f"{plural(count, 'file')} {verb(count)} damaged and left out; running the sweep again makes them anew."
        )
    return made


def _verdicts(folder: Folder, lines: Sequence[PredictionRow], sentences: Sequence[JudgedSentence]) -> Section | None:
    """None where something was asked or only evaluated, and nothing trained: the page opens with what came of it."""
    blocks: list[Block] = [*catalogue.overall(folder)]
    if lines:
        several = len({run.protocol for run in folder.runs}) > 1
        blocks += _there(tables.verdicts(lines, several), tables.theory(lines), tables.reasons(lines))
    by_results = [each for each in sentences if each.measured]
    by_argument = [each for each in sentences if not each.measured]
    if by_results:
        blocks.append(tables.claims(
            by_results, "documents", "What the design documents predict",
            f"{DOCUMENTS} What they predict of these models, judged by rules {RULES}.", False,
        ))  # fmt: skip
    if by_argument:
        blocks.append(tables.claims(
            by_argument, "arguments",
            f"{plural(len(by_argument), 'prediction')} of theirs that no number can decide",
            f"{DOCUMENTS} What they say here of these models and tasks cannot be true, for the reason beside it; "
            "results have no say in it.", True,
        ))  # fmt: skip
    if not blocks and (folder.episodes or folder.brought or folder.external):
        return None
    if not blocks:
        return Section("verdicts", "Verdicts", ["There is nothing to judge yet."], [])
    lead = (
        "What theory said and what was seen. Theory speaks of the weights that exist and of the weights that "
        f"training finds; a prediction is confirmed, refuted or undecided by rules {RULES} of statetrack, and none is "
        "dropped. Where the cells were planned under older rules, their verdict stands beside it if it differs."
    )
    return Section("verdicts", "Verdicts", [lead], blocks)


def _task(folder: Folder, task: str) -> Section | None:
    lead: list[str] = []
    blocks: list[Block] = []
    for protocol in folder.protocols(task):
        found = separation(run.record for run in folder.of(task, protocol))
        if found is not None:
            under = f"Under {protocol}: " if len(folder.protocols(task)) > 1 else ""
            lead.append(under + prose.apart(found))
        blocks += _there(
            *catalogue.of_training(folder, task, protocol), measures.off_data(folder, task, protocol),
            tables.accuracies(folder, task, protocol), for_ever.table(folder, task, protocol),
            measures.measures(folder, task, protocol),
        )  # fmt: skip
    if folder.brought_on(task):
        blocks += [*catalogue.of_brought(folder, task), *_there(brought.table(folder, task))]
    if folder.asked(task) or folder.scored(task) or folder.failed(task):
        blocks += catalogue.of_asking(folder, task)
    blocks += _there(tables.episodes(folder, task), elsewhere.table(folder, task), elsewhere.lengths(folder, task))
    if not blocks:
        lead = ["No cell of this task has a result; the reasons are under “About this run”."]
    return Section(f"task-{slug(task)}", task, [*_about_task(task), *lead], blocks)


def _about_task(name: str) -> list[str]:
    """What the task asks, in its own words."""
    try:
        return [first_sentence(type(trusted_task(name)).__doc__)]
    except BadInput as error:
        return [f"This task is not at hand here ({error}); theory says nothing of it."]


def _diagnosis(folder: Folder) -> list[Section]:
    if not folder.diagnoses and folder.left_out is None:
        return []
    blocks: list[Block] = []
    for task in dict.fromkeys(each.found.task for each in folder.diagnoses):
        blocks += _there(tables.findings(folder, task), tables.failures_of(folder, task))
        blocks += catalogue.of_diagnosis(folder, task)
        blocks += _there(tables.machines(folder, task), tables.transitions(folder, task))
    blocks += [*tables.ablations(folder), *_there(tables.patterns(folder))]
    if folder.left_out:
        blocks.append(Table("left-out", "Not diagnosed", "Cells that were left out, and why.", ["what", "why"],
                            [[each.what, each.why] for each in folder.left_out], folded=True))  # fmt: skip
    lead = (
        "Why a model stops: what its state holds, how far apart true states stay, what reaches back, and which machine "
        "it has learned. Figures show the longest length that each model was trained on and at most three seeds of it; "
        "the tables name all."
    )
    return [Section("diagnostics", "Diagnostics", [lead], blocks)]


def _cost(folder: Folder) -> list[Section]:
    table = tables.costs(folder)
    if table is None:
        return []
    lead = "What the results took, beside what they are worth."
    figures = [figure for task in folder.tasks for figure in catalogue.of_cost(folder, task)]
    return [Section("cost", "Cost", [lead], [*figures, table])]


def _elsewhere(folder: Folder) -> list[Section]:
    blocks = _there(elsewhere.means(folder), elsewhere.overview(folder), elsewhere.files(folder))
    if not blocks:
        return []
    lead = (
        "What lm-evaluation-harness and Inspect measured of statetrack's tasks, from the files that they wrote. The "
        "numbers stand in the tabs of the tasks, beside those that statetrack measured itself; where a harness scored "
        "more tasks than tabs could hold, here."
    )
    return [Section("elsewhere", "Other programs", [lead], blocks)]


def _about(folder: Folder) -> Section:
    every = tables.cells(folder) if folder.cells else None
    lead = "How these results came about: commands, versions, seeds, devices, and what is missing."
    blocks = _there(tables.standing(folder), tables.troubles(folder), every)
    return Section("about", "About this run", [lead], blocks)


def _there(*blocks: Block | None) -> list[Block]:
    return [block for block in blocks if block is not None]
