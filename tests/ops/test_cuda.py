"""The CUDA C++ kernel against the float64 reference, behind e88_scan and behind ssd_scan."""

import pytest
import torch

from statetrack.ops import e88_scan, ssd_scan
from tests.ops.e88_cases import counted_noise, differences, largest_error, noise_of, random_inputs, run, same_bits

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def compare(inputs, nonlinearity="tanh", dtype=torch.float32, **options):
    rounded = [tensor.detach().to("cuda", dtype) for tensor in inputs]
    wanted = run([tensor.double() for tensor in rounded], "reference", nonlinearity)
    return largest_error(run(rounded, "cuda", nonlinearity, **options), wanted)


@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
@pytest.mark.parametrize("beta", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("steps", [1, 17, 1000])
@pytest.mark.parametrize(("n", "width"), [(8, 8), (16, 8), (8, 32), (32, 16), (32, 32), (12, 20)])
def test_is_the_reference(n, width, steps, beta, nonlinearity):
    error, where = compare(random_inputs(3, steps, 3, n, width, beta=beta), nonlinearity)
    assert error < 1e-4, where


@pytest.mark.parametrize("steps", [1, 17, 1000])
def test_bfloat16_inputs(steps):
    error, where = compare(random_inputs(3, steps, 3, 32, 32), dtype=torch.bfloat16)
    assert error < 2e-2, where


@pytest.mark.parametrize("steps", [1, 17, 1000])
def test_the_approximate_tanh(steps):
    error, where = compare(random_inputs(3, steps, 3, 32, 32), tanh="approx")
    assert error < 2e-3, where


def test_with_gain():
    error, where = compare(random_inputs(4, 64, 2, 32, 32, decay=(0.0, 2.0), beta=(0.0, 4.0)))
    assert error < 1e-4, where


def test_same_bits_twice_and_no_nan_from_huge_inputs():
    inputs = [1e3 * tensor.detach().to("cuda", torch.float32) for tensor in random_inputs(4, 100, 3, 32, 32)]
    once, again = run(inputs, "cuda"), run(inputs, "cuda")
    assert all(tensor.isfinite().all() for tensor in once.values())
    assert largest_error(once, again)[0] == 0


@pytest.mark.parametrize("shape", [(2, 100, 3, 8, 8), (1, 51, 3, 32, 32), (2, 37, 1, 12, 20)])
def test_noise_has_the_same_bits_in_both_passes(shape):
    def scan(*inputs, noise, state, **options):
        *inputs, state = (x.cuda() for x in (*inputs, state))
        noise = noise._replace(keys=noise.keys.cuda())
        return tuple(x.cpu() for x in e88_scan(*inputs, state=state, noise=noise, kernel="cuda", **options))

    same_bits(counted_noise(scan, *shape), counted_noise(lambda *x, **y: e88_scan(*x, **y, kernel="reference"), *shape))


def spoil():
    """Leave what is not a number where the next results will lie, so that what a kernel does not write shows."""
    _ = [torch.full((1 << 22,), torch.nan, device="cuda") for _ in range(8)]
    _ = [torch.full((1 << 12,), torch.nan, device="cuda") for _ in range(512)]


def several(inputs, nonlinearity="tanh", limit=1e-4, dtype=torch.float32, noise=None, **options):
    """Compare a scan with several writes per step; q, k and v in this precision, the rest in float32."""
    given = [x.detach().to("cuda", dtype if i < 3 else torch.float32) for i, x in enumerate(inputs)]
    if noise is not None:
        noise = noise._replace(keys=noise.keys.cuda())
    whole = options.get("whole", False)
    wanted = run([x.double() for x in given], "reference", nonlinearity, whole=whole, noise=noise)
    spoil()
    found = run(given, "cuda", nonlinearity, noise=noise, **options)
    assert not (text := differences(found, wanted, limit)), f"\n{text}"


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("steps", [1, 17, 130])
@pytest.mark.parametrize(
    ("n", "width", "writes", "nonlinearity"),
    [
        (8, 8, 2, "tanh"), (8, 8, 3, "identity"), (8, 8, 4, "tanh"), (8, 8, 4, "identity"), (8, 8, 8, "tanh"),
        (16, 16, 2, "identity"), (16, 16, 4, "tanh"), (16, 8, 3, "tanh"), (8, 32, 4, "tanh"), (16, 32, 4, "identity"),
        (5, 11, 2, "tanh"), (8, 16, 3, "tanh"),
    ],
)  # fmt: skip
def test_several_writes_are_the_reference(n, width, writes, nonlinearity, steps, whole):
    several(random_inputs(3, steps, 3, n, width, writes), nonlinearity, whole=whole)


@pytest.mark.parametrize(("n", "width"), [(8, 8), (16, 32)])
def test_one_write_read_whole_is_the_reference(n, width):
    several(random_inputs(3, 37, 3, n, width, 1), whole=True)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("writes", [2, 4])
def test_many_rows_of_1000_steps_with_several_writes(writes, whole):
    several(random_inputs(64, 1000, 4, 8, 8, writes), whole=whole)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("n", "width"), [(8, 8), (16, 16), (12, 20)])
