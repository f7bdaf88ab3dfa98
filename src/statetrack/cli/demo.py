"""`statetrack demo`: the question and its answer in small, on a laptop's CPU."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

SWEEP = "demo"  # the shipped sweep, or a file
FOLDER = Path("statetrack-demo")
TOGETHER = 3  # seeds of one model, trained side by side
SOLVED, APART = 0.99, 0.1  # the accuracy that counts as right, and a difference that counts
MODELS = {
    "e88-gain-1l-small": "a state that corrects itself",
    "e88-published-1l-small": "a state that fades",
    "e88-1l-small": "a state that cannot flip",
    "mamba2-4l": "a linear state that only decays",
    "mlp": "no state",
}
LOOKED_INTO = ("e88-gain-1l-small", "e88-published-1l-small", "e88-1l-small")
ASKED = {
    "txc": "Parity (txc): does every model keep one bit?",
    "rtc": "Majority (rtc): are at least half of the inputs ones?",
    "fsm": "A counter to three (fsm): have there been three ones?",
}

Record = dict[str, Any]


def command(
    out: Annotated[
        Path, typer.Option(help="The folder for results and report; what it holds is not done again.")
    ] = FOLDER,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the report in the browser.")] = False,
) -> None:
    """Show what is tracked, train small models on three tasks, look into three of them, and write the report.

    Example: statetrack demo
    """
    from statetrack.errors import need

    need("torch", "train", "the demo")
    show_rows()
    records = train(out)
    for task in ASKED:
        show_table(task, [record for record in records if record["cell"]["task"] == task])
    look_into(out, records)
    write_report(out, open_)
    print(f"Next: {program()} list tasks, {program()} show s5, {program()} train --help")


def program() -> str:
    """What to type for statetrack from here."""
    return "statetrack" if shutil.which("statetrack") else os.path.relpath(sys.argv[0])


def show_rows() -> None:
    """A row of three tasks with its answers, worked out by the exact machines."""
    from statetrack import task
    from statetrack.formatting import first_sentence

    print("What is tracked: a row of inputs, and the right answer after each of them.\n")
    for text in ("txc", "s5", "track_the_stat.median"):
        one = task(text)
        batch = one.sample(length=10, count=1, seed=0)
        print(f"{one.name}: {first_sentence(type(one).__doc__)}")
        for word, symbols, write in (("in ", batch.inputs, one.symbol_text), ("out", batch.targets, one.answer_text)):
            print(f"  {word} " + " ".join(f"{write(int(symbol)):>5}" for symbol in symbols[0]))


def train(out: Path) -> list[Record]:
    """Run the sweep on all cores; the records of its finished cells."""
    from statetrack.cli.sweep import watch
    from statetrack.results import Store
    from statetrack.sweeps import Options, read, run

    sweep = read(SWEEP)
    print(f"\nTraining {len(sweep.entries)} small models into {out}, on all cores; it takes a few minutes.", flush=True)
    with watch(sweep.name) as show:
        tally = run(sweep, out, Options(device="cpu", together=TOGETHER), show)
    for failure in tally.failures:
        print(f"failed: {failure}")
    store = Store(out)
    return [record for cell in sweep.cells if (record := store.read(cell)) is not None]


def show_table(task: str, records: list[Record]) -> None:
    """The accuracy at the end of a row, at the length trained on and beyond, beside what a guess scores."""
    from statetrack.cli.output import print_table
    from statetrack.tasks import task as make_task
    from statetrack.theory import floors

    if not records:
        return
    length = records[0]["cell"]["length"]
    lengths = [length, *map(int, records[0]["length_generalisation"])]
    of = {model: [r for r in records if r["cell"]["subject"] == model] for model in dict.fromkeys(_models(records))}
    rows = {model: [ends(same, n) for n in lengths] for model, same in of.items()}
    floor = [float(floors(make_task(task), n, window=1)["position"].by_position[-32:].mean()) for n in lengths]
    seeds = len({record["cell"]["seed"] for record in records})
    print(f"\n{ASKED[task]} Trained on {length} inputs, {f'median of {seeds} seeds' if seeds > 1 else 'one seed'}:\n")
    lines = [[model, MODELS.get(model, ""), *map(_share, values)] for model, values in rows.items()]
    lines.append(["the best guess", "the floor", *map(_share, floor)])
    print_table(["accuracy at the end of rows of", "", *(f"{n}" for n in lengths)], lines)
    print(said({model: values[-1] for model, values in rows.items()}, floor[-1], lengths[-1]))


def _models(records: Sequence[Record]) -> list[str]:
    return [record["cell"]["subject"] for record in records]


def ends(records: Sequence[Record], length: int) -> float:
    """The median over seeds of the accuracy over the last 32 positions of rows of a length."""
    return median(
        record["last_32_accuracy"] if length == record["cell"]["length"]
        else record["length_generalisation"][str(length)]["last_32_accuracy"]
        for record in records
    )  # fmt: skip


def _share(value: float) -> str:
    from statetrack.formatting import fixed

    return fixed(value)


def said(last: dict[str, float], floor: float, length: int) -> str:
    """Whether the models with a state are told apart at the longest rows."""
    kept = [model for model, accuracy in last.items() if accuracy >= SOLVED]
    with_state = [accuracy for model, accuracy in last.items() if model != "mlp"]
    spread = max(with_state) - min(with_state)
    if spread >= APART:
        return f"It tells them apart. Right to {length}: {', '.join(kept) or 'none'}. A guess scores {_share(floor)}."
    why = f"within {spread:.3f} of each other at {length}, where a guess scores {_share(floor)}"
    return f"It does not tell the models with a state apart: they are {why}."


def look_into(out: Path, records: Sequence[Record]) -> None:
    """Why three forms of E88 stop, or do not, on parity."""
    from statetrack.results import Cell

    chosen = {
        record["cell"]["subject"]: Cell(**record["cell"]).key
        for record in reversed(records)
        if record["cell"]["task"] == "txc" and record["cell"]["subject"] in LOOKED_INTO
    }
    if not chosen:
        return
    print("\nWhy (diagnosed):", flush=True)
    with ProcessPoolExecutor(min(len(chosen), os.cpu_count() or 1), get_context("spawn")) as pool:
        done = {name: pool.submit(_diagnose, out, (key,)) for name, key in chosen.items()}
        for name in LOOKED_INTO:
            if name in done:
                done[name].result()
    found = _diagnose(out, tuple(chosen.values()))
    for each in sorted(found["cells"], key=lambda each: LOOKED_INTO.index(each["model"])):
        print(f"  {each['model']}: {each['sentence']}")


def _diagnose(folder: Path, keys: tuple[str, ...]) -> Record:
    """In a process of its own, so that cells are looked into side by side."""
    import torch

    from statetrack.diagnosis.folder import Wanted, diagnose_folder

    torch.set_num_threads(1)
    return diagnose_folder(folder, Wanted(keys))


def write_report(out: Path, show: bool) -> None:
    from statetrack.errors import MissingExtra
    from statetrack.reports import report

    try:
        done = report(out, title="Who keeps track of state, and how far?", command=f"statetrack demo --out {out}")
    except MissingExtra as error:
        print(f"\nNo report: {error}")
        return
    path = done.html.resolve()
    print(f"\nThe report, with every figure: {path}\n  open it in a browser: {path.as_uri()}")
    if show:
        from statetrack.cli.output import open_page

        open_page(path)
