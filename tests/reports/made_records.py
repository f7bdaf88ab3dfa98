"""Records as training and asking write them, their numbers from formulas: a store of any size in a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from statetrack.asking import Rules, dialogue, play, solver
from statetrack.asking.run import cell as ask_cell
from statetrack.results import AskedRecord, Cell, Store, TrainingRecord
from statetrack.results import diagnosis as diagnoses
from statetrack.results.curve import Curve as TrainingCurve
from statetrack.results.diagnosis import Diagnosis
from statetrack.results.evaluations import Evaluation, OffData, OnRows, OnStream
from statetrack.results.plans import save
from statetrack.results.records import Training
from statetrack.sweeps import sweep_of
from statetrack.tasks import task as make_task
from statetrack.theory import Floor, position_floor
from statetrack.verdicts.comparison import compare_again

DESIGN = {
    "name": "design", "batch": 256, "rates": [1e-3], "weight_decay": 0.01, "clip": 1.0, "warmup": 0, "check_every": 20,
    "most_checks": 100, "patience": 10, "first_length": 0, "polish": 0, "most_tokens": 65536, "validation_rows": 256,
    "precision": "float32", "stream": 0,
}  # fmt: skip
CURRICULUM = DESIGN | {"name": "curriculum", "batch": 128, "rates": [5e-4, 1e-3, 2e-3], "first_length": 4}
MODELS = (
    "e88-1l", "e88-4l", "e88-published-1l", "e88-published-4l", "e88-gain-1l", "e88-gain-4l", "e88-1l-notanh",
    "e88-published-1l-notanh", "e88-gain-1l-notanh", "mamba2-4l", "mamba2-8l", "mamba2-16l", "mamba2-32l", "linear-rnn",
    "linear-rnn-nobias", "mlp",
)  # fmt: skip
LONG = ("e88-1l", "e88-published-1l", "e88-gain-1l", "mamba2-4l", "mamba2-32l", "linear-rnn", "mlp")
REACH = {"e88-gain": 1e6, "e88-published": 700.0, "e88": 3.0, "mamba2": 150.0, "linear-rnn": 30.0, "mlp": 1.0}

Curve = Callable[[Any], Any]  # of positions, one or an array


def fading(model: str, task: str, seed: int) -> Curve:
    """The chance of a right answer at position t: 1 at first, the floor's half beyond the model's reach."""
    stem = next((name for name in sorted(REACH, key=len, reverse=True) if model.startswith(name)), "e88-gain")
    reach = REACH[stem] * (1 + 0.2 * seed) * (1 if "notanh" not in model else 0.4) * (1 if task == "txc" else 20)
    return lambda t: 0.5 + 0.5 * np.exp(-((t / reach) ** 2))


def trained(cell: Cell, curve: Curve, *, stream: int = 0, like: str = "", **changes: Any) -> TrainingRecord:
    """The record of a training whose accuracy at position t is curve(t), beside the floors of its task (or of `like`).

    `stream` is on how many steps of a stream it is evaluated; the changes are of the record.
    """
    length = cell.length
    by_position = np.broadcast_to(curve(np.arange(1.0, 16 * length + 1)), 16 * length)
    known = position_floor(make_task(like or cell.task), length)
    accuracy = float(by_position[:length].mean())
    cases: dict[str, float | None] = {
        "p=0.02": accuracy, "p=0.1": accuracy, "all zeros": 1.0, "alternating": max(0.0, accuracy - 0.2),
    }  # fmt: skip
    worst = min(share for share in cases.values() if share is not None)
    evaluations: list[Evaluation] = [at_length(cell, by_position[:length], known)]
    evaluations += [beyond(cell, by_position[: times * length]) for times in (2, 4, 8, 16)]
    evaluations.append(OffData(length=length, seed=cell.seed, accuracy=cases, mean=accuracy, worst=worst))
    marks = [2**n for n in range(10, 21) if length <= 2**n <= stream]
    if marks:
        along: dict[str, float | None] = {str(mark): float(curve(mark)) for mark in marks}
        evaluations.append(OnStream(steps=stream, seed=cell.seed, rows=64, positions=1024, accuracy=along))
    training = Training(
        learning_rate=1e-3, steps=400, parameters=1000 * len(cell.subject), final_train_loss=0.1, epochs_to_converge=3,
        validation_accuracy=accuracy, state_size=256, tokens_per_second=50_000.0,
        train_seconds=0.3 * length + len(cell.subject), device="cpu", torch="2.13.0",
        curve=training_curve(length, bool(cell.protocol.get("first_length")), accuracy),
    )  # fmt: skip
    held: dict[str, Any] = {"evaluation_seconds": 1.0, "seconds": 0.5}  # so short that the disk is not waited for
    return TrainingRecord(cell=cell, training=training, evaluations=tuple(evaluations), **held | changes)


def training_curve(length: int, grows: bool, accuracy: float) -> TrainingCurve:
    """Twenty checks on the way to an accuracy, at the length or at lengths that grow to it."""
    way = [check / 20 for check in range(1, 21)]
    grown = [max(4, length // 2 ** round(4 * (1 - at))) for at in way]
    return TrainingCurve(
        updates=[round(400 * at) for at in way], lengths=grown if grows else [length] * 20,
        loss=[0.1 + 0.6 * (1 - at) for at in way], accuracy=[0.5 + (accuracy - 0.5) * at for at in way],
        gradient_norm=[None, *(1 / (1 + 9 * at) for at in way[1:])],
    )  # fmt: skip


def around(share: float) -> list[float]:
    return [max(0.0, share - 0.01), min(1.0, share + 0.005)]


def at_length(cell: Cell, by_position: np.ndarray, known: Floor) -> OnRows:
    """At the length trained on."""
    length, quarter = cell.length, max(1, cell.length // 4)
    accuracy, tail, last = (float(part.mean()) for part in (by_position, by_position[-quarter:], by_position[-32:]))
    worst = float(by_position.min())
    return OnRows(
        length=length, seed=cell.seed, rows=256, n=256 * length, accuracy=accuracy, interval=around(accuracy),
        last_32_accuracy=last, last_32_interval=around(last), floor=known.average, full_sequence_accuracy=worst,
        full_sequence_interval=around(worst), crossing_accuracy=accuracy, paired_crossing_accuracy=accuracy,
        crossings=100, accuracy_by_position=by_position.tolist(), accuracy_at_end=float(by_position[-1]),
        tail_accuracy=tail, tail_interval=around(tail), floor_exact=True, floors={"position": known.average},
        floor_by_position=known.by_position.tolist(), skill_by_position=[None] * length,
    )  # fmt: skip


def beyond(cell: Cell, by_position: np.ndarray) -> OnRows:
    """At a longer length."""
    length = len(by_position)
    accuracy, end = float(by_position.mean()), float(by_position[-32:].mean())
    return OnRows(
        length=length, seed=cell.seed, rows=256, n=256 * length, accuracy=accuracy, interval=around(accuracy),
        last_32_accuracy=end, last_32_interval=around(end), floor=0.5 if length <= 4096 else None,
    )  # fmt: skip


def design_cells() -> list[Cell]:
    """The cells of the shipped sweep `design`."""
    tasks = ("rtc", "txc", "fsm")
    cells = [Cell(t, m, n, s, DESIGN) for t in tasks for m in MODELS for n in (16, 32, 64, 128, 256) for s in range(3)]
    cells += [Cell(t, m, n, 0, DESIGN) for t in tasks for m in LONG for n in (512, 1024, 2048)]
    cells += [Cell("txc", m, n, s, CURRICULUM) for m in LONG for n in (64, 256) for s in range(3)]
    return cells + [Cell("txc", m, n, 0, CURRICULUM) for m in LONG for n in (512, 1024, 2048)]


def fill(folder: Path, cells: Iterable[Cell], name: str = "made", stream: int = 0) -> Store:
    """A store with a whole record for every cell, and its plan."""
    store, held = Store(folder), list(cells)
    for cell in held:
        store.write(trained(cell, fading(cell.subject, cell.task, cell.seed), stream=stream))
    save(store, sweep_of(name, held))
    return store


def small_cells() -> list[Cell]:
    """Two tasks, five models, three lengths, three seeds."""
    models = ("e88-gain-1l-small", "e88-published-1l-small", "e88-1l-small", "mamba2-4l", "mlp")
    return [Cell(t, m, n, s, DESIGN) for t in ("txc", "fsm") for m in models for n in (16, 32, 64) for s in range(3)]


def asked(folder: Path, task: str, name: str, samples: int, length: int = 40, **rules: Any) -> None:
    """Episodes of a baseline that needs no model, kept in the folder: it says the same at every turn."""
    store, how, who, the_task = Store(folder), Rules(**rules), solver(name), make_task(task)
    for sample in range(samples):
        episode = play(dialogue(the_task, how, sample, length), lambda messages: "[median: 50]")
        cell = ask_cell(the_task, how, who, "", sample, length)
        store.write(AskedRecord(cell=cell, episode=episode.record(), seconds=0.1))


def diagnosis(cell: Cell, per_step: float, conclusion: str) -> Diagnosis:
    """A diagnosis whose states come closer by a factor a step."""
    at = [1, 2, 4, 8, 16, 32, 64, 128]
    apart = [10 * per_step**t for t in at]
    accuracy = [0.5 + 0.5 * min(1.0, value / 2) for value in apart]
    reach = {"length": 100.0, "low": 90.0, "high": 120.0, "beyond": None}
    reaches, rate = {"at_90": reach, "at_half": reach}, {"step_rate": 0.01, "low": 0.009, "high": 0.011}
    flip, half, counted = [[0, 1], [1, 0]], [0.5] * 8, {"errors": 9, "steps": 900}
    sections: dict[str, Any] = {
        "positions": {"position": at, "accuracy": accuracy, "low": accuracy, "high": accuracy, "floor": half,
                      "rows": 9},
        "gradient": {
            "position": at, "norm": apart, "low": apart, "high": apart, "per_step": per_step, "reaches": 50, "rows": 9,
            "loss": "cross-entropy", "loss_position": 128,
        },
        "probe": {
            "position": at, "fitted_on": 9, "tested_on": 9, "numbers": 256,
            "count": {"says": "ones so far", "measure": "R^2", "score": [0.3] * 8, "chance": [0.0] * 8},
            "state": {"says": "true state", "measure": "accuracy", "score": accuracy, "chance": [0.5] * 8},
        },
        "portrait": {"explained": [0.6, 0.2], "labels": ["0", "1"],
                     "paths": [[[(-1) ** t, 0.1 * t, t % 2, t] for t in range(1, 9)] for _ in range(3)]},
        "separation": {
            "position": at, "separation": apart, "distance": apart, "spread": [1.0] * 8, "measure": "distance",
            "fitted_from": 4, "fitted_to": 16, "per_step": per_step, "low": None, "high": None, "healed": None,
            "heal_steps": 8, "by_fading": reaches, "by_slips": reaches, "predicted": reaches, "says": "fade",
        },
        "error": {
            **rate, **counted, "within": rate | counted, "skill_at_end": 1.0, "learned": True, "streamed": 128,
            "rows": 9, "measured": reaches | {"at_90": reach | {"length": 80.0}}, "predicted": reaches,
            "ratio": {"at_90": 1.25, "at_half": 1.0}, "position": at, "accuracy": accuracy,
            "low_curve": accuracy, "high_curve": accuracy, "floor": half,
        },
        "eigenvalues": {
            "symbols": [{"symbol": "1", "samples": 4, "largest": 0.9, "largest_range": [0.8, 0.95],
                         "most_negative": -0.9, "most_negative_range": [-1, -0.8],
                         "leading": [[0.9, 0.1], [-0.9, 0.0]]}],
            "method": "dense", "negative": True, "says": "it flips",
        },
        "automaton": {
            "states": 2, "steps": flip, "answers": [0, 1], "task_states": 2, "task_steps": flip, "task_answers": [0, 1],
            "clusters": 2, "length": 64, "agreement": 1.0, "equal": True,
            "difference": None, "machine_says": None, "task_says": None,
            "network_says": None, "network_errs": None, "error_string": None, "says": "the machine equals the task's",
        },
    }  # fmt: skip
    return Diagnosis(
        task=cell.task, model=cell.subject, trained=cell.length, length=128, seed=cell.seed, conclusion=conclusion,
        sentences=[f"It {conclusion} at about 80 steps."], seconds=1.0, sections=sections, cell=cell,
    )  # fmt: skip


def diagnose(folder: Path, cells: Iterable[Cell]) -> None:
    """Leave what `statetrack diagnose` would leave; the other cells are left out, as no weights are kept."""
    store = Store(folder)
    for number, cell in enumerate(cells):
        diagnoses.write(store, diagnosis(cell, 0.97 + 0.02 * number, "fades"))
    compare_again(store)
