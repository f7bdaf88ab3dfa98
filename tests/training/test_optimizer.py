"""AdamW on the matrix of all replicas against torch's own, one model at a time."""

from __future__ import annotations

import pytest
import torch

from statetrack.models import Replicas, model
from statetrack.training.optimizer import AdamW, FlatParameters


def torch_steps(single, ids, rates, weight_decay, clip):
    spared = single.no_decay()
    groups = [
        {"params": [p for name, p in single.named_parameters() if (name in spared) is kept], "weight_decay": decay}
        for kept, decay in ((False, weight_decay), (True, 0.0))
    ]
    optimizer, norms = torch.optim.AdamW(groups, lr=1.0), []
    for step, rate in enumerate(rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        single(ids[step]).square().mean().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(single.parameters(), clip or float("inf")))
        optimizer.step()
    return torch.stack(norms)


@pytest.mark.parametrize(
    ("name", "clip"), [("e88-gain-1l-small", 0.05), ("mamba2-4l", 0.05), ("mlp", 0.05), ("mlp", 0.0), ("gru", 0.05)]
)
def test_every_row_is_updated_as_torch_would_update_it_alone(name, clip):
    """And the norm that is told is that of its gradient before clipping."""
    singles = [model(name, inputs=3, outputs=3, seed=seed).double() for seed in (1, 2)]
    replicas = Replicas(singles)
    flat = FlatParameters(replicas)
    optimizer, norms = AdamW(flat, weight_decay=0.1, clip=clip), []
    ids = torch.randint(3, (5, 2, 4, 6), generator=torch.Generator().manual_seed(0))
    rates = [[0.01, 0.02], [0.01, 0.005], [0.0, 0.005], [0.003, 0.03], [0.01, 0.01]]
    for step, row_rates in enumerate(rates):
        replicas(ids[step]).square().mean((1, 2, 3)).sum().backward()
        norms.append(optimizer.step(torch.tensor(row_rates, dtype=torch.float64), torch.tensor([step + 1.0] * 2)))
    for row, single in enumerate(singles):
        expected = torch_steps(single, ids[:, row], [r[row] for r in rates], weight_decay=0.1, clip=clip)
        torch.testing.assert_close(torch.stack(norms)[:, row], expected, rtol=1e-9, atol=1e-11)
        got = dict(replicas.one(row).named_parameters())
        for key, expected in single.named_parameters():
            torch.testing.assert_close(got[key], expected, rtol=1e-9, atol=1e-11, msg=key)


def test_a_rate_of_zero_keeps_the_weights_and_a_bad_row_stays_alone():
    replicas = Replicas([model("mlp", inputs=2, outputs=2, seed=seed) for seed in (0, 1)])
    flat = FlatParameters(replicas)
    before = flat.values.clone()
    flat.gradients[0] = 1.0
    flat.gradients[1] = float("nan")
    AdamW(flat, weight_decay=0.1, clip=1.0).step(torch.tensor([0.0, 0.1]), torch.tensor([1.0, 1.0]))
    assert torch.equal(flat.values[0], before[0])
    assert not flat.values[1].isfinite().any()
    assert not flat.gradients[0].any()
