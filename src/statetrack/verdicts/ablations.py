"""The forms of E88 side by side: what is lost without its gain, without its delta rule, without its tanh."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from statetrack import spec
from statetrack.results import Cell, TrainingRecord
from statetrack.results.diagnosis import Diagnosis
from statetrack.results.evaluations import is_solved
from statetrack.results.sections import Section
from statetrack.verdicts.measurements import most

NAME = re.compile(r"e88(?P<form>-published|-gain)?-(?P<size>1l|4l|1l-small)(?P<notanh>-notanh)?")
FORMS = {
    "full": "e88-gain-{}", "no tanh": "e88-gain-{}-notanh",
    "no gain": "e88-published-{}", "no gain, no tanh": "e88-published-{}-notanh",
    "no delta": "e88-{}", "no delta, no tanh": "e88-{}-notanh",
}  # fmt: skip
MAIN = ("full", "no tanh", "no gain", "no delta")
FLOOR = 0.25  # of the way from the floor to 1: below, nothing was learned


@dataclass(frozen=True)
class ComparedCell:
    """The record of a cell that was trained and, where there is one, its diagnosis."""

    record: TrainingRecord
    diagnosis: Diagnosis | None = None

    @property
    def cell(self) -> Cell:
        return self.record.cell

    @property
    def last_quarter(self) -> float | None:
        return self.record.at_length.tail_accuracy

    @property
    def conclusion(self) -> str:
        return self.diagnosis.conclusion if self.diagnosis else ""

    def section(self, name: str) -> Section:
        """Of the diagnosis; {"absent": why} where there is none."""
        return self.diagnosis[name] if self.diagnosis else {"absent": "it was not diagnosed"}

    def at_90(self, of: str = "measured") -> float | None:
        """The length at which it passes below 90 %, measured or predicted."""
        error = self.section("error")
        return None if "absent" in error else error[of]["at_90"]["length"]


def family(subject: str) -> tuple[str, str] | None:
    """The size with its options, and the form, of an E88; None for another model.

    >>> family("gru") is None, family("e88-published-1l-small[dim=32]")
    (True, ('1l-small[dim=32]', 'no gain'))
    """
    name, options = spec.parse(subject)
    found = NAME.fullmatch(name.lower())
    if not found:
        return None
    form = {"-gain": "full", "-published": "no gain", None: "no delta"}[found["form"]]
    if found["notanh"]:
        form = "no tanh" if form == "full" else f"{form}, no tanh"
    return spec.write(found["size"], options), form


def named(form: str, size: str) -> str:
    """The subject of this form and size: the options stand behind the whole name."""
    bare, bracket, options = size.partition("[")
    return FORMS[form].format(bare) + bracket + options


def ablations(cells: Iterable[ComparedCell]) -> list[dict[str, Any]]:
    """A table for each (task, length, protocol, size of E88) of which the folder holds at least two forms."""
    tables: dict[tuple[str, int, str, str], dict[str, list[ComparedCell]]] = {}
    for seen in cells:
        found = family(seen.cell.subject)
        if found and seen.last_quarter is not None:
            size, form = found
            key = (seen.cell.task, seen.cell.length, str(seen.cell.protocol.get("name", "")), size)
            tables.setdefault(key, {}).setdefault(form, []).append(seen)
    return [_table(*key, forms) for key, forms in sorted(tables.items()) if len(forms) > 1]


def _table(task: str, length: int, protocol: str, size: str, forms: dict[str, list[ComparedCell]]) -> dict[str, Any]:
    rows = [_row(form, sorted(forms[form], key=lambda seen: seen.cell.seed)) for form in FORMS if form in forms]
    floor = next(iter(forms.values()))[0].record.at_length.floor
    return {
        "task": task, "length": length, "protocol": protocol, "base": named("full", size), "floor": floor,
        "forms": rows, "missing": [named(form, size) for form in MAIN if form not in forms],
        "says": "; ".join(f"{row['form']}: {_found(row, floor)}" for row in rows),
    }  # fmt: skip


def _row(form: str, seen: list[ComparedCell]) -> dict[str, Any]:
    return {
        "form": form, "subject": seen[0].cell.subject, "seeds": [one.cell.seed for one in seen],
        "accuracy": [one.record.at_length.accuracy for one in seen],
        "last_quarter": [one.last_quarter for one in seen],
        "at_90": [one.at_90() for one in seen], "conclusions": [one.conclusion for one in seen],
    }  # fmt: skip


def _found(row: dict[str, Any], floor: float | None) -> str:
    """In words: what most seeds do at the length trained on, and what becomes of it."""
    solved = [is_solved(score) for score in row["last_quarter"]]
    usual = 0.0 if floor is None else floor
    lost = [score - usual < FLOOR * (1 - usual) for score in row["last_quarter"]]
    word = "at the floor" if most(lost) else f"{sum(solved)} of {len(solved)} solved"
    later = sorted({each for each in row["conclusions"] if each})
    return f"{word} ({', '.join(later)})" if later else word
