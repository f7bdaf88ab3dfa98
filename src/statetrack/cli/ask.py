"""`statetrack ask`: put a task to a language model, or to a baseline, and count how far it gets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.output import print_json, print_table
from statetrack.errors import BadInput
from statetrack.formatting import fixed, plural, visible
from statetrack.progress import progress

if TYPE_CHECKING:
    from statetrack.asking import Rules
    from statetrack.results import AskedRecord
    from statetrack.tasks import Task

SAMPLES = 250


def command(
    task: Annotated[str, typer.Argument(help="The task's text, such as s5, cups[n=4] or mine.py:Mine.")],
    model: Annotated[
        str, typer.Option(help="hf:PATH_OR_NAME (also a GGUF file), or PROVIDER/MODEL as Inspect names it.")
    ] = "",
    solver: Annotated[str, typer.Option(help="Who answers; `statetrack list solvers` lists them.")] = "implicit",
    samples: Annotated[int, typer.Option(help="How many samples.")] = SAMPLES,
    first: Annotated[int, typer.Option(help="The number of the first sample.")] = 0,
    length: Annotated[int | None, typer.Option(help="Inputs per sample; default: 300 turn by turn, 20 whole.")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for the results; a second run goes on there.")] = None,
    way: Annotated[str, typer.Option(help="turns: one input per turn; whole: all in one prompt.")] = "turns",
    style: Annotated[str, typer.Option(help="Permutations as ids, table, cycles or generators.")] = "ids",
    shots: Annotated[int, typer.Option(help="Worked examples in a whole prompt.")] = 0,
    relabel: Annotated[int | None, typer.Option(help="A seed that shuffles the IDs of a group.")] = None,
    regime: Annotated[str, typer.Option(help="instant, or thinking: room to reason before the answer.")] = "instant",
    keep_reasoning: Annotated[bool, typer.Option(help="Leave the reasoning in the history.")] = False,
    history: Annotated[
        str, typer.Option(help="stop at the first error; or go on with own, corrected or absent replies.")
    ] = "stop",
    every: Annotated[int, typer.Option(help="Ask at every n-th input only.")] = 1,
    distractor: Annotated[
        list[str] | None, typer.Option(help="chatter, streams, words or retractions; may be repeated.")
    ] = None,
    parser: Annotated[str, typer.Option(help="strict or lenient.")] = "strict",
    room: Annotated[int, typer.Option(help="Tokens a reply may have; 0: 32 instant, 2048 thinking.")] = 0,
    limit: Annotated[int, typer.Option(help="Tokens an episode may use before it is cut off; 0: any.")] = 0,
    batch: Annotated[int, typer.Option(help="Episodes side by side.")] = 16,
    episode_seconds: Annotated[
        float | None, typer.Option(help="Seconds that an episode may take; then it has failed, and is asked on later.")
    ] = None,
    device: Annotated[str, typer.Option(help="For hf: auto, cpu or cuda.")] = "auto",
    teacher_forced: Annotated[bool, typer.Option(help="For hf: score all turns in one pass.")] = False,
    compat: Annotated[bool, typer.Option(help="Count as the original does: a perfect run has 299.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Show what would be asked and an estimate of the tokens.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a model, sample by sample, and print how long it keeps track.

    Example: statetrack ask track_the_stat.median --model hf:PATH --samples 20 --out results
    """
    from statetrack import asking as core
    from statetrack import tasks
    from statetrack.asking import metrics
    from statetrack.asking.engines import engine
    from statetrack.asking.run import ask
    from statetrack.asking.secrets import guard

    if samples < 1 or first < 0 or batch < 1:
        raise BadInput(f"--samples {samples} and --batch {batch} should be at least 1, --first {first} at least 0")
    chosen, who = tasks.task(task), core.solver(solver)
    rules = core.Rules.among(locals() | {"distractors": distractor or ()})
    numbers = range(first, first + samples)
    if dry_run:
        _print_estimate(chosen, rules, numbers, length, who.shows_state, as_json)
        return
    if who.needs_model and not model:
        raise BadInput(f"solver {who.name} needs a model: --model hf:PATH_OR_NAME or PROVIDER/MODEL")

    guard()
    options = {"device": device} if model.startswith("hf:") else {}
    over = [0]  # samples
    kept = telling(lambda: _kept(over[0], samples, out))
    with kept, progress("words bar percent left", "asking", samples) as move:

        def report(ended: int, turns: int) -> None:
            over[0] = ended
            move(completed=ended, description=f"asking, {turns:,} turns")

        records = ask(
            chosen, rules, who, numbers, length=length, model=model, out=out, forced=teacher_forced,
            engine=lambda: engine(model, batch=batch, **options), report=report,
            seconds=episode_seconds, warn=lambda line: print(f"statetrack: {line}", file=sys.stderr),
        )  # fmt: skip
    if not records:
        print(f"statetrack: {plural(samples, 'sample')} in the hands of others, and none asked", file=sys.stderr)
        raise typer.Exit(1)
    episodes = [record.episode for record in records]
    cell = records[0].cell
    summary = {"task": cell.task, "subject": cell.subject, "length": cell.length, "protocol": cell.protocol,
               **({"chance": 1 / chosen.outputs} if way == "whole" else {}),
               **core.summary(episodes, compat)}  # fmt: skip
    whole = summary["episodes"]
    summary |= {"unfinished": samples - whole, "ended": metrics.ended(episodes),
                "tokens": metrics.tokens(episodes).to_dict()}  # fmt: skip
    if teacher_forced:  # a pass tells the canonical reply from any other, and no more
        summary |= {"violation_rate": None, "violation_interval": None}
    if as_json:
        print_json(summary)
    elif whole:
        print_summary(summary)
        if out:
            print(f"\n{plural(len(records), 'result')} in {out}")
    if whole < samples:
        print(f"statetrack: {_failures(records, samples, out)}", file=sys.stderr)
        raise typer.Exit(1)


