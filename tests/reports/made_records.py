"""Records as training and asking write them, their numbers from formulas: a store of any size in a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import statetrack
from statetrack.asking import Rules, dialogue, play, solver
from statetrack.asking.run import cell as ask_cell
from statetrack.results import Cell, Store
from statetrack.results.plans import Entry, save
from statetrack.sweeps import Sweep
from statetrack.tasks import task as make_task
from statetrack.theory import floors

DESIGN = {
    "name": "design", "batch": 256, "rates": [1e-3], "weight_decay": 0.01, "clip": 1.0, "warmup": 0, "check_every": 20,
    "most_checks": 100, "patience": 10, "first_length": 0, "polish": 0, "most_tokens": 65536, "validation_rows": 256,
    "precision": "float32", "stream": 0,
}  # fmt: skip
CURRICULUM = DESIGN | {"name": "curriculum", "batch": 128, "rates": [5e-4, 1e-3, 2e-3], "first_length": 4, "stream": 0}
MODELS = (
    "e88-1l", "e88-4l", "e88-published-1l", "e88-published-4l", "e88-gain-1l", "e88-gain-4l", "e88-1l-notanh",
    "e88-published-1l-notanh", "e88-gain-1l-notanh", "mamba2-4l", "mamba2-8l", "mamba2-16l", "mamba2-32l", "linear-rnn",
    "linear-rnn-nobias", "mlp",
)  # fmt: skip
LONG = ("e88-1l", "e88-published-1l", "e88-gain-1l", "mamba2-4l", "mamba2-32l", "linear-rnn", "mlp")
REACH = {"e88-gain": 1e6, "e88-published": 700.0, "e88": 3.0, "mamba2": 150.0, "linear-rnn": 30.0, "mlp": 1.0}

Curve = Callable[[Any], Any]  # of positions, one or an array
_floors: dict[tuple[str, int], Any] = {}


def floor_of(task: str, length: int) -> Any:
    """The exact floor by position."""
    if (task, length) not in _floors:
        _floors[task, length] = floors(make_task(task), length, window=1)["position"]
    return _floors[task, length]


def fading(model: str, task: str, seed: int) -> Curve:
    """The chance of a right answer at position t: 1 at first, the floor's half beyond the model's reach."""
    stem = next((name for name in sorted(REACH, key=len, reverse=True) if model.startswith(name)), "e88-gain")
    reach = REACH[stem] * (1 + 0.2 * seed) * (1 if "notanh" not in model else 0.4) * (1 if task == "txc" else 20)
    return lambda t: 0.5 + 0.5 * np.exp(-((t / reach) ** 2))


def trained(cell: Cell, curve: Curve, *, status: str = "done", version: str | None = None) -> dict:
    """The record of a training whose accuracy at position t is curve(t)."""
    length, rows = cell.length, 256
    known = floor_of(cell.task, length)
    all_positions = np.broadcast_to(curve(np.arange(1.0, 16 * length + 1)), 16 * length)
    by_position = all_positions[:length]
    quarter = max(1, length // 4)

    def mean(values: np.ndarray) -> float:
        return float(values.mean())

    def around(share: float) -> list[float]:
        return [max(0.0, share - 0.01), min(1.0, share + 0.005)]

    beyond = {}
    for n in (2 * length, 4 * length, 8 * length, 16 * length):
        accuracy, end = mean(all_positions[:n]), mean(all_positions[max(0, n - 32) : n])
        beyond[str(n)] = {
            "accuracy": accuracy, "interval": around(accuracy), "rows": rows, "n": rows * n, "last_32_accuracy": end,
            "last_32_interval": around(end), "floor": 0.5 if n <= 4096 else None,
        }  # fmt: skip
    accuracy, tail, last = mean(by_position), mean(by_position[-quarter:]), mean(by_position[-32:])
    marks = [2**n for n in range(10, 21) if length <= 2**n <= cell.protocol["stream"]]
    stream = (
        {"rows": 64, "positions": 1024, "accuracy": {str(mark): float(curve(mark)) for mark in marks}}
        if marks
        else None
    )
    cases = {"p=0.02": accuracy, "p=0.1": accuracy, "all zeros": 1.0, "alternating": max(0.0, accuracy - 0.2)}
    worst = float(by_position.min())
    return {
        "cell": cell.to_dict(), "version": version or statetrack.__version__, "status": status, "diverged_at": None,
        "learning_rate": 1e-3, "steps": 400, "final_train_loss": 0.1, "epochs_to_converge": 3,
        "validation_accuracy": accuracy, "parameters": 1000 * len(cell.subject), "state_size": 256,
        "tokens_per_second": 50_000.0, "train_seconds": 0.3 * length + len(cell.subject), "replicas": 1,
        "device": "cpu", "torch": "2.13.0", "accuracy": accuracy, "rows": rows, "n": rows * length,
        "interval": around(accuracy), "full_sequence_accuracy": worst, "full_sequence_interval": around(worst),
        "crossing_accuracy": accuracy, "paired_crossing_accuracy": accuracy, "crossings": 100,
        "accuracy_by_position": by_position.tolist(), "accuracy_at_end": float(by_position[-1]), "tail_accuracy": tail,
        "tail_interval": around(tail), "last_32_accuracy": last, "last_32_interval": around(last),
        "solved": tail >= 0.99, "length_generalisation": beyond,
        "off_distribution": {"accuracy": cases, "mean": accuracy, "worst": min(cases.values())},
        "exact": None, "stream": stream, "floor": known.average, "floor_exact": True,
        "floors": {"position": known.average}, "floor_by_position": known.by_position.tolist(),
        "skill_by_position": [None] * length, "evaluation_seconds": 1.0, "rates_tried": [], "seconds": 2.0,
    }  # fmt: skip


def design_cells() -> list[Cell]:
    """The cells of the shipped sweep `design`."""
    tasks = ("rtc", "txc", "fsm")
    cells = [Cell(t, m, n, s, DESIGN) for t in tasks for m in MODELS for n in (16, 32, 64, 128, 256) for s in range(3)]
    cells += [Cell(t, m, n, 0, DESIGN) for t in tasks for m in LONG for n in (512, 1024, 2048)]
    cells += [Cell("txc", m, n, s, CURRICULUM) for m in LONG for n in (64, 256) for s in range(3)]
    return cells + [Cell("txc", m, n, 0, CURRICULUM) for m in LONG for n in (512, 1024, 2048)]


def fill(folder: Path, cells: Iterable[Cell], name: str = "made") -> Store:
    """A store with a whole record for every cell, and its plan."""
    store, held = Store(folder), list(cells)
    for cell in held:
        store.write(cell, trained(cell, fading(cell.subject, cell.task, cell.seed)), settle=False)
    save(store, Sweep(name, "from formulas", tuple(Entry(cell, "statetrack.training.cells") for cell in held)))
    return store


def small_cells() -> list[Cell]:
    """Two tasks, five models, three lengths, three seeds."""
    models = ("e88-gain-1l-small", "e88-published-1l-small", "e88-1l-small", "mamba2-4l", "mlp")
    return [Cell(t, m, n, s, DESIGN) for t in ("txc", "fsm") for m in models for n in (16, 32, 64) for s in range(3)]


def asked(folder: Path, task: str, name: str, samples: int, length: int = 40, **rules: Any) -> list[dict]:
    """Episodes of a baseline that needs no model, kept in the folder: it says the same at every turn."""
    store, how, who, the_task = Store(folder), Rules(**rules), solver(name), make_task(task)
    records = []
    for sample in range(samples):
        episode = play(dialogue(the_task, how, sample, length), lambda messages: "[median: 50]")
        cell = ask_cell(the_task, how, who, "", sample, length)
        record = {"cell": cell.to_dict(), "version": statetrack.__version__, "status": "done", **episode.record()}
        store.write(cell, record | {"seconds": 0.1}, settle=False)
        records.append(record)
    return records


def diagnosis(cell: Cell, per_step: float, conclusion: str) -> dict:
    """A diagnosis whose states come closer by a factor a step."""
    at = [1, 2, 4, 8, 16, 32, 64, 128]
    apart = [10 * per_step**t for t in at]
    accuracy = [0.5 + 0.5 * min(1.0, value / 2) for value in apart]
    reach = {"length": 100.0, "low": 90.0, "high": 120.0, "beyond": None}
    flip, half = [[0, 1], [1, 0]], [0.5] * 8
    return {
        "format": 1, "version": statetrack.__version__, "key": cell.key, "cell": cell.to_dict(), "task": cell.task,
        "model": cell.subject, "trained": cell.length, "length": 128, "seed": cell.seed,
        "positions": {"position": at, "accuracy": accuracy, "low": accuracy, "high": accuracy, "floor": half},
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
            "fitted_from": 4, "fitted_to": 16, "per_step": per_step, "low": None, "high": None,
            "predicted": {"at_90": reach, "at_half": reach}, "says": "fade",
        },
        "error": {
            "step_rate": 0.01, "low": 0.009, "high": 0.011, "errors": 9, "steps": 900, "streamed": 128, "rows": 9,
            "measured": {"at_90": reach | {"length": 80.0}, "at_half": reach}, "ratio": {"at_90": 1.25, "at_half": 1.0},
            "predicted": {"at_90": reach, "at_half": reach}, "position": at, "accuracy": accuracy,
            "low_curve": accuracy, "high_curve": accuracy, "floor": [0.5] * 8,
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
        "conclusion": conclusion, "sentences": [f"It {conclusion} at about 80 steps."], "seconds": 1.0,
    }  # fmt: skip


def diagnose(folder: Path, cells: Iterable[Cell]) -> None:
    """Leave what `statetrack diagnose` would leave."""
    place = folder / "diagnosis"
    place.mkdir()
    for number, cell in enumerate(cells):
        held = diagnosis(cell, 0.97 + 0.02 * number, "fades")
        (place / f"{cell.key}.json").write_text(json.dumps(held))
    form = {"form": "full", "subject": "e88-gain-1l-small", "seeds": [0], "accuracy": [1.0], "last_quarter": [1.0],
            "at_90": [None], "conclusions": ["stays apart"]}  # fmt: skip
    both = {
        "format": 1, "version": statetrack.__version__, "cells": [],
        "left_out": [{"key": "f" * 20, "what": "txc, mlp, length 64, seed 0", "why": "no weights are kept"}],
        "ablations": [{"task": "txc", "length": 16, "base": "e88-gain-1l-small", "floor": 0.5, "forms": [form],
                       "missing": ["no delta"], "says": "Nothing was taken away."}],
        "patterns": [{"key": "6.1-e88", "section": "6.1", "says": "E88: flat", "rule": "flat", "task": "txc",
                      "length": 16, "subject": "e88-1l-small", "outcome": "refuted", "why": "it falls", "seeds": 3,
                      "numbers": {}}],
    }  # fmt: skip
    (place / "folder.json").write_text(json.dumps(both))
