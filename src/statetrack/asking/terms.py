"""How an episode is asked, as far as its cell does not say so: what records are compared by.

prompt_sha256      of the words around the inputs; one that differs is another evaluation, whatever its name
budget             tokens that a reply may have
effort             of reasoning, and `reasoning_budget` in tokens: what the model was told
shown              the message with the state, where it is shown
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from statetrack import spec
from statetrack.asking import prompts
from statetrack.asking.dialogue import Dialogue
from statetrack.asking.engines import LOCAL
from statetrack.asking.episode import Episode
from statetrack.asking.rules import Rules
from statetrack.asking.solvers import Solver
from statetrack.asking.wording import wording
from statetrack.secrets import scrub
from statetrack.tasks import Task

EFFORT, BUDGET = ("reasoning_effort", "effort"), "reasoning_tokens"  # as Inspect's providers call them


def terms(dialogue: Dialogue, who: Solver, model: str = "") -> dict[str, Any]:
    """Of a dialogue with somebody, in the names of a record's fields. A model's settings stand in its text."""
    settings = spec.parse(model)[1] if who.needs_model and not model.startswith(LOCAL) else {}
    return noted(dialogue, who, settings)


def noted(dialogue: Dialogue, who: Solver, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same where the settings are known; those that were not set are left out."""
    effort = next((str(settings[name]) for name in EFFORT if settings.get(name) is not None), "")
    budget = str(settings.get(BUDGET) or "")
    return {
        "prompt_sha256": fingerprint(dialogue.task, dialogue.rules, who.shows_state),
        "budget": dialogue.rules.most_tokens if who.needs_model else None,
        "effort": effort,
        "reasoning_budget": int(budget) if budget.isdecimal() else None,
        "shown": _shown(dialogue, who) if who.shows_state else "",
    }


def _shown(dialogue: Dialogue, who: Solver) -> str:
    """What the solver adds to the first request."""
    request = Episode(dialogue).request()
    if request is None:
        return ""
    prepared = who.prepare(request)
    added = prepared.messages[len(prepared.messages) - prepared.transient :]
    return scrub("\n".join(message["content"] for message in added))


@functools.lru_cache(maxsize=256)
def fingerprint(task: Task, rules: Rules, shows_state: bool = False) -> str:
    """A hash of what a model is told, with the inputs of the worked example in the place of a sample's own.

    So it is the same for all samples and lengths, and differs as soon as a word does.
    """
    said = wording(task, rules)
    row = prompts.example_row(said)
    if rules.way == "whole":
        told = [prompts.question(task, row, rules).prompt]
    else:
        told = [prompts.description(task, rules, row)]
    if shows_state:
        told.append(prompts.state_message(said, rules, row))
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
