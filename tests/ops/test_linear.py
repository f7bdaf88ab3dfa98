import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.ops import linear_scan
from statetrack.ops.linear import fast

KERNELS = ["reference", "fast"]
FORMS = ["dense", "diagonal", "stepwise"]


def random_inputs(form, batch=2, steps=6, n=3, seed=0):
    torch.manual_seed(seed)
    shape = {"dense": (n, n), "diagonal": (n,), "stepwise": (batch, steps, n)}[form]
    tensors = (0.6 * torch.randn(shape), torch.randn(batch, steps, n), torch.randn(batch, n))
    return [tensor.double().requires_grad_() for tensor in tensors]


def test_powers_of_a_matrix():
    a, b, state = random_inputs("dense")
    h, last = linear_scan(a, b, state)
    for t in range(6):
        wanted = torch.linalg.matrix_power(a, t + 1) @ state[0]
        wanted = wanted + sum(torch.linalg.matrix_power(a, t - s) @ b[0, s] for s in range(t + 1))
        torch.testing.assert_close(h[0, t], wanted)
    torch.testing.assert_close(last, h[:, -1])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_gradcheck(kernel, form):
    assert torch.autograd.gradcheck(lambda *x: linear_scan(*x, kernel=kernel), random_inputs(form))


@settings(max_examples=30, deadline=None)
@given(form=st.sampled_from(FORMS), batch=st.integers(1, 4), steps=st.integers(1, 20), n=st.integers(1, 5))
def test_fast_is_the_reference(form, batch, steps, n):
    inputs = random_inputs(form, batch, steps, n)
    results = []
    for kernel in KERNELS:
        h, last = linear_scan(*inputs, kernel=kernel)
        results.append([h, last, *torch.autograd.grad(h.square().sum() + last.sum(), inputs)])
    for found, wanted in zip(*results):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_two_calls_are_one(form):
    a, b, state = random_inputs(form, steps=9)
    whole, end = linear_scan(a, b, state)
    front, back = (a[:, :4], a[:, 4:]) if form == "stepwise" else (a, a)
    first, middle = linear_scan(front, b[:, :4], state)
    second, last = linear_scan(back, b[:, 4:], middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, end)


def test_vmap_over_replicas():
    matrices, inputs = torch.randn(3, 4, 4) * 0.4, torch.randn(3, 2, 5, 4)
    h, _ = torch.func.vmap(linear_scan)(matrices, inputs)
    for replica in range(3):
        torch.testing.assert_close(h[replica], linear_scan(matrices[replica], inputs[replica])[0])


@pytest.fixture
def on_a_gpu(monkeypatch):
    monkeypatch.setattr(fast, "in_pieces", lambda b: True)


@pytest.mark.parametrize("steps", [31, 32, 33, 100, 600])
def test_pieces_are_the_reference(steps, on_a_gpu):
    """No piece, whole ones and a rest, pieces of pieces; A keeps what comes, so that every step counts."""
    generator = torch.Generator().manual_seed(steps)
    inputs = [torch.randn(shape, generator=generator).double() for shape in ((5, 5), (3, steps, 5), (3, 5))]
    inputs[0] = torch.linalg.qr(inputs[0])[0]
    leaves = [tensor.requires_grad_() for tensor in inputs]
    weights = torch.randn(3, steps, 5, generator=generator).double()
    results = []
    for kernel in KERNELS:
        h, last = linear_scan(*leaves, kernel=kernel)
        results.append([h, last, *torch.autograd.grad((h * weights).sum() + last.sum(), leaves)])
    for found, wanted in zip(*results):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_pieces_count_exactly(on_a_gpu):
    h, _ = linear_scan(torch.eye(2), torch.ones(1, 5000, 2))
    assert torch.equal(h[0, :, 1], torch.arange(1.0, 5001.0))


def test_pieces_of_replicas(on_a_gpu):
    matrices, inputs = torch.randn(3, 4, 4) * 0.4, torch.randn(3, 2, 50, 4)
    h, _ = torch.func.vmap(linear_scan)(matrices, inputs)
    for replica in range(3):
        torch.testing.assert_close(h[replica], linear_scan(matrices[replica], inputs[replica], kernel="reference")[0])


def test_half_precision_inputs_keep_a_float32_state():
    h, last = linear_scan(torch.ones(1), torch.ones(1, 1000, 1, dtype=torch.bfloat16))
    assert (h.dtype, last.dtype) == (torch.bfloat16, torch.float32)
    assert last.item() == 1000  # bfloat16 would have stopped counting at 256


def test_bad_shapes_are_named():
    with pytest.raises(BadInput, match=r"a has shape \(3, 4\); expected \(N, N\) = \(3, 3\)"):
        linear_scan(torch.zeros(3, 4), torch.zeros(2, 5, 3))
    with pytest.raises(BadInput, match="state has shape"):
        linear_scan(torch.zeros(3), torch.zeros(2, 5, 3), torch.zeros(3))
