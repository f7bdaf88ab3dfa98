"""The recurrences the models are built on, one folder each.

    e88/      S_t = f(decay_t S_{t-1} + k_t (v_t - beta_t S_{t-1}^T k_t)^T),  out_t = S_t^T q_t
    ssd/      h_t = decay_t h_{t-1} + dt_t x_t B_t^T,                         y_t = h_t C_t + D x_t
    m2rnn/    Z_t = tanh(S_{t-1} W + k_t v_t^T),  S_t = f_t S_{t-1} + (1 - f_t) Z_t,  out_t = S_t^T q_t
    linear/   h_t = A h_{t-1} + b_t
    rnn/      h_t = tanh(x_t + W h_{t-1}), and the gated cells GRU and LSTM
    attention/  softmax(q k^T / sqrt(D)) v over the past, which is no recurrence and has no state

In each folder `reference.py` is the equations as a loop that autograd differentiates, the other files are faster and
must equal it, and `__init__.py` chooses. Every recurrence returns its outputs and its last state, so a long sequence
can be run in pieces. States are float32 (float64 for float64 inputs) whatever the inputs are, also under autocast.

>>> import torch
>>> from statetrack import ops
>>> ones = torch.ones(1, 3, 2)                       # batch 1, three steps, two numbers per step
>>> h, last = ops.linear_scan(torch.ones(2), ones)   # h_t = h_{t-1} + 1
>>> h[0, :, 0].tolist(), last.tolist()
([1.0, 2.0, 3.0], [[3.0, 3.0]])
"""

import torch

from statetrack.ops.attention import causal_attention
from statetrack.ops.e88 import e88_scan
from statetrack.ops.linear import linear_scan
from statetrack.ops.m2rnn import m2rnn_scan
from statetrack.ops.noise import Noise
from statetrack.ops.rnn import rnn_scan
from statetrack.ops.ssd import ssd_scan

__all__ = [
    "Noise",
    "causal_attention",
    "e88_scan",
    "keep_out_compilers",
    "linear_scan",
    "m2rnn_scan",
    "rnn_scan",
    "ssd_scan",
]


def keep_out_compilers() -> None:
    """Make torch.compile pass over the scans, which are kernels already. To be called before anything is compiled.

    It is not done at import: it would load the compiler for everybody.
    """
    for name in ("causal_attention", "e88_scan", "linear_scan", "m2rnn_scan", "rnn_scan", "ssd_scan"):
        globals()[name] = torch.compiler.disable(globals()[name])
