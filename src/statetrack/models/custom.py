"""A model of one's own: built, wrapped if it is a plain module, and checked on one batch.

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
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from statetrack.errors import BadInput
from statetrack.models.chance import drawn_so_far, seeded
from statetrack.models.replicas import kept_buffers, put_buffers
from statetrack.models.sequence import SequenceModel, Shape, State
from statetrack.own_code import blaming


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

    def __getattr__(self, name: str) -> Any:
        """Not found here. What the module has is its own: one of its names may mean another thing than ours."""
        held = self.__dict__.get("_modules", {}).get("module")
        if name != "module" and held is not None and hasattr(held, name):
            raise AttributeError(f"{type(held).__name__} is wrapped here: {name!r} is found as .module.{name}")
        return super().__getattr__(name)

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


def check(model: nn.Module, inputs: int, outputs: int, to_train: bool = True) -> None:
    """Run one small batch and say in one line what is wrong with the model, if anything is.

    Expected: (B, T) integer ids below `inputs` -> (B, T, outputs) floating-point logits, finite, causal, drawn from
    nothing, and the same in pieces where it is `recurrent`. One that is `to_train` has something to be trained, and may
    draw by torch's generator and change its buffers in training mode; whether it does is left in its `changing`.
    """
    name = own_name(model)
    if to_train:
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
        check_evaluation(name, model, ids)
        if to_train:
            model.changing = changes_in_training(name, model, ids)  # type: ignore[assignment]
        check_causal(name, model, ids, inputs)
        if isinstance(model, SequenceModel) and model.recurrent:
            check_pieces(name, model, ids)
    finally:
        model.train(training)


def run(name: str, model: Callable[[Tensor], Any], ids: Tensor) -> Any:
    """The model's answer to a batch; its own failure becomes one line."""
    with blaming(f"{name} fails on ids of shape {tuple(ids.shape)}, 0 to {int(ids.max())}"), torch.no_grad():
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


def check_evaluation(name: str, model: nn.Module, ids: Tensor) -> None:
    """In evaluation nothing is drawn, and no buffer changes."""
    before = kept_buffers(model)
    if _drawing(name, model, ids)[1]:
        raise BadInput(
            f"{name} draws by chance in evaluation mode too: use nn.Dropout, or F.dropout(x, p, self.training)"
        )
    changed = [key for key, buffer in kept_buffers(model).items() if not torch.equal(buffer, before[key])]
    if changed:
        raise BadInput(f"{name} changes its buffer {changed[0].removeprefix('module.')} in evaluation mode")


def changes_in_training(name: str, model: nn.Module, ids: Tensor) -> bool:
    """Whether a pass in training mode draws by chance, as dropout does, or changes buffers, as batch norm does.

    Two passes from one seed and the same buffers must agree: a run is repeated, and taken up again, from them. Tried on
    a copy, so that the model is left as it was.
    """
    with blaming(f"{name} cannot be copied"):
        trial = copy.deepcopy(model).train()
    before = kept_buffers(trial)
    first, draws = _drawing(name, trial, ids)
    after = kept_buffers(trial)
    put_buffers(trial, before)
    second, _ = _drawing(name, trial, ids)
    if not torch.allclose(first, second, rtol=1e-3, atol=1e-4):
        raise BadInput(
            f"{name} answers one batch differently when it is run again in training mode: results would not be "
            "repeatable. What it draws should come from torch's own generator, and what it keeps be a buffer"
        )
    for key, buffer in before.items():
        if after[key].shape != buffer.shape or after[key].dtype != buffer.dtype:
            raise BadInput(f"{name} changes the shape or type of its buffer {key.removeprefix('module.')} in training")
    return draws or any(not torch.equal(after[key], buffer) for key, buffer in before.items())


def _drawing(name: str, model: nn.Module, ids: Tensor) -> tuple[Tensor, bool]:
    """A pass from the seed 0, and whether it draws anything."""
    with seeded(0, ids.device):
        began = drawn_so_far(ids.device)
        logits: Tensor = run(name, model, ids)
        return logits, any(not torch.equal(*states) for states in zip(began, drawn_so_far(ids.device)))


def check_pieces(name: str, model: SequenceModel, ids: Tensor) -> None:
    """Run in two pieces, the state handed on, it must answer as in one: a stream is evaluated in pieces."""

    def in_pieces(ids: Tensor) -> Tensor:
        first, state = model.forward_from(ids[:, :4], model.initial_state(len(ids), ids.device))
        second, _ = model.forward_from(ids[:, 4:], state)
        return torch.cat([first, second], dim=1)

    whole, parts = run(name, model, ids), run(f"forward_from of {name}", in_pieces, ids)
    if parts.shape != whole.shape or not torch.allclose(parts, whole, rtol=1e-3, atol=1e-4):
        raise BadInput(f"{name} answers differently in two pieces (forward_from) than in one (forward)")
