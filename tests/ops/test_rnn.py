"""The equations of the classic cells against torch's own, their noise, and what is refused."""

import pytest
import torch
from torch import nn

from statetrack.errors import BadInput
from statetrack.ops import rnn_scan
from statetrack.ops.noise import normals
from tests.ops.rnn_cases import CELLS, noise_on, random_inputs, run

TORCH = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@pytest.mark.parametrize("cell", CELLS)
def test_the_reference_is_torchs_cell(cell: str) -> None:
    """Outputs, last state and the gradients of what went in."""
    torch.manual_seed(0)
    own = TORCH[cell](6, 5, batch_first=True).double()
    x = torch.randn(3, 7, 6, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(3, 5, dtype=torch.float64) for _ in range(2 if cell == "lstm" else 1))
    before = tuple(part.unsqueeze(0) for part in state)
    wanted, last = own(x, before if cell == "lstm" else before[0])
    inside = own.bias_hh_l0.clone()
    if cell == "gru":
        inside[10:] = 0
    products = x @ own.weight_ih_l0.T + own.bias_ih_l0 + inside
    bias = own.bias_hh_l0[10:] if cell == "gru" else None
    found, after = rnn_scan(cell, products, own.weight_hh_l0, state, bias=bias)
    torch.testing.assert_close(found, wanted)
    for mine, theirs in zip(after, last if cell == "lstm" else (last,)):
        torch.testing.assert_close(mine, theirs[0])
    weigh = torch.randn_like(wanted)
    leaves = [x, *own.parameters()]
    for mine, theirs in zip(torch.autograd.grad(found, leaves, weigh), torch.autograd.grad(wanted, leaves, weigh)):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("cell", CELLS)
def test_networks_beside_one_another_are_those_alone(cell: str) -> None:
    inputs = random_inputs(cell, 3, 4, 5, replicas=2)
    together = run(cell, inputs)
    for replica in range(2):
        rows = slice(3 * replica, 3 * replica + 3)
        own = {name: t[replica] if name in ("weight", "bias") else t[rows] for name, t in inputs.items()}
        out, *_ = run(cell, own).values()
        torch.testing.assert_close(out, together["out"][rows])


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_noise_moves_one_layer_of_every_tensor(cell: str, gaussian: bool) -> None:
    """Step by step by hand, for the second of three layers of two networks with two rows each."""
    inputs = random_inputs(cell, 2, 4, 5, replicas=2)
    state = tuple(inputs[name] for name in ("h", "c") if name in inputs)
    noise = noise_on("cpu", 2)._replace(gaussian=gaussian)
    given = {"bias": inputs.get("bias"), "layer": 1, "layers": 3}
    out, last = rnn_scan(cell, inputs["x"], inputs["weight"], state, noise=noise, **given)
    for time in range(4):
        step, state = rnn_scan(cell, inputs["x"][:, time : time + 1], inputs["weight"], state, **given)
        torch.testing.assert_close(out[:, time], step[:, 0])
        whole = [noise.of_tensor(number).moved(torch.zeros(4, 3, 5), time)[:, 1] for number in range(len(state))]
        assert all(draw.abs().min() > 0 for draw in whole)
        state = tuple(part + draw for part, draw in zip(state, whole))
    for mine, wanted in zip(last, state):
        torch.testing.assert_close(mine, wanted)
    if gaussian:
        first = normals(noise.at(3), 30).view(4, 3, 5)[:, 1]
        torch.testing.assert_close(0.25 * first, whole[0], check_dtype=False)


@pytest.mark.parametrize("cell", CELLS)
def test_a_scan_in_pieces_is_the_whole(cell: str) -> None:
    inputs = random_inputs(cell, 3, 9, 4)
    given = {"bias": inputs.get("bias")}
    state = tuple(inputs[name] for name in ("h", "c") if name in inputs)
    whole, last = rnn_scan(cell, inputs["x"], inputs["weight"], state, **given)
    parts = []
    for piece in inputs["x"].split([4, 1, 4], dim=1):
        out, state = rnn_scan(cell, piece, inputs["weight"], state, **given)
        parts.append(out)
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert all(torch.equal(a, b) for a, b in zip(state, last))


def test_half_precision_and_autocast_change_no_matmul() -> None:
    inputs = random_inputs("gru", 2, 3, 4)
    half = {name: tensor.bfloat16() for name, tensor in inputs.items()}
    out, (last,) = rnn_scan("gru", half["x"], half["weight"], (half["h"],), bias=half["bias"])
    assert (out.dtype, last.dtype) == (torch.bfloat16, torch.float32)
    single = {name: tensor.float() for name, tensor in half.items()}
    given = ("gru", single["x"], single["weight"], (single["h"],))
    wanted, _ = rnn_scan(*given, bias=single["bias"])
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = rnn_scan(*given, bias=single["bias"])
    assert torch.equal(found, wanted)
    assert torch.equal(out, wanted.bfloat16())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell": "elman"}, "cell"),
        ({"x": torch.zeros(4, 0, 15)}, r"at least one step"),
        ({"x": torch.zeros(4, 3, 14)}, r"expected \(B, T, G H\) = \(4, 3, 15\)"),
        ({"x": torch.zeros(3, 3, 15)}, "the 3 rows of x are not those of 2 networks"),
        ({"weight": torch.zeros(15)}, r"expected \(G H, H\) or \(R, G H, H\)"),
        ({"weight": torch.zeros(2, 10, 5)}, r"expected \(R, G H, H\) = \(2, 15, 5\)"),
        ({"state": (torch.zeros(4, 6),)}, r"expected \(B, H\) = \(4, 5\)"),
        ({"state": (torch.zeros(4, 5), torch.zeros(4, 5))}, "a state of 2 tensors; expected 1"),
        ({"bias": torch.zeros(2, 15)}, r"expected \(R, H\) = \(2, 5\)"),
        ({"layer": 1}, "layer 1 is none of 1"),
        ({"kernel": "cuda"}, "kernel"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    inputs = {name: tensor.float() for name, tensor in random_inputs("gru", 2, 3, 5, replicas=2).items()}
    given = {"cell": "gru", "x": inputs["x"], "weight": inputs["weight"], "state": (inputs["h"],)} | change
    with pytest.raises(BadInput, match=message):
        rnn_scan(**given)


def test_a_bias_within_the_step_is_a_grus() -> None:
    inputs = random_inputs("tanh", 2, 3, 5)
    with pytest.raises(BadInput, match="is a GRU's"):
        rnn_scan("tanh", inputs["x"], inputs["weight"], (inputs["h"],), bias=torch.zeros(5))
