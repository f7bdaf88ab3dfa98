"""The diagnosis in a word and in two to four plain sentences."""

from __future__ import annotations

from typing import Any

from statetrack.diagnosis.separation import SHRUNK
from statetrack.results.diagnosis import (
    EXPLODES,
    FADES,
    FAILS,
    HOLDS,
    MECHANISM_OF,
    NO_STATE,
    ONLY,
    SHRINKS,
    SLIPS,
    STAYS,
    UNDECODED,
    UNREAD,
    UNUSED,
)
from statetrack.results.sections import M_EXPLODES, M_SHRINKS, M_UNCLEAR, NOT_READ

HALF = 0.5  # of the way from chance to 1

BARELY = 1.5  # times the length trained on
NEAR = 1.5  # times the length at which it fails: curves are not exact
OFF = 1.5  # a prediction that is further off than so many times is said to be


def conclude(record: dict[str, Any]) -> tuple[str, list[str]]:
    """The conclusion and its sentences, from the sections of a record."""
    if "absent" in record["probe"]:
        return NO_STATE, _without_state(record)
    if record["gradient"].get("absent") == NOT_READ:
        return UNUSED, _and_more(record, _unused(record))
    learned = record["error"]["learned"]
    if not learned and not _is_silent_by(record, record["trained"]):
        return _never(record)
    word = _fate(record) if learned else EXPLODES
    lines = {STAYS: _stays, HOLDS: _holds, FADES: _fades, SLIPS: _slips, ONLY: _only, FAILS: _fails,
             EXPLODES: _explodes, SHRINKS: _shrinks}[word](record)  # fmt: skip
    return word, _and_more(record, lines)


def mechanism(record: dict[str, Any], conclusion: str) -> str:
    """What the state was seen to do: one of MECHANISMS in results/sections.py."""
    if record["exploded_at"] is not None:
        return M_EXPLODES
    if conclusion == HOLDS and record["separation"].get("says") in ("fade", "shrink"):
        return M_SHRINKS
    return MECHANISM_OF.get(conclusion, M_UNCLEAR)


def tracked(record: dict[str, Any]) -> str:
    """What is tracked, as a person calls it.

    >>> tracked({"automaton": {"task_steps": [[0, 1], [1, 0]]}, "probe": {"state": {"says": "the true state"}}})
    'parity'
    """
    steps = record["automaton"].get("task_steps")
    if steps is not None and len(steps) == 2 and sorted(map(list, zip(*steps))) == [[0, 1], [1, 0]]:
        return "parity"
    return str(record["probe"]["state"]["says"])


def _is_silent_by(record: dict[str, Any], position: float) -> bool:
    return record["silent_at"] is not None and record["silent_at"] <= position


def _fate(record: dict[str, Any]) -> str:
    """By what was measured and by what is said of true states.

    A model that fails at once beyond its length, where nothing before foretells it, has learned its length alone.
    """
    fails = record["error"]["measured"]["at_90"]["length"]
    said = record["separation"].get("says", "unclear")
    if fails is None:
        left = record["separation"].get("shrunk")
        if said in ("fade", "shrink") and left is not None and left < SHRUNK:
            return SHRINKS
        return STAYS if said == "stay apart" else HOLDS
    if record["exploded_at"] is not None or _is_silent_by(record, NEAR * fails):
        return EXPLODES
    predicted = record["error"]["predicted"]["at_90"]["length"]
    if 1 < fails / record["trained"] <= BARELY and (predicted is None or predicted > 2 * fails):
        return ONLY
    return {"fade": FADES, "shrink": FADES, "slip": SLIPS, "stay apart": SLIPS}.get(said, FAILS)


