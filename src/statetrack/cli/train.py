"""`statetrack train`: fit one model to one task and print what came of it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statetrack.cli import completion
from statetrack.cli.interrupts import Interrupted, telling
from statetrack.cli.options import ModelText, TaskText
from statetrack.cli.output import print_json, print_table, say
from statetrack.errors import BadInput, need
from statetrack.formatting import fixed, plural, short_names, verb

if TYPE_CHECKING:
    from statetrack.results import TrainingRecord
    from statetrack.training import Result
    from statetrack.training.loop import Fit


MOST_SEEDS = 4096  # replicas of one model


def command(
    task: TaskText,
    model: ModelText,
    length: Annotated[int, typer.Option(help="The length trained on.")] = 64,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds, trained side by side as replicas of one model.")] = 1,
    protocol: Annotated[str, typer.Option(help="curriculum, design or hold.")] = "curriculum",
    rates: Annotated[
        str | None, typer.Option("--lr", help="One learning rate, or several for validation to choose from: 1e-3,3e-3.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Another number for the protocol: --set batch=64")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            help="Choose the model's width for so many parameters: parameters=100k; with task=T, as many as on T.",
            autocompletion=completion.sizes,
        ),
    ] = None,
    stream: Annotated[int, typer.Option(help="Also evaluate on a stream of this many steps.")] = 0,
    words: Annotated[
        int | None, typer.Option(help="Tokens of hard words to test on: 0 for none; by default the usual number.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for results, weights and the checkpoint.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False,
) -> None:
    """Train a model on a task, then test it at its length, beyond it and off its data.

    Example: statetrack train txc e88-gain-1l-small --length 64 --seeds 3 --stream 65536 --out results
    Example: statetrack train s5 gru --length 32 --match parameters=100k --out results
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise BadInput(f"--seeds {seeds} should lie in 1..{MOST_SEEDS}")
    need("torch", "train", "training")
    changes = read_settings(settings or [])
    if rates is not None:
        changes["rates"] = read_rates(rates)
    seen: dict[str, Fit] = {}
    began = time.time()
    with telling(lambda: kept(seen.get("run"), out, began)):
        from statetrack.training import train_many

        results = train_many(
            task, model, length=length, seeds=list(range(seed, seed + seeds)), protocol=protocol, settings=changes,
            match=match, stream=stream, words=words, out=out, device=device, progress=True,
            report=lambda run: seen.update(run=run),
        )  # fmt: skip
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        print_results(results)
        if out:
            folder = shlex.quote(str(out))
            say(f"\n{plural(len(results), 'result')} in {out}")
            say(f"Next: statetrack diagnose {folder}, statetrack report {folder} --open")


def kept(run: Fit | None, out: Path | None, began: float) -> Interrupted:
    """What a training that was interrupted leaves."""
    from statetrack.results.store import KEY

    if out is None:
        return Interrupted("nothing was kept: --out DIR keeps results and a checkpoint", goes_on=False)
    new = [path for path in out.glob("*.json") if KEY.fullmatch(path.stem) and path.stat().st_mtime >= began]
    parts = [plural(len(new), "result")] if new else []
    parts += [f"a checkpoint at update {run.saved:,}"] if run and run.saved else []
    if not parts:
        return Interrupted(f"nothing of it is in {out} yet", goes_on=False)
    return Interrupted(f"{' and '.join(parts)} {verb(len(new) + len(parts) - bool(new))} kept in {out}")


def read_settings(given: list[str]) -> dict[str, Any]:
    """`name=value` pairs; values are read as YAML, so that 64 is a number."""
    from statetrack import plain_yaml

    pairs = {}
    for text in given:
        name, equals, given_value = text.partition("=")
        if not equals:
            raise BadInput(f"--set {text} should be of the form name=value")
        pairs[name.strip()] = plain_yaml.value(given_value, f"--set {name.strip()}")
    return pairs


def read_rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--lr {text} should be a number, or several with commas between") from None


def print_results(results: list[Result]) -> None:
    """A table of the seeds, then the curves that all seeds share."""
    first = results[0]
    cell, training = first.cell, first.record.training
    task, subject = (short_names([name])[name] for name in (cell.task, cell.subject))
    say(f"{task}, {subject}: {plural(training.parameters, 'parameter')}, {training.state_said}")
    headers = ["seed", "accuracy", "95 %", "floor", "whole rows", "last quarter", "solved", "off data (worst)"]
    rows = [table_row(result) for result in results]
    told = len(headers) - (not any(row[-1] for row in rows))  # only binary tasks are tested off their data
    print_table(headers[:told], [row[:told] for row in rows])
    records = [result.record for result in results]
    beyond = {length: [record.beyond[length].last_32_accuracy for record in records] for length in first.record.beyond}
    streams = [stream for record in records for stream in record.streams]
    marks = sorted({int(mark) for stream in streams for mark in stream.accuracy or {}})
    along = [(mark, [_along(record, mark) for record in records]) for mark in marks]
    ends = [[f"{length:,}", *map(number, shares)] for length, shares in (*beyond.items(), *along)]
    say("\naccuracy at the end of longer rows, over the last 32 positions")
    if marks:
        over = max(stream.positions for stream in streams)
        say(f"(from {marks[0]:,} on, of a stream, over the last {over:,})")
    print_table(["length", *(f"seed {result.cell.seed}" for result in results)], ends)
    for reason in dict.fromkeys(stream.reason for stream in streams if stream.reason):
        say(f"no stream: {reason}")
    for record in records:
        say(f"seed {record.cell.seed}: {record.on_words}")
    solved = sum(result.solved for result in results)
    broken = sum(result.solved and result.record.broken is not None for result in results)
    words = f" on random rows, {broken} of them broken by a word" if broken else ""
    say(f"\nsolved at {cell.length}: {solved} of {plural(len(results), 'seed')}{words}; {how_long(results)}")


def how_long(results: list[Result]) -> str:
    """What training and testing took; what was there already was not trained now."""
    from statetrack.results.pace import duration

    new = [result.record.training.train_seconds or 0.0 for result in results if not result.found]
    tested = sum(result.record.evaluation_seconds or 0.0 for result in results if not result.found)
    there = len(results) - len(new)
    trained = [f"trained in {duration(max(new))}, tested in {duration(tested)}"] if new else []
    found = f"{there} of them" if new else "all of them" if there > 1 else "it"
    said = [f"{found} {'was' if there == 1 else 'were'} there already, and nothing of that was trained again"]
    return ", ".join([*trained, *(said if there else [])])


def _along(record: TrainingRecord, mark: int) -> float | None:
    """The accuracy at a mark of a stream."""
    accuracies = [stream.accuracy for stream in record.streams if stream.accuracy and str(mark) in stream.accuracy]
    return accuracies[0][str(mark)] if accuracies else None


def table_row(result: Result) -> list[str]:
    here, off = result.record.at_length, result.record.off_data
    low, high = here.interval or (None, None)
    diverged = result.record.training.diverged_at
    verdict = f"diverged at step {diverged}" if diverged else "yes" if result.solved else "no"
    return [
        str(result.cell.seed), number(here.accuracy), f"{number(low)} to {number(high)}", number(here.floor),
        number(here.full_sequence_accuracy), number(here.tail_accuracy), verdict, number(off.worst) if off else "",
    ]  # fmt: skip


def number(value: float | None) -> str:
    return "-" if value is None else fixed(value, 4)
