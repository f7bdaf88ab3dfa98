"""E88: a matrix state per head with a tanh in time, in three forms that differ in decay and beta alone.

S_t = f(decay_t S_{t-1} + k_t (v_t - beta_t S_{t-1}^T k_t)^T),   out_t = S_t^T q_t

document    decay in (0, 1), beta = 0: every entry moves by its own increasing map, so no sign can flip
published   decay in (0, 1), beta = 1: the delta rule; a sign can flip, but every step contracts, and memory fades
gain        decay = 2 sigmoid in (0, 2), beta = 4 sigmoid in (0, 4): the state is bistable and corrects itself

The form with gain begins near decay 1.76 and beta 2, which tanh bounds. Without tanh that explodes in the first batch
of long rows; `gain=1,rate=1` begins at decay 1 and beta 1 for every token, a projection, and no state grows by itself.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import BadInput, unknown
from statetrack.models.layers import Decay, Linear, Rate, unit, xavier
from statetrack.models.sequence import MatrixMixer, Stack, State, whole_numbers

FORMS = ("document", "published", "gain")


class E88Mixer(MatrixMixer):
    """[q|k|v] = silu(W x), q and k of length 1, the scan, and W_o on the heads side by side."""

    takes_noise = True

    def __init__(
        self, dim: int, heads: int, n_state: int, form: str, tanh: bool,
        gain: float | None = None, rate: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(heads, n_state)
        if form not in FORMS:
            raise unknown("form of E88", form, FORMS)
        self.form = form
        self.nonlinearity = "tanh" if tanh else "identity"
        self.project = xavier(Linear(dim, 3 * heads * n_state, bias=False))
        self.decay: nn.Module = beginning(dim, heads, 2, gain, 2.0) if form == "gain" else Decay(dim, heads)
        self.beta = beginning(dim, heads, 4, rate, 0.0) if form == "gain" else None
        self.out = xavier(Linear(heads * n_state, dim, bias=False))

    def forward(self, x: Tensor, state: State, noise: ops.Noise | None = None) -> tuple[Tensor, State]:
        q, k, v = F.silu(self.project(x)).unflatten(-1, (3, self.heads, self.n_state)).unbind(-3)
        decay = self.decay(x)
        if self.beta is not None:
            beta = self.beta(x)
        else:
            beta = torch.full_like(decay, 1.0 if self.form == "published" else 0.0)
        y, last = ops.e88_scan(
            unit(q), unit(k), v, decay, beta, nonlinearity=self.nonlinearity, state=state[0], noise=noise
        )
        return self.out(y.flatten(-2)), (last,)


def beginning(dim: int, heads: int, high: float, value: float | None, usual: float) -> Rate:
    """A rate below `high` that begins at a value for every input; where none is asked for, near the usual one."""
    if value is None:
        return Rate(dim, heads, 0, high, start=usual)
    return Rate(dim, heads, 0, high, start=math.log(value / (high - value)), flat=True)


class E88(Stack):
    """Blocks of RMSNorm, E88 and a residual; no MLP between them. The decay of the form with gain begins at `gain`, its
    beta at `rate`.
    """

    def __init__(
        self, *, inputs: int, outputs: int, layers: int = 1, heads: int = 16, n_state: int = 32, dim: int = 128,
        form: str = "document", tanh: bool = True, learned_start: bool = False, gain: float | None = None,
        rate: float | None = None,
    ) -> None:  # fmt: skip
        whole_numbers(inputs=inputs, layers=layers, heads=heads, n_state=n_state, dim=dim)
        for name, value, high in (("gain", gain, 2), ("rate", rate, 4)):
            if value is not None and form != "gain":
                raise BadInput(f"{name}={value} is where the form with gain begins; this one is the form {form!r}")
            if value is not None and not 0 < value < high:
                raise BadInput(f"{name}={value} should lie between 0 and {high}")
        mixers = [E88Mixer(dim, heads, n_state, form, tanh, gain, rate) for _ in range(layers)]
        super().__init__(inputs, outputs, dim, mixers, learned_start)
