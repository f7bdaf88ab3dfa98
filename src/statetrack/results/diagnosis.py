"""What a diagnosis holds: the two kinds of JSON file that `statetrack diagnose DIR` writes.

    DIR/diagnosis/KEY.json      one cell: a `Diagnosis`, its sections beside its other fields
    DIR/diagnosis/folder.json   what compares cells: a `Comparison`

`results/sections.py` says what stands in each section.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from statetrack.display import Card, Shown, Table
from statetrack.errors import BadInput
from statetrack.files import check_writable, read_bounded, write_whole
from statetrack.formatting import short_names
from statetrack.results import schema, seal
from statetrack.results.cell import ASK, Cell
from statetrack.results.records import FAILED, Record
from statetrack.results.schema import BadRecord
from statetrack.results.sections import (
    M_EXPLODES,
    M_FADES,
    M_HOLDS,
    M_NO_STATE,
    M_NOT_READ,
    M_SHRINKS,
    M_SLIPS,
    M_UNCLEAR,
    M_UNLEARNED,
    SHAPES,
    Section,
)
from statetrack.results.store import Damage, Store
from statetrack.version import __version__

FORMAT = 1  # of both files; one of another format is made again
POINTS = 128  # positions of a curve at most
FOLDER, COMPARISON = "diagnosis", "folder.json"


@dataclass(frozen=True, kw_only=True, repr=False)
class Diagnosis(Shown):
    """One model on one task. `cell` is None for a model diagnosed in Python."""

    kind: ClassVar[str] = "diagnosis"
    task: str
    model: str
    trained: int  # length
    length: int  # of the rows looked at
    seed: int
    conclusion: str  # one of those below
    sentences: list[str]
    seconds: float
    exploded_at: int | None = None  # the position at which the state has grown out of all bounds
    silent_at: int | None = None  # the first position at which logits are not numbers
    mechanism: str = M_UNCLEAR  # what the state was seen to do: one of MECHANISMS in results/sections.py
    sections: dict[str, Section]
    version: str = __version__
    cell: Cell | None = None

    drawn_first = ("failure", "diagnosed-positions")

    def __getitem__(self, name: str) -> Any:
        """A section, or {"absent": why} where there is none of this name."""
        return self.sections.get(name, {"absent": "it was not measured"})

    @property
    def key(self) -> str | None:
        return self.cell.key if self.cell else None

    def card(self) -> Card:
        called = [short_names([name])[name] for name in (self.task, self.model)]
        title = f"{', '.join(called)}, trained at {self.trained:,}, seed {self.seed}: {self.conclusion}"
        return Card(title, [Table(("", "steps", "95 %"), self._lengths())], above=self.sentences)

    def _lengths(self) -> list[list[str]]:
        """Where the accuracy passes below 90 %, and half of the way to a guess: as streamed, and as predicted."""
        error, rows = self["error"], []
        for level, words in (("at_90", "below 90 %"), ("at_half", "half way to a guess")):
            for which, how in (("measured", "from"), ("predicted", "predicted from")):
                one = (error.get(which) or {}).get(level) or {}
                length = one.get("length")
                if length is not None:
                    low, high = (f"{one[end]:,.0f}" if one.get(end) is not None else "?" for end in ("low", "high"))
                    rows.append([f"{words}, {how}", f"{length:,.0f}", f"{low} to {high}"])
                elif which == "measured" and error.get("streamed"):
                    rows.append([f"{words}, {how}", f"beyond {error['streamed']:,}", ""])
        return rows

    def contents(self) -> tuple[list[Any], list[Diagnosis]]:
        return [], [self]


class Findings(Shown, dict[str, Any]):
    """A diagnosis as plain data, as its file holds it; it is shown as the diagnosis is.

    >>> Findings(conclusion="fades")["conclusion"]
    'fades'
    """

    drawn_first = Diagnosis.drawn_first

    @property
    def diagnosis(self) -> Diagnosis:
        return of_dict(dict(self))

    def card(self) -> Card:
        return self.diagnosis.card()

    def contents(self) -> tuple[list[Any], list[Diagnosis]]:
        return [], [self.diagnosis]


OWN_NAMES = {each.name for each in fields(Diagnosis)} - {"sections"}
NO_SECTION = OWN_NAMES | {"kind", "format", "key"}  # what stands beside the sections in a file


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """As data for its file, its numbers rounded: sections beside the other fields."""
    data = {"kind": diagnosis.kind, "format": FORMAT, "key": diagnosis.key}
    data |= {each.name: getattr(diagnosis, each.name) for each in fields(diagnosis) if each.name in OWN_NAMES}
    data["cell"] = diagnosis.cell.to_dict() if diagnosis.cell else None
    rounded_data: dict[str, Any] = rounded(data | diagnosis.sections)
    return rounded_data


def of_dict(data: Any) -> Diagnosis:
    """The diagnosis in the data of a file; raises BadRecord where it lacks a part."""
    if isinstance(data, dict) and type(data.get("format")) is int and data["format"] > FORMAT:
        raise BadInput(f"a diagnosis of format {data['format']} needs a newer version of statetrack than {__version__}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadRecord(f"it is not of format {FORMAT}")
    known_fields = {name: value for name, value in data.items() if name in OWN_NAMES}
    conclusion = known_fields.get("conclusion")
    if isinstance(conclusion, str):
        known_fields["conclusion"] = conclusion = NOW_CALLED.get(conclusion, conclusion)
        known_fields.setdefault("mechanism", MECHANISM_OF.get(conclusion, M_UNCLEAR))  # of 0.2.0 or before
    parts = {name: value for name, value in data.items() if name not in NO_SECTION}
    for name, shape in SHAPES.items():
        part = parts.get(name)
        if not isinstance(part, dict) or not ("absent" in part or shape.__required_keys__ <= part.keys()):
            raise BadRecord(f"{name} is not whole")
    return schema.read(Diagnosis, known_fields | {"sections": parts})


@dataclass(frozen=True)
class LeftOut:
    """A cell that has no diagnosis: which, the reason by its code and in words."""

    key: str
    what: str
    why: str
    code: str = ""


def lines_of(left_out: Iterable[LeftOut]) -> list[str]:
    """A line for each reason: a folder may hold hundreds of samples that were asked.

    >>> lines_of([LeftOut("3f", "txc, mlp", "it failed"), LeftOut("a0", "s5", "asked"), LeftOut("a1", "s3", "asked")])
    ['left out: txc, mlp: it failed', 'left out: 2 cells, the first of them s5: asked']
    """
    whys: dict[str, list[str]] = {}
    for each in left_out:
        whys.setdefault(each.why, []).append(each.what)
    several = {why: f"{len(same):,} cells, the first of them " if len(same) > 1 else "" for why, same in whys.items()}
    return [f"left out: {several[why]}{same[0]}: {why}" for why, same in whys.items()]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What compares the cells of a folder. `cells` has a line for each diagnosis; the rest is made by verdicts/."""

    kind: ClassVar[str] = "comparison"
    version: str = __version__
    cells: list[dict[str, Any]]  # key, task, model, trained, seed, conclusion, sentence(s), at_90, ...
    left_out: list[LeftOut]
    ablations: list[dict[str, Any]]  # the forms of E88 side by side
    patterns: list[dict[str, Any]]  # what section 6 of the design document expects, and what became of it