def _never(record: dict[str, Any]) -> tuple[str, list[str]]:
    what = tracked(record).capitalize()
    skill = f"the network itself makes {max(0.0, record['error']['skill_at_end']):.0%} of the way from the floor to 1"
    found = record["probe"].get("decoding")
    if found is None:
        lines = [f"It does not learn the task at the length it was trained on, {record['trained']}."]
        return UNREAD, _and_more(record, [*lines, f"There {skill}."])
    linear, nonlinear, chance = found["linear"], found["nonlinear"], found["chance"]
    told = f"a linear probe finds it at {linear:.2f}, a nonlinear one at {nonlinear:.2f}, chance {chance:.2f}"
    at = f"at position {found['position']:,}, where {skill}"
    enough = chance + HALF * (1 - chance)
    if linear >= enough:
        word, lines = UNREAD, [f"{what} is in the state, yet the network does not read it out: {told}, {at}."]
    elif nonlinear >= enough:
        word = UNREAD
        lines = [f"{what} is in the state, though not linearly, and the network does not read it out: {told}, {at}."]
    else:
        word, lines = UNDECODED, [f"{what} is not decodable by these probes: {told}, {at}.", *_power(found)]
    return word, _and_more(record, lines)


def _power(found: dict[str, Any]) -> list[str]:
    """What the probes would have found."""
    planted = found["planted"]
    if not planted:
        return ["The state is the same in all rows."]
    return [
        f"Planted in these states ({found['numbers']:,} numbers, {found['samples']:,} samples), the linear one finds "
        f"it at {planted['number']:.2f} as a number and at {planted['direction']:.2f} along a random direction, the "
        f"nonlinear one at {planted['product']:.2f} as a product of two numbers."
    ]


def _and_more(record: dict[str, Any], lines: list[str]) -> list[str]:
    """After these what eigenvalues and machine say, four sentences at most; a word that breaks it comes first."""
    machine = record["automaton"]
    breaks = machine.get("equal") and (machine.get("error_string") or machine.get("known_word"))
    order = ("automaton", "eigenvalues") if breaks else ("eigenvalues", "automaton")
    said = [record[name].get("says") for name in order]
    return [*lines, *(f"{each[0].upper()}{each[1:]}." for each in said if each)][:4]


def _stays(record: dict[str, Any]) -> list[str]:
    part, error = record["separation"], record["error"]
    lines = [f"States stay apart: right up to {error['streamed']:,} steps, as far as it was run."]
    if part["healed"] is not None and part["healed"] > 0.55:
        lines.append(
            f"It corrects itself: a distance between true states that is halved is back at {part['healed']:.0%} "
            f"{part['heal_steps']} steps later."
        )
    elif part["per_step"] is not None:
        lines.append(f"The distance between true states changes by a factor of {part['per_step']:.4f} a step.")
    return lines


def _holds(record: dict[str, Any]) -> list[str]:
    error = record["error"]
    lines = [f"It holds so far: right up to {error['streamed']:,} steps, as far as it was run."]
    predicted = error["predicted"]["at_90"]["length"]
    if predicted is not None:
        lines.append(f"What is seen up to position {record['separation']['fitted_to']} predicts {count(predicted)}.")
    return lines


def _shrinks(record: dict[str, Any]) -> list[str]:
    at, now = _last_gap(record)
    return [
        f"It shrinks and is still read: the distance between true states is {now:.2g} at position {at:,}, "
        f"{record['separation']['shrunk']:.2g} of what it was at first, and the network is right up to "
        f"{record['error']['streamed']:,} steps, as far as it was run.",
        "Noise or rounding of the size of that distance would end it.",
    ]


def _last_gap(record: dict[str, Any]) -> tuple[int, float]:
    """The last position at which the probe has a gap, and the gap."""
    probe = record["probe"]
    known = [(at, gap) for at, gap in zip(probe["position"], probe["state"]["gap"]) if gap is not None and gap > 0]
    return known[-1]


def _unused(record: dict[str, Any]) -> list[str]:
    """Of a network whose logits are the same whatever its state."""
    skill = max(record["error"]["skill_at_end"], 0)
    return [
        "No state is read: logits are the same whatever the state, so that answers depend on the last input alone.",
        f"At length {record['trained']} it makes {skill:.0%} of the way from the floor to 1.",
    ]


