"""The forms of E88 side by side: what is lost without its gain, without its delta rule, without its tanh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from statetrack.models.catalogue import lookup, variant
from statetrack.results import Cell, TrainingRecord
from statetrack.results.diagnosis import Diagnosis
from statetrack.results.sections import Section
from statetrack.verdicts.measurements import most

FORMS = {  # the form of the recurrence, and whether it has its tanh
    "full": ("gain", True), "no tanh": ("gain", False),
    "no gain": ("published", True), "no gain, no tanh": ("published", False),
    "no delta": ("document", True), "no delta, no tanh": ("document", False),
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

    @property
    def below_90(self) -> str:
        """The length at which it is measured to pass below 90 %, how far it did not, or why that is not known."""
        error, length = self.section("error"), self.at_90()
        if length is not None:
            return f"{length:,.0f}"
        if self.diagnosis is None:
            return "not diagnosed"
        return "not measured" if "absent" in error else f"not up to {error['streamed']:,}"


def family(subject: str) -> tuple[str, str] | None:
    """The whole model of an E88's size and options, and the form that this one is of; None for another model.

    >>> family("gru") is None, family("e88-published-1l-small[dim=32]")
    (True, ('e88-gain-1l-small[dim=32]', 'no gain'))
    """
    line = lookup(subject)
    form = line and next((word for word, form in FORMS.items() if form == (line.form, line.options.get("tanh"))), None)
    whole = named("full", subject) if form else None
    return (whole, form) if whole and form else None


def named(form: str, subject: str) -> str | None:
    """The subject of this form, in the size and with the options of another one."""
    recurrence, tanh = FORMS[form]
    return variant(subject, form=recurrence, tanh=tanh)


def ablations(cells: Iterable[ComparedCell]) -> list[dict[str, Any]]:
    """A table for each (task, length, protocol, size of E88) of which the folder holds at least two forms."""
    tables: dict[tuple[str, int, str, str], dict[str, list[ComparedCell]]] = {}
    for seen in cells:
        found = family(seen.cell.subject)
        if found and seen.last_quarter is not None:
            whole, form = found
            key = (seen.cell.task, seen.cell.length, str(seen.cell.protocol.get("name", "")), whole)
            tables.setdefault(key, {}).setdefault(form, []).append(seen)
    return [_table(*key, forms) for key, forms in sorted(tables.items()) if len(forms) > 1]


def _table(task: str, length: int, protocol: str, whole: str, forms: dict[str, list[ComparedCell]]) -> dict[str, Any]:
    rows = [_row(form, sorted(forms[form], key=lambda seen: seen.cell.seed)) for form in FORMS if form in forms]
    floor = next(iter(forms.values()))[0].record.at_length.floor
    return {
        "task": task, "length": length, "protocol": protocol, "base": whole, "floor": floor,
        "forms": rows, "missing": [named(form, whole) for form in MAIN if form not in forms],
        "says": "; ".join(f"{row['form']}: {_found(row, floor)}" for row in rows),
    }  # fmt: skip


def _row(form: str, seen: list[ComparedCell]) -> dict[str, Any]:
    return {
        "form": form, "subject": seen[0].cell.subject, "seeds": [one.cell.seed for one in seen],
        "accuracy": [one.record.at_length.accuracy for one in seen],
        "last_quarter": [one.last_quarter for one in seen], "solved": [one.record.solved for one in seen],
        "at_90": [one.at_90() for one in seen], "below_90": [one.below_90 for one in seen],
        "conclusions": [one.conclusion for one in seen],
    }  # fmt: skip


def _found(row: dict[str, Any], floor: float | None) -> str:
    """In words: what most seeds do at the length trained on, and what becomes of it."""
    solved = row["solved"]
    usual = 0.0 if floor is None else floor
    lost = [score - usual < FLOOR * (1 - usual) for score in row["last_quarter"]]
    word = "at the floor" if most(lost) else f"{sum(solved)} of {len(solved)} solved"
    later = sorted({each for each in row["conclusions"] if each})
    return f"{word} ({', '.join(later)})" if later else word
