"""What is counted over episodes, from what is kept of them alone: a folder of results can be counted again.

results, summary     the numbers of one group of episodes, with their n and intervals
overview             many records in one table: a row for each task, subject, length and set of rules

How long episodes last is told in `survival`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from statetrack.asking.episode import DONE, FAILURES, FAULTS, FORMAT, INTERRUPTIONS, LETTERS, REFUSAL, RIGHT, RUNNING
from statetrack.asking.rules import FORCED, how
from statetrack.asking.survival import half_failed, survival
from statetrack.asking.tokens import Tokens
from statetrack.intervals import grouped_wilson, places_above, wilson
from statetrack.results.cell import ASK, Cell
from statetrack.results.records import FAILED, FINISHED, AskedRecord, EpisodeRecord, Record

RESAMPLES = 2000
COUNTED = ("reasoning tokens", "truncated", "failed calls")  # columns of tables, where there are any


def max_length(episode: EpisodeRecord, compat: bool = False) -> int:
    """How long an episode lasted: the turns answered correctly before the first that was not, 0..300.

    The original counts the turns answered, the failed one included, minus one: the same number, except that a perfect
    episode has 299 there.

    >>> from types import SimpleNamespace as Kept
    >>> [max_length(Kept(max_length=299, outcomes="+" * 299 + "x"), compat) for compat in (False, True)]
    [299, 299]
    >>> [max_length(Kept(max_length=300, outcomes="+" * 300), compat) for compat in (False, True)]
    [300, 299]
    """
    right = episode.max_length
    failed = right < len(episode.outcomes)
    return max(0, right + failed - 1) if compat else right


def results(episodes: Sequence[EpisodeRecord], compat: bool = False) -> dict[str, float]:
    """The result keys of Track the Stat; an empty dict where no episode counts. The standard deviation is the
    population's.
    """
    whole = counted(episodes)
    if not whole:
        return {}
    lengths = [max_length(episode, compat) for episode in whole]
    return {
        "avg_max_length": float(np.mean(lengths)),
        "stddev_max_length": float(np.std(lengths)),
        "median_max_length": float(median(lengths)),
        "max_max_length": max(lengths),
        "min_max_length": min(lengths),
        "violation_rate": float(np.mean([is_violation(episode) for episode in whole])),
    }


def is_violation(episode: EpisodeRecord) -> bool:
    """Whether an episode holds a reply without an answer in the right format."""
    return any(LETTERS[kind] in episode.outcomes for kind in (FORMAT, REFUSAL))


def counted(episodes: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Those that count for a mean: what a server failed, or a person left, says nothing of who was asked."""
    return [episode for episode in episodes if episode.ended not in (RUNNING, *FAULTS)]


def summary(episodes: Sequence[EpisodeRecord], compat: bool = False) -> dict[str, Any]:
    """The result keys with their n and intervals, and what one number hides.

    Episodes that a server failed are in no mean; they count for survival as long as they were seen.
    """
    whole = counted(episodes)
    failed = len(episodes) - len(whole)
    if not whole:
        return {"episodes": 0, **({"failed": failed} if failed else {})}
    return {
        "half_failed_by": half_failed(episodes).to_dict(),
        **results(whole, compat),
        "counting": "original" if compat else "0..length",
        "episodes": len(whole),
        "failed": failed,
        "avg_interval": mean_interval([max_length(episode, compat) for episode in whole]),
        "violation_interval": list(wilson(sum(map(is_violation, whole)), len(whole))),
        "accuracy": accuracy(whole),
        "ended": ended(episodes),
        "steps": steps(whole),
        "survival": survival(episodes),
        "by_position": by_position(whole),
        "tokens": tokens(episodes).to_dict(),
    }


def mean_interval(numbers: Sequence[float]) -> list[float]:
    """A 95 % bootstrap interval of a mean over episodes."""
    given = np.asarray(numbers, float)
    picks = np.random.default_rng(0).integers(0, len(given), (RESAMPLES, len(given)))
    return [float(bound) for bound in np.quantile(given[picks].mean(1), [0.025, 0.975])]