STAYS, HOLDS, FADES, SLIPS, FAILS = "stays apart", "holds so far", "fades", "slips", "fails"  # conclusions
ONLY, EXPLODES, SHRINKS = "only its length", "explodes", "shrinks but is read"
UNDECODED, UNREAD, NO_STATE, UNUSED = "not decodable", "not read out", "no state", "no state is read"
NOW_CALLED = {"never represented": UNDECODED}  # of 0.2.0 or before: more than a probe can say
MECHANISM_OF = {
    STAYS: M_HOLDS, FADES: M_FADES, SLIPS: M_SLIPS, EXPLODES: M_EXPLODES, SHRINKS: M_SHRINKS, UNDECODED: M_UNLEARNED,
    UNREAD: M_UNLEARNED, NO_STATE: M_NO_STATE, UNUSED: M_NOT_READ,
}  # fmt: skip
DAMAGED, NOT_DONE, SKIPPED, ASKED = "damaged", "failed", "skipped", "asked"
NO_WEIGHTS, NOT_YET, ERROR = "no weights", "not yet", "error"
HARMLESS = (NO_WEIGHTS, NOT_YET, ASKED, SKIPPED)  # nobody's mistake


def why_not(store: Store, entry: Record | Damage) -> LeftOut | None:
    """Why a cell cannot be diagnosed; None where it can."""
    if isinstance(entry, Damage):
        return LeftOut(entry.path.stem, entry.path.name, f"its record is damaged: {entry.why}", DAMAGED)
    cell = entry.cell
    if not entry.finished:
        failed = entry.status == FAILED
        return left_out(cell, f"it {'failed' if failed else 'was skipped'}: {entry.reason}",
                        NOT_DONE if failed else SKIPPED)  # fmt: skip
    if cell.kind == ASK:
        return left_out(cell, "a language model that was asked has no state to look at", ASKED)
    if store.weights(cell) is None and not path_of(store, cell).exists():
        return left_out(cell, "no weights are kept", NO_WEIGHTS)
    return None


