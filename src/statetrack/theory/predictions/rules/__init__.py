"""One rule for each family of models: from what a model and a task are to an answer in every column of precision."""

from __future__ import annotations

from collections.abc import Callable

from statetrack.models.catalogue import ModelEntry
from statetrack.theory.predictions.answers import Row
from statetrack.theory.predictions.features import Features
from statetrack.theory.predictions.rules import linear, nonlinear

RULES: dict[str, Callable[[ModelEntry, Features], Row]] = {
    "diagonal": linear.diagonal,
    "signed-diagonal": linear.signed_diagonal,
    "projection": linear.projection,
    "reflections": linear.reflections,
    "published-linear": linear.published_linear,
    "gain-linear": linear.gain_linear,
    "fixed-linear": linear.fixed_linear,
    "memoryless": linear.memoryless,
    "squashed-diagonal": nonlinear.squashed_diagonal,
    "published": nonlinear.published,
    "gain": nonlinear.gain,
    "gain-reflections": nonlinear.gain_reflections,
    "unrestricted": nonlinear.unrestricted,
    "attention": nonlinear.attention,
}
