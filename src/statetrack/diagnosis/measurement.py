"""What a measurement is, of this package or of another: an entry of MEASUREMENTS in examine.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.results.sections import Section

if TYPE_CHECKING:  # examine.py imports every measurement
    from statetrack.diagnosis.examine import Examined


@dataclass(frozen=True)
class Measurement:
    """A section of a diagnosis: how it is measured, whether that needs a state, and what progress calls it.

    A sentence under `says` stands with those of the diagnosis, unless sentences.py has its own for the section.
    """

    measure: Callable[[Examined], Section]
    of_state: bool = True
    called: str = ""
