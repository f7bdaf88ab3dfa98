"""Models that draw by chance or keep statistics in training: dropout, batch norm. What they give can be repeated."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.models import Replicas, check
from statetrack.models.chance import seed_of, seeded
from statetrack.models.custom import as_model
from statetrack.models.replicas import Turn, kept_buffers
from statetrack.results import Store
from statetrack.training import loop, train, train_many
from statetrack.training.weights import load

LENGTH = 8
SETTINGS: dict[str, Any] = {
    "check_every": 4, "most_checks": 2, "polish": 8, "batch": 8, "warmup": 0, "validation_rows": 16, "first_length": 4,
}  # fmt: skip
FILE = """
import torch
import torch.nn.functional as F
from torch import nn

class Own(nn.Module):
    def __init__(self, inputs, outputs, width=8):
        super().__init__()
        self.table, self.head = nn.Embedding(inputs, width), nn.Linear(width, outputs)
        self.drop, self.norm = nn.Dropout(0.3), nn.BatchNorm1d(width)

    def forward(self, ids):
        return self.head(self.change(torch.tanh(self.table(ids).cumsum(1))))

class Dropping(Own):
    def change(self, x):
        return F.dropout(self.drop(x), 0.1, self.training)

class Normed(Own):
    def change(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)

class Both(Own):
    def change(self, x):
        return self.drop(self.norm(x.transpose(1, 2)).transpose(1, 2))
"""
KINDS = ["Dropping", "Normed", "Both"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path / "own.py"


def weights(result: Any) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in result.model.state_dict().items()}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


class Cut(Exception):
    pass


@pytest.mark.parametrize(("kind", "cut_at"), list(zip(KINDS, (3, 4, 2))))
def test_a_run_that_was_cut_goes_on_to_the_same_bits(
    file: Path, kind: str, cut_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    settings: dict[str, Any] = {"length": LENGTH, "seeds": [3, 5], "settings": SETTINGS, "words": 0, "progress": False}
    whole = train_many("txc", f"{file}:{kind}", out=file.parent / "whole", **settings)
    told = 0

    def cut(run: Any) -> None:
        nonlocal told
        told += 1
        if told > cut_at:
            raise Cut

    with pytest.raises(BadInput, match="Cut"):
        train_many("txc", f"{file}:{kind}", out=file.parent / "cut", report=cut, **settings)
    assert list((file.parent / "cut").glob("*.checkpoint.safetensors"))
    torch.manual_seed(cut_at)  # nothing else may matter
    torch.rand(cut_at)
    continued = train_many("txc", f"{file}:{kind}", out=file.parent / "cut", **settings)
    for one, other in zip(whole, continued):
        assert same(weights(one), weights(other))
        assert one.record.training.curve == other.record.training.curve
        assert one.record.evaluations == other.record.evaluations


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_side_by_side_come_out_as_alone(file: Path, kind: str) -> None:
    settings = {"length": LENGTH, "settings": SETTINGS, "words": 0, "progress": False}
    together = train_many("txc", f"{file}:{kind}", seeds=[0, 1, 2], **settings)
    drawn = torch.get_rng_state()
    for result in together:
        alone = train("txc", f"{file}:{kind}", seed=result.cell.seed, **settings)
        for name, tensor in weights(alone).items():
            torch.testing.assert_close(result.model.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(together[0].model.module.head.weight, together[1].model.module.head.weight)
    assert torch.equal(torch.get_rng_state(), drawn)  # what the user draws is theirs


def test_each_reads_its_own_length_and_draws_its_own_chance(file: Path) -> None:
    """Rows are filled up to the longest replica's, which neither masks nor statistics may feel."""
    singles = [as_model(_kind(file, "Both")(2, 2), "Both", 2, 2) for _ in range(3)]
    check(singles[0], 2, 2)
    together, ids = Replicas(singles), torch.randint(2, (3, 4, 9))
    assert together.changing
    together.turns = [Turn(length, seed_of(seed, 7)) for seed, length in enumerate((5, 9, 3))]
    logits = together(ids)
    for row, (single, turn) in enumerate(zip(singles, together.turns)):
        with seeded(turn.seed):
            alone = single(ids[row, :, : turn.length])
        assert torch.equal(logits[row, :, : turn.length], alone)
        assert not logits[row, :, turn.length :].any()
        assert same({name: each[row] for name, each in together.buffers_of_all().items()}, kept_buffers(single))
        assert same(kept_buffers(together.one(row)), kept_buffers(single))


def test_every_update_draws_anew() -> None:
    seeds = {seed_of(seed, update) for seed in range(20) for update in range(50)}
    assert len(seeds) == 1000
    masks = []
    for seed in sorted(seeds)[:40]:
        with seeded(seed):
            masks.append(F.dropout(torch.ones(64)) > 0)
    share = torch.stack(masks).float().mean()
    assert 0.45 < float(share) < 0.55
    assert len({tuple(mask.tolist()) for mask in masks}) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_in_evaluation_nothing_is_drawn_and_statistics_are_those_of_the_best_weights(file: Path, kind: str) -> None:
    out = file.parent / "out"
    result = train("txc", f"{file}:{kind}", length=LENGTH, settings=SETTINGS, words=0, out=out, progress=False)
    assert not result.model.training
    ids = torch.randint(2, (4, LENGTH))
    drawn = torch.get_rng_state()
    with torch.no_grad():
        first, alone = result.model(ids), result.model(ids[:1])
    assert torch.equal(torch.get_rng_state(), drawn)
    torch.testing.assert_close(alone, first[:1])
    loaded = load(Store(out), result.cell)
    assert same(loaded.state_dict(), weights(result))
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids), first)
    if kind != "Dropping":
        assert result.model.module.norm.num_batches_tracked > 0
        assert not torch.equal(result.model.module.norm.running_mean, torch.zeros(8))


