"""`statetrack demo`: the question and its answer on a small scale, on a laptop's CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.interrupts import Interrupted, program, telling
from statetrack.cli.output import open_page, print_table, say
from statetrack.cli.sweep import watch
from statetrack.errors import MissingExtra, need
from statetrack.formatting import first_sentence, fixed

if TYPE_CHECKING:
    from statetrack.results import TrainingRecord
    from statetrack.verdicts.tracked_length import ModelContrast

SWEEP = "demo"  # the shipped sweep, or a file
FOLDER = Path("statetrack-demo")
TOGETHER = 3  # seeds of one model, trained side by side
MODELS = {
    "e88-gain-1l-small": "a state that corrects itself",
    "e88-published-1l-small": "a state that fades",
    "e88-1l-small": "a state that cannot flip",
    "mamba2-4l": "a linear state that only decays",
    "mlp": "no state",
}
LOOKED_INTO = ("e88-gain-1l-small", "e88-published-1l-small", "e88-1l-small")
FOR_EVER = "for-ever"  # where the network that is proved lies, in the folder
PROVED = "e88-gain-1l-small[heads=1,n_state=4]"  # one head, so that nothing is read which carries no state
TRAINED_TO_HOLD: dict[str, Any] = {
    "length": 12, "seed": 2, "state_noise": 0.2, "batch": 64, "rates": 4e-3, "check_every": 25, "polish": 50,
}  # fmt: skip
ASKED = {
    "txc": "Parity (txc): does every model keep one bit?",
    "rtc": "Majority (rtc): are at least half of the inputs ones?",
    "fsm": "A counter to three (fsm): have there been three ones?",
}


def command(
    out: Annotated[
        Path, typer.Option(help="The folder for results and report; what it holds is not done again.")
    ] = FOLDER,
    open_report: Annotated[bool, typer.Option("--open/--no-open", help="Open the report in the browser.")] = False,
) -> None:
    """Show what is tracked, train small models on three tasks, look into three of them, and write the report. At the
    end one network is proved right for ever.

    Example: statetrack demo
    """
    with telling(lambda: Interrupted(f"what is finished is kept in {out}")):
        need("torch", "train", "the demo")
        show_rows()
        records = train(out)
        for task in ASKED:
            show_table(task, [record for record in records if record.cell.task == task])
        look_into(out, records)
        write_report(out, open_report)
        prove(out / FOR_EVER)
    name = " ".join(program())
    say(f"Next: {name} list tasks, {name} show s5, {name} train --help")


def show_rows() -> None:
    """A row of three tasks with its answers, worked out by the exact machines."""
    from statetrack.tasks import task

    say("What is tracked: a row of inputs, and the right answer after each of them.\n")
    for text in ("txc", "s5", "track_the_stat.median"):
        example = task(text)
        batch = example.sample(length=10, count=1, seed=0)
        say(f"{example.name}: {first_sentence(type(example).__doc__)}")
        for word, symbols, write in (
            ("in ", batch.inputs, example.symbol_text),
            ("out", batch.targets, example.answer_text),
        ):
            say(f"  {word} " + " ".join(f"{write(int(symbol)):>5}" for symbol in symbols[0]))


def train(out: Path) -> list[TrainingRecord]:
    """Run the sweep on all cores; the records of its finished cells."""
    from statetrack.results import Store, TrainingRecord
    from statetrack.sweeps import Options, read, run

    sweep = read(SWEEP)
    say(f"\nTraining {len(sweep.entries)} small models into {out}, on all cores; it takes a few minutes.", flush=True)
    with watch(sweep.name) as show:
        tally = run(sweep, out, Options(device="cpu", together=TOGETHER), show)
    for failure in tally.failures:
        say(f"failed: {failure.cell}: {failure.reason}")
    store = Store(out)
    return [record for cell in sweep.cells if isinstance(record := store.read(cell), TrainingRecord)]


def show_table(task: str, records: list[TrainingRecord]) -> None:
    """The accuracy at the end of a row, at the length trained on and beyond, beside what a guess scores."""
    from statetrack.verdicts.measurements import end_floor
    from statetrack.verdicts.tracked_length import ends, reach, separation

    if not records:
        return
    models = dict.fromkeys(record.cell.subject for record in records)
    trained = {model: [record for record in records if record.cell.subject == model] for model in models}
    rows = {model: ends(same) for model, same in trained.items()}
    lengths = list(next(iter(rows.values())))
    floor = {length: end_floor(task, length) or 0.0 for length in lengths}
    seeds = len({record.cell.seed for record in records})
    seeds_text = f"median of {seeds} seeds" if seeds > 1 else "one seed"
    say(f"\n{ASKED[task]} Trained on {records[0].cell.length} inputs, {seeds_text}:\n")
    lines = [
        [model, MODELS.get(model, ""), *(fixed(accuracies[n]) for n in lengths)] for model, accuracies in rows.items()
    ]
    lines.append(["the best guess", "the floor", *(fixed(floor[n]) for n in lengths)])
    print_table(["accuracy at the end of rows of", "", *(f"{n}" for n in lengths)], lines)
    say(said(separation(records), {model: reach(same).reach for model, same in trained.items()}))


def said(contrast: ModelContrast | None, reached: dict[str, int]) -> str:
    """Whether the models with a state are told apart at the longest rows, and which have solved every length so far."""
    if contrast is None:
        return "There are too few models with a state to compare."
    guess = f"a guess scores {fixed(contrast.floor or 0.0)}"
    if contrast.apart:
        kept = ", ".join(model for model, length in reached.items() if length >= contrast.tested) or "none"
        return f"It tells them apart. Right to {contrast.tested}: {kept}. {guess[0].upper()}{guess[1:]}."
    why = f"within {contrast.best - contrast.worst:.3f} of each other at {contrast.tested}, where {guess}"
    return f"It does not tell the models with a state apart: they are {why}."


def look_into(out: Path, records: Sequence[TrainingRecord]) -> None:
    """Why three forms of E88 stop, or do not, on parity."""
    from statetrack.results import Store
    from statetrack.results.diagnosis import of_cell
    from statetrack.verdicts.comparison import compare_again

    cells = [record.cell for record in reversed(records)]
    chosen = {cell.subject: cell for cell in cells if cell.task == "txc" and cell.subject in LOOKED_INTO}
    if not chosen:
        return
    say("\nWhy (diagnosed):", flush=True)
    with ProcessPoolExecutor(min(len(chosen), os.cpu_count() or 1), get_context("spawn")) as pool:
        list(pool.map(_diagnose, [out] * len(chosen), [cell.key for cell in chosen.values()]))
    store = Store(out)
    compare_again(store)
    for name in LOOKED_INTO:
        diagnosis = of_cell(store, chosen[name]) if name in chosen else None
        if diagnosis:
            say(f"  {name}: {diagnosis.sentences[0]}")


def _diagnose(folder: Path, key: str) -> None:
    """In a process of its own, so that cells are looked into side by side."""
    import torch

    from statetrack.diagnosis.folder import Selection, diagnose_folder

    torch.set_num_threads(1)
    diagnose_folder(folder, Selection((key,)))


def write_report(out: Path, show: bool) -> None:
    from statetrack.reports import report

    try:
        done = report(out, title="Who keeps track of state, and how far?", command=f"statetrack demo --out {out}")
    except MissingExtra as error:
        say(f"\nNo report: {error}")
        return
    path = done.html.resolve()
    say(f"\nThe report, with every figure: {path}\n  open it in a browser: {path.as_uri()}")
    if show:
        open_page(path)


def prove(out: Path) -> None:
    """Train a network that holds its state, and prove that it does: for ever, and not on the rows that were tried."""
    import torch

    from statetrack.certificates import certify_folder
    from statetrack.results import Store
    from statetrack.training import train

    say("\nFor ever? One head of 4 x 4 numbers, trained on parity with noise on its state:", flush=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of so small a network more threads make the steps slower
    try:
        train("txc", PROVED, **TRAINED_TO_HOLD, words=0, out=out, device="cpu", progress=False)
        (record,) = certify_folder(out).records
    finally:
        torch.set_num_threads(threads)
    say(f"  {record.said_for_ever}")
    if record.proved is not None:
        proof = Store(out).path(record.cell, "proof")
        say(f"  The proof: {proof}\n  check it: {' '.join(program())} verify {proof}")
