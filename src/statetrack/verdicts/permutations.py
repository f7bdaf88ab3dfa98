"""Rules 2 on what the permutation benchmark predicts beyond single accuracies: of language models that were asked, of
lengths, and of groups that are solvable or not. Any length counts that the document speaks of (5 and more).

    p-transformer  near 0: of a model that keeps to the format, at most 5 % of the samples are wholly right, in groups
                   where a guess is as seldom right
    p-cot          thinking is right where the instant answer is not, on the same samples, usually
    p-length       a shorter length is surely better than the longest, usually: of a model that is asked under the same
                   rules, or of a seed
    p-solvable     of two groups of one order the solvable one is surely better, usually: seed by seed, model by model
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from statetrack.asking.solvers import split_subject
from statetrack.errors import BadInput
from statetrack.formatting import plural, shown
from statetrack.intervals import rate_bounds
from statetrack.models.catalogue import lookup
from statetrack.results import AskedRecord
from statetrack.tasks import trusted_task
from statetrack.theory.algebra.passport import passport
from statetrack.verdicts.documents import SHORTEST, DocumentPrediction
from statetrack.verdicts.measurements import Measurement, grouped
from statetrack.verdicts.networks import Network, networks
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, Verdict, undecided
from statetrack.verdicts.rates import USUALLY, rate

NEAR_ZERO = 0.05
IN_FORMAT = 0.5  # of the replies; below it a failure is one of the format


def judge(prediction: DocumentPrediction, records: list[Measurement], asked: Sequence[AskedRecord]) -> Verdict:
    samples = [one for one in asked if one.finished and _is_group(one.cell.task) and one.cell.length >= SHORTEST
               and split_subject(one.cell.subject)[0]]  # fmt: skip
    trained = [one for one in networks(records) if _is_group(one.first.task)]
    return RULES[prediction.key](samples, trained)


def _group(name: str) -> tuple[int, bool] | None:
    """The order of a task's group, and whether it is solvable; None where it is no group, or not at hand."""
    try:
        return _known_group(name)
    except BadInput:
        return None


@cache
def _known_group(name: str) -> tuple[int, bool] | None:
    found = passport(trusted_task(name)).group
    return (found.order, found.solvable) if found else None


def _is_group(name: str) -> bool:
    return _group(name) is not None


def _right(one: AskedRecord) -> bool:
    return bool(one.episode.asked) and one.episode.max_length >= one.episode.asked


def _near_zero(asked: list[AskedRecord], trained: list[Network]) -> Verdict:
    """The document speaks of models that were not trained for it: of those that are asked."""
    asked = [one for one in asked if _guessed(one) <= NEAR_ZERO]
    if not asked:
        return undecided("no language model was asked to compose permutations where a guess is near 0")
    said, above, open_ones = [], [], []
    for model, same in grouped(asked, lambda one: split_subject(one.cell.subject)[0]).items():
        replies = "".join(one.episode.outcomes for one in same)
        kept = sum(letter in "+x" for letter in replies) / max(1, len(replies))
        right = sum(map(_right, same))
        low, high = rate_bounds(right, len(same))
        said.append(f"{model} {right} of {len(same)}, {kept:.0%} of its replies in the format")
        above += [model] if low > NEAR_ZERO else []
        open_ones += [model] if low <= NEAR_ZERO and (high >= NEAR_ZERO or kept < IN_FORMAT) else []
    why = f"wholly right: {'; '.join(said)}"
    if above:
        return Verdict(REFUTED, why, len(asked))
    return undecided(why, len(asked)) if open_ones else Verdict(CONFIRMED, why, len(asked))


def _thinking_helps(asked: list[AskedRecord], trained: list[Network]) -> Verdict:
    """By the samples on which the two ways of answering differ; equal ones say nothing of the difference."""
    votes: list[bool | None] = []
    pairs = 0
    for same in grouped(asked, _but_for_thinking).values():
        found = {one.cell.protocol.get("regime", "instant"): _right(one) for one in same}
        if {"instant", "thinking"} <= found.keys():
            pairs += 1
            votes += [found["thinking"]] if found["thinking"] != found["instant"] else []
    if not pairs:
        return undecided("no sample was answered both at once and after thinking")
    found_rate = rate(votes)
    ways = f"{found_rate.yes} right by thinking alone, {found_rate.no} without"
    why = f"on {plural(pairs, 'sample')} asked both ways, {ways}"
    return _decided(votes, why, pairs)


