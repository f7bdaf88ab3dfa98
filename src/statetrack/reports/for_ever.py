"""What is known of networks at every length: proved, broken by a word, or open."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.formatting import plural, verb
from statetrack.reports.figures.view import slug
from statetrack.reports.folder import Folder, TrainedCell
from statetrack.reports.table import Table
from statetrack.results.evaluations import MISSING


def table(folder: Folder, task: str, protocol: str) -> Table | None:
    """A line for each network of which something is known."""
    several = len(folder.protocols(task)) > 1
    lines = [_line(run) for run in folder.of(task, protocol) if run.record.standing]
    headers = ["model", "trained", "seed", "for ever", "by", "epsilon", "margin", "regions", "seconds"]
    caption = (
        "What is known of each network after every word, of any length. A proof (a file beside the weights, which "
        "`statetrack verify` checks) covers every implementation whose steps are off by at most epsilon in each number "
        "of the state. A word was run through the network itself: after its last token the answer is wrong."
    )
    title = f"{task}: for ever" + (f", {protocol}" if several else "")
    key = f"{slug(task)}-{slug(protocol)}-for-ever" if several else f"{slug(task)}-for-ever"
    return Table(key, title, caption, headers, lines, download=True) if lines else None


def _line(run: TrainedCell) -> list[object]:
    record = run.record
    claimed = record.proved or (record.for_ever if record.for_ever and not record.broken else None)
    there = claimed if claimed is not None and not claimed.reason else None
    seconds = record.for_ever.seconds if record.for_ever else None
    numbers = [there.epsilon, there.margin, there.regions] if there else [None] * 3
    return [run.model, run.trained, run.seed, record.standing, record.shown_by, *numbers, seconds]


def sentence(runs: Sequence[TrainedCell]) -> str:
    """How many of the networks of a task are proved, and of how many a proof is spoken of that is not there."""
    proofs = sum(run.record.proved is not None for run in runs)
    missing = sum(run.record.standing == MISSING for run in runs)
    said = f" {plural(proofs, 'network')} {verb(proofs)} proved right for ever." if proofs else ""
    lost = f" The proof of {plural(missing, 'network')} is missing, so that nothing is claimed." if missing else ""
    return said + lost