def test_statistics_are_kept_with_the_best_weights_and_not_with_the_last(file: Path) -> None:
    """A rate that breaks the network makes an early check the best: statistics of later updates are dropped."""
    seen: list[int] = []
    settings = SETTINGS | {"rates": (9.0,), "most_checks": 6, "polish": 0, "first_length": 0}
    result = train(
        "txc", f"{file}:Normed", length=LENGTH, settings=settings, words=0, progress=False,
        report=lambda run: seen.append(int(run.replicas.parts[0].module.norm.num_batches_tracked)),
    )  # fmt: skip
    curve = result.record.training.curve
    assert curve is not None
    best = curve.updates[curve.accuracy.index(max(curve.accuracy))]
    assert int(result.model.module.norm.num_batches_tracked) == best
    assert seen[-1] > best


def test_the_command_line_trains_one_with_dropout(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    line = ["train", "txc", f"{file}:Both", "--length", "8", "--seeds", "2", "--words", "0", *settings]
    assert main(line) == 0
    first = capsys.readouterr().out.rpartition("trained in")[0]
    assert main(line) == 0
    assert capsys.readouterr().out.rpartition("trained in")[0] == first


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(2, 2), nn.BatchNorm1d(2, track_running_stats=False)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.own = torch.Generator()

    def forward(self, ids: Tensor) -> Tensor:
        return self.change(self.table(ids))

    change: Callable[[Any, Tensor], Tensor]


def always_drops(self: Any, x: Tensor) -> Tensor:
    return F.dropout(x)


def draws_elsewhere(self: Any, x: Tensor) -> Tensor:
    return x * (1 + random.random() * self.training)


def draws_from_its_own(self: Any, x: Tensor) -> Tensor:
    return x * (1 + torch.rand(1, generator=self.own) * self.training)


def counts_in_a_scratch(self: Any, x: Tensor) -> Tensor:
    self.scratch += self.training
    return x * (1 + self.scratch)


def counts_in_evaluation(self: Any, x: Tensor) -> Tensor:
    self.count += 1
    return x


def grows(self: Any, x: Tensor) -> Tensor:
    if self.training:
        self.count = torch.zeros(x.shape[1])
    return x


def norms_the_batch(self: Any, x: Tensor) -> Tensor:
    return self.norm(x.transpose(1, 2)).transpose(1, 2)


def mixes_rows(self: Any, x: Tensor) -> Tensor:
    return x - x.mean(0)


WRONG = {
    always_drops: "draws by chance in evaluation mode too: use nn.Dropout",
    draws_elsewhere: "answers one batch differently when it is run again in training mode",
    draws_from_its_own: "answers one batch differently when it is run again in training mode",
    counts_in_a_scratch: "answers one batch differently when it is run again in training mode",
    counts_in_evaluation: "changes its buffer count in evaluation mode",
    grows: "changes the shape or type of its buffer count in training",
    norms_the_batch: "is not causal",
    mixes_rows: "mixes the rows of a batch at length 8",
}


@pytest.mark.parametrize(("change", "message"), WRONG.items(), ids=[change.__name__ for change in WRONG])
def test_what_could_not_be_repeated_is_refused(change: Callable[[Any, Tensor], Tensor], message: str) -> None:
    single = type("Wrong", (Base,), {"change": change})()
    with pytest.raises(BadInput, match=message) as caught:
        train("txc", single, length=LENGTH, settings=SETTINGS, progress=False)
    assert "\n" not in str(caught.value)


class Streamed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.drop = nn.Embedding(2, 2), nn.Dropout(0.1)

    def initial_state(self, batch: int, device: torch.device | None = None) -> Tensor:
        return torch.zeros(batch, 1, device=device)

    def forward_from(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.drop(self.table(ids)), state

    def forward(self, ids: Tensor) -> Tensor:
        return self.drop(self.table(ids))


def test_noise_on_the_state_is_for_models_without() -> None:
    with pytest.raises(BadInput, match="uses dropout, batch norm or the like: state_noise is for models without"):
        train("txc", Streamed(), length=LENGTH, settings=SETTINGS, state_noise=0.1, progress=False)


def test_the_check_leaves_the_model_and_the_generator_alone(file: Path) -> None:
    single = _kind(file, "Both")(2, 2)
    before, state = {name: each.clone() for name, each in single.state_dict().items()}, torch.get_rng_state()
    check(single, 2, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert same(before, single.state_dict())


def _kind(file: Path, name: str) -> Callable[..., nn.Module]:
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    found: Callable[..., nn.Module] = space[name]
    return found
