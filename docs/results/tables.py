"""Write the tables of docs/results.md again from the packed cells beside this file: python docs/results/tables.py

A table stands between a line `<!-- archive: table -->` and a line `<!-- end -->`. Most are those of the report.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from statetrack.certificates.certify import BROKEN, OPEN, PROVED
from statetrack.formatting import shown
from statetrack.reports import page_of, predictions
from statetrack.reports.folder import read as read_folder
from statetrack.reports.table import Table
from statetrack.reports.tables import verdicts
from statetrack.results import Store, TrainingRecord, unpack
from statetrack.theory.predictions.predict import UNKNOWN
from statetrack.verdicts.depth_law import laws
from statetrack.verdicts.judge import ABOUT, JudgedPredictions, results
from statetrack.verdicts.outcomes import OUTCOMES

HERE = Path(__file__).parent
PAGE = HERE.parent / "results.md"
PLACE = re.compile(r"(<!-- ([a-z-]+): ([a-z0-9_-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
WORK = tempfile.TemporaryDirectory(prefix="results-")


@cache
def folder(archive: str) -> Path:
    place = Path(WORK.name) / archive
    unpack(HERE / f"{archive}.tar.gz", place)
    return place


@cache
def records(archive: str) -> list[TrainingRecord]:
    return [record for record in Store(folder(archive)).records() if isinstance(record, TrainingRecord)]


def alike(archive: str, *keys: str, **wanted: Any) -> list[tuple[list[str], list[TrainingRecord]]]:
    """The records whose cells have what is wanted, by what their cells have under the keys, in order."""
    groups: dict[tuple[str, ...], list[TrainingRecord]] = {}
    for record in records(archive):
        cell = record.cell.to_dict() | {"protocol": record.cell.protocol["name"]}
        if all(cell[key] == value for key, value in wanted.items()):
            groups.setdefault(tuple(cell[key] for key in keys), []).append(record)
    return [(list(of), found) for of, found in sorted(groups.items())]


@cache
def reported(archive: str) -> dict[str, Table]:
    page = page_of(folder(archive))
    return {table.key: table for table in page.tables}


def spread(accuracies: list[float | None]) -> str:
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    if not known:
        return ""
    low, high = shown(min(known)), shown(max(known))
    return low if low == high else f"{shown(median(known))} ({low}–{high})"


def costs(archive: str) -> Table:
    """Seconds that the cells of a model took, while others ran beside them."""
    took = [(*of, len(found), sum(each.seconds or 0.0 for each in found)) for of, found in alike(archive, "subject")]
    total = sum(seconds for *_, seconds in took)
    costliest = sorted(took, key=lambda row: -row[-1])
    rows = [[model, cells, round(seconds), f"{seconds / total:.0%}"] for model, cells, seconds in costliest]
    return Table("costs", "", "", ["model", "cells", "seconds", "share"], rows)


def ends(found: list[TrainingRecord], length: int) -> str:
    """The last 32 positions of rows of a length."""
    return spread([each.rows[length].last_32_accuracy for each in found])


def beyond(archive: str, task: str, trained: int) -> Table:
    """The last 32 positions of longer rows than were trained on, under `design`."""
    held = alike(archive, "subject", task=task, length=trained, protocol="design")
    lengths = [times * trained for times in (2, 4, 8, 16)]

    rows = [[*of, *(ends(found, length) for length in lengths)] for of, found in held]
    return Table("beyond", "", "", ["model", *(f"{length:,}" for length in lengths)], rows)


def streams(archive: str) -> Table:
    """The last quarter at the length trained on, the end of rows of 1,024, and the end of a stream at each mark."""
    marks = [4**power for power in range(6, 11)]
    rows = [
        [
            *of,
            spread([each.at_length.tail_accuracy for each in found]),
            ends(found, 1024),
            *(spread([(each.streams[0].accuracy or {})[str(mark)] for each in found]) for mark in marks),
        ]
        for of, found in alike(archive, "task", "subject")
    ]
    return Table("streams", "", "", ["task", "model", "trained", "1,024", *(f"{mark:,}" for mark in marks)], rows)


def words(archive: str) -> Table:
    """How many networks answered a whole stream rightly, and what a search for a word, or a proof, found of them."""
    headers = ["task", "model", "networks", "right to the end of the stream", "proved", "open", "broken",
               "tokens of the words that break"]  # fmt: skip
    return Table("words", "", "", headers, [[*of, *fates(found)] for of, found in alike(archive, "task", "subject")])


def fates(found: list[TrainingRecord]) -> list[Any]:
    known = [each.for_ever for each in found if each.for_ever]
    lengths = sorted(each.word.tokens for each in known if each.word)
    counts = [sum(each.outcome == outcome for each in known) for outcome in (PROVED, OPEN, BROKEN)]
    return [len(found), sum(lasts(each) for each in found), *counts, ", ".join(f"{each:,}" for each in lengths)]


def lasts(record: TrainingRecord) -> bool:
    """Right at every mark of the stream."""
    accuracy = record.streams[0].accuracy or {None: None}
    return all(each == 1 for each in accuracy.values())


def words_in_all(archive: str) -> Table:
    """The same over all networks: those that were right to the end of the stream, and the others."""
    rows = []
    for right, told in ((True, "to the end"), (False, "not to the end")):
        count, _, *counts, tokens = fates([each for each in records(archive) if lasts(each) is right])
        rows.append([told, count, *counts, median(int(each.replace(",", "")) for each in tokens.split(", "))])
    headers = ["right on the stream", "networks", "proved", "open", "broken", "tokens of the word, median"]
    return Table("words-in-all", "", "", headers, rows)


def models(archive: str) -> Table:
    """What each model has to learn with, and to remember with; the first depends on the task."""

    def sizes(found: list[TrainingRecord], key: str) -> str:
        low, high = (f"{extreme(getattr(each.training, key) for each in found):,}" for extreme in (min, max))
        return low if low == high else f"{low}–{high}"

    found = alike(archive, "subject")
    rows = [[*of, sizes(same, "parameters"), sizes(same, "state_size")] for of, same in found]
    return Table("models", "", "", ["model", "parameters", "numbers in the state"], rows)


def said(judged: JudgedPredictions, about: str) -> list[str]:
    """What theory says, and the verdicts by both rules; they are given apart only where they differ."""
    if about not in judged.predictions or judged.predictions[about].outcome == UNKNOWN:
        return ["", "", ""]
    now = judged.verdicts[about].outcome
    return [judged.predictions[about].outcome, judged.before[about].outcome if about in judged.before else now, now]


def rules(archive: str) -> Table:
    """The report's table of verdicts with those of both rules in columns of their own, and why by the second."""
    lines = predictions.lines(read_folder(folder(archive)))
    rows = []
    for line, (task, protocol, model, weights, _, seen, training, _) in zip(lines, verdicts(lines, True).rows):
        by_weights, by_training = (said(line.judged, about)[1:] for about in ABOUT)
        why = line.judged.verdicts["training"].why if by_training[1] else ""
        rows.append([task, protocol, model, weights, *by_weights, seen, training, *by_training, why])
    headers = ["task", "protocol", "model", "theory: weights that exist", "rules 1", "rules 2", "seen",
               "theory: training", "rules 1 ", "rules 2 ", "because, by rules 2"]  # fmt: skip
    return Table("rules", "", "", headers, rows)


