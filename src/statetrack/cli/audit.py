"""`statetrack audit`: what a published data set really holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli.output import print_json, say
from statetrack.formatting import plural

CONVENTION = {
    "mathematical": "p_n ∘ ... ∘ p_1 (mathematical)",
    "published": "p_1 ∘ ... ∘ p_n (published)",
    "either": "either convention: the two agree on every row",
    None: "neither convention",
}


def command(
    path: Annotated[
        Path, typer.Argument(help="A .jsonl or .parquet file, a folder of them or for load_from_disk, hub:OWNER/NAME.")
    ],
    group: Annotated[str | None, typer.Option(help="The group it should be, where its name does not say.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say which convention a data set's labels follow, which group it is, how long its rows are and what repeats.

    The exit code is 0 when it is clean, 1 with findings, 2 when it cannot be read.

    Example: statetrack audit q8/ --group q8
    """
    from statetrack.data.audit import audit

    result = audit(path, group)
    if as_json:
        print_json(result.facts)
    else:
        warnings = [f"warning: {warning}" for warning in result.warnings]
        say("\n".join([*_lines(result.facts), *_findings(result.findings), *warnings]))
    return 0 if result.clean else 1


def _lines(facts: dict[str, Any]) -> list[str]:
    rows = ", ".join(f"{plural(count, 'row')} of {split}" for split, count in facts["rows"].items())
    return [
        f"{facts['path']}: {rows}",
        f"group       {_group(facts['group'])}",
        f"labels      {_labels(facts['labels'])}",
        f"IDs         {facts['ids']['used']} of {facts['ids']['in_map']} are used",
        *_lengths(facts["lengths"], sum(facts["rows"].values())),
        f"duplicates  {_duplicates(facts['duplicates'])}",
    ]


def _group(facts: dict[str, Any]) -> str:
    claimed = f"{facts['claimed']} by {facts['claimed_in']}" if facts["claimed"] else "not named"
    if facts["map"] is None:
        return f"{claimed}; there is no permutation map, so our own IDs were used"
    names = f"the same as {', '.join(facts['same_as'])}" if facts["same_as"] else "none of the catalogue"
    solvable = "solvable" if facts.get("derived_series", [0])[-1] == 1 else "not solvable"
    return f"{claimed}; {facts['map']} gives order {facts['order']}, degree {facts['degree']}, {solvable}, {names}"


def _labels(facts: dict[str, Any]) -> str:
    counts = plural(facts["mathematical"], "row", "matches", "match")
    counts += f" the mathematical alone, {facts['published']} the published alone, "
    counts += f"{facts['both']} both, {facts['neither']} neither, {facts['not_checked']} not checked"
    return f"{CONVENTION[facts['follows']]}; {counts}"


def _lengths(facts: dict[str, Any], rows: int) -> list[str]:
    exact, last = facts["exactly_on_a_bucket"], facts["in_last_bucket"]
    exactly = plural(exact, "row", f"({exact / rows:.1%}) is", f"({exact / rows:.1%}) are")
    lines = [
        f"lengths     {facts['shortest']}..{facts['longest']}; {exactly} as long as a bucket (5, 10, ..., 500); "
        f"by the nearest bucket {last} ({last / rows:.1%}) land in 500",
        "            percent of the rows in each bucket that has any, by the nearest bucket (as long as it exactly):",
    ]
    cells = [
        f"{bucket}: {100 * near['share']:.2f} ({100 * facts['exact'][bucket]['share']:.2f})"
        for bucket, near in facts["nearest"].items()
        if near["share"] or facts["exact"][bucket]["share"]
    ]
    return [*lines, *(f"            {', '.join(cells[first : first + 5])}" for first in range(0, len(cells), 5))]


def _duplicates(facts: dict[str, Any]) -> str:
    said = [f"{n['rows']} within {split} (by chance {n['by_chance']:g})" for split, n in facts["within"].items()]
    said += [f"{n['rows']} across {pair} (by chance {n['by_chance']:g})" for pair, n in facts["across"].items()]
    return ", ".join(said)


def _findings(findings: list[str]) -> list[str]:
    if not findings:
        return ["clean: nothing is wrong"]
    return [plural(len(findings), "finding"), *(f"  - {finding}" for finding in findings)]
