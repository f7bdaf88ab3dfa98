from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.ops import e88_scan
from tests.ops.e88_cases import counted_noise, largest_error, noise_of, random_inputs, run, same_bits

KERNELS = ["reference", "cpu"]
FORMS = ["tanh", "identity"]


def by_the_equations(q, k, v, decay, beta, state, f):
    """One head of one row, in plain matrix algebra, independent of the reference's einsums."""
    outputs = []
    for t in range(len(q)):
        z = decay[t] * state + torch.outer(k[t, 0], v[t, 0] - beta[t, 0] * (state.T @ k[t, 0]))
        for j in range(1, k.shape[1]):
            z = z + torch.outer(k[t, j], v[t, j] - beta[t, j] * (z.T @ k[t, j]))
        state = f(z)
        outputs.append(state.T @ q[t])
    return torch.stack(outputs), state


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("nonlinearity", "f"), [("tanh", torch.tanh), ("identity", lambda z: z)])
def test_every_head_follows_the_equations(kernel, nonlinearity, f):
    q, k, v, decay, beta, state = random_inputs(2, 5, 3, 4, 6, 2)
    out, last = e88_scan(q, k, v, decay, beta, state=state, nonlinearity=nonlinearity, kernel=kernel)
    for b in range(2):
        for h in range(3):
            wanted, end = by_the_equations(
                q[b, :, h], k[b, :, :, h], v[b, :, :, h], decay[b, :, h], beta[b, :, :, h], state[b, h], f
            )
            torch.testing.assert_close(out[b, :, h], wanted)
            torch.testing.assert_close(last[b, h], end)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("nonlinearity", FORMS)
@pytest.mark.parametrize("writes", [None, 1, 2, 3])
def test_gradcheck(kernel, nonlinearity, writes):
    inputs = random_inputs(2, 3, 2, 3, 2, writes, beta=(0.0, 2.0))

    def scan(q, k, v, decay, beta, state):
        return e88_scan(q, k, v, decay, beta, state=state, nonlinearity=nonlinearity, kernel=kernel)

    assert torch.autograd.gradcheck(scan, inputs)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(*(st.integers(1, high) for high in (3, 40, 5, 9, 9))),
    writes=st.integers(1, 3),
    nonlinearity=st.sampled_from(FORMS),
    seed=st.integers(0, 1000),
)
def test_the_cpu_kernel_is_the_reference(shape, writes, nonlinearity, seed):
    inputs = random_inputs(*shape, writes, seed=seed)
    error, where = largest_error(run(inputs, "cpu", nonlinearity), run(inputs, "reference", nonlinearity))
    assert error < 1e-12, where


@pytest.mark.parametrize("shape", [(40, 17, 4, 8, 8), (2, 33, 3, 32, 32)])
@pytest.mark.parametrize("nonlinearity", FORMS)
def test_float32_is_close_to_the_float64_reference(shape, nonlinearity):
    inputs = random_inputs(*shape)
    found = run([tensor.float() for tensor in inputs], "cpu", nonlinearity)
    error, where = largest_error(found, run(inputs, "reference", nonlinearity))
    assert error < 2e-6, where


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(*(st.integers(1, high) for high in (3, 40, 5, 9, 9))),
    writes=st.integers(1, 3),
    nonlinearity=st.sampled_from(FORMS),
    whole=st.booleans(),
    replicas=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
def test_the_cpu_kernel_is_the_reference_with_noise_and_without_q(shape, writes, nonlinearity, whole, replicas, seed):
    inputs = random_inputs(2 * shape[0], *shape[1:], writes, seed=seed)
    options = {"whole": whole, "noise": noise_of(replicas, 0.1) if replicas else None}
    found, wanted = (run(inputs, kernel, nonlinearity, **options) for kernel in ("cpu", "reference"))
    assert found.keys() == wanted.keys()
    error, where = largest_error(found, wanted)
    assert error < 1e-12, where


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_q_every_row_of_the_state_is_read(kernel):
    _, *inputs, state = random_inputs(2, 19, 3, 4, 5, 2)
    whole, _ = e88_scan(None, *inputs, state=state, kernel=kernel)
    for row in range(4):
        q = torch.nn.functional.one_hot(torch.tensor(row), 4).double().expand(2, 19, 3, 4)
        torch.testing.assert_close(whole[:, :, row], e88_scan(q, *inputs, state=state, kernel=kernel)[0])


