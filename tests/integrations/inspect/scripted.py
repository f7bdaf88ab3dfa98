"""A provider of our own for Inspect: a Python function answers, at no cost and without a network."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from inspect_ai.model import GenerateConfig, Model, ModelAPI, ModelOutput, ModelUsage, get_model, modelapi

Said = list[tuple[str, str]]
"""(role, text) of the messages that were sent."""

SCRIPTS: dict[str, Callable[[Said], Awaitable[str | ModelOutput]]] = {}


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """`scripted/NAME` answers with SCRIPTS[NAME]."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: GenerateConfig) -> ModelOutput:
        said = [(message.role, message.text) for message in input]
        answer = await SCRIPTS[self.model_name](said)
        if isinstance(answer, ModelOutput):
            return answer
        output = ModelOutput.from_content(self.model_name, answer)
        output.usage = ModelUsage(input_tokens=10 * len(said), output_tokens=5, total_tokens=10 * len(said) + 5)
        return output

    def should_retry(self, ex: Exception) -> bool:
        return False


def scripted(name: str, answer: Callable[[Said], Awaitable[str | ModelOutput]]) -> Model:
    SCRIPTS[name] = answer
    return get_model(f"scripted/{name}", memoize=False)


def numbers(said: Said) -> list[int]:
    """The integers of Track the Stat that were shown, one a user message."""
    return [int(text) for role, text in said if role == "user" and re.fullmatch("[0-9]+", text)]


async def true_mode(said: Said) -> str:
    """The mode of the numbers shown, counted here and not by the task: the largest of the most frequent."""
    shown = numbers(said)
    return f"[mode: {max(set(shown), key=lambda value: (shown.count(value), value))}]"


def right_until(turn: int) -> Callable[[Said], Awaitable[str]]:
    """Right before this turn, wrong at it."""

    async def answer(said: Said) -> str:
        return await true_mode(said) if len(numbers(said)) < turn else "[mode: 100]"

    return answer
