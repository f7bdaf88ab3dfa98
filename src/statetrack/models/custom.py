"""A model of one's own: found by its address, wrapped if it is a plain module, and checked on one batch.

    class Mine(torch.nn.Module):                      # in mine.py, named as mine.py:Mine
        def __init__(self, inputs, outputs):
            super().__init__()
            self.table = torch.nn.Embedding(inputs, outputs)
        def forward(self, ids):                       # (B, T) ids -> (B, T, outputs) logits
            return self.table(ids)

One that also has `initial_state(batch, device)` and `forward_from(ids, state)`, or `step(ids, state)`, can be streamed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from statetrack.errors import BadInput
from statetrack.models.sequence import SequenceModel, Shape, State


class Adapted(SequenceModel):
    """Somebody's module in the place of a model."""

    foldable = False

    def __init__(self, module: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.module: Any = module
        self.recurrent = hasattr(module, "initial_state") and (
            hasattr(module, "forward_from") or hasattr(module, "step")
        )

    def forward(self, ids: Tensor) -> Tensor:
        return self.module(ids)

    def state_shapes(self) -> list[Shape]:
        state = self.initial_state(1) if self.recurrent else ()
        return [tuple(part.shape[1:]) for part in state]

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        if not self.recurrent:
            name = type(self.module).__name__
            raise BadInput(f"{name} cannot be streamed: give it initial_state(batch, device) and step(ids, state)")
        state = self.module.initial_state(batch, device)
        return state if isinstance(state, tuple) else (state,)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        if hasattr(self.module, "forward_from"):
            logits, after = self.module.forward_from(ids, state)
            return logits, after
        outputs = []
        for token in ids.unbind(1):
            logits, state = self.module.step(token, state)
            outputs.append(logits)
        return torch.stack(outputs, dim=1), state


def is_address(name: str) -> bool:
    """Whether a name is `file.py:Class` or `package.module:Class`."""
    return ":" in name


def load(address: str) -> Callable[..., nn.Module]:
    """The class at `file.py:Class` or `package.module:Class`."""
    place, _, attribute = address.rpartition(":")
    module = from_file(Path(place)) if place.endswith(".py") else from_package(place)
    if not hasattr(module, attribute):
        raise BadInput(f"{place} has no {attribute!r}; give file.py:Class or package.module:Class")
    return getattr(module, attribute)


def from_file(path: Path) -> ModuleType:
    """Run a file as a module. Its name is made from the path, so that two files of one name do not meet."""
    if not path.is_file():
        raise BadInput(f"no file {path}; give file.py:Class or package.module:Class")
    name = "statetrack_file_" + "_".join(path.resolve().with_suffix("").parts[1:])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path} does not run: {type(error).__name__}: {one_line(error)}") from error
    return module


def from_package(name: str) -> ModuleType:
    """Import a module by its dotted name."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"cannot import {name!r}: {one_line(error)}") from error


def built(name: str, build: Callable[..., nn.Module], *, inputs: int, outputs: int, **options: Any) -> SequenceModel:
    """Class(inputs=..., outputs=...), as a SequenceModel."""
    try:
        made = build(inputs=inputs, outputs=outputs, **options)
    except TypeError as error:
        raise BadInput(f"cannot build {name} as Class(inputs=..., outputs=...): {one_line(error)}") from error
    if isinstance(made, SequenceModel):
        return made
    if not isinstance(made, nn.Module):
        raise BadInput(f"{name} makes a {type(made).__name__}; expected a torch.nn.Module")
    return Adapted(made, inputs, outputs)


def check(model: nn.Module, inputs: int, outputs: int) -> None:
    """Run one small batch and say in one line what is wrong with the model, if anything is.

    Expected: (B, T) integer ids below `inputs` -> (B, T, outputs) floating-point logits, finite, and causal.
    """
    name = type(model.module if isinstance(model, Adapted) else model).__name__
    for word, asked in (("inputs", inputs), ("outputs", outputs)):
        own = getattr(model, word, asked)
        if own != asked:
            raise BadInput(f"{name} was built for {own} {word}, here there are {asked}; build it for this task")
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    ids = (torch.arange(3 * 7, device=device) * (inputs // 21 + 1) % inputs).reshape(3, 7)
    ids[0, 0] = inputs - 1
    training = model.training
    model.eval()
    try:
        check_logits(name, run(name, model, ids), (3, 7, outputs))
        check_causal(name, model, ids, inputs)
    finally:
        model.train(training)


def run(name: str, model: nn.Module, ids: Tensor) -> Any:
    """The model's answer to a batch; its own failure becomes one line."""
    try:
        with torch.no_grad():
            return model(ids)
    except BadInput:
        raise
    except Exception as error:
        shape = tuple(ids.shape)
        raise BadInput(f"{name} fails on ids of shape {shape}: {type(error).__name__}: {one_line(error)}") from error


def check_logits(name: str, logits: Any, expected: Shape) -> None:
    """Kind, shape, dtype and finiteness of what came back."""
    if not isinstance(logits, Tensor):
        raise BadInput(f"{name} returns a {type(logits).__name__}; expected a tensor of logits (B, T, outputs)")
    if tuple(logits.shape) != expected:
        got = tuple(logits.shape)
        raise BadInput(f"{name} returns shape {got} for ids {expected[:2]}; expected (B, T, outputs) = {expected}")
    if not logits.is_floating_point():
        raise BadInput(f"{name} returns {logits.dtype}; expected floating-point logits")
    if not logits.isfinite().all():
        raise BadInput(f"{name} returns logits that are not finite on its first batch")


def check_causal(name: str, model: nn.Module, ids: Tensor, inputs: int) -> None:
    """The answer at a position may not depend on what comes after it: here that would be reading the answer."""
    if inputs < 2:
        return
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % inputs
    before, after = run(name, model, ids), run(name, model, other)
    if not torch.allclose(before[:, :-1], after[:, :-1], rtol=1e-3, atol=1e-4):
        raise BadInput(f"{name} is not causal: logits before the last position change with the last input")


def one_line(error: BaseException) -> str:
    """An error's message without its line breaks."""
    return " ".join(str(error).split())