def _fades(record: dict[str, Any]) -> list[str]:
    part, error = record["separation"], record["error"]
    measured, predicted = error["measured"]["at_90"], error["predicted"]["at_90"]
    foretold = f", predicted {count(predicted['length'])} from positions up to {part['fitted_to']}"
    lines = [
        f"It fades: right up to about {steps(measured['length'])} (where accuracy passes below 90 %)"
        f"{foretold if predicted['length'] is not None else ''}.",
    ]
    if part["says"] == "shrink":
        lines.append(f"The distance between true states shrinks to {part['shrunk']:.2g} of what it was at first.")
    else:
        lines.append(f"The distance between true states shrinks by {1 - part['per_step']:.2%} a step, and what is lost "
                     f"does not come back.")  # fmt: skip
    if predicted["length"] is not None and predicted["length"] > OFF * measured["length"]:
        sooner = predicted["length"] / measured["length"]
        lines.append(f"It fails {sooner:.1f} times sooner than predicted, so fading is not all that ends it.")
    position, score, chance = _probe_after(record, measured["length"])
    if score is not None and chance is not None and score - chance > HALF * (1 - chance):
        lines.append(
            f"The state still tells where the network does not: at position {position} a linear probe finds "
            f"{tracked(record)} at {score:.2f}."
        )
    return lines


def _slips(record: dict[str, Any]) -> list[str]:
    error, up_to = record["error"], record["separation"].get("fitted_to")
    predicted = error["predicted"]["at_90"]["length"]
    known = f", predicted {count(predicted)} from positions up to {up_to}" if predicted else ""
    says = f"It slips: true states do not fade, but steps go wrong now and then; {_passes(error)}{known}."
    return [says, f"{_errs(error)} ({error['low']:.2g} to {error['high']:.2g})."]


def _only(record: dict[str, Any]) -> list[str]:
    error, trained = record["error"], f"trained on {record['trained']}"
    says = f"It learned its length and no more: {trained}, {_passes(error)}, and nothing before foretells it."
    return [says, f"{_errs(error)} ({error['low']:.2g} to {error['high']:.2g})."]


def _explodes(record: dict[str, Any]) -> list[str]:
    if record["exploded_at"] is not None:
        why = f"the state grows out of all bounds by position {record['exploded_at']:,}"
    else:
        why = f"logits are not numbers from position {record['silent_at']:,} on"
    fails = record["error"]["measured"]["at_90"]["length"] is not None
    return [f"It explodes: {why}{'; ' + _passes(record['error']) if fails else ''}."]


def _fails(record: dict[str, Any]) -> list[str]:
    return [f"It fails: {_passes(record['error'])}.", f"{_errs(record['error'])}."]


def _without_state(record: dict[str, Any]) -> list[str]:
    error, skill = record["error"], max(record["error"]["skill_at_end"], 0)
    far = f"accuracy stays above 90 % up to {error['streamed']:,} steps, as far as it was run"
    if error["measured"]["at_90"]["length"] is not None:
        far = _passes(error)
    return [
        f"No state to look at: {record['probe']['absent']}.",
        f"At length {record['trained']} it makes {skill:.0%} of the way from the floor to 1; {far}.",
    ]


def _passes(error: dict[str, Any]) -> str:
    return f"accuracy passes below 90 % at about {steps(error['measured']['at_90']['length'])}"


def _errs(error: dict[str, Any]) -> str:
    return f"A step brings the first error with a chance of {error['step_rate']:.2g}"


def _probe_after(record: dict[str, Any], length: float) -> tuple[int, float | None, float | None]:
    """The probe where the network has lost it: at the first stop beyond 1.5 times the failing length."""
    probe = record["probe"]
    for position, score, chance in zip(probe["position"], probe["state"]["score"], probe["state"]["chance"]):
        if position >= 1.5 * length:
            return position, score, chance
    return 0, None, None


def steps(length: float) -> str:
    """
    >>> steps(1.2), steps(1234.5)
    ('1 step', '1,230 steps')
    """
    return f"{count(length)} {'step' if count(length) == '1' else 'steps'}"


def count(length: float | None) -> str:
    """A length for people: three digits are enough."""
    return "more" if length is None else f"{float(f'{length:.3g}'):,.0f}"
