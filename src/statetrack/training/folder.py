"""The trained cells of a folder, evaluated further: each cell's addition is written whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from statetrack import trust
from statetrack.errors import BadInput, one_line, show_cause
from statetrack.results import Damage, Record, Store, TrainingRecord
from statetrack.results.cell import ASK, EVALUATE
from statetrack.results.diagnosis import ASKED, DAMAGED, ERROR, NO_WEIGHTS, NOT_DONE, SKIPPED, LeftOut, left_out
from statetrack.results.records import FAILED
from statetrack.results.store import add, no_room
from statetrack.tasks import trusted_task
from statetrack.training.existing import check_wanted, possible
from statetrack.training.further import Wanted, grown, measured
from statetrack.training.memory import hand_back
from statetrack.training.own_models import blaming_own, check_given
from statetrack.training.run import check_numbers, pick_device
from statetrack.training.threads import threads_for
from statetrack.training.weight_file import check_not_nan
from statetrack.training.weights import load

CANNOT = "cannot"  # the model has not so many positions, or no state that a stream needs


@dataclass
class FolderTally:
    """How a run over a folder stands."""

    total: int = 0
    done: int = 0
    now: str = ""
    part: str = ""
    records: list[TrainingRecord] = field(default_factory=list)  # that hold something of what was asked for
    grown: int = 0  # of those, to which something was added now
    left_out: list[LeftOut] = field(default_factory=list)


Show = Callable[[FolderTally], None]
One = Callable[[Store, TrainingRecord, FolderTally, Show], None]  # what is done with a cell


def evaluate_folder(
    folder: Path | str, wanted: Wanted, keys: Sequence[str] = (), device: str = "auto", show: Show = lambda _: None,
    trust_code: bool = False, workers: int = 1,
) -> FolderTally:  # fmt: skip
    """Measure on the kept weights of every trained cell what its record lacks, and add it. Nothing else changes there.

    `keys` are beginnings of the keys of cells; none means all. What a record holds already is not measured again, so a
    run that was killed is taken up by the same call. What cannot be evaluated is named in `left_out`, and nothing of it
    stops the others. Code that a record names is run only where `statetrack.trust` allows it, or with `trust_code`.
    Several `workers` are processes, each of which measures a cell at a time.
    """
    check_wanted(wanted)
    place = pick_device(device)
    if workers != 1:
        from statetrack.training.folder_workers import evaluate_in_workers

        with trust.trusting(everything=trust_code):
            return evaluate_in_workers(folder, wanted, keys, device, workers, show)
    return over_cells(folder, keys, partial(measure_lacking, wanted, place), place, show, trust_code)


def over_cells(
    folder: Path | str, keys: Sequence[str], one: One, place: torch.device, show: Show = lambda _: None,
    trust_code: bool = False,
) -> FolderTally:  # fmt: skip
    """Do something with every trained cell of a folder, or with those whose keys begin so. What fails is named, and
    stops nothing.
    """
    store = Store.existing(Path(folder))
    trained, tally = chosen(store, keys)
    tally.total = len(trained)
    for record in trained:
        tally.now, tally.part = str(record.cell), "weights"
        show(tally)
        with trust.trusting(everything=trust_code):
            guarded(one, store, record, place, tally, show)
        tally.done += 1
        show(tally)
    return tally


def guarded(
    one: One, store: Store, record: TrainingRecord, place: torch.device, tally: FolderTally, show: Show
) -> None:  # fmt: skip
    """Do it with one cell. What fails is noted, but for a disk that is full."""
    try:
        one(store, record, tally, show)
    except Exception as error:  # somebody's own model may raise anything; the other cells go on
        if no_room(error):
            raise
        show_cause(error)
        tally.left_out.append(left_out(record.cell, one_line(error), ERROR))
    finally:
        hand_back(place)


def chosen(store: Store, keys: Sequence[str]) -> tuple[list[TrainingRecord], FolderTally]:
    """The trained cells whose keys begin so, and a tally that names the others."""
    trained, tally = [], FolderTally()
    matched: set[str] = set()
    for key, entry in store.entries():
        begins = [begin for begin in keys if key.startswith(begin)]
        matched.update(begins)
        if keys and not begins:
            continue
        if isinstance(entry, TrainingRecord) and entry.finished:
            trained.append(entry)
        else:
            tally.left_out.append(_why_not(entry))
    for begin in keys:
        if begin not in matched:
            raise BadInput(f"no cell of {store.folder} has a key that begins with {begin!r}")
    trained.sort(key=lambda record: (record.cell.task, record.cell.subject, record.cell.length, record.cell.seed))
    return trained, tally


def _why_not(entry: Record | Damage) -> LeftOut:
    if isinstance(entry, Damage):
        return LeftOut(entry.path.stem, entry.path.name, f"its record is damaged: {entry.why}", DAMAGED)
    if entry.cell.kind == ASK:
        return left_out(entry.cell, "a language model that was asked has no weights here", ASKED)
    if entry.cell.kind == EVALUATE:
        return left_out(entry.cell, "its weights lie elsewhere: give their file", NO_WEIGHTS)
    failed = entry.status == FAILED
    said = f"it {'failed' if failed else 'was skipped'}: {entry.reason}"
    return left_out(entry.cell, said, NOT_DONE if failed else SKIPPED)


def measure_lacking(
    wanted: Wanted, place: torch.device, store: Store, record: TrainingRecord, tally: FolderTally, show: Show
) -> None:
    """Measure what one record lacks. What is found to fail is named and not kept, so that it is tried again."""
    began, cell, lacking = time.monotonic(), record.cell, wanted.lacking_in(record)
    if lacking and store.weights(cell) is None:
        tally.left_out.append(left_out(cell, "no weights are kept", NO_WEIGHTS))
    elif lacking:
        check_numbers(cell.length, [cell.seed], 0, lacking.words)
        the_task, model = trusted_task(cell.task), load(store, cell).to(place)
        check_not_nan(model, str(store.weights(cell)))
        fitting, whys = possible(lacking, model, the_task, cell.subject)
        tally.left_out += [left_out(cell, why, CANNOT) for why in whys]

        def tick(part: str) -> None:
            tally.part = part
            show(tally)

        with threads_for(model), blaming_own(model, cell.subject, "when it is tested"):
            check_given(model, the_task.inputs, (cell.length, *fitting.lengths), fitting.streams)
            found = measured(the_task, model, cell, fitting, tick)
        tally.left_out += [left_out(cell, each.reason, ERROR) for each in found if each.reason]
        whole = [each for each in found if not each.reason]
        if whole:
            record = add(store, grown(record, whole, began))
            tally.grown += 1
    if wanted.lacking_in(record) != wanted:
        tally.records.append(record)
