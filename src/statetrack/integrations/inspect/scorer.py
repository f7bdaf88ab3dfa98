"""What is counted: the records of `statetrack.asking`, carried by Inspect's scores.

The metrics take every epoch as an episode of its own (`scores="unreduced"`); by default Inspect averages epochs first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState

from statetrack.asking.episode import FAULTS, INTERRUPTIONS, LETTERS, LIMIT, RIGHT, RUNNING
from statetrack.asking.metrics import falls_below, is_violation, max_length, mean_interval, results
from statetrack.asking.survival import half_failed
from statetrack.errors import BadInput
from statetrack.integrations.inspect.solvers import RECORD, for_log
from statetrack.intervals import grouped_wilson
from statetrack.results import schema
from statetrack.results.records import EpisodeRecord

KEYS = (
    "avg_max_length", "stddev_max_length", "median_max_length", "max_max_length", "min_max_length", "violation_rate",
)  # fmt: skip


@metric(scores="unreduced")
def episodes(compat: bool = False) -> Metric:
    """The turn by which half have failed, the six result keys of Track the Stat, the number of episodes, and how many
    were cut off by a limit. Intervals are over samples: epochs of one sample are no new ones.
    """

    def compute(scores: list[SampleScore]) -> dict[str, float | None]:
        played = [schema.read(EpisodeRecord, _noted(score)["record"]) for score in scores]
        samples = _by_sample(scores, [float(max_length(record, compat)) for record in played])
        half = half_failed(played, len(samples))
        low, high = mean_interval([fmean(lengths) for lengths in samples]) if samples else (math.nan, math.nan)
        return {
            "half_failed_by": half.turn,
            "half_failed_low": half.low,
            "half_failed_high": half.high,
            **dict.fromkeys(KEYS, math.nan),
            **results(played, compat),
            "avg_low": low,
            "avg_high": high,
            "episodes": len(played),
            "censored": sum(record.ended in INTERRUPTIONS for record in played),
        }

    return compute


def _by_sample(scores: list[SampleScore], values: list[float]) -> list[list[float]]:
    """The values of each sample, one for each of its epochs."""
    by_id: dict[Any, list[float]] = {}
    for score, value in zip(scores, values, strict=True):
        by_id.setdefault(score.sample_id, []).append(value)
    return list(by_id.values())


@metric(scores="unreduced")
def by_length() -> Metric:
    """The share of right answers with its standard error, interval, n and chance; the same share at each length.

    Epochs of one sample depend on each other, so that the error and the interval count samples.
    """

    def compute(scores: list[SampleScore]) -> dict[str, float | None]:
        if not scores:
            return dict.fromkeys(("accuracy", "stderr", "n", "chance"), math.nan)
        right = [score.score.as_float() for score in scores]
        share, n, samples = float(np.mean(right)), len(right), _by_sample(scores, right)
        hits, sizes = [sum(own) for own in samples], [float(len(own)) for own in samples]
        low, high = grouped_wilson(hits, sizes)
        curve = _curve(scores)
        return {
            "accuracy": share,
            "stderr": _standard_error(share, hits, sizes),
            "low": low,
            "high": high,
            "n": n,
            "chance": float(np.mean([_noted(score)["chance"] for score in scores])),
            "falls_below_half": falls_below([(_noted(score)["length"], score.score.as_float()) for score in scores]),
            **{str(length): accuracy for length, accuracy in curve},
        }

    return compute


def _standard_error(share: float, hits: list[float], sizes: list[float]) -> float:
    """Of a share over samples of one or more epochs: from one sample to the next, where they have several."""
    groups, n = len(sizes), sum(sizes)
    if groups == n or groups == 1:
        return math.sqrt(share * (1 - share) / groups)
    squares = sum((right - share * size) ** 2 for right, size in zip(hits, sizes, strict=True))
    return math.sqrt(groups / (groups - 1) * squares) / n


def _curve(scores: list[SampleScore]) -> list[tuple[int, float]]:
    """The share of right answers at each length."""
    at: dict[int, list[float]] = {}
    for score in scores:
        at.setdefault(_noted(score)["length"], []).append(score.score.as_float())
    return [(length, float(np.mean(right))) for length, right in sorted(at.items())]


@scorer(metrics=[episodes()])
def episode(compat: bool = False) -> Scorer:
    """How long an episode lasted. One that a limit cut off keeps its length, and is counted as censored; one that the
    server failed has no score, even where Inspect is told to score errors.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = _played(state)
        if record.ended in FAULTS:
            return Score.unscored(reason=record.ended, explanation=_ended(record), metadata=_notes(state, record))
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