def _kept(over: int, samples: int, out: Path | None) -> Interrupted:
    if out is None:
        return Interrupted("nothing was kept: --out DIR keeps every reply", goes_on=False)
    return Interrupted(f"{over:,} of {plural(samples, 'sample')} are over, and every reply so far is kept in {out}")


def _failures(records: list[AskedRecord], samples: int, out: Path | None) -> str:
    """What was left undone, in one line. Episodes that failed are in no number above."""
    failed = [record.reason for record in records if not record.finished]
    left = samples - len(records)
    gave_up = f", so {left} more were not asked" if left else ""
    kept = "what was answered is kept, and the same command goes on from there" if out else "--out DIR would keep them"
    if not failed:
        return f"{plural(left, 'sample')} in the hands of another process; {kept}"
    return visible(f"the server failed in {plural(len(failed), 'episode')} ({failed[0]}){gave_up}; {kept}")


def _print_estimate(
    task: Task, rules: Rules, samples: range, length: int | None, shows_state: bool, as_json: bool
) -> None:
    """What perfect episodes would cost, from the first sample, and what the model would be told."""
    from statetrack.asking import dialogue, estimate

    first = dialogue(task, rules, samples[0], length)
    cost = estimate([first], shows_state).to_dict()
    total = {name: number * len(samples) for name, number in cost.items()}
    prompt = first.system or first.turns[0].text
    if as_json:
        print_json({"task": task.name, "samples": len(samples), "turns": first.asked, "tokens_each": cost,
                    "tokens": total, "prompt": prompt})  # fmt: skip
        return
    asked = f"{plural(len(samples), 'sample')} of {plural(first.asked, 'answer')}"
    print(f"{prompt}\n\n{task.name}: {asked}; tokens if every answer is right\n")
    rows = [[name, f"{cost[name]:,}", f"{total[name]:,}"] for name in cost]
    print_table(["estimate", "one episode", "all"], rows)


def print_summary(summary: dict[str, Any]) -> None:
    """How long episodes last, and what that hides; of questions that hold the whole row, what one answer can tell."""
    whole = summary["protocol"].get("way") == "whole"
    asked = plural(summary["episodes"], "question" if whole else "episode")
    counted = "one answer each" if whole else f"counted {summary['counting']}"
    print(f"{summary['task']}, {summary['subject']}: {asked} of {plural(summary['length'], 'input')}, {counted}\n")
    print_table(["", "value", "95 %"], _of_questions(summary) if whole else _of_dialogues(summary))
    if summary["failed"]:
        print(f"\nfailed by the server, and in no mean: {plural(summary['failed'], 'episode')}")
    print("\nended: " + ", ".join(f"{count} {kind}" for kind, count in summary["ended"].items() if count))
    if any(summary["tokens"].values()):
        print("tokens: " + ", ".join(f"{count:,} {name}" for name, count in summary["tokens"].items()))


def _of_questions(summary: dict[str, Any]) -> list[list[Any]]:
    return [["accuracy", *_share(summary["accuracy"])], ["  chance", f"{summary['chance']:.3g}", ""],
            *_violations(summary)]  # fmt: skip


def _of_dialogues(summary: dict[str, Any]) -> list[list[Any]]:
    from statetrack.asking.survival import HalfFailed

    half, (low, high) = summary["half_failed_by"], summary["avg_interval"]
    found = HalfFailed(half["turn"], half["interval"][0], half["interval"][1], half["seen"])
    return [
        ["half have failed by turn", found.text, found.between],
        ["avg_max_length", f"{summary['avg_max_length']:.3f}", f"{low:.3f} to {high:.3f}"],
        ["stddev_max_length", f"{summary['stddev_max_length']:.3f}", ""],
        ["median_max_length", f"{summary['median_max_length']:g}", ""],
        ["max_max_length", summary["max_max_length"], ""],
        ["min_max_length", summary["min_max_length"], ""],
        *_violations(summary),
        ["accuracy of all answers", *_share(summary["accuracy"])],
        ["  where the answer changes", *_share(summary["steps"]["change"])],
        ["  where it stays", *_share(summary["steps"]["no_change"])],
    ]


def _violations(summary: dict[str, Any]) -> list[list[Any]]:
    rate = summary["violation_rate"]
    return [] if rate is None else [["violation_rate", fixed(rate), _between(summary["violation_interval"])]]


def _share(counted: dict[str, Any]) -> list[str]:
    if counted["accuracy"] is None:
        return ["-", ""]
    return [f"{fixed(counted['accuracy'])} (n = {counted['n']:,})", _between(counted["interval"])]


def _between(interval: list[float]) -> str:
    return f"{fixed(interval[0])} to {fixed(interval[1])}"
