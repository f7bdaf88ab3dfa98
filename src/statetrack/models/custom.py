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

import copy
import functools
import importlib
import importlib.util
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from statetrack.errors import BadInput, one_line
from statetrack.models.identity import WANTED, Identity, identity
from statetrack.models.sequence import SequenceModel, Shape, State


class Adapted(SequenceModel):
    """Somebody else's module, used as a model."""

    foldable = False

    def __init__(self, module: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.module: Any = module
        self.recurrent = hasattr(module, "initial_state") and (
            hasattr(module, "forward_from") or hasattr(module, "step")
        )
        self.bare = False  # whether its state is one tensor and not a tuple

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
        self.bare = not isinstance(state, tuple)
        return (state,) if self.bare else state

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        own: Any = state[0] if self.bare else state  # the module gets its state as it made it
        if hasattr(self.module, "forward_from"):
            logits, own = self.module.forward_from(ids, own)
        else:
            outputs = []
            for token in ids.unbind(1):
                answer, own = self.module.step(token, own)
                outputs.append(answer)
            logits = torch.stack(outputs, dim=1)
        return logits, (own,) if self.bare else own


def load(address: str, known: Identity | None = None) -> type[nn.Module]:
    """The class at `file.py:Class` or `package.module:Class`. To import is to run: ask `statetrack.trust` first."""
    place, _, attribute = address.rpartition(":")
    behind = known or identity(address)
    import_anew(behind)
    module = run_file(Path(place).resolve(), behind.sha256) if place.endswith(".py") else from_package(place)
    try:
        target = operator.attrgetter(attribute)(module)
    except AttributeError:
        raise BadInput(f"{place} has no {attribute!r}; {WANTED}") from None
    if not isinstance(target, type) or not issubclass(target, nn.Module):
        what = f"the class {target.__name__}" if isinstance(target, type) else f"a {type(target).__name__}"
        raise BadInput(f"{address} is {what}, and not a class of torch.nn.Module; {WANTED}")
    return target


_imported: dict[str, str] = {}  # modules of one's own that models were loaded with, and the hash that each had then


def import_anew(behind: Identity) -> None:
    """Forget the modules behind a model if one of them has changed since it was imported for one."""
    if any(_imported.get(name, sha256) != sha256 for name, sha256 in behind.own.items()):
        for name in behind.own:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
    _imported.update(behind.own)


@functools.cache
def run_file(path: Path, sha256: str) -> ModuleType:
    """The module that a file makes. An unchanged file is run once, so that all seeds get one and the same class.

    The module's name is made from the path, so that two files of one name do not meet.
    """
    name = "statetrack_file_" + "_".join(path.with_suffix("").parts[1:])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up there
    with blaming(f"{path} does not run"):
        spec.loader.exec_module(module)
    return module


def from_package(name: str) -> ModuleType:
    """Import a module by its dotted name."""
    with blaming(f"cannot import {name!r}"):
        return importlib.import_module(name)


@contextmanager
def blaming(what: str, but: Callable[[Exception], bool] = lambda error: False) -> Iterator[None]:
    """Whatever somebody's code raises becomes one line that begins so, but for some; its traceback is the cause, which
    `statetrack -v` shows.
    """
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        if but(error):
            raise
        raise BadInput(f"{what}: {one_line(error)}") from error
    except SystemExit as error:
        if type(error) is not SystemExit:  # of our own, which ends a worker
            raise
        raise BadInput(f"{what}: it calls sys.exit({error.code if error.code is not None else ''})") from error


def built(name: str, build: Callable[..., nn.Module], *, inputs: int, outputs: int, **options: Any) -> SequenceModel:
    """Class(inputs=..., outputs=...), as a SequenceModel."""
    with blaming(f"cannot build {name} as Class(inputs=..., outputs=...)"):  # memory that ran out, too
        module = build(inputs=inputs, outputs=outputs, **options)
    return as_model(module, name, inputs, outputs)


def as_model(module: Any, name: str, inputs: int, outputs: int) -> SequenceModel:
    """A SequenceModel as it is, any other module wrapped. Only a class that says so itself has foldable layers."""
    if isinstance(module, SequenceModel):
        if not is_ours(module) and "foldable" not in vars(type(module)):
            module.foldable = False
        return module
    if not isinstance(module, nn.Module):
        raise BadInput(f"{name} makes a {type(module).__name__}; expected a torch.nn.Module")
    return Adapted(module, inputs, outputs)


def is_ours(model: nn.Module) -> bool:
    """Whether its class comes with statetrack; what those do is tested."""
    return not isinstance(model, Adapted) and type(model).__module__.startswith("statetrack.models.")


def own_name(model: nn.Module) -> str:
    """The name of somebody's class, also where it is wrapped."""
    return type(model.module if isinstance(model, Adapted) else model).__name__


def check(model: nn.Module, inputs: int, outputs: int) -> None:
    """Run one small batch and say in one line what is wrong with the model, if anything is.

    Expected: (B, T) integer ids below `inputs` -> (B, T, outputs) floating-point logits, finite, causal, the same when
    run twice (also in training mode), and the same in pieces where it is `recurrent`.
    """
    name = own_name(model)
    check_weights(name, model)
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
        check_repeatable(name, model, ids)
        check_causal(name, model, ids, inputs)
        if isinstance(model, SequenceModel) and model.recurrent:
            check_pieces(name, model, ids)
    finally:
        model.train(training)


def run(name: str, model: Callable[[Tensor], Any], ids: Tensor) -> Any:
    """The model's answer to a batch; its own failure becomes one line."""
    with blaming(f"{name} fails on ids of shape {tuple(ids.shape)}"), torch.no_grad():
        return model(ids)


def check_weights(name: str, model: nn.Module) -> None:
    """There must be something to train, of one dtype: an optimizer step works on all weights as one matrix."""
    dtypes = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.requires_grad}
    if not dtypes:
        raise BadInput(f"{name} has no parameters to train")
    if len(dtypes) > 1:
        raise BadInput(f"{name} has parameters of {' and '.join(sorted(dtypes))}; all that are trained need one dtype")


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


