"""The command line, one file per verb. What cannot be done is said in one line, with exit code 2."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from statetrack.cli import (
    ask,
    audit,
    certify,
    check,
    completion,
    data,
    demo,
    diagnose,
    documents,
    evaluate,
    floors,
    listing,
    lm_eval_path,
    merge,
    pack,
    play,
    predict,
    rates,
    reflections,
    report,
    results,
    show,
    status,
    sweep,
    train,
)
from statetrack.cli.interrupts import CODE, Interrupted, program
from statetrack.cli.output import say
from statetrack.errors import VERBOSE, BadInput, show_cause
from statetrack.formatting import visible
from statetrack.version import __version__

app = typer.Typer(
    name="statetrack",
    cls=completion.Verbs,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
VERBS: dict[str, tuple[Callable[..., Any], str]] = {  # with a line that an 80-column terminal holds
    "list": (listing.command, "The tasks, groups, models, sweeps or solvers by name."),
    "show": (show.command, "What a task is: an example, its algebra, its floors."),
    "floors": (floors.command, "What guesses score on a task."),
    "predict": (predict.command, "What theory predicts for a model on a task."),
    "reflections": (reflections.command, "How many reflections per token a group needs."),
    "documents": (documents.command, "What two documents behind it predict, and what is false."),
    "data": (data.command, "Write a task's rows with their exact answers."),
    "audit": (audit.command, "What a published data set really holds."),
    "train": (train.command, "Train a model on a task, test it, also on longer rows."),
    "evaluate": (evaluate.command, "Test weights that exist, longer or on hard words."),
    "ask": (ask.command, "Ask a language model, sample by sample."),
    "play": (play.command, "Play a task yourself."),
    "sweep": (sweep.command, "Run every cell of a sweep into a folder."),
    "rates": (rates.command, "The learning rate of each model, from a pilot."),
    "status": (status.command, "How far a folder has got, and how long is left."),
    "check": (check.command, "What of a folder is damaged, in conflict, stale or foreign."),
    "results": (results.command, "The main numbers of a folder, or all as CSV or Parquet."),
    "diagnose": (diagnose.command, "Why each trained model of a folder stops tracking."),
    "certify": (certify.command, "Prove that a network is right for ever, or break it."),
    "verify": (certify.verify, "Check a proof that certify wrote."),
    "report": (report.command, "A folder as one HTML page that works offline."),
    "merge": (merge.command, "Join folders from several machines."),
    "pack": (pack.command, "Pack a folder into one file, or parts below a size."),
    "unpack": (pack.unpack, "Put the cells of a packed file into a folder."),
    "lm-eval-path": (lm_eval_path.command, "The folder of our tasks for lm-evaluation-harness."),
    "demo": (demo.command, "A small run of everything, in minutes."),
}
for _name, (_command, _line) in VERBS.items():
    app.command(_name, short_help=_line)(_command)

PATHS = ("--out", "--csv", "--parquet", "--hf", "--figures", "--latex")  # an empty path would be the current folder
EMPTY = tuple(f"{each}=" for each in PATHS)
UsageError: Any = typer.BadParameter.__mro__[1]  # of the command line parser that typer brings, whichever it is


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"statetrack {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the traceback of what your own model or task raises.")
    ] = False,
) -> None:
    """Can a sequence model keep track of state, how far, and why does it stop?

    Example: statetrack show s5_composition
    """
    if verbose:
        os.environ[VERBOSE] = "1"
    if context.invoked_subcommand is None:
        say(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code: 0 done, 1 findings, 2 bad input, 130 interrupted."""
    if completion.VARIABLE in os.environ:
        return completion.answer(app)
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option, each in zip(["", *given], given):
        if each in EMPTY or (not each and (option in PATHS or not option.startswith("--"))):
            return _refuse(f"{each or option or 'a name'} is empty; write . for the folder where you are")
    before = signal.signal(signal.SIGTERM, _interrupt)  # a polite kill also leaves no half-written file
    try:
        code = app(given, prog_name="statetrack", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except BadInput as error:
        show_cause(error)
        return _refuse(str(error))
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "statetrack"
        return _refuse(f"{error.format_message()} ({command} --help says more)")
    except Interrupted as stop:
        say(f"statetrack: {visible(stop.line([*program(), *given]))}", file=sys.stderr)
        return CODE
    except (KeyboardInterrupt, typer.Abort):
        return CODE
    except SystemExit as error:  # of somebody's own model or package
        if isinstance(error.__context__, OSError):  # of typer: the reader of our output has seen enough
            raise
        if not completion.OPTIONS.isdisjoint(given):  # typer ends so
            return int(error.code or 0)
        return _refuse(f"code that was run called sys.exit({error.code if error.code is not None else ''})")
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{where}{error.strerror or error}")
    finally:
        os.environ.pop(VERBOSE, None)
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _refuse(message: str) -> int:
    from statetrack.secrets import scrub

    line = visible(scrub(" ".join(message.split())))
    say(f"statetrack: {line}", file=sys.stderr)
    return 2
