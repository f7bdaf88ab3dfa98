"""A tenth of the sweep `design`, stratified by what its cells cost: benchmarks/design-tenth.yaml.

python -m benchmarks.tenth           what it holds, and its share of the forecast cost
python -m benchmarks.tenth --write   write the file anew

The rule: seeds that are trained together are one unit. The units lie in the order of what they are forecast to cost
(then of their names), and of each ten in that order one is taken, drawn with the seed 0. So every size of unit is in
the tenth in proportion, and ten times its cost is close to that of the whole.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from statetrack.sweeps import read
from statetrack.sweeps.units import Unit, units_of

FILE = Path(__file__).parent / "design-tenth.yaml"
OF, SEED, TOGETHER = 10, 0, 8
HEAD = "# Made by `python -m benchmarks.tenth --write`, which says by what rule. Not to be changed by hand.\n"


def units() -> list[Unit]:
    """All of `design`, in the order of cost."""
    some = units_of(read("design").entries, TOGETHER)
    return sorted(some, key=lambda unit: (-unit.cost, *named(unit)))


def named(unit: Unit) -> tuple[str, str, int, str]:
    cell = unit.cells[0]
    return cell.task, cell.subject, cell.length, str(sorted(cell.protocol.items()))


def chosen(all_units: list[Unit]) -> list[Unit]:
    """One of each ten; of what is left over at the end one as well."""
    draw = random.Random(SEED)
    return [draw.choice(all_units[begin : begin + OF]) for begin in range(0, len(all_units), OF)]


def text_of(some: Iterable[Unit]) -> str:
    """The sweep file of these units: a block each."""
    whole = {entry.cell: entry for entry in read("design").entries}
    blocks = []
    for unit in some:
        cell = unit.cells[0]
        block = {
            "tasks": [cell.task], "subjects": [cell.subject], "lengths": [cell.length],
            "seeds": sorted(each.seed for each in unit.cells), "protocol": cell.protocol["name"],
        }  # fmt: skip
        if cell.protocol["name"] == "curriculum":
            block["settings"] = {"rates": list(cell.protocol["rates"])}
        if note := whole[cell].note:
            block["note"] = note
        blocks.append(block)
    about = "a tenth of the sweep design, stratified by cost; a benchmark"
    return HEAD + yaml.safe_dump(
        {"name": "design-tenth", "about": about, "blocks": blocks}, sort_keys=False, default_flow_style=None, width=120
    )


def main(given: list[str]) -> None:
    everything = units()
    some = chosen(everything)
    if given == ["--write"]:
        FILE.write_text(text_of(some))
    cost, whole = sum(unit.cost for unit in some), sum(unit.cost for unit in everything)
    cells, of = (sum(len(unit.cells) for unit in each) for each in (some, everything))
    print(f"{len(some)} of {len(everything)} units, {cells} of {of} cells, {cost / whole:.1%} of the forecast cost")


if __name__ == "__main__":
    main(sys.argv[1:])
