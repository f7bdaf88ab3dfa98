"""The circuit class that follows from a task's algebra, with what of it is proved and what is assumed.

AC0 are circuits of constant depth with gates of any width; ACC0 adds gates that count modulo m, TC0 gates that take
majorities; NC1 are circuits of depth log T with gates of two inputs. AC0 < ACC0 <= TC0 <= NC1: only the first is
known to be smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

BARRINGTON = "Barrington 1989: a word problem is in ACC0 for a solvable group, and complete for NC1 for any other"
QUASI = "Barrington, Compton, Straubing and Therien 1992: a regular language is in AC0 iff it is quasi-aperiodic"
COUNTING = "Furst, Saxe and Sipser 1984, Ajtai 1983: AC0 cannot count modulo 2; Smolensky 1987: nor modulo any m"


@dataclass(frozen=True)
class Circuit:
    """A class, what it means here, the theorems used, and the separations that are not proved."""

    name: str
    says: str
    proved: tuple[str, ...]
    assumed: tuple[str, ...] = ()

    def text(self) -> str:
        return f"{self.name}: {self.says}"


STAR_FREE = Circuit("AC0", "no word cycles through states (aperiodic, star-free)", (QUASI,))
QUASI_APERIODIC = Circuit(
    "AC0", "words of one length never make a group (quasi-aperiodic), though words of different lengths do", (QUASI,)
)
SOLVABLE = Circuit(
    "ACC0", "it holds groups, all of them solvable; so it is in TC0 too, and not in AC0",
    (BARRINGTON, QUASI, "AC0 != ACC0: " + COUNTING),
)  # fmt: skip
SOLVABLE_AT_MOST = Circuit(
    "ACC0", "every group in it is solvable, so it is in TC0 too; whether it is in AC0 is not decided", (BARRINGTON,)
)
NOT_SOLVABLE = Circuit(
    "NC1-complete", "it holds a group that is not solvable; so it is outside of TC0, unless TC0 = NC1",
    (BARRINGTON,), ("TC0 != NC1",),
)  # fmt: skip


def majority(why: str) -> Circuit:
    says = f"{why}; no finite automaton does it, and it is not in AC0"
    proved = ("majority is complete for TC0 by definition", "AC0 != TC0: " + COUNTING)
    return Circuit("TC0-complete", says, proved, ("ACC0 != TC0, for its being outside of ACC0",))


def definite(reach: str) -> Circuit:
    why = "a function of a fixed number of inputs has constant depth"
    return Circuit("AC0", f"the answer depends on {reach} alone", (why,))


def unknown(why: str) -> Circuit:
    return Circuit("unknown", why, ())
