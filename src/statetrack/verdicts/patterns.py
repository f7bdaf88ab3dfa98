"""What section 6 of the design document expects to see, judged on the cells of a folder.

One seed has one vote, and the votes are a rate with bounds (docs/claims.md). What each rule asks of a seed:

    6.1  flat, falls, 50 %      accuracy over the first and the last quarter of the positions, at the length trained on
    6.2  preserved, decays      the gradient's norm, by its factor a step, over as many steps as the length trained on
    6.3  holds the count        R^2 of a linear probe for the running count, at the length trained on
    6.4  fails like Mamba-2     accuracy over the last quarter of the positions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from statetrack.formatting import brief
from statetrack.intervals import wilson
from statetrack.models.catalogue import lookup
from statetrack.results.evaluations import is_solved
from statetrack.results.plans import FIRST_RULES, RULES
from statetrack.results.records import DIVERGED
from statetrack.verdicts import documents
from statetrack.verdicts.ablations import ComparedCell, family
from statetrack.verdicts.controls import adequacy
from statetrack.verdicts.documents import DocumentPrediction
from statetrack.verdicts.judge import results
from statetrack.verdicts.measurements import SEEDS, Measurement, most
from statetrack.verdicts.networks import networks, one_way
from statetrack.verdicts.outcomes import CONFIRMED, REFUTED, UNDECIDED
from statetrack.verdicts.rates import USUALLY, rate
from statetrack.verdicts.rules import verdict

FLAT = 0.02
CLOSE = 0.05
KEPT = 0.1  # of the gradient's norm, over the length trained on
NEAR_ONE = 0.99
HELD, NOT_HELD = 0.9, 0.5

Votes = dict[str, list[float]]
Judge = Callable[[list[ComparedCell], list[ComparedCell]], tuple[list[bool], list[bool], str, Votes]]
ABOVE_FLOOR, FAILURE = "above the floor", "failure"  # what a yes needs besides: skill, or training shown adequate


@dataclass(frozen=True)
class Rule:
    """A prediction of section 6, whom it speaks of, how one seed votes (yes, no), and the rule in words."""

    key: str
    about: Callable[[str], bool]
    text: str
    judge: Judge
    beside: Callable[[str], bool] | None = None  # models that it is compared with
    needs: str = ""  # ABOVE_FLOOR or FAILURE


def is_e88(subject: str) -> bool:
    return (found := family(subject)) is not None and "no tanh" not in found[1]


def is_e88_without_tanh(subject: str) -> bool:
    return (found := family(subject)) is not None and "no tanh" in found[1]


def is_mamba(subject: str) -> bool:
    line = lookup(subject)
    return line is not None and (line.architecture, line.family) == ("mamba2", "diagonal")


def is_linear(subject: str) -> bool:
    line = lookup(subject)
    return line is not None and line.architecture == "linear-rnn"


def quarters(seen: ComparedCell) -> list[tuple[float, float, float]]:
    """(accuracy, low, high) over each quarter of the positions; the interval is over rows."""
    here = seen.record.at_length
    curve = [value for value in here.accuracy_by_position or [] if value is not None]
    rows = here.rows
    found = []
    for part in np.array_split(np.array(curve, float), 4):
        share = float(part.mean()) if len(part) else float("nan")
        found.append((share, *wilson(share * rows, rows)) if np.isfinite(share) else (share, 0.0, 1.0))
    return found


def _flat(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    ends = [(quarters(seen)[0], quarters(seen)[-1]) for seen in mine]
    yes = [abs(a[0] - b[0]) <= FLAT for a, b in ends]
    no = [max(a[1] - b[2], b[1] - a[2]) > FLAT for a, b in ends]
    return yes, no, "first quarter {first}, last quarter {last}", _ends(ends)


def _falls(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    ends = [(quarters(seen)[0], quarters(seen)[-1]) for seen in mine]
    yes, no = [b[2] < a[1] for a, b in ends], [b[0] >= a[0] for a, b in ends]
    return yes, no, "first quarter {first}, last quarter {last}", _ends(ends)


def _ends(ends: list[tuple[tuple[float, float, float], tuple[float, float, float]]]) -> Votes:
    return {"first": [a[0] for a, _ in ends], "last": [b[0] for _, b in ends]}


def _chance(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    all_four = [quarters(seen) for seen in mine]
    yes = [all(abs(share - 0.5) <= CLOSE for share, _, _ in four) for four in all_four]
    no = [any(low > 0.5 + CLOSE or high < 0.5 - CLOSE for _, low, high in four) for four in all_four]
    numbers = {"first": [four[0][0] for four in all_four], "last": [four[-1][0] for four in all_four]}
    return yes, no, "first quarter {first}, last quarter {last}", numbers


def _factors(mine: list[ComparedCell]) -> list[tuple[ComparedCell, float]]:
    known = [(seen, seen.section("gradient").get("per_step")) for seen in mine]
    return [(seen, factor) for seen, factor in known if factor is not None]


def _preserved(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    known = _factors(mine)
    kept = [factor**seen.cell.length for seen, factor in known]
    numbers = {"factor": [factor for _, factor in known], "kept": kept}
    return [k >= KEPT for k in kept], [k < KEPT for k in kept], "a factor of {factor} a step, {kept} is kept", numbers


def _decays(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    known = _factors(mine)
    kept = [factor**seen.cell.length for seen, factor in known]
    largest = [_largest(seen) for seen, _ in known]
    yes = [k < KEPT for k in kept]
    no = [k >= KEPT and value < NEAR_ONE for k, value in zip(kept, largest)]
    numbers = {"factor": [factor for _, factor in known], "kept": kept, "eigenvalue": largest}
    return yes, no, "a factor of {factor} a step, {kept} is kept; largest eigenvalue {eigenvalue}", numbers


def _largest(seen: ComparedCell) -> float:
    symbols = seen.section("eigenvalues").get("symbols", [])
    return max((symbol["largest"] for symbol in symbols), default=float("nan"))


def held(seen: ComparedCell) -> float | None:
    """R^2 of the probe for the count, at the stop nearest to the length trained on."""
    probe = seen.section("probe")
    if "absent" in probe:
        return None
    nearest = min(range(len(probe["position"])), key=lambda i: abs(probe["position"][i] - seen.cell.length))
    return probe["count"]["score"][nearest]


def _holds(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    own, beside = ([score for seen in part if (score := held(seen)) is not None] for part in (mine, others))
    numbers = {"E88": own, "Mamba2": beside}
    if not beside:  # of E88 alone it can be refuted, not confirmed
        return [False for _ in own], [score < NOT_HELD for score in own], "R^2 {E88}, no Mamba2 to compare", numbers
    pairs = list(zip(own, beside))
    yes = [min(pair) >= HELD for pair in pairs]
    return yes, [min(pair) < NOT_HELD for pair in pairs], "R^2 {E88} against {Mamba2}", numbers


def _fails_alike(mine: list[ComparedCell], others: list[ComparedCell]) -> tuple[list[bool], list[bool], str, Votes]:
    own, beside = ([seen.last_quarter for seen in part if seen.last_quarter is not None] for part in (mine, others))
    numbers = {"without tanh": own, "Mamba2": beside}
    if not beside:
        return [False for _ in own], [is_solved(score) for score in own], "last quarter {without tanh}", numbers
    pairs = list(zip(own, beside))
    yes = [not is_solved(one) and abs(one - two) <= CLOSE for one, two in pairs]
    no = [is_solved(one) or abs(one - two) > CLOSE for one, two in pairs]
    return yes, no, "last quarter {without tanh} against {Mamba2}", numbers


RULES_OF_6 = (
    Rule("6.1-e88", is_e88, f"flat: first and last quarter within {FLAT}; not: further apart than that by their "
         "intervals", _flat, needs=ABOVE_FLOOR),
    Rule("6.1-mamba", is_mamba, "falls: the last quarter's interval lies below the first's; not: it is not lower",
         _falls, needs=FAILURE),
    Rule("6.1-linear", is_linear, f"at 50 %: every quarter within {CLOSE} of it; not: one of them is further by its "
         "interval", _chance, needs=FAILURE),
    Rule("6.2-e88", is_e88, f"preserved: at least {KEPT} of the norm is left after as many steps as it was trained on "
         "(whether by saturation is not asked)", _preserved),
    Rule("6.2-mamba", is_mamba, f"decays: less than {KEPT} of the norm is left after as many steps as it was trained "
         f"on; not: more, and no eigenvalue is near 1 ({NEAR_ONE})", _decays),
    Rule("6.3", is_e88, f"held by both: R^2 at least {HELD}; not: below {NOT_HELD} in one of them", _holds, is_mamba),
    Rule("6.4", is_e88_without_tanh, f"fails like it: not solved, and within {CLOSE} of Mamba2; not: solved, or "
         "further apart", _fails_alike, is_mamba, FAILURE),
)  # fmt: skip


def patterns(cells: Iterable[ComparedCell], made_under: int = RULES) -> list[dict[str, Any]]:
    """Every prediction of section 6, for every task, length and model of the folder that it speaks of; beside it the
    verdict by the rules under which the folder was planned, where it differs.
    """
    done = [seen for seen in cells if seen.record.at_length.accuracy is not None]
    measured = results(seen.record for seen in done)[0]
    said = {prediction.key: prediction for prediction in documents.predictions()}
    found = []
    for rule in RULES_OF_6:
        judged = list(_judged(rule, said[rule.key], done, measured, made_under))
        found += judged or [_unmeasured(rule, said[rule.key], made_under)]
    return found


def _judged(
    rule: Rule, said: DocumentPrediction, cells: list[ComparedCell], measured: list[Measurement], made_under: int
) -> Iterator[dict[str, Any]]:
    def place(seen: ComparedCell) -> tuple[str, int, str]:
        return seen.cell.task, seen.cell.length, seen.cell.subject

    mine = sorted((seen for seen in cells if rule.about(seen.cell.subject)), key=place)
    for (task, length, subject), group in groupby(mine, key=place):
        here = list({seen.cell.seed: seen for seen in group}.values())
        others = [seen for seen in cells if rule.beside and rule.beside(seen.cell.subject)
                  and (seen.cell.task, seen.cell.length) == (task, length)]  # fmt: skip
        yes, no, shown, numbers = rule.judge(here, others)
        why = shown.format(**{name: _spread(values) for name, values in numbers.items()})
        outcome, because = _decided(rule, here, yes, no, measured)
        before = _by_rules_1(len(here), yes, no) if made_under == FIRST_RULES else outcome
        yield {
            "key": rule.key, "section": said.section, "says": said.says, "rule": rule.text, "task": task,
            "length": length, "subject": subject, "outcome": outcome, "why": f"{why}; {because}" if yes else because,
            "remark": " ".join(said.argument), "before": before if before != outcome else "",
            "seeds": min(len(here), len(yes)), "numbers": numbers,
        }  # fmt: skip


def _decided(
    rule: Rule, here: list[ComparedCell], yes: list[bool], no: list[bool], measured: list[Measurement]
) -> tuple[str, str]:
    """By rules 2. `yes` and `no` may be fewer than the seeds, where something was not measured of some."""
    if not yes:
        return UNDECIDED, "not measured"
    found = rate(_vote(rule, *each) for each in zip(here, yes, no))
    counted = f"yes with {found.text}"
    if found.seldom:
        return REFUTED, counted
    if found.word != USUALLY:
        return UNDECIDED, f"{counted}; {found.lacks()}"
    if rule.needs == FAILURE:
        cell = here[0].cell
        keys = {(cell.subject.lower(), cell.task, cell.length)}
        own = [each for each in measured if (each.model.lower(), each.task, each.trained) in keys]
        adequate = adequacy(one_way(networks(own)), measured)
        return (CONFIRMED if adequate.shown else UNDECIDED), f"{counted}; {adequate.text}"
    return CONFIRMED, counted


def _vote(rule: Rule, seen: ComparedCell, yes: bool, no: bool) -> bool | None:
    """A run that took no step or diverged has no vote, nor has a yes that a guess would give."""
    excused = seen.record.status == DIVERGED or not seen.record.training.steps
    if excused or (yes and rule.needs == ABOVE_FLOOR and not seen.record.above_floor):
        return None
    return True if yes else False if no else None


def _by_rules_1(seeds: int, yes: list[bool], no: list[bool]) -> str:
    """Three seeds, of which more than half decide."""
    if not yes or min(seeds, len(yes)) < SEEDS:
        return UNDECIDED
    return CONFIRMED if most(yes) else REFUTED if most(no) else UNDECIDED


def _unmeasured(rule: Rule, said: DocumentPrediction, made_under: int) -> dict[str, Any]:
    """No cell speaks of it."""
    now, before = verdict(said, []), verdict(said, [], made_under)
    return {
        "key": rule.key, "section": said.section, "says": said.says, "rule": rule.text, "task": "", "length": 0,
        "subject": "", "outcome": now.outcome, "why": now.why, "remark": now.remark,
        "before": before.outcome if before.outcome != now.outcome else "", "seeds": 0, "numbers": {},
    }  # fmt: skip


def _spread(values: list[float]) -> str:
    if not values:
        return "not measured"
    low, high = min(values), max(values)
    return brief(low) if brief(low) == brief(high) else f"{brief(low)} to {brief(high)}"
