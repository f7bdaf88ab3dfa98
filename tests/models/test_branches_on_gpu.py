"""Replicas that do not fold, each on a stream of its own, against each of them alone: plain and recorded as a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from statetrack.models import Replicas, SequenceModel
from statetrack.models.custom import as_model
from statetrack.models.rnn import ClassicRNN
from statetrack.ops import Noise
from statetrack.training.batches import ReplicaRows
from statetrack.training.loop import Loss, batch_loss, plain_loss
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.step import Stepper
from tests.models.small_models import small

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

DEVICE = torch.device("cuda", 0)
R, B, T, TOKENS = 5, 32, 24, 2
CELLS = ("gru", "lstm")


class Own(nn.Module):
    """A network of somebody's: a mean over what came so far."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, 16), nn.Linear(16, TOKENS)

    def forward(self, ids: Tensor) -> Tensor:
        count = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        return self.head(torch.tanh(self.embedding(ids).cumsum(1) / count[:, None]))


@pytest.fixture(autouse=True)
def in_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a scan of all networks would be quicker."""
    monkeypatch.setattr(ClassicRNN, "folds", lambda *_: False)


@pytest.fixture(autouse=True)
def float32() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def singles(name: str) -> list[SequenceModel]:
    made = []
    for seed in range(R):
        torch.manual_seed(seed)
        if name == "own":
            made.append(as_model(Own(), "Own", TOKENS, TOKENS))
        else:
            made.append(small(name, seed=seed, hidden=128, layers=2, learned_start=True, inputs=TOKENS, outputs=TOKENS))
    return made


def ids_of(seed: int, batch: int = B, steps: int = T) -> Tensor:
    return torch.randint(TOKENS, (R, batch, steps), generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def rows_of(ids: Tensor) -> ReplicaRows:
    return ReplicaRows(ids, 1 - ids, torch.ones_like(ids, dtype=torch.bool))


def noise_of(keys: Tensor) -> Noise:
    return Noise(keys, 0.2)


def noisy_loss(replicas: Replicas, rows: ReplicaRows, steps: Tensor) -> Tensor:
    """As in training, with the keys instead of the number of the update."""
    return batch_loss(replicas.noisy(rows.inputs, noise_of(steps)), rows)


def gradients(models: list[SequenceModel], loss: Loss) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """What gives the losses (R) and the gradients (R, P) of some ids."""
    replicas = Replicas(models, DEVICE)
    assert not replicas.folded
    flat = FlatParameters(replicas)
    stepper = Stepper(replicas, AdamW(flat, 0.01, 1.0), "float32", loss)

    def of(ids: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        flat.gradients.zero_()
        return stepper.gradient(rows_of(ids), keys), flat.gradients

    return of


def alone(models: list[SequenceModel], loss: Loss, ids: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    found = [
        gradients([single], loss)(own[None], key) for single, own, key in zip(models, ids, keys.split(1), strict=True)
    ]
    losses, matrices = zip(*found)
    return torch.cat(losses), torch.cat(matrices)


def same(found: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor], when: str) -> None:
    torch.cuda.synchronize()
    for what, mine, theirs in zip(("loss", "gradient"), found, wanted):
        for row in range(R):
            place = f"{what} of replica {row}, {when}"
            torch.testing.assert_close(
                mine[row], theirs[row], rtol=1e-4, atol=1e-5, msg=lambda said, place=place: f"{place}: {said}"
            )


CASES = [("own", plain_loss), *((name, loss) for name in CELLS for loss in (plain_loss, noisy_loss))]


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_gradients_are_those_of_each_alone(name: str, loss: Loss) -> None:
    """The first pass of a shape goes one after another, those that follow side by side."""
    models = singles(name)
    together = gradients(models, loss)
    for number in range(4):
        ids, keys = ids_of(number), torch.arange(R, device=DEVICE) + 100 * number
        same(together(ids, keys), alone(models, loss, ids, keys), f"pass {number}")


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_recorded_and_replayed_on_other_inputs(name: str, loss: Loss) -> None:
    models = singles(name)
    together = gradients(models, loss)
    ids, keys = ids_of(0), torch.arange(R, device=DEVICE)
    for _ in range(3):
        together(ids, keys)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = together(ids, keys)
    for number in range(1, 6):
        ids.copy_(ids_of(number))
        keys.add_(7)
        junk = torch.full((1 << 20,), float("nan"), device=DEVICE)  # what lies in memory that was given back
        del junk
        graph.replay()
        same(found, alone(models, loss, ids, keys), f"replay {number}")


@pytest.mark.parametrize("name", CELLS)
def test_logits_in_pieces_are_those_of_each_alone(name: str) -> None:
    models = singles(name)
    together, ids = Replicas(models, DEVICE), ids_of(0)
    with torch.no_grad():
        for attempt in range(3):
            state, parts = together.initial_state(B, DEVICE), []
            for piece in ids.split(6, dim=2):
                logits, state = together.forward_from(piece, state)
                parts.append(logits)
            found = torch.cat(parts, dim=2)
            for row in range(R):
                wanted = together.one(row)(ids[row])
                torch.testing.assert_close(
                    found[row], wanted, rtol=1e-4, atol=1e-5,
                    msg=lambda said, row=row, attempt=attempt: f"replica {row}, attempt {attempt}: {said}",
                )  # fmt: skip


def test_memory_is_not_given_away_too_early() -> None:
    """Passes of many sizes, with memory asked for and given back between them, without waiting for any."""
    models = singles("gru")
    together, each = Replicas(models, DEVICE), [single.to(DEVICE) for single in models]
    sizes = [(1 + 13 * n % 64, 1 + 7 * n % 40) for n in range(12)] * 4
    found = []
    with torch.no_grad():
        for number, size in enumerate(sizes):
            found.append(together(ids_of(number, *size)).clone())
            junk = [torch.full((1 << power,), float("nan"), device=DEVICE) for power in range(8, 20)]
            del junk
        for number, (size, logits) in enumerate(zip(sizes, found)):
            wanted = torch.stack([single(own) for single, own in zip(each, ids_of(number, *size))])
            torch.testing.assert_close(
                logits, wanted, rtol=1e-4, atol=1e-5, msg=lambda said, number=number: f"pass {number}: {said}"
            )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["tanh-rnn", *CELLS])
def test_one_network_is_that_on_a_cpu_and_has_a_gradient_in_evaluation_mode(name: str, precision: str) -> None:
    single = small(name, hidden=128, layers=2, inputs=TOKENS, outputs=TOKENS).eval()
    ids = ids_of(0)[0].cpu()
    found = []
    for device in ("cpu", "cuda"):
        moved = single.to(device)
        moved.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            logits = moved(ids.to(device))
        logits.float().square().sum().backward()
        found.append([logits.float(), *(p.grad for p in moved.parameters())])
    close = {"rtol": 1e-3, "atol": 1e-4} if precision == "float32" else {"rtol": 0.1, "atol": 0.1}
    for name_, mine, theirs in zip(["logits", *dict(single.named_parameters())], found[1], found[0]):
        scale = theirs.abs().max().cpu()
        torch.testing.assert_close(
            mine.cpu() / scale, theirs.cpu() / scale, **close, msg=lambda said, at=name_: f"{at}: {said}"
        )