def check_repeatable(name: str, model: nn.Module, ids: Tensor) -> None:
    """Two passes in training mode must agree and leave no trace: a run is repeated, and taken up again, from its seed.

    Tried on a copy, so that the buffers of a model that fails are as they were.
    """
    with blaming(f"{name} cannot be copied"):
        trial = copy.deepcopy(model).train()
    buffers = {key: buffer.clone() for key, buffer in trial.named_buffers()}
    with torch.random.fork_rng():
        drawn = torch.get_rng_state()
        first, second = run(name, trial, ids), run(name, trial, ids)
        draws = not torch.equal(drawn, torch.get_rng_state())
    if draws or not torch.allclose(first, second, rtol=1e-3, atol=1e-4):
        raise BadInput(f"{name} answers by chance in training mode (dropout?): results would not be repeatable")
    changed = [key for key, buffer in trial.named_buffers() if not torch.equal(buffer, buffers[key])]
    if changed:
        raise BadInput(
            f"{name} changes its buffer {changed[0].removeprefix('module.')} in training (BatchNorm?): only parameters "
            "are kept with the best weights, so results would not be repeatable"
        )


def check_pieces(name: str, model: SequenceModel, ids: Tensor) -> None:
    """Run in two pieces, the state handed on, it must answer as in one: a stream is evaluated in pieces."""

    def in_pieces(ids: Tensor) -> Tensor:
        first, state = model.forward_from(ids[:, :4], model.initial_state(len(ids), ids.device))
        second, _ = model.forward_from(ids[:, 4:], state)
        return torch.cat([first, second], dim=1)

    whole, parts = run(name, model, ids), run(f"forward_from of {name}", in_pieces, ids)
    if parts.shape != whole.shape or not torch.allclose(parts, whole, rtol=1e-3, atol=1e-4):
        raise BadInput(f"{name} answers differently in two pieces (forward_from) than in one (forward)")
