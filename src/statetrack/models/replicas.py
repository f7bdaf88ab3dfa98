"""Several models of one kind trained in one go: (R, B, T) ids -> (R, B, T, outputs) logits, weights of their own.

Where the model's layers allow it (`foldable`), all weights are stacked to (R, ...) and one pass serves all replicas;
the recurrences see R x B rows. Otherwise every replica runs by itself behind the same interface: one after another, on
a GPU side by side (branches.py). Those that draw by chance or change buffers in training (`changing`) each do so as if
alone.

>>> from statetrack.models import model
>>> three = Replicas([model("e88-gain-1l-small", inputs=2, outputs=2, seed=seed) for seed in range(3)])
>>> ids = torch.randint(2, (3, 4, 16))
>>> three(ids).shape
torch.Size([3, 4, 16, 2])
>>> torch.allclose(three(ids)[1], three.one(1)(ids[1]), atol=1e-5)
True
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack.errors import BadInput
from statetrack.models.branches import side_by_side
from statetrack.models.chance import seeded
from statetrack.models.sequence import SequenceModel, State
from statetrack.ops import Noise


@dataclass(frozen=True)
class Turn:
    """What one replica does in a training step, as it would alone: it reads this much of its rows, which are filled up
    to those of the longest, and draws from this seed.
    """

    length: int
    seed: int

    def taken(self, part: nn.Module, ids: Tensor) -> Tensor:
        """Its logits; those of the filling, which nobody asks about, are 0."""
        with seeded(self.seed, ids.device):
            logits: Tensor = part(ids[:, : self.length])
        return F.pad(logits, (0, 0, 0, ids.shape[1] - self.length))


class Replicas(nn.Module):
    """Holds copies: the models that came in keep their own weights. `one(r)` gives replica r as a model of its own.

    Between steps the state has R x B rows, replica after replica.
    """

    def __init__(self, models: Sequence[SequenceModel], device: torch.device | str | None = None) -> None:
        super().__init__()
        check_alike(models)
        copies = [copy.deepcopy(single) for single in models]
        if device is not None:
            copies = [single.to(device) for single in copies]
        self.count = len(models)
        self.changing = models[0].changing
        self.turns: Sequence[Turn] = ()  # of the next training step, where the models are changing
        # What is drawn or kept for one replica is not to be mixed with others.
        self.folded = copies[0].folds(self.count) and not self.changing and not list(models[0].buffers())
        self.parts = nn.ModuleList([stacked(copies)] if self.folded else copies)
        self._met: set[tuple[int, ...]] = set()  # shapes of ids that the parts have run on

    @property
    def first(self) -> SequenceModel:
        """The part that speaks for all in what does not depend on weights."""
        return self.parts[0]  # type: ignore[return-value]

    def forward(self, ids: Tensor) -> Tensor:
        if self.folded:
            return self.first(ids.flatten(0, 1)).unflatten(0, ids.shape[:2])
        if self.training and self.turns:
            return torch.stack([turn.taken(part, own) for part, own, turn in zip(self.parts, ids, self.turns)])
        return torch.stack(self.each(lambda part, own: part(own), ids))

    def each(self, work: Callable[..., Any], ids: Tensor, *others: Iterable[Any]) -> list[Any]:
        """What `work` gives for every part, its ids, and its own of the others."""
        if ids.shape in self._met:
            return side_by_side(work, self.parts, ids, *others, device=ids.device)
        # What a model makes at its first pass and keeps for all, a table or a kernel, is there before branches begin.
        self._met.add(ids.shape)
        return list(map(work, self.parts, ids, *others))

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        if self.folded:
            return self.first.initial_state(self.count * batch, device)
        return joined([part.initial_state(batch, device) for part in self.parts])  # type: ignore[operator]

    @property
    def takes_noise(self) -> bool:
        """Whether noise on the state can be put on inside the models' scans."""
        return self.first.takes_noise

    def noisy(self, ids: Tensor, noise: Noise) -> Tensor:
        """The logits with noise on the state; its keys are those of the replicas."""
        state = self.initial_state(ids.shape[1], ids.device)
        if self.folded:
            return self.first.forward_from(ids.flatten(0, 1), state, noise)[0].unflatten(0, ids.shape[:2])  # type: ignore[call-arg]
        alone = (noise._replace(keys=key) for key in noise.keys.split(1))
        done = self.each(lambda part, *own: part.forward_from(*own), ids, self.own_states(state), alone)
        return torch.stack([logits for logits, _ in done])

    def own_states(self, state: State) -> Iterator[State]:
        """Each replica's part of a state."""
        return zip(*(part.chunk(self.count) for part in state))

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """ids (R, B, T) -> logits (R, B, T, outputs)."""
        if self.folded:
            logits, state = self.first.forward_from(ids.flatten(0, 1), state)
            return logits.unflatten(0, ids.shape[:2]), state
        done = self.each(lambda part, *own: part.forward_from(*own), ids, self.own_states(state))
        return torch.stack([logits for logits, _ in done]), joined([after for _, after in done])

    def one(self, replica: int) -> SequenceModel:
        """Replica r as a model of its own, with a copy of its weights."""
        if not self.folded:
            return copy.deepcopy(self.parts[replica])  # type: ignore[return-value]
        single = copy.deepcopy(self.first)
        for name, parameter in self.first.named_parameters():
            put(single, name, parameter[replica])
        return single

    def buffers_of_all(self) -> dict[str, Tensor]:
        """A copy of the buffers that belong to the weights, (R, ...) each."""
        held = [kept_buffers(part) for part in self.parts]
        return {name: torch.stack([own[name] for own in held]) for name in held[0]}

    def put_buffers_of_all(self, values: Mapping[str, Tensor]) -> None:
        """Give every replica its row of these."""
        for row, part in enumerate(self.parts):
            put_buffers(part, {name: value[row] for name, value in values.items()})

    def no_decay(self) -> set[str]:
        """As SequenceModel.no_decay, with the names that parameters have here."""
        names = self.one(0).no_decay()
        return {f"parts.{i}.{name}" for i in range(len(self.parts)) for name in names}


