"""Rules 2 on what theory predicts (docs/claims.md has them on one screen).

A claim about every length is never confirmed by rows, and by a proof of the weights at hand it is. A claim about
training is about a rate: of the seeds, trained in
one way at one length, how many are right at 8 times that length and more, and not broken by a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from statetrack import spec
from statetrack.models.catalogue import lookup
from statetrack.results.sections import M_FADES, M_UNCLEAR
from statetrack.theory.predictions.predict import CANNOT, EVERY, FADES, GROWS, UNKNOWN, Prediction
from statetrack.verdicts.controls import SHORT, adequacy
from statetrack.verdicts.measurements import Measurement, grouped
from statetrack.verdicts.networks import Network, networks, one_way, words_tried
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, Verdict, undecided
from statetrack.verdicts.rates import RARELY, USUALLY, Rate, rate


def judge(prediction: Prediction, records: list[Measurement]) -> Verdict:
    """`records` may be of other tasks too: controls are looked for among them."""
    if prediction.outcome == UNKNOWN:
        return undecided("nothing was predicted")
    found = [one for one in networks(records) if one.first.task == prediction.task]
    own = [one for one in found if one.first.model.lower() == prediction.model]
    if prediction.about == "weights":
        return _weights(prediction, own)
    if prediction.outcome == GROWS:
        return _grows(prediction, found)
    judged = one_way([one for one in own if one.trained > SHORT] or own)  # those at length 4 are controls
    if not judged:
        return undecided("no network was trained")
    return {EVERY: _every, CANNOT: _cannot, FADES: _fades}[prediction.outcome](prediction, judged, records)


def _weights(prediction: Prediction, own: list[Network]) -> Verdict:
    """What weights exist, or do not, at every length: only a proof for weights at hand decides it."""
    seeds = len({one.first.seed for one in own})
    proved = [one for one in own if one.first.proved]
    if proved:
        why = f"seed {proved[0].first.seed} is {proved[0].claim[1]}"
        return Verdict(CONFIRMED if prediction.outcome == EVERY else REFUTED, why, seeds)
    right = [one for one in own if one.right_far_out]
    if not right:
        return undecided("no network was right far out, which says nothing of other weights", seeds)
    best = max(right, key=lambda one: one.runs[-1].length)
    return undecided(f"no rows decide what holds at every length; seed {best.first.seed} was {best.claim[1]}", seeds)


def _every(prediction: Prediction, judged: list[Network], records: list[Measurement]) -> Verdict:
    found, seeds = far_out(judged), len(judged)
    proofs = rate(True if one.first.proved else False if one.right_far_out is False else None for one in judged)
    if proofs.word == USUALLY:
        return Verdict(CONFIRMED, f"usually proved to be right at every length: {proofs.text}", seeds)
    if found.word == USUALLY:
        return undecided(f"usually right as far as tested: {_tested(judged, found)}", seeds)
    if not found.seldom:
        return undecided(_open(judged, found), seeds)
    shown = adequacy(judged, records)
    if not shown.shown:
        return undecided(f"{found.word} right far out: {found.text}; {shown.text}", seeds)
    return Verdict(REFUTED, f"{found.word} right far out: {found.text}{_broken(judged)}; {shown.text}", seeds)


def _cannot(prediction: Prediction, judged: list[Network], records: list[Measurement]) -> Verdict:
    found, seeds = far_out(judged), len(judged)
    if found.word == USUALLY:
        if prediction.rows_forget:
            why = "random rows, which do not ask how long a state is held"
            return undecided(f"usually right on {why}: {_tested(judged, found)}", seeds)
        if any(one.first.words is None for one in judged):
            return undecided(f"usually right on rows, but {words_tried(judged)}: {found.text}", seeds)
        return Verdict(REFUTED, f"usually right as far as tested: {_tested(judged, found)}", seeds)
    if not found.seldom:
        return undecided(_open(judged, found, USUALLY, RARELY), seeds)
    shown = adequacy(judged, records)
    if not shown.shown:
        return undecided(f"{found.word} right far out: {found.text}; {shown.text}", seeds)
    if found.word == RARELY:
        return Verdict(CONFIRMED, f"rarely right far out: {found.text}{_broken(judged)}; {shown.text}", seeds)
    return undecided(f"seldom right far out: {found.text}; for “rarely” {found.lacks(RARELY)}", seeds)


def _fades(prediction: Prediction, judged: list[Network], records: list[Measurement]) -> Verdict:
    found, seeds = far_out(judged), len(judged)
    if found.word == USUALLY:
        if prediction.rows_forget:
            why = "random rows, which do not ask how long a state is held"
            return undecided(f"usually right on {why}: {_tested(judged, found)}", seeds)
        return Verdict(REFUTED, f"usually right as far as tested: {_tested(judged, found)}", seeds)
    lost = [one for one in judged if one.learned and one.right_far_out is False]
    if not lost:
        lead = "no seed surely solved the length trained on and lost it far out"
        return undecided(f"{lead}; right far out: {found.text}", seeds)
    fading = rate([_faded(one) for one in judged])
    seen = ", ".join(sorted({one.first.mechanism for one in lost} - {""})) or "not diagnosed"
    shown = f"lost far out by {len(lost)} of {seeds}, by fading alone {fading.text}; seen: {seen}"
    if fading.word == USUALLY:
        return Verdict(CONFIRMED, shown, seeds)
    if fading.seldom:
        return Verdict(REFUTED, shown, seeds)
    if seen == "not diagnosed":
        return undecided(f"not diagnosed: lost far out by {len(lost)} of {seeds}, by fading or otherwise", seeds)
    return undecided(f"{shown}; {fading.lacks()}", seeds)


def _faded(one: Network) -> bool | None:
    """Whether a network solved its length and then lost it by fading; open where nobody looked."""
    if one.right_far_out is None or (not one.learned and not one.right_far_out):
        return None
    if one.right_far_out:
        return False
    return None if one.first.mechanism in ("", M_UNCLEAR) else one.first.mechanism == M_FADES


def _grows(prediction: Prediction, found: list[Network]) -> Verdict:
    """More depth must solve longer sequences, and no depth the longest: by rates at the lengths trained on."""
    by_depth: dict[int, dict[int, Rate]] = {}
    seeds = 0
    for layers, same in sorted(grouped(_in_family(prediction, found), _layers).items()):
        lengths = grouped(same, lambda one: one.trained)
        by_depth[layers] = {length: rate(one.learned for one in runs) for length, runs in lengths.items()}
        seeds += len(same)
    reach = {layers: max((n for n, each in rates.items() if each.word == USUALLY), default=0)
             for layers, rates in by_depth.items()}  # fmt: skip
    if sum(length > 0 for length in reach.values()) < 2:
        return undecided("fewer than two depths that usually solve some length", seeds)
    longest = max(max(rates) for rates in by_depth.values())
    shown = "usually solved: " + ", ".join(f"{layers} layers {length:,}" for layers, length in reach.items())
    ends = list(reach.values())
    last = by_depth[max(by_depth)].get(longest)
    if all(a < b for a, b in pairwise(ends)) and last is not None and last.seldom:
        return Verdict(CONFIRMED, f"{shown}; {longest:,} seldom even by the deepest", seeds)
    if ends[-1] < ends[0] or all(length == longest for length in ends):
        return Verdict(REFUTED, shown, seeds)
    return undecided(shown, seeds)


def _in_family(prediction: Prediction, found: list[Network]) -> list[Network]:
    """The networks of its family that differ in depth alone, trained in the one way: those of which there are most."""
    same = [one for one in found if _family(one.first.model) == prediction.family]
    ways = grouped(same, lambda one: (one.first.protocol, _but_for_depth(one.first.model)))
    return max(ways.values(), key=len, default=[])


def _but_for_depth(model: str) -> str:
    """Where a model is and its options without its layers, as text; those of its name that its line does not list too.

    >>> _but_for_depth("mamba2-4l") == _but_for_depth("Mamba2-8L")
    True
    >>> _but_for_depth("transformer") == _but_for_depth("transformer-rope")
    False
    """
    line = lookup(model)
    if line is None:
        return model
    options = {**spec.parse(line.name)[1], **line.options, "layers": ""}
    return f"{line.at} {sorted((key, str(value)) for key, value in options.items())}"


def _family(model: str) -> str:
    line = lookup(model)
    return line.family if line else ""


def _layers(one: Network) -> int:
    line = lookup(one.first.model)
    return line.layers if line else 0


def far_out(judged: Sequence[Network]) -> Rate:
    """Of the networks, how many are right far out."""
    return rate(one.right_far_out for one in judged)


def _tested(judged: list[Network], found: Rate) -> str:
    least = min(max(run.length for run in one.runs if run.surely_solved) for one in judged if one.right_far_out)
    return f"{found.text} to {least:,} and more; {words_tried(judged)}"


def _broken(judged: list[Network]) -> str:
    words = [one.first.broken for one in judged if one.first.broken]
    others = [one.first.elsewhere for one in judged if one.first.elsewhere and one.learned and not one.first.broken]
    by_word = f", {len(words)} broken by a word such as {min(words, key=len)}" if words else ""
    return by_word + (f", {len(others)} wrong on rows of another kind ({min(others)})" if others else "")


def _open(judged: list[Network], found: Rate, *words: str) -> str:
    """Why seeds decide nothing yet."""
    excused = sorted({why for one in judged if one.learned is None and one.own and (why := _excuse(one.own))})
    unclear = f" ({'; '.join(excused[:3])}{'; ...' if len(excused) > 3 else ''})" if excused else ""
    return f"right far out: {found.text}{unclear}{_broken(judged)}; {found.lacks(*words)}"


def _excuse(run: Measurement) -> str:
    return run.excuse or run.stopped
