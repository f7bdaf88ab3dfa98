"""The layers that models share, each able to hold the weights of one model or of several replicas at once.

A parameter with one dimension more than it was born with belongs to replicas: a weight (out, in) becomes (R, out, in).
Activations do not show it: they are always (rows, T, ...), and with replicas the rows are replica after replica, R x B
of them. Only this file and the few parameters that a model uses directly (through `per_row`) know the difference, so
one batched matrix product serves all replicas, and a scan sees nothing but more rows.

>>> layer = Linear(2, 1, bias=False)
>>> layer.weight = nn.Parameter(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))   # two replicas: first number, second
>>> layer(torch.tensor([[[5.0, 7.0]], [[5.0, 7.0]]])).flatten().tolist()      # two rows, one for each
[5.0, 7.0]
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PIECES = 32  # of the tokens of one replica
FEW = 64  # tokens of an alphabet


def per_row(parameter: Tensor, rank: int, rows: int) -> Tensor:
    """A parameter born with `rank` dimensions, with a dimension of rows before them: 1, or with replicas all `rows`."""
    if parameter.dim() == rank:
        return parameter.unsqueeze(0)
    return parameter.repeat_interleave(rows // len(parameter), dim=0)


class Linear(nn.Linear):
    """W x + b."""

    def forward(self, x: Tensor) -> Tensor:
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b for x (rows, T, in), with the weights of one or of several replicas."""
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    y = replica_product(x, weight.mT)
    return y if bias is None else y + per_row(bias, 1, len(x)).unsqueeze(1)


def replica_product(x: Tensor, weight: Tensor) -> Tensor:
    """x (rows, T, in) times the weight (R, in, out) of the replica that each row belongs to."""
    replicas, tokens = len(weight), x.shape[0] * x.shape[1] // len(weight)
    # On a GPU a weight's gradient, a sum over all tokens, would be one small and lonely product: cut it in pieces.
    pieces = math.gcd(tokens, PIECES) if x.is_cuda else 1
    if pieces > 1:
        weight = weight.unsqueeze(1).expand(-1, pieces, -1, -1).flatten(0, 1)
    y = torch.bmm(x.reshape(replicas * pieces, -1, x.shape[-1]), weight)
    return y.reshape(*x.shape[:-1], -1)


class Embedding(nn.Module):
    """A vector for each token; with `silent_zero`, token 0 is the zero vector and has no weights."""

    def __init__(self, inputs: int, dim: int, silent_zero: bool = False) -> None:
        super().__init__()
        self.silent_zero = silent_zero
        self.weight = nn.Parameter(torch.randn(inputs - silent_zero, dim))

    def forward(self, ids: Tensor) -> Tensor:
        return lookup(ids, F.pad(self.weight, (0, 0, 1, 0)) if self.silent_zero else self.weight)


def lookup(ids: Tensor, table: Tensor) -> Tensor:
    """The vectors of ids (rows, T) in a table (inputs, dim), or in those of several replicas."""
    if ids.is_cuda and table.shape[-2] <= FEW:
        # Many tokens add to few rows: there a product with one-hot vectors has the quicker gradient.
        chosen = F.one_hot(ids, table.shape[-2]).to(table.dtype)
        return chosen @ table if table.dim() == 2 else replica_product(chosen, table)
    if table.dim() == 2:
        return F.embedding(ids, table)
    # One long table; the rows of replica r look into the r-th part of it.
    replicas, inputs, _ = table.shape
    offset = torch.arange(replicas, device=ids.device).repeat_interleave(len(ids) // replicas) * inputs
    return F.embedding(ids + offset.unsqueeze(1), table.flatten(0, 1))


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps), times a weight."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 1:
            return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
        weight = per_row(self.weight, 1, len(x)).unsqueeze(1)
        return F.rms_norm(x, x.shape[-1:], None, self.eps) * weight.to(x.dtype)


class Rate(nn.Module):
    """One number per head from the input, between two bounds: low + (high - low) sigmoid(W x + bias).

    With `flat`, W begins at zero, so that it begins at one number for every input.
    """

    def __init__(self, dim: int, heads: int, low: float, high: float, start: float = 0.0, flat: bool = False) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.project = xavier(Linear(dim, heads))
        nn.init.constant_(self.project.bias, start)
        if flat:
            nn.init.zeros_(self.project.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * torch.sigmoid(self.project(x).to(at_least_float32(x)))


class Decay(nn.Module):
    """One number per head from the input, in (0, 1): exp(-exp(A_log) softplus(W_a x + dt_bias))."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.project = xavier(Linear(dim, heads, bias=False))
        self.A_log = nn.Parameter(log_uniform_A(heads, low=0.0))
        self.dt_bias = nn.Parameter(inverse_softplus_dt(heads))

    def forward(self, x: Tensor) -> Tensor:
        A_log, dt_bias = (per_row(p, 1, len(x)).unsqueeze(1) for p in (self.A_log, self.dt_bias))
        dt = F.softplus(self.project(x).to(at_least_float32(x)) + dt_bias)
        return torch.exp(-torch.exp(A_log) * dt)


def log_uniform_A(heads: int, low: float, high: float = 16.0) -> Tensor:
    """log A for A uniform on (low, high); the smallest A is 1e-4, since the logarithm of 0 is not a weight."""
    return torch.empty(heads).uniform_(low, high).clamp(min=1e-4).log()


def inverse_softplus_dt(heads: int, low: float = 1e-3, high: float = 0.1) -> Tensor:
    """The bias b with softplus(b) = dt, for dt log-uniform on [low, high]."""
    dt = torch.empty(heads).uniform_(math.log(low), math.log(high)).exp()
    return dt + torch.log(-torch.expm1(-dt))


def rates_of_scan(b: Tensor, a: Tensor) -> Tensor:
    """The betas (B, T, R, H) with which E88's scan reflects the decayed state a S at the rates b.

    Its first write reads the state before the decay: a S - a b k k^T S = (I - b k k^T) a S.
    """
    return torch.cat([b[:, :, :1] * a.unsqueeze(2), b[:, :, 1:]], dim=2)


def xavier(layer: Linear) -> Linear:
    """The layer with weights uniform by Xavier and Glorot's rule."""
    nn.init.xavier_uniform_(layer.weight)
    return layer


def unit(x: Tensor) -> Tensor:
    """x divided by its length (+ 1e-6) along the last dimension."""
    return x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1e-6)


def at_least_float32(x: Tensor) -> torch.dtype:
    """The dtype in which decays and states are computed, also under autocast."""
    return torch.promote_types(x.dtype, torch.float32)