def _guessed(one: AskedRecord) -> float:
    """How often a guess is right about one element of the group."""
    return 1 / (_group(one.cell.task) or (1, True))[0]


def _but_for_length(one: AskedRecord) -> str:
    return json.dumps([one.cell.task, one.cell.subject, one.cell.protocol], sort_keys=True)


def _but_for_thinking(one: AskedRecord) -> str:
    rules = {key: value for key, value in one.cell.protocol.items() if key not in ("regime", "room", "keep_reasoning")}
    return json.dumps([one.cell.task, one.cell.subject, one.cell.length, one.cell.seed, rules], sort_keys=True)


def _falls_with_length(asked: list[AskedRecord], trained: list[Network]) -> Verdict:
    """Of transformers: trained ones seed by seed, asked ones model by model."""
    votes = [_falls(one.runs[0], one.runs[-1]) for one in trained if _is_transformer(one) and len(one.runs) > 1]
    for same in grouped(asked, _but_for_length).values():
        by_length = sorted(grouped(same, lambda one: one.cell.length).items())
        if len(by_length) > 1:
            short, long = (rate_bounds(sum(map(_right, held)), len(held)) for _, held in (by_length[0], by_length[-1]))
            votes.append(True if long[1] < short[0] else False if long[0] >= short[1] else None)
    if not votes:
        return undecided("no transformer was measured at two lengths of a group")
    return _decided(votes, "a shorter length is surely better", len(votes))


def _falls(short: Measurement, long: Measurement) -> bool | None:
    if short.low <= short.floor:
        return None  # no better than a guess to begin with
    return True if long.high < short.low else False if long.accuracy >= short.accuracy else None


def _is_transformer(one: Network) -> bool:
    line = lookup(one.first.model)
    return line is not None and line.family == "attention"


def _solvable_easier(asked: list[AskedRecord], trained: list[Network]) -> Verdict:
    """Order for order, so that the size of the group plays no part."""
    votes = [vote for same in grouped(trained, _but_for_the_group).values() for vote in _pairs(same)]
    if not votes:
        return undecided("no model was trained on a solvable group and on one of the same order that is not")
    return _decided(votes, "of two groups of one order the solvable one is surely better", len(votes))


def _but_for_the_group(one: Network) -> tuple[str, str, int, int]:
    return one.first.model.lower(), one.first.protocol, one.trained, one.first.seed


def _pairs(same: Iterable[Network]) -> Iterator[bool | None]:
    """One vote for each order: all its solvable groups against all the others, by their means' bounds."""
    taught = (one for one in same if one.own and not one.excused)
    by_order = grouped(taught, lambda one: (_group(one.first.task) or (0, False))[0])
    for held in by_order.values():
        sides = grouped(held, lambda one: (_group(one.first.task) or (0, False))[1])
        if len(sides) == 2:
            (low, high), (other_low, other_high) = (_mean_bounds(sides[solvable]) for solvable in (True, False))
            yield True if low > other_high else False if other_low > high else None


def _mean_bounds(found: Sequence[Network]) -> tuple[float, float]:
    runs = [one.own for one in found if one.own]
    return sum(run.low for run in runs) / len(runs), sum(run.high for run in runs) / len(runs)


def _decided(votes: list[bool | None], said: str, seeds: int) -> Verdict:
    found = rate(votes)
    share = f"in {found.yes} of {found.of}" + (f" ({found.open} open)" if found.open else "")
    why = f"{said}: {share}, a rate of {shown(found.lower)} to {shown(found.upper)}"
    if found.word == USUALLY:
        return Verdict(CONFIRMED, why, seeds)
    return Verdict(REFUTED, why, seeds) if found.seldom else undecided(why, seeds)


RULES: dict[str, Callable[[list[AskedRecord], list[Network]], Verdict]] = {
    "p-transformer": _near_zero, "p-cot": _thinking_helps, "p-length": _falls_with_length,
    "p-solvable": _solvable_easier,
}  # fmt: skip
