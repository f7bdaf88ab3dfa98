"""`statetrack documents`: what two of the documents that statetrack grew from predict, and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import trust
from statetrack.cli.options import TrustCode, TrustedCode
from statetrack.cli.output import print_json, say


def command(
    folder: Annotated[Path | None, typer.Argument(help="A folder of results to judge by.", show_default=False)] = None,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what two of the documents that statetrack grew from predict, section by section, with the verdict.

    One is the design document, "Synthetic Benchmark Design for Temporal Nonlinearity" (RTC, TXC, FSM and E88), the
    other the description of the "Permutation Composition Benchmark" (94 groups). docs/README.md says more about both.

    Without a folder, only what no number can decide has a verdict, by its argument. With a folder its cells decide;
    where they were planned under older rules that say otherwise, both verdicts are shown.

    Example: statetrack documents results
    """
    with trust.trusting(*(trusted or ()), everything=trust_code):
        told = [*judged(folder)]
    if as_json:
        print_json(told)
        return
    for entry in told:
        place = f" ({entry['where']})" if entry["where"] else ""
        say(f"{entry['key']}: section {entry['section']}: {entry['says']}{place}")
        before = f" (by rules 1: {entry['before']})" if entry["before"] else ""
        by = "by argument: " if entry["by_argument"] else ""
        say(f"    {entry['outcome']}{before}: {by}{entry['why']}")
        if entry["remark"]:
            say(f"    beside it: {entry['remark']}")


def judged(folder: Path | None) -> list[dict[str, Any]]:
    """Every prediction with its verdict, those of section 6 once for each model and task that was diagnosed."""
    from statetrack.results import AskedRecord, Store, TrainingRecord, plans
    from statetrack.verdicts import documents
    from statetrack.verdicts.comparison import compare
    from statetrack.verdicts.judge import results
    from statetrack.verdicts.rules import Result, both

    measured: list[Result] = []
    made_under, section_6 = plans.RULES, []
    if folder is not None:
        store = Store.existing(folder)
        records = list(store.records())
        measured += results(record for record in records if isinstance(record, TrainingRecord) and record.finished)[0]
        measured += [record for record in records if isinstance(record, AskedRecord)]
        made_under, section_6 = plans.oldest_rules(store), compare(store).patterns
    told = []
    for prediction in documents.predictions():
        instances = [pattern for pattern in section_6 if pattern["key"] == prediction.key and pattern["task"]]
        given = both(prediction, measured, made_under)
        base = (
            prediction.to_dict() | given.now.to_dict() | {"where": "", "before": given.before and given.before.outcome}
        )
        told += [base | _of_section_6(pattern) for pattern in instances] or [base]
    return told


def _of_section_6(pattern: dict[str, Any]) -> dict[str, Any]:
    named = {name: pattern[name] for name in ("outcome", "why", "remark", "seeds", "before")}
    return named | {"where": f"{pattern['subject']} on {pattern['task']} at {pattern['length']}"}
