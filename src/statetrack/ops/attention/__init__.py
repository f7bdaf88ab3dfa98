"""Causal attention over a whole sequence."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.ops.attention.reference import attention_reference
from statetrack.ops.choose import expect, forced
from statetrack.ops.rnn import has_triton

KERNELS = ("reference", "torch", "triton")
WIDTHS = (16, 32, 64)  # of a head, for the kernel in Triton


def causal_attention(q: Tensor, k: Tensor, v: Tensor, *, kernel: str | None = None) -> Tensor:
    """softmax(q k^T / sqrt(D)) v over the positions up to each one: q, k, v (B, H, T, D) -> (B, H, T, D).

    `kernel` forces "reference" (the equation), "torch" (what torch chooses) or "triton"; so does the environment
    variable STATETRACK_KERNEL. In float32 torch's kernels take several times what the products and exponentials do, so
    on a GPU that is one of ours, as exact as float32.

    The first position sees itself alone:

    >>> import torch
    >>> q = k = torch.zeros(1, 1, 3, 16)
    >>> v = torch.tensor([1.0, 3.0, 8.0])[None, None, :, None].expand(1, 1, 3, 16)
    >>> causal_attention(q, k, v)[0, 0, :, 0].tolist()
    [1.0, 2.0, 4.0]
    """
    if q.dim() != 4:
        raise BadInput(f"q has shape {tuple(q.shape)}; expected (B, H, T, D)")
    expect("k", k, q.shape, "(B, H, T, D)")
    expect("v", v, q.shape, "(B, H, T, D)")
    name = forced(kernel, KERNELS, q.device) or ("triton" if is_fused(q, k, v) else "torch")
    if name == "reference":
        return attention_reference(q, k, v)
    if name == "torch":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    from statetrack.ops.attention.triton import attention_triton

    return attention_triton(q, k, v)


def is_fused(*given: Tensor) -> bool:
    """Whether the kernel in Triton takes these."""
    alike = all(each.is_cuda and each.element_size() == 4 for each in given)
    return alike and given[0].shape[-1] in WIDTHS and has_triton()