def test_several_writes_of_bfloat16(n, width, whole):
    several(random_inputs(3, 37, 3, n, width, 3), limit=2e-2, dtype=torch.bfloat16, whole=whole)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shape", [(4, 100, 3, 8, 8, 2), (2, 37, 2, 5, 7, 4), (2, 50, 1, 16, 32, 3)])
def test_several_writes_with_noise_of_two_replicas(shape, whole):
    several(random_inputs(*shape), noise=noise_of(2), whole=whole)


@pytest.mark.parametrize("scale", [8.0, 40.0])
def test_several_writes_that_saturate(scale):
    q, k, v, decay, beta, state = random_inputs(3, 60, 3, 8, 8, 2)
    several([q, k, scale * v, decay, beta, 9 * state])


def test_several_writes_with_the_approximate_tanh():
    several(random_inputs(3, 60, 3, 8, 8, 3), limit=2e-3, tanh="approx")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_several_writes_give_the_same_bits_twice(scale, whole):
    """With many blocks at work. Where they differ, a barrier is missing or a number is not written."""
    inputs = [scale * x.detach().to("cuda", torch.float32) for x in random_inputs(256, 100, 4, 8, 8, 4)]
    once = run(inputs, "cuda", whole=whole)
    spoil()
    again = run(inputs, "cuda", whole=whole)
    assert all(tensor.isfinite().all() for tensor in once.values())
    assert not (text := differences(again, once, 0)), f"\n{text}"


@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
def test_several_writes_as_triton_has_them(nonlinearity):
    """Large sizes, where the reference takes long: float32 against float32."""
    given = [x.detach().to("cuda", torch.float32) for x in random_inputs(128, 512, 4, 16, 16, 4)]
    wanted = run(given, "triton", nonlinearity)
    assert not (text := differences(run(given, "cuda", nonlinearity), wanted, 2e-4)), f"\n{text}"


@pytest.mark.parametrize(("heads", "p", "n", "groups"), [(8, 16, 16, 1), (2, 64, 16, 1), (4, 12, 10, 2)])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("steps", [1, 17, 300])
def test_ssd(heads, p, n, groups, signed, steps):
    torch.manual_seed(0)
    inputs = {
        "x": torch.randn(3, steps, heads, p), "dt": torch.rand(3, steps, heads), "A": -torch.rand(heads),
        "B": torch.randn(3, steps, groups, n), "C": torch.randn(3, steps, groups, n),
        "D": torch.randn(heads), "state": torch.randn(3, heads, p, n),
    }  # fmt: skip
    if signed:
        inputs["decay"] = 2 * torch.rand(3, steps, heads) - 1
        del inputs["A"]

    def results(kernel, dtype):
        leaves = {name: tensor.to("cuda", dtype).requires_grad_() for name, tensor in inputs.items()}
        y, last = ssd_scan(**{"A": None, **leaves}, kernel=kernel)
        weights = [
            torch.linspace(-1, 1, tensor.numel(), device="cuda").view_as(tensor).to(tensor) for tensor in (y, last)
        ]
        return [y, last, *torch.autograd.grad([y, last], list(leaves.values()), weights)]

    for found, wanted in zip(results("cuda", torch.float32), results("reference", torch.float64)):
        assert (found.double() - wanted).norm() / wanted.norm() < 1e-5
