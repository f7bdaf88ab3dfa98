"""Results made by hand, as verdicts read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statetrack.theory.predictions.predict import Prediction
from statetrack.verdicts import verdict
from statetrack.verdicts.documents import DocumentPrediction
from statetrack.verdicts.outcomes import Verdict


def run(model: str, task: str, length: int, seed: int, accuracy: float, **more: Any) -> dict[str, Any]:
    """A record as training writes it, with an interval of one hundredth to each side."""
    record = {
        "model": model,
        "task": task,
        "length": length,
        "seed": seed,
        "accuracy": accuracy,
        "n": 10_000,
        "low": max(0.0, accuracy - 0.01),
        "high": min(1.0, accuracy + 0.01),
        "floor": 0.5,
        "solved": accuracy >= 0.99,
        "trained": 64,
    }
    return {**record, **more}


def runs(model: str, task: str, ends: list[float], short: float = 1.0, far: int = 1024) -> list[dict[str, Any]]:
    """For each seed the length 64 with `short`, and the far length with its own accuracy."""
    return [
        record
        for seed, end in enumerate(ends)
        for record in (run(model, task, 64, seed, short), run(model, task, far, seed, end))
    ]


def verdict_1(prediction: Prediction | DocumentPrediction, results: Iterable[Any]) -> Verdict:
    """By the first rules."""
    return verdict(prediction, results, rules=1)


def judged(prediction: Prediction | DocumentPrediction, results: Iterable[Any]) -> str:
    """By the first rules: the outcome alone."""
    given = verdict_1(prediction, results)
    assert given.rules == 1
    assert given.outcome in given.text()
    assert given.to_dict()["seeds"] == given.seeds
    return given.outcome


def trained(seed: int, far: float, **more: Any) -> dict[str, Any]:
    """The record of a training at length 64, as training writes it."""
    how = {"learning_rate": 1e-3, "steps": 400, "parameters": 1000}
    own = {"accuracy": 1.0, "interval": [0.9963, 1.0], "n": 65_536, "rows": 1024, "floor": 0.5, "solved": True}
    beyond = {
        str(length): {"accuracy": value, "interval": [value - 0.003, value], "rows": 1024, "last_32_accuracy": value}
        for length, value in ((128, 1.0), (1024, far))
    }
    cell = {"task": "txc", "subject": "E88-gain-1L", "length": 64, "seed": seed, "protocol": {}}
    return {"cell": cell, **how, **own, "tail_accuracy": 1.0, "length_generalisation": beyond, "stream": None, **more}
