"""The linear recurrence in pieces at the sizes of training, on a card, against the float64 reference."""

import pytest
import torch

from statetrack.models import Replicas, model
from statetrack.ops import Noise, linear_scan
from statetrack.training.noise import step_by_step

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def results(inputs, kernel):
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    h, last = linear_scan(*leaves, kernel=kernel)
    weights = torch.randn(h.shape, generator=torch.Generator().manual_seed(1)).to(h)
    gradients = torch.autograd.grad((h * weights).sum() + last.sum(), leaves)
    return dict(zip(("h", "last", "da", "db", "dstate"), (h.detach(), last.detach(), *gradients)))


@pytest.mark.parametrize(
    ("rows", "steps", "n"), [(64, 1024, 128), (128, 64, 128), (3, 700, 20), (5, 31, 16), (1, 2500, 8)]
)
def test_is_the_reference(rows, steps, n):
    """A turns and keeps what comes: every step counts to the end."""
    generator = torch.Generator().manual_seed(0)
    a = torch.linalg.qr(torch.randn(n, n, generator=generator).double())[0]
    inputs = [a, *(torch.randn(shape, generator=generator).double() for shape in ((rows, steps, n), (rows, n)))]
    found = results([tensor.to("cuda", torch.float32) for tensor in inputs], None)
    wanted = results([tensor.float().double().cuda() for tensor in inputs], "reference")
    for name, tensor in found.items():
        error = float((tensor.double() - wanted[name]).abs().max() / wanted[name].abs().max())
        assert error < 1e-4, f"{name}: {error}"


@pytest.mark.parametrize("steps", [7, 100])
def test_noise_inside_is_the_noise_put_on_step_by_step(steps):
    replicas = Replicas([model("linear-rnn", inputs=2, outputs=2, hidden=32, seed=seed) for seed in range(3)], "cuda")
    assert replicas.folded
    assert replicas.takes_noise
    ids = torch.randint(2, (3, 10, steps), generator=torch.Generator().manual_seed(0)).cuda()
    noise = Noise(torch.tensor([11, 12, 13], device="cuda"), 0.25)
    found = []
    for logits in (replicas.noisy, lambda *given: step_by_step(replicas, *given)):
        out = logits(ids, noise)
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
        found.append([out.detach(), *torch.autograd.grad(out, list(replicas.parameters()), weights)])
    names = ("logits", *(name for name, _ in replicas.named_parameters()))
    for name, mine, wanted in zip(names, *found):
        error = float((mine - wanted).abs().max() / wanted.abs().max())
        assert error < 1e-3, f"{name}: {error}"
