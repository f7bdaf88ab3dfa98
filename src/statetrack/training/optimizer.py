"""All parameters of R replicas that are trained as one matrix (R, P), and AdamW on it.

A model's parameters become views of the matrix's columns, their gradients views of a second matrix. Then an optimizer
step is a dozen operations however many layers there are, clipping and the learning rate are one number per row, a
replica never touches another, and a checkpoint is three matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from statetrack.models import Replicas

# Columns of a matrix are not contiguous, and torch says so once; the products here do not mind.
warnings.filterwarnings("ignore", message="grad and param do not obey the gradient layout contract")


class FlatParameters:
    """The parameters of replicas as rows, one per replica; the module's own parameters become views of them."""

    def __init__(self, replicas: Replicas) -> None:
        names = [name for name, _ in _named(replicas)[0]]
        sizes = [p[0].numel() if replicas.folded else p.numel() for _, p in _named(replicas)[0]]
        like = _named(replicas)[0][0][1]
        self.values = torch.zeros(replicas.count, sum(sizes), device=like.device, dtype=like.dtype)
        self.gradients = torch.zeros_like(self.values)
        self.decays = torch.ones(sum(sizes), device=like.device, dtype=like.dtype)
        kept = replicas.no_decay()
        begin = 0
        for at, (name, size) in enumerate(zip(names, sizes)):
            columns = slice(begin, begin + size)
            for rows, p in self._owners(replicas, at):
                value, gradient = self.values[rows, columns].view_as(p), self.gradients[rows, columns].view_as(p)
                value.copy_(p.detach())
                p.data, p.grad = value, gradient
            if name in kept:
                self.decays[columns] = 0
            begin += size

    @staticmethod
    def _owners(replicas: Replicas, at: int) -> Iterator[tuple[slice | int, nn.Parameter]]:
        """The parameter(s) behind one stretch of columns: one for all rows when folded, else one per row."""
        named = _named(replicas)
        if replicas.folded:
            yield slice(None), named[0][at][1]
        else:
            yield from ((row, own[at][1]) for row, own in enumerate(named))


def _named(replicas: Replicas) -> list[list[tuple[str, nn.Parameter]]]:
    """For each part of the replicas its parameters, without those that are frozen; the first part's names count."""
    return [
        [(f"parts.{i}.{name}", p) for name, p in part.named_parameters() if p.requires_grad]
        for i, part in enumerate(replicas.parts)
    ]


class AdamW:
    """AdamW with a norm clip, each row on its own.

    m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2
    w <- w - lr * (m / (1 - b1^n) / (sqrt(v / (1 - b2^n)) + eps) + weight_decay * w)
    """

    betas, eps = (0.9, 0.999), 1e-8

    def __init__(self, flat: FlatParameters, weight_decay: float, clip: float) -> None:
        self.flat, self.weight_decay, self.clip = flat, weight_decay, clip
        self.first = torch.zeros_like(flat.values)
        self.second = torch.zeros_like(flat.values)

    @torch.no_grad()
    def step(self, rates: Tensor, steps: Tensor) -> Tensor:
        """One step with a learning rate and a count of steps (from 1) for each row; the gradients are zeroed after it.
        Gives the norm of each row's gradient, before it is clipped.

        A row whose rate is 0 keeps its weights.
        """
        b1, b2 = self.betas
        g, w = self.flat.gradients, self.flat.values
        norms = torch.linalg.vector_norm(g, dim=1, keepdim=True)
        if self.clip:
            g.mul_((self.clip / (norms + 1e-6)).clamp_(max=1.0))
        self.first.lerp_(g, 1 - b1)
        self.second.mul_(b2).addcmul_(g, g, value=1 - b2)
        rates, steps = rates.to(w.dtype).unsqueeze(1), steps.to(w.dtype).unsqueeze(1)
        w.mul_(1 - rates * self.weight_decay * self.decays)
        scale = torch.sqrt(1 - b2**steps)
        denominator = self.second.sqrt().div_(scale).add_(self.eps)
        w.addcdiv_(self.first * (-rates / (1 - b1**steps)), denominator)
        g.zero_()
        return norms.squeeze(1)

    @property
    def decays(self) -> Tensor:
        return self.flat.decays
