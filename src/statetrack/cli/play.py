"""`statetrack play`: a person answers."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli.options import TaskText
from statetrack.cli.output import say
from statetrack.errors import unknown

if TYPE_CHECKING:
    from statetrack.asking import Dialogue, Request
    from statetrack.results.records import EpisodeRecord

WIDEST = 100  # columns that are easy to read
CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen and what has scrolled off it


def command(
    task: TaskText,
    sample: Annotated[int, typer.Option(help="Which sample.")] = 0,
    length: Annotated[int | None, typer.Option(help="How many inputs; default: 300.")] = None,
    history: Annotated[str, typer.Option(help="hidden: only the newest input is on the screen; or shown.")] = "hidden",
    state: Annotated[bool, typer.Option(help="Show the state as well, as for the explicit solver.")] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for the result.")] = None,
    compat: Annotated[bool, typer.Option(help="Track the Stat by the original's rules.")] = False,
) -> None:
    """Play a task yourself: type the bare answer to every input, until the first mistake. Ctrl-C or Ctrl-D ends it.

    Example: statetrack play track_the_stat.median --length 20
    """
    from statetrack import tasks
    from statetrack.asking import Rules, dialogue
    from statetrack.asking.run import ask
    from statetrack.asking.solvers import Explicit, Human

    if history not in ("hidden", "shown"):
        raise unknown("history", history, ("hidden", "shown"))
    rules, chosen = Rules(compat=compat), tasks.task(task)
    game = dialogue(chosen, rules, sample, length)
    say(_wrapped(f"{game.system}\n\nHere you type the answer alone; its frame is added. Ctrl-C ends the game."))
    reader = Reader(hide=history == "hidden", state=state)
    human = Human(reader.read)
    try:
        if reader.hide:
            input("Press Enter to begin. ")
        records = ask(chosen, rules, Explicit(human) if state else human, [sample], length=length, out=out)
    except (EOFError, KeyboardInterrupt):
        kept = f"; the same command goes on from there, with its result in {out}" if out and reader.answered else ""
        say(f"\nended by you after {reader.answered} answers{kept}")
        raise typer.Exit(130) from None
    _print_end(records[0].episode, game, compat)


def _wrapped(text: str) -> str:
    """A text whose long lines end between words."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n".join(textwrap.fill(line, width) if len(line) > width else line for line in text.splitlines())


class Reader:
    """Shows an input and reads an answer."""

    def __init__(self, hide: bool, state: bool) -> None:
        self.hide, self.state, self.answered = hide, state, 0

    def read(self, request: Request) -> str:
        number = 1 + request.dialogue.turns.index(request.turn)
        if self.hide and sys.stdout.isatty():
            sys.stdout.write(CLEAR)
        if self.state:
            label = "" if request.dialogue.rules.compat else "state: "
            say(f"{label}{request.dialogue.state_message(request.turn)}")
        answer = ""
        while not answer:
            answer = input(f"{number:>3}. {request.turn.text}   {request.dialogue.wording.tag}: ").strip()
        self.answered += 1
        return answer


def _print_end(episode: EpisodeRecord, game: Dialogue, compat: bool) -> None:
    from statetrack.asking.episode import DONE
    from statetrack.asking.metrics import max_length

    answered = max_length(episode, compat)
    if episode.ended == DONE:
        say(f"\nAll {episode.asked} right. max_length {answered}")
        return
    turn = [turn for turn in game.turns if turn.target is not None][episode.max_length]
    say(f"\nThe answer was {game.reply(turn)}. max_length {answered} of {episode.asked}")
