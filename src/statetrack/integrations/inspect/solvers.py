"""Who answers, for `--solver`: each is the one loop below around a solver of `statetrack.asking`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, get_model
from inspect_ai.model._generate_config import active_generate_config  # what the command line and the task ask for
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError, input_screen

from statetrack import asking, spec
from statetrack.asking.episode import FAULTS, SERVER, Episode, Reply, Request
from statetrack.asking.solvers import Human
from statetrack.asking.terms import noted
from statetrack.asking.tokens import NO_TOKENS
from statetrack.integrations.inspect.failures import said, said_in_one_line
from statetrack.integrations.inspect.guard import guarded
from statetrack.integrations.inspect.replies import MessageHistory, read
from statetrack.integrations.inspect.samples import dialogue_of
from statetrack.results import schema
from statetrack.results.records import EpisodeRecord as KeptEpisode

RECORD = "statetrack:record"
TRIES, WAIT = 4, 2.0  # how often an empty or cut-off reply is asked for, and the seconds before the second time


class ModelFailed(RuntimeError):
    """The model's server gave no usable reply. The sample counts for nothing; `inspect eval-retry` runs it again."""


def for_log(record: KeptEpisode) -> dict[str, Any]:
    """As data for Inspect's logs, which hold what was said as messages; with the same names as in those of 0.1.0."""
    return {"detail": "", **schema.plain(record)}


def plays(who: asking.Solver) -> Solver:
    """The episode, with what was answered kept after every turn: a limit may end the solver at any of them."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        with said_in_one_line():
            game = dialogue_of(state.metadata)
        chat, model = MessageHistory(), guarded(get_model())
        settings = active_generate_config().merge(model.config).model_dump()
        episode = Episode(game, noted(game, who, settings))
        state.store.set(RECORD, for_log(episode.record(prompts=False)))
        while (request := episode.request()) is not None:
            if who.needs_model:
                output, reply = await _asked(model, chat.of(who.prepare(request).messages), request.room)
            else:
                await anyio.lowlevel.checkpoint()
                reply = Reply(who.reply(request))
                output = ModelOutput.from_content(who.name, reply.text)
            episode.receive(reply)
            state.store.set(RECORD, for_log(episode.record(prompts=False)))
            if output is not None:
                state.output = output
                if not reply.failure:
                    state.messages = [*chat.of(request.messages), output.message]
        state.store.set(RECORD, for_log(episode.record(prompts=False)))
        if episode.status in FAULTS:
            raise ModelFailed(episode.detail)
        return state

    return solve


async def _asked(model: Model, messages: list[ChatMessage], room: int | None) -> tuple[ModelOutput | None, Reply]:
    """The model's reply. Errors of the server are retried by Inspect as its user wants; what only we can see to be
    unusable (empty, cut off) is asked for again here."""
    spent = NO_TOKENS
    for tried in range(TRIES):
        if tried:
            await anyio.sleep(WAIT * 2 ** (tried - 1))
        try:
            output = await model.generate(messages, config=GenerateConfig(max_tokens=room))
        except LimitExceededError:
            raise
        except Exception as error:
            return None, Reply(failure=SERVER, detail=said(error), tokens=spent, failed_calls=tried + 1)
        reply = read(output, room)
        spent += reply.tokens
        if reply.failure != SERVER:
            break
    return output, replace(reply, tokens=spent, failed_calls=tried + bool(reply.failure))


@solver
def implicit() -> Solver:
    """The model itself, which sees the dialogue and nothing else."""
    return _named("implicit")


@solver
def explicit(inner: str = "implicit", role: str = "assistant") -> Solver:
    """Another solver that is also shown the state at every turn, in a message of this role that does not stay."""
    return _named(f"explicit-{role}:{inner}")


@solver
def random(seed: int = 0) -> Solver:
    """A guess among what was seen; `--model none` is enough."""
    return _numbered("random", "seed", seed)


@solver
def oracle() -> Solver:
    """The exact machine; `--model none` is enough."""
    return _named("oracle")


@solver
def copy_last() -> Solver:
    """The last answer again; `--model none` is enough."""
    return _named("copy-last")


@solver
def window(width: int = 64) -> Solver:
    """The exact machine on the last inputs alone; `--model none` is enough."""
    return _numbered("window", "width", width)


@solver
def human() -> Solver:
    """A person at the terminal, who types bare answers; best with `--max-samples 1 --model none`."""
    return plays(Human(_typed))


def _named(text: str) -> Solver:
    """A solver by the text that `statetrack ask --solver` takes."""
    with said_in_one_line():
        return plays(asking.solver(text))


def _numbered(name: str, what: str, number: int) -> Solver:
    with said_in_one_line():
        whole = spec.typed(number, int, what)
    return _named(f"{name}-{whole}")


def _typed(request: Request) -> str:
    with input_screen(header=f"{request.dialogue.task.name}, sample {request.sample}") as console:
        if len(request.messages) <= 2 and request.dialogue.system:
            console.print(request.dialogue.system, markup=False)
        return console.input(f"{request.turn.text} > ", markup=False)