@pytest.mark.parametrize("kernel", KERNELS)
def test_noise_comes_after_a_state_is_read_and_is_on_the_last_one(kernel):
    """By hand, one step at a time: a replica has the noise of its own key, and time goes on with the steps."""
    q, k, v, decay, beta, state = random_inputs(4, 5, 3, 4, 5)
    noise = noise_of(2)
    out, last = e88_scan(q, k, v, decay, beta, state=state, noise=noise, kernel=kernel)
    for t in range(5):
        now = (x[:, t : t + 1] for x in (q, k, v, decay, beta))
        wanted, state = e88_scan(*now, state=state, kernel="reference")
        torch.testing.assert_close(out[:, t : t + 1], wanted)
        state = noise.moved(state, t)
    torch.testing.assert_close(last, state)


@pytest.mark.parametrize("shape", [(1, 37, 1, 4, 4), (2, 20, 3, 8, 8), (2, 18, 3, 5, 7), (3, 5, 2, 9, 33)])
def test_noise_has_the_same_bits_in_both_passes_of_the_cpu_kernel(shape):
    found, wanted = (counted_noise(partial(e88_scan, kernel=kernel), *shape) for kernel in ("cpu", "reference"))
    same_bits(found, wanted)
    assert wanted["ddecay"].abs().sum() > 0


def test_noise_keeps_nothing_for_the_backward_pass():
    assert saved_bytes(256, noise_of(1)) == saved_bytes(256)


def test_noise_under_vmap_is_refused():
    inputs = [torch.stack([tensor.detach()] * 2) for tensor in random_inputs(2, 6, 2, 3, 4)[:5]]
    with pytest.raises(BadInput, match="call it without"):
        torch.func.vmap(lambda *x: e88_scan(*x, kernel="cpu", noise=noise_of(1)))(*inputs)


def test_with_gain_over_64_steps():
    inputs = random_inputs(4, 64, 2, 8, 8, decay=(0.0, 2.0), beta=(0.0, 4.0))
    error, where = largest_error(run(inputs, "cpu"), run(inputs, "reference"))
    assert error < 1e-9, where


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_precision_inputs_keep_a_float32_state(kernel):
    inputs = random_inputs(2, 20, 2, 8, 8)
    rounded = [tensor.bfloat16() for tensor in inputs]
    out, last = e88_scan(*rounded[:5], state=rounded[5], kernel=kernel)
    assert (out.dtype, last.dtype) == (torch.bfloat16, torch.float32)
    wanted = run([tensor.double() for tensor in rounded], "reference")
    torch.testing.assert_close(last.double(), wanted["last"], rtol=0, atol=1e-5)
    error, where = largest_error(run(rounded, kernel), wanted)
    assert error < 1e-2, where


def test_autocast_leaves_the_state_alone():
    inputs = [tensor.float() for tensor in random_inputs(2, 9, 2, 4, 4)[:5]]
    plain = e88_scan(*inputs, kernel="reference")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = e88_scan(*inputs, kernel="reference")
    assert all(torch.equal(*pair) for pair in zip(plain, under))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cut", [1, 7, 16, 20])
def test_two_calls_are_one(kernel, cut):
    q, k, v, decay, beta, _ = random_inputs(2, 21, 3, 4, 5, 2)
    whole, end = e88_scan(q, k, v, decay, beta, kernel=kernel)
    first, middle = e88_scan(*(x[:, :cut] for x in (q, k, v, decay, beta)), kernel=kernel)
    second, last = e88_scan(*(x[:, cut:] for x in (q, k, v, decay, beta)), state=middle, kernel=kernel)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, end)
    (second.sum() + first.sum()).backward()
    split, k.grad = k.grad, None
    whole.sum().backward()
    torch.testing.assert_close(split, k.grad)