def left_out(cell: Cell, why: str, code: str) -> LeftOut:
    return LeftOut(cell.key, str(cell), why, code)


def path_of(store: Store, cell: Cell) -> Path:
    """Where the diagnosis of a cell lies, or will: one of 0.1.0 may have the name that its record has."""
    names = [path.stem for path in store.files(cell)]
    existing = [path for name in names if (path := store.folder / FOLDER / f"{name}.json").exists()]
    return existing[0] if existing else store.folder / FOLDER / f"{cell.key}.json"


def forget(store: Store, cell: Cell) -> None:
    """Drop the diagnosis of a cell, whose weights are others now."""
    path_of(store, cell).unlink(missing_ok=True)


def write(store: Store, diagnosis: Diagnosis) -> None:
    """Keep the diagnosis of a cell; one that the reader would refuse is not written."""
    assert diagnosis.cell is not None
    data = to_dict(diagnosis)
    of_dict(data)
    _write(path_of(store, diagnosis.cell), data)


def write_comparison(store: Store, comparison: Comparison) -> None:
    head = {"kind": comparison.kind, "format": FORMAT}
    data = {**head, **rounded(schema.plain(comparison)), "version": comparison.version}
    _write(store.folder / FOLDER / COMPARISON, data)


def try_folder(store: Store) -> None:
    """Refuse a folder that takes no diagnosis, before one is made."""
    folder = store.folder / FOLDER
    check_writable(folder if folder.exists() else store.folder)


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    write_whole(path, seal.seal(data))


def of_cell(store: Store, cell: Cell) -> Diagnosis | None:
    """The whole diagnosis of a cell; None where there is none, or one that is of another cell or lacks a part."""
    try:
        diagnosis = read(path_of(store, cell))
    except BadInput:
        raise
    except (OSError, ValueError):
        return None
    return diagnosis if diagnosis.cell is not None and diagnosis.cell == cell else None


def read(path: Path) -> Diagnosis:
    """The diagnosis in a file; raises ValueError where there is none that is whole."""
    diagnosis = of_dict(seal.unseal(read_bounded(path, seal.MOST_JSON)))
    return replace(diagnosis, cell=diagnosis.cell.identity) if diagnosis.cell else diagnosis


def comparison(store: Store) -> Comparison | None:
    """What compares the cells of a folder, as it was last written; raises ValueError where it is damaged."""
    path = store.folder / FOLDER / COMPARISON
    if not path.exists():
        return None
    data = seal.unseal(read_bounded(path, seal.MOST_JSON))
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadRecord(f"it is not of format {FORMAT}")
    return schema.read(Comparison, data)


def all_of(store: Store) -> Iterator[tuple[Path, Diagnosis | BadRecord]]:
    """Every diagnosis of the folder, or what is wrong with its file."""
    for path in sorted((store.folder / FOLDER).glob("*.json")):
        if path.name != COMPARISON:
            try:
                yield path, read(path)
            except (OSError, ValueError) as error:
                yield path, BadRecord(str(error))


def rounded(value: Any) -> Any:
    """Plain data with four significant digits; what is not a number is null.

    >>> rounded({"a": [1.23456, float("nan")], "b": 7})
    {'a': [1.235, None], 'b': 7}
    """
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    if hasattr(value, "item"):  # of numpy
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value