def check_alike(models: Sequence[SequenceModel]) -> None:
    """Replicas must be of one class and have weights of one set of shapes."""
    if not models:
        raise BadInput("replicas of nothing: give at least one model")
    for single in models[1:]:
        same_class = type(single) is type(models[0])
        if not same_class or shapes_of(single) != shapes_of(models[0]):
            raise BadInput("replicas must be models of one class with weights of the same shapes")


def shapes_of(single: nn.Module) -> dict[str, torch.Size]:
    return {name: p.shape for name, p in single.named_parameters()}


def stacked(models: Sequence[SequenceModel]) -> SequenceModel:
    """The first model, with every weight replaced by all models' weights, (R, ...)."""
    named = [dict(single.named_parameters()) for single in models]
    body = models[0]
    for name in list(named[0]):
        put(body, name, torch.stack([own[name] for own in named]))
    return body


def put(module: nn.Module, name: str, value: Tensor) -> None:
    """Replace a parameter, by its dotted name, with a new one that has a copy of this value."""
    place, _, last = name.rpartition(".")
    owner = module.get_submodule(place)
    setattr(owner, last, nn.Parameter(value.detach().clone()))  # which torch's cells take note of


def kept_buffers(module: nn.Module) -> dict[str, Tensor]:
    """A copy of the buffers that are saved with the weights. Others are caches, which say nothing that is not known."""
    saved = module.state_dict().keys()
    return {name: buffer.clone() for name, buffer in module.named_buffers() if name in saved}


def put_buffers(module: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Give a module these buffers, each a copy."""
    for name, value in values.items():
        place, _, last = name.rpartition(".")
        module.get_submodule(place)._buffers[last] = value.detach().clone()


def joined(states: Sequence[State]) -> State:
    """The states of replicas, one after another along the rows."""
    return tuple(torch.cat(parts) for parts in zip(*states))