def accuracy(episodes: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """The share of right answers among all given; its interval is over episodes, since one error brings others."""
    return _share([episode.outcomes.count(LETTERS[RIGHT]) for episode in episodes],
                  [len(episode.outcomes) for episode in episodes])  # fmt: skip


def ended(episodes: Sequence[EpisodeRecord]) -> dict[str, int]:
    """How many episodes ended in which way: done, by a failure of the model's own, or by an interruption."""
    counts = Counter(episode.ended for episode in episodes)
    return {kind: counts[kind] for kind in (DONE, *FAILURES, *INTERRUPTIONS)}


def steps(episodes: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """The accuracy where the answer changes and where it stays, apart: copying is right wherever it stays."""

    def share(kind: str) -> dict[str, Any]:
        letters = [[letter for change, letter in zip(episode.changes, episode.outcomes) if change == kind]
                   for episode in episodes]  # fmt: skip
        return _share([own.count(LETTERS[RIGHT]) for own in letters], [len(own) for own in letters])

    return {"change": share("1"), "no_change": share("0")}


def by_position(episodes: Sequence[EpisodeRecord]) -> list[dict[str, Any]]:
    """The accuracy at each position that was asked about, with its n and interval.

    With early stop the n falls along the way: those that are still there are those that made no error.
    """
    right: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for episode in episodes:
        for position, letter in zip(episode.positions, episode.outcomes):
            asked[position] += 1
            right[position] += letter == LETTERS[RIGHT]
    return [
        {"position": at, "accuracy": right[at] / n, "n": n, "interval": list(wilson(right[at], n))}
        for at, n in sorted(asked.items())
    ]


def tokens(episodes: Sequence[EpisodeRecord]) -> Tokens:
    return sum((Tokens(**episode.tokens) for episode in episodes), Tokens())


def falls_below(scores: Sequence[tuple[int, float]], threshold: float = 0.5) -> int | None:
    """The length from which on accuracy lies below a threshold; None where that cannot be told from chance.

    `scores` has a length and 1 or 0 for every answer. Accuracy is taken to fall as rows grow longer, so that the
    lengths are cut in two (`places_above`), and Wilson's interval of all answers beyond the cut must lie below the
    threshold. A single length below it says little: of 100 lengths with 20 rows each, a constant accuracy of .70
    has one in 82 % of runs.

    >>> falls_below([(5, 1), (10, 0)] * 4), falls_below([(5, 1), (10, 0), (15, 1)])
    (10, None)
    """
    at: dict[int, list[float]] = {}
    for length, score in sorted(scores):
        at.setdefault(length, []).append(score)
    held = places_above([sum(own) for own in at.values()], [len(own) for own in at.values()], threshold)
    beyond = list(at)[held:]
    answers = [score for length in beyond for score in at[length]]
    return beyond[0] if beyond and wilson(sum(answers), len(answers))[1] < threshold else None


def overview(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A row for all samples of one kind. Those that a server failed are in no number but their own, `failed`, and, as
    far as they were answered, in the turn by which half have failed.

    Input tokens are those of a server without memory, which receives the whole history at every turn; of them new are
    those that had to be processed.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.cell.kind == ASK and record.status in (*FINISHED, FAILED):
            groups.setdefault(record.cell.siblings, []).append(record)
    some = any(record.status == FAILED for group in groups.values() for record in group)
    rows = without_zeros([_row(group[0].cell, group, some) for group in groups.values()])
    return sorted(rows, key=lambda row: (row["task"], row["subject"], row["rules"], row["length"]))


def terms_in(episodes: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """How episodes were asked and answered, as far as they were: the hash of their prompt, and counts by COUNTED."""
    hashes = list(dict.fromkeys(episode.prompt_sha256 for episode in episodes if episode.prompt_sha256))
    return {
        "prompt": hashes[0][:8] if len(hashes) == 1 else f"{len(hashes)} prompts" if hashes else "",
        "reasoning tokens": tokens(episodes).reasoning,
        "truncated": sum(episode.truncated for episode in episodes),
        "failed calls": sum(episode.failed_calls for episode in episodes),
    }


def without_zeros(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those of the columns COUNTED in which nothing was counted anywhere."""
    empty = {name for name in COUNTED if not any(row[name] for row in rows)}
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]


def _row(cell: Cell, group: list[Record], failures: bool) -> dict[str, Any]:
    """With a column for failures where there are any in the folder."""
    asked = [record for record in group if isinstance(record, AskedRecord)]
    episodes = [record.episode for record in asked if record.finished]
    spent, found = tokens(episodes), results(episodes, bool(cell.protocol.get("compat")))
    turns = cell.protocol.get("way") == "turns"
    half = half_failed([record.episode for record in asked])
    told = terms_in([record.episode for record in asked])
    return {
        "task": cell.task,
        "subject": cell.subject,
        "rules": how(cell.protocol),
        "length": cell.length,
        "prompt": told.pop("prompt"),
        "episodes": len(episodes),
        **({"failed": len(group) - len(episodes)} if failures else {}),
        "half failed by turn": half.text if turns or not half.seen else None,
        "95 %": half.between if turns else None,
        "avg_max_length": found.get("avg_max_length") if turns else None,
        "violation_rate": None if FORCED in cell.protocol else found.get("violation_rate"),
        "accuracy": accuracy(episodes)["accuracy"],
        **told,
        "input tokens": spent.sent,
        "of them new": spent.new,
        "output tokens": spent.generated,
        "total tokens": spent.sent + spent.generated,
    }


def _share(right: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
    """The share of right answers, those of each episode on their own."""
    n = sum(counts)
    return {"accuracy": sum(right) / n if n else None, "n": n, "interval": list(grouped_wilson(right, counts))}
