import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.ops import ssd_scan

FAST = ["chunked", "cpu"]
KERNELS = ["reference", *FAST]


def random_inputs(batch, steps, heads, p, n, groups=1, *, seed=0, signed=False):
    """x, dt, A or a signed decay, B, C, D and a start."""
    torch.manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    rate = torch.rand(batch, steps, heads, dtype=torch.float64)
    tensors = {
        "x": normal(batch, steps, heads, p),
        "dt": 0.01 + rate,
        "A": -0.1 - torch.rand(heads, dtype=torch.float64),
        "B": normal(batch, steps, groups, n),
        "C": normal(batch, steps, groups, n),
        "D": normal(heads),
        "state": normal(batch, heads, p, n),
    }
    if signed:
        tensors["decay"] = 2 * rate.roll(1) - 1
    tensors = {name: tensor.requires_grad_() for name, tensor in tensors.items()}
    return {**tensors, "A": None} if signed else tensors


def run(inputs, kernel):
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items() if tensor is not None}
    y, last = ssd_scan(**{**inputs, **leaves}, kernel=kernel)
    torch.manual_seed(5)
    weights = [torch.randn(tensor.shape, dtype=torch.float64).to(tensor) for tensor in (y, last)]
    gradients = torch.autograd.grad([y, last], list(leaves.values()), weights)
    return [y.detach(), last.detach(), *gradients]


def test_by_the_equations():
    inputs = random_inputs(2, 4, 4, 3, 5, groups=2)
    y, last = ssd_scan(**inputs)
    for b in range(2):
        for h in range(4):
            state = inputs["state"][b, h]
            for t in range(4):
                dt = inputs["dt"][b, t, h]
                B, C, x = inputs["B"][b, t, h // 2], inputs["C"][b, t, h // 2], inputs["x"][b, t, h]
                state = torch.exp(dt * inputs["A"][h]) * state + dt * torch.outer(x, B)
                torch.testing.assert_close(y[b, t, h], state @ C + inputs["D"][h] * x)
            torch.testing.assert_close(last[b, h], state)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("signed", [False, True])
def test_gradcheck(kernel, signed):
    inputs = random_inputs(2, 5, 2, 2, 3, groups=2, signed=signed)
    names = [name for name, tensor in inputs.items() if tensor is not None]

    def scan(*tensors):
        return ssd_scan(**{**inputs, **dict(zip(names, tensors))}, kernel=kernel)

    assert torch.autograd.gradcheck(scan, [inputs[name] for name in names])


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 3),
    steps=st.sampled_from([1, 2, 15, 16, 17, 31, 40, 64]),
    groups=st.integers(1, 2),
    repeat=st.integers(1, 3),
    p=st.integers(1, 5),
    n=st.integers(1, 6),
    signed=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_fast_kernels_are_the_reference(batch, steps, groups, repeat, p, n, signed, seed):
    inputs = random_inputs(batch, steps, groups * repeat, p, n, groups, seed=seed, signed=signed)
    wanted = run(inputs, "reference")
    for kernel in FAST:
        for found, right in zip(run(inputs, kernel), wanted):
            torch.testing.assert_close(found, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", FAST)
def test_float32_is_close(kernel):
    inputs = random_inputs(2, 100, 4, 8, 16)
    single = {name: tensor.float() for name, tensor in inputs.items()}
    for found, wanted in zip(run(single, kernel), run(inputs, "reference")):
        assert (found.double() - wanted).norm() / wanted.norm() < 1e-5


@pytest.mark.parametrize("kernel", FAST)
def test_fast_decay_does_not_overflow(kernel):
    inputs = random_inputs(2, 70, 2, 4, 4)
    inputs["A"] = torch.full_like(inputs["A"], -1e3)
    for found, wanted in zip(run(inputs, kernel), run(inputs, "reference")):
        torch.testing.assert_close(found, wanted)


def test_a_decay_of_zero_forgets():
    inputs = random_inputs(1, 6, 1, 2, 2, signed=True)
    with torch.no_grad():
        inputs["decay"][:, 3] = 0
    y, _ = ssd_scan(**inputs)
    later, _ = ssd_scan(**{
        name: tensor[:, 3:] if name not in ("A", "D", "state") else tensor for name, tensor in inputs.items()
    })  # fmt: skip
    torch.testing.assert_close(y[:, 3:], later)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("signed", [False, True])
def test_two_calls_are_one(kernel, signed):
    inputs = random_inputs(2, 37, 2, 3, 4, signed=signed)
    whole, end = ssd_scan(**inputs, kernel=kernel)

    def part(piece, state):
        cut = {name: tensor[:, piece] if name not in ("A", "D", "state") else tensor for name, tensor in inputs.items()}
        return ssd_scan(**{**cut, "state": state}, kernel=kernel)

    first, middle = part(slice(0, 20), inputs["state"])
    second, last = part(slice(20, None), middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, end)


def test_half_precision_inputs_keep_a_float32_state():
    inputs = {name: tensor.bfloat16() for name, tensor in random_inputs(2, 20, 2, 4, 4).items()}
    y, last = ssd_scan(**inputs)
    assert (y.dtype, last.dtype) == (torch.bfloat16, torch.float32)
    _, wanted = ssd_scan(**{name: tensor.double() for name, tensor in inputs.items()}, kernel="reference")
    torch.testing.assert_close(last.double(), wanted, rtol=0, atol=1e-4)


def test_bad_input_is_named():
    inputs = random_inputs(2, 3, 4, 2, 2)
    with pytest.raises(BadInput, match="either A"):
        ssd_scan(**{**inputs, "A": None})
    with pytest.raises(BadInput, match="3 groups for 4 heads"):
        ssd_scan(**{**inputs, "B": torch.zeros(2, 3, 3, 2)})
    with pytest.raises(BadInput, match="C has shape"):
        ssd_scan(**{**inputs, "C": torch.zeros(2, 3, 5)})
