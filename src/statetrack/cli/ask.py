"""`statetrack ask`: put a task to a language model, or to a baseline, and count how far it gets."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import completion
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import TaskText
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput
from statetrack.formatting import plural

if TYPE_CHECKING:
    from statetrack.asking import Rules
    from statetrack.tasks import Task

SAMPLES = 250


def command(
    task: TaskText,
    model: Annotated[
        str, typer.Option(help="hf:PATH_OR_NAME (also a GGUF file), or PROVIDER/MODEL as Inspect names it.")
    ] = "",
    solver: Annotated[
        str, typer.Option(help="Who answers; `statetrack list solvers` lists them.", autocompletion=completion.solvers)
    ] = "implicit",
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
    room: Annotated[int, typer.Option(help="Tokens a reply may have; 0: 32 instant, 2048 thinking, any compat.")] = 0,
    limit: Annotated[int, typer.Option(help="Tokens an episode may use before it is cut off; 0: any.")] = 0,
    batch: Annotated[int, typer.Option(help="Episodes side by side.")] = 16,
    episode_seconds: Annotated[
        float | None, typer.Option(help="Seconds that an episode may take; then it has failed, and is asked on later.")
    ] = None,
    device: Annotated[str, typer.Option(help="For hf: auto, cpu or cuda.")] = "auto",
    teacher_forced: Annotated[bool, typer.Option(help="For hf: score all turns in one pass.")] = False,
    compat: Annotated[
        bool, typer.Option(help="Track the Stat by the original's rules: prompt, state, room, counting.")
    ] = False,
    prompt: Annotated[
        Path | None, typer.Option(help="A file with a prompt of your own; docs/ask.md has its placeholders.")
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Show what would be asked and an estimate of the tokens.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a model, sample by sample, and print how long it keeps track.

    Example: statetrack ask track_the_stat.median --model hf:PATH --samples 20 --out results
    """
    from statetrack import asking, tasks
    from statetrack.asking import prompts, templates
    from statetrack.asking.asked import check_samples

    check_samples(samples)
    if samples < 1 or first < 0 or batch < 1:
        raise BadInput(f"--samples {samples} and --batch {batch} should be at least 1, --first {first} at least 0")
    chosen, who = tasks.task(task), asking.solver(solver)
    own = templates.read(prompt) if prompt else ""
    rules = asking.Rules.among(locals() | {"distractors": distractor or (), "prompt": own})
    prompts.check(chosen, rules)
    if dry_run:
        _print_estimate(chosen, rules, range(first, first + samples), length, who.shows_state, as_json)
        return
    if who.needs_model and not model:
        raise BadInput(f"solver {who.name} needs a model: --model hf:PATH_OR_NAME or PROVIDER/MODEL")
    over = [0]  # samples

    def report(ended: int, turns: int) -> None:
        over[0] = ended

    with telling(lambda: _kept(over[0], samples, out)):
        found = asking.ask(
            chosen, model, solver=solver, samples=samples, first=first, length=length, out=out, batch=batch,
            episode_seconds=episode_seconds, device=device, teacher_forced=teacher_forced, progress=True,
            report=report, **asdict(rules),
        )  # fmt: skip
    if not found.records:
        say(f"statetrack: {plural(samples, 'sample')} in the hands of others, and none asked", file=sys.stderr)
        raise typer.Exit(1)
    summary = found.summary()
    if as_json:
        print_json(summary)
    elif summary["episodes"]:
        print_summary(summary)
        if out:
            say(f"\n{plural(len(found.records), 'result')} in {out}")
    if found.unfinished:
        kept = "what was answered is kept, and the same command goes on from there"
        say(f"statetrack: {found.failures}; {kept if out else '--out DIR would keep them'}", file=sys.stderr)
        raise typer.Exit(1)


def _kept(over: int, samples: int, out: Path | None) -> Interrupted:
    if out is None:
        return Interrupted("nothing was kept: --out DIR keeps every reply", goes_on=False)
    return Interrupted(f"{over:,} of {plural(samples, 'sample')} are over, and every reply so far is kept in {out}")


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
    say(f"{prompt}\n\n{task.name}: {asked}; tokens if every answer is right\n")
    rows = [[name, f"{cost[name]:,}", f"{total[name]:,}"] for name in cost]
    print_table(["estimate", "one episode", "all"], rows)


def print_summary(summary: dict[str, Any]) -> None:
    """What the samples came to, how they ended, and what they took."""
    from statetrack.asking.asked import spent, summary_rows, title

    say(f"{title(summary)}\n")
    print_table(["", "value", "95 %"], summary_rows(summary))
    say("\n" + "\n".join(spent(summary)))
