"""What is counted: the records of `statetrack.asking`, carried by Inspect's scores.

The metrics take every epoch as an episode of its own (`scores="unreduced"`); by default Inspect averages epochs first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState

from statetrack.asking.episode import INTERRUPTIONS, LETTERS, LIMIT, RIGHT, RUNNING
from statetrack.asking.metrics import falls_below, is_violation, max_length, results
from statetrack.errors import BadInput
from statetrack.integrations.inspect.solvers import RECORD, for_log
from statetrack.intervals import wilson
from statetrack.results import schema
from statetrack.results.records import EpisodeRecord

KEYS = (
    "avg_max_length", "stddev_max_length", "median_max_length", "max_max_length", "min_max_length", "violation_rate",
)  # fmt: skip


@metric(scores="unreduced")
def episodes(compat: bool = False) -> Metric:
    """The six result keys of Track the Stat, the number of episodes, and how many of them were cut off by a limit."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        played = [schema.read(EpisodeRecord, _noted(score)["record"]) for score in scores]
        cut = sum(record.ended in INTERRUPTIONS for record in played)
        return {**dict.fromkeys(KEYS, math.nan), **results(played, compat), "episodes": len(played), "censored": cut}

    return compute


@metric(scores="unreduced")
def by_length() -> Metric:
    """The share of right answers with its standard error, interval, n and chance; the same share at each length."""

    def compute(scores: list[SampleScore]) -> dict[str, float | None]:
        if not scores:
            return dict.fromkeys(("accuracy", "stderr", "n", "chance"), math.nan)
        right = [score.score.as_float() for score in scores]
        share, n = float(np.mean(right)), len(right)
        low, high = wilson(round(sum(right)), n)
        curve = _curve(scores)
        return {
            "accuracy": share,
            "stderr": math.sqrt(share * (1 - share) / n),
            "low": low,
            "high": high,
            "n": n,
            "chance": float(np.mean([_noted(score)["chance"] for score in scores])),
            "falls_below_half": falls_below([(_noted(score)["length"], score.score.as_float()) for score in scores]),
            **{str(length): accuracy for length, accuracy in curve},
        }

    return compute


def _curve(scores: list[SampleScore]) -> list[tuple[int, float]]:
    """The share of right answers at each length."""
    at: dict[int, list[float]] = {}
    for score in scores:
        at.setdefault(_noted(score)["length"], []).append(score.score.as_float())
    return [(length, float(np.mean(right))) for length, right in sorted(at.items())]


@scorer(metrics=[episodes()])
def episode(compat: bool = False) -> Scorer:
    """How long an episode lasted. One that a limit cut off keeps its length, and is counted as censored."""

    async def score(state: TaskState, target: Target) -> Score:
        record = _played(state)
        lasted = max_length(record, compat)
        value = {"max_length": lasted, "violation": int(is_violation(record))}
        return Score(value=value, answer=str(lasted), explanation=_ended(record), metadata=_notes(state, record))

    return score


@scorer(metrics=[by_length()])
def answer() -> Scorer:
    """Whether the one answer is right. Without an answer, because a limit came before it, there is no score."""

    async def score(state: TaskState, target: Target) -> Score:
        record = _played(state)
        value = float(record.outcomes == LETTERS[RIGHT]) if record.outcomes else math.nan
        said = record.replies[0] if record.replies else None
        return Score(value=value, answer=said, explanation=_ended(record), metadata=_notes(state, record))

    return score


def records(log: EvalLog | str | Path) -> list[EpisodeRecord]:
    """The episodes in a log of Inspect's, for `statetrack.asking.summary`: survival, accuracy by position, failures."""
    eval_log = log if isinstance(log, EvalLog) else read_eval_log(str(log))
    scores = [score.metadata or {} for sample in eval_log.samples or [] for score in (sample.scores or {}).values()]
    return [schema.read(EpisodeRecord, notes["record"]) for notes in scores if "record" in notes]


def _played(state: TaskState) -> EpisodeRecord:
    """The record that the solver left; where a limit ended the solver, it was still running."""
    stored = state.store.get(RECORD)
    if stored is None:
        raise BadInput("no episode was played: choose a solver of statetrack's, such as --solver statetrack/implicit")
    record = schema.read(EpisodeRecord, stored)
    return replace(record, ended=LIMIT) if record.ended == RUNNING else record


def _ended(record: EpisodeRecord) -> str:
    return ": ".join(part for part in (record.ended, record.detail) if part)


def _notes(state: TaskState, record: EpisodeRecord) -> dict[str, Any]:
    length = state.metadata["length"] or record.asked
    return {"record": for_log(record), "length": length, "chance": state.metadata["chance"]}


def _noted(score: SampleScore) -> dict[str, Any]:
    assert score.score.metadata is not None  # the scorers above write it
    return score.score.metadata
