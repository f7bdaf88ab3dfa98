"""What a figure is drawn from, and what the catalogue holds of each: where it stands and the function that draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from statetrack.errors import BadInput
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.series import Series
from statetrack.reports.folder import AskedCell, BroughtCell, DiagnosedCell, Folder, TrainedCell

DATA = {"name": "rows"}  # of a specification: the rows of the figure
OVERALL, TRAINED, BROUGHT, ASKED = "overall", "trained", "brought", "asked"
DIAGNOSED, COST = "diagnosed", "cost"
PLACES = {  # of the page
    OVERALL: "the tab Verdicts, once",
    TRAINED: "the tab of a task, for each protocol that something was trained under",
    BROUGHT: "the tab of a task, where weights were evaluated that were not trained here",
    ASKED: "the tab of a task, where language models were asked",
    DIAGNOSED: "the tab Diagnostics, for each task",
    COST: "the tab Cost, for each task",
}

Row = dict[str, Any]


@dataclass(frozen=True)
class View:
    """The part of a folder that a figure shows: its cells of one kind and one task, or all that were trained.

    `where` names it in titles: the task, with the protocol where there are several; nothing for the whole folder.
    `series` says how each of its models is drawn.
    """

    folder: Folder
    where: str = ""
    runs: Sequence[TrainedCell] = ()
    brought: Sequence[BroughtCell] = ()
    episodes: Sequence[AskedCell] = ()
    diagnoses: Sequence[DiagnosedCell] = ()
    series: Sequence[Series] = field(default=())

    def key(self, name: str) -> str:
        """What a figure of this name is called here, in addresses and as a file."""
        return f"{slug(self.where)}-{name}" if self.where else name


@dataclass(frozen=True)
class Drawing:
    """One of PLACES, and a function that draws a view of it; None where there is nothing to be seen."""

    place: str
    draw: Callable[[View], Figure | None]

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise BadInput(f"a figure has no place {self.place!r}; there are {', '.join(PLACES)}")


def slug(text: str) -> str:
    """A text as part of an address and of a file's name.

    >>> slug("fsm[k=5,p=0.05], design")
    'fsm-k-5-p-0-05-design'
    """
    words = "".join(letter if letter.isalnum() and letter.isascii() else " " for letter in text.lower()).split()
    return "-".join(words) or "x"
