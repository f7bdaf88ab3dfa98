"""Models against other people's implementations, with copied weights: outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from statetrack.models import model
from statetrack.models.mamba2 import Mamba2Mixer


def gradients_agree(ours: nn.Parameter, theirs: nn.Parameter, tolerance: float = 1e-5) -> bool:
    assert theirs.grad is not None
    scale = theirs.grad.abs().max().clamp(min=1)
    return bool((ours.grad - theirs.grad.reshape(ours.shape)).abs().max() / scale < tolerance)


@pytest.mark.parametrize("steps", [1, 5, 32])
def test_mamba2_equals_transformers(steps: int) -> None:
    pytest.importorskip("transformers")
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer as Theirs

    config = Mamba2Config(
        hidden_size=64,
        state_size=16,
        head_dim=16,
        num_heads=8,
        expand=2,
        n_groups=1,
        conv_kernel=4,
        num_hidden_layers=1,
        chunk_size=8,
        use_bias=False,
        use_conv_bias=True,
        layer_norm_epsilon=1e-5,
    )
    torch.manual_seed(0)
    theirs, ours = Theirs(config, layer_idx=0), Mamba2Mixer(64, 16, 16, 2, 4, negative=False)
    pairs = [(getattr(ours, name), getattr(theirs, name)) for name in ("A_log", "dt_bias", "D")]
    pairs += [(getattr(ours, name).weight, getattr(theirs, name).weight) for name in ("in_proj", "out_proj", "norm")]
    pairs += [(ours.conv.weight, theirs.conv1d.weight), (ours.conv.bias, theirs.conv1d.bias)]
    assert {id(a) for a, _ in pairs} == {id(p) for p in ours.parameters()}
    with torch.no_grad():
        theirs.norm.weight += 0.1 * torch.randn(128)
        theirs.D += 0.1 * torch.randn(8)
        for a, b in pairs:
            a.copy_(b.reshape(a.shape))
    x, weights = torch.randn(3, steps, 64), torch.randn(3, steps, 64)
    x_ours, x_theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    zero = tuple(torch.zeros(3, *shape) for shape in ours.state_shapes())
    y_ours, y_theirs = ours(x_ours, zero)[0], theirs(x_theirs)
    assert (y_ours - y_theirs).abs().max() < 1e-5
    (y_ours * weights).sum().backward()
    (y_theirs * weights).sum().backward()
    assert (x_ours.grad - x_theirs.grad).abs().max() < 1e-5
    assert all(gradients_agree(a, b) for a, b in pairs)


class Reference(nn.Module):
    """An embedding, torch's own recurrent module and a linear layer."""

    def __init__(self, kind: type[nn.Module], layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 6)
        self.rnn = kind(6, 8, layers, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embedding(ids))[0])


@pytest.mark.parametrize(("name", "kind"), [("lstm", nn.LSTM), ("gru", nn.GRU), ("tanh-rnn", nn.RNN)])
@pytest.mark.parametrize("layers", [1, 2])
def test_classic_rnns_equal_torch(name: str, kind: type[nn.Module], layers: int) -> None:
    theirs = Reference(kind, layers)
    ours = model(name, inputs=5, outputs=3, hidden=8, dim=6, layers=layers)
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(5, (3, 16))
    assert torch.allclose(ours(ids), theirs(ids), atol=1e-6)
    state, steps = ours.initial_state(3), []
    for token in ids.unbind(1):
        logits, state = ours.step(token, state)
        steps.append(logits)
    assert torch.allclose(torch.stack(steps, 1), theirs(ids), atol=1e-6)
    ours(ids).square().sum().backward()
    theirs(ids).square().sum().backward()
    grads = dict(theirs.named_parameters())
    assert all(gradients_agree(p, grads[n]) for n, p in ours.named_parameters())


def test_rotary_positions_depend_on_the_distance_alone() -> None:
    """q turned to position p times k turned to position p - d is the same for every p."""
    from statetrack.models.transformer import rotate

    q, k = torch.randn(1, 1, 1, 8, dtype=torch.float64), torch.randn(1, 1, 1, 8, dtype=torch.float64)
    products = [float((rotate(q, place + 3) * rotate(k, place)).sum()) for place in (0, 1, 50)]
    assert products == pytest.approx([products[0]] * 3, rel=1e-4)
    assert float((rotate(q, 4) * rotate(k, 0)).sum()) != pytest.approx(products[0], rel=1e-3)


@pytest.mark.parametrize("name", ["transformer", "transformer-rope"])
def test_attention_is_softmax_over_the_past(name: str) -> None:
    """One layer against attention written out, position by position."""
    from statetrack.models.transformer import rotate

    subject = model(name, inputs=4, outputs=3, seed=0, dim=8, heads=2, layers=1, positions=16).double()
    ids = torch.randint(4, (2, 6), generator=torch.Generator().manual_seed(0))
    x = subject.embedding(ids)
    if subject.place is not None:
        x = x + subject.place[:6]
    q, k, v = subject.mixers[0].project(subject.norms[0](x)).chunk(3, dim=-1)
    y = torch.zeros_like(x)
    for head in (slice(0, 4), slice(4, 8)):
        qh, kh, vh = q[..., head], k[..., head], v[..., head]
        if name == "transformer-rope":
            qh, kh = rotate(qh, 0), rotate(kh, 0)
        for t in range(6):
            weights = torch.softmax((kh[:, : t + 1] @ qh[:, t, :, None]).squeeze(-1) / 2.0, dim=-1)
            y[:, t, head] = (weights.unsqueeze(-1) * vh[:, : t + 1]).sum(1)
    x = x + subject.mixers[0].out(y)
    x = x + subject.mixers[1](subject.norms[1](x), ())[0]
    assert torch.allclose(subject(ids), subject.head(subject.final_norm(x)), atol=1e-10)