@pytest.mark.parametrize("kernel", KERNELS)
def test_huge_inputs_saturate_and_nan_stays_nan(kernel):
    inputs = [1e3 * tensor.float() for tensor in random_inputs(2, 40, 2, 4, 4)]
    found = run(inputs, kernel)
    assert all(tensor.isfinite().all() for tensor in found.values())
    assert found["last"].abs().max() <= 1
    inputs[2][0, 3] = torch.nan
    assert run(inputs, kernel)["out"][0, 3:].isnan().all()


def saved_bytes(steps: int, noise=None) -> int:
    """What autograd keeps besides the inputs."""
    inputs = [tensor.float() for tensor in random_inputs(1, steps, 2, 16, 16)]
    given = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    total = 0

    def count(tensor):
        nonlocal total
        total += 0 if tensor.untyped_storage().data_ptr() in given else tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        e88_scan(*[tensor.requires_grad_() for tensor in inputs[:5]], kernel="cpu", noise=noise)
    return total


def test_kept_states_grow_with_t_over_16():
    state = 2 * 16 * 16 * 4
    assert [saved_bytes(steps) for steps in (64, 256, 1024)] == [(steps // 16 + 1) * state for steps in (64, 256, 1024)]


def test_vmap_folds_replicas_into_the_batch():
    inputs = [random_inputs(2, 6, 2, 3, 4, seed=seed)[:5] for seed in range(3)]
    stacked = [torch.stack([tensor.detach() for tensor in same]).requires_grad_() for same in zip(*inputs)]
    out, last = torch.func.vmap(lambda *x: e88_scan(*x, kernel="cpu"))(*stacked)
    (out.sum() + last.sum()).backward()
    for replica, given_inputs in enumerate(inputs):
        wanted, end = e88_scan(*given_inputs, kernel="reference")
        torch.testing.assert_close(out[replica], wanted)
        (wanted.sum() + end.sum()).backward()
        for tensor, single in zip(stacked, given_inputs):
            torch.testing.assert_close(tensor.grad[replica], single.grad)


def test_threads_give_the_same_bits():
    inputs = [tensor.float() for tensor in random_inputs(40, 20, 4, 8, 8)]
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 2):
            torch.set_num_threads(threads)
            found.append(run(inputs, "cpu"))
    finally:
        torch.set_num_threads(before)
    assert largest_error(found[1], found[0])[0] == 0
    assert largest_error(found[2], found[0])[0] == 0


def test_environment_chooses(monkeypatch):
    inputs = random_inputs(1, 2, 1, 2, 2)
    monkeypatch.setenv("STATETRACK_KERNEL", "reference")
    assert "E88OnCPU" not in e88_scan(*inputs[:5])[0].grad_fn.name()
    monkeypatch.delenv("STATETRACK_KERNEL")
    assert "E88OnCPU" in e88_scan(*inputs[:5])[0].grad_fn.name()
    for on_gpu in ("triton", "cuda"):  # which tensors on a CPU are not for
        monkeypatch.setenv("STATETRACK_KERNEL", on_gpu)
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        assert "E88OnCPU" in e88_scan(*inputs[:5])[0].grad_fn.name()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decay": (2, 3, 5)}, r"decay has shape \(2, 3, 5\); expected \(B, T, H\) = \(2, 3, 4\)"),
        ({"k": (2, 3, 4, 7)}, r"k has shape .* expected \(B, T, R, H, N\)"),
        ({"q": (2, 0, 4, 8)}, "at least one step"),
        ({"v": (2, 3, 1, 4, 8)}, "dimensions"),
    ],
)
def test_bad_shapes_are_named(change, message):
    shapes = {"q": (2, 3, 4, 8), "k": (2, 3, 4, 8), "v": (2, 3, 4, 8), "decay": (2, 3, 4), "beta": (2, 3, 4)} | change
    with pytest.raises(BadInput, match=message):
        e88_scan(**{name: torch.zeros(shape) for name, shape in shapes.items()})


def test_bad_names_are_named():
    inputs = random_inputs(1, 2, 1, 2, 2)
    with pytest.raises(BadInput, match="unknown nonlinearity 'tahn'; did you mean tanh"):
        e88_scan(*inputs[:5], nonlinearity="tahn")
    with pytest.raises(BadInput, match="unknown kernel"):
        e88_scan(*inputs[:5], kernel="fortran")