def sentences(archive: str) -> Table:
    """What the documents say that numbers decide, by the first rules and by the second."""
    found = [each for each in predictions.sentences(read_folder(folder(archive))) if each.measured]
    rows = [
        [each.prediction.section, each.prediction.says, (each.before or each.verdict).outcome, each.verdict.outcome,
         each.verdict.why]
        for each in found
    ]  # fmt: skip
    return Table("sentences", "", "", ["section", "what it says", "rules 1", "rules 2", "because, by rules 2"], rows)


def tally(archive: str) -> Table:
    """How often each verdict is given, by either rules."""
    held = read_folder(folder(archive))
    lines, told = predictions.lines(held), [each for each in predictions.sentences(held) if each.measured]
    kinds: dict[str, list[tuple[str, str]]] = {f"theory: {about}": [] for about in ABOUT}
    for line in lines:
        for about in ABOUT:
            outcome, *both = said(line.judged, about)
            kinds[f"theory: {about}"] += [(both[0], both[1])] if outcome else []
    kinds["the documents, by numbers"] = [
        ((each.before or each.verdict).outcome, each.verdict.outcome) for each in told
    ]
    rows = [
        [kind, name, *(sum(pair[place] == outcome for pair in found) for outcome in OUTCOMES)]
        for kind, found in kinds.items()
        for place, name in enumerate(("rules 1", "rules 2"))
    ]
    return Table("tally", "", "", ["predictions of", "by", *OUTCOMES], rows)


def depth(archive: str) -> Table:
    """The largest T that all seeds solve at each depth, by the protocol `design`."""
    held = [each for each in records(archive) if each.cell.protocol["name"] == "design"]
    measured = results(held)[0]
    found = [(task, law) for task in ("txc", "rtc", "fsm") for law in laws(measured, task)]
    rows = [[task, law.model, ", ".join(f"{d}: {t:,}" for d, t in law.reach.items()), f"{law.per_layer:.1f} D",
             f"{law.slope:.2f}"] for task, law in found]  # fmt: skip
    return Table("depth", "", "", ["task", "model", "layers D: largest T", "best T = c D", "best power of D"], rows)


OWN: dict[str, Callable[[str], Table]] = {
    "rules": rules,
    "sentences": sentences,
    "tally": tally,
    "depth": depth,
    "costs": costs,
    "models": models,
    "streams": streams,
    "words": words,
    "words-in-all": words_in_all,
    "beyond-txc-64": partial(beyond, task="txc", trained=64),
    "beyond-rtc-64": partial(beyond, task="rtc", trained=64),
}


def table(archive: str, key: str) -> str:
    made = OWN[key](archive) if key in OWN else reported(archive).get(key)
    if made is None:
        sys.exit(f"{archive} has no table {key!r}; it has {', '.join([*reported(archive), *OWN])}")
    return made.markdown()


def filled(text: str) -> str:
    return PLACE.sub(lambda found: f"{found[1]}\n{table(found[2], found[3])}\n\n{found[4]}", text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
