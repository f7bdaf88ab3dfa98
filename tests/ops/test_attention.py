"""Causal attention by every kernel against the equation in float64; Triton's in its interpreter, or on a GPU if there
is one.
"""

import os

import pytest
import torch
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.ops import causal_attention

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernels are defined, that is, at their first use
pytest.importorskip("triton", reason="pip install 'statetrack[dev]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# One position, less than a block, whole blocks, blocks and a rest; several rows and heads.
SHAPES = ((1, 1, 1, 16), (2, 3, 20, 16), (1, 2, 128, 32), (2, 2, 150, 16), (1, 1, 70, 64))


def random_inputs(shape: tuple[int, ...], size: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [size * torch.randn(shape, generator=generator) for _ in range(3)]


def found(given: list[Tensor], kernel: str, dtype: torch.dtype) -> list[Tensor]:
    """The output, and the gradients of q, k and v."""
    leaves = [each.to(DEVICE, dtype).requires_grad_() for each in given]
    out = causal_attention(*leaves, kernel=kernel)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)
    return [out, *torch.autograd.grad(out, leaves, weights)]


@pytest.mark.parametrize("size", [1.0, 8.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", ["triton", "torch"])
def test_is_the_reference(kernel: str, shape: tuple[int, ...], size: float) -> None:
    given = random_inputs(shape, size)
    exact = found(given, "reference", torch.float64)
    for name, mine, due in zip(("out", "dq", "dk", "dv"), found(given, kernel, torch.float32), exact):
        error = (mine.double() - due).norm() / due.norm().clamp(min=size * size)  # one position gives q and k none
        assert error < 5e-6 * size, f"{name}: {error}"


def test_views_that_are_not_contiguous() -> None:
    """As a model has them: three parts of one projection, the heads inside."""
    x = torch.randn(2, 70, 3, 2, 16, generator=torch.Generator().manual_seed(0)).to(DEVICE).requires_grad_()
    outs, gradients = [], []
    for kernel in ("triton", "reference"):
        out = causal_attention(*x.permute(2, 0, 3, 1, 4), kernel=kernel)
        outs.append(out)
        gradients.append(torch.autograd.grad(out.transpose(1, 2).flatten(-2).square().sum(), x)[0])
    assert torch.allclose(*outs, atol=1e-5)
    assert torch.allclose(*gradients, atol=1e-4)


def test_nothing_is_seen_of_later_positions() -> None:
    given = [each.to(DEVICE) for each in random_inputs((1, 1, 100, 16))]
    before = causal_attention(*given, kernel="triton")
    for each in given:
        each[:, :, 80:] = 1e3
    assert (causal_attention(*given, kernel="triton")[:, :, :80] == before[:, :, :80]).all()


def test_wrong_shapes_are_named() -> None:
    q = torch.zeros(1, 1, 4, 16)
    with pytest.raises(BadInput, match="k has shape"):
        causal_attention(q, q[:, :, :3], q)
    with pytest.raises(BadInput, match="unknown kernel"):
        causal_attention(q, q, q, kernel="fastest")
