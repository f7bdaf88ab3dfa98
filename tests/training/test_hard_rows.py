"""Hard rows: what they are a function of, that their answers are right, and that what broke a network is trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.models.witnesses import counter
from statetrack.results import TrainingRecord
from statetrack.results.store import read_record
from statetrack.training import checkpoint, hard_rows, loop
from statetrack.training.batches import Batches, BatchRequest
from statetrack.training.beams import machine_to_search
from statetrack.training.hard_rows import Attack, Broken, hard_batch
from statetrack.training.protocol import PROTOCOLS
from statetrack.training.run import cell_protocol
from statetrack.training.weights import built

SHORT = {"batch": 16, "check_every": 5, "most_checks": 3, "polish": 20, "warmup": 0, "validation_rows": 16}
NAME = "e88-gain-1l-small[heads=1,n_state=4]"
TASKS = ("txc", "s5_composition", "mod_counter", "dyck", "track_the_stat", "modular_arithmetic", "txc[ask=end]")


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_the_tasks_and_rows_do_not_depend_on_the_batch(name: str) -> None:
    task, known = st.task(name), ((1, 0, 1), (0, 1))
    for words in ((), known):
        whole = hard_batch(task, 24, 3, 100, 12, words)
        again = task.batch(whole.inputs)
        assert (whole.targets == again.targets).all()
        assert (whole.mask <= again.mask).all()
        assert whole.mask.any()
        part = hard_batch(task, 24, 3, 106, 6, words)
        assert (part.inputs == whole.inputs[6:]).all()
        assert (hard_batch(task, 24, 4, 100, 12, words).inputs != whole.inputs).any()


def test_the_three_families_take_turns() -> None:
    inputs = hard_batch(st.task("s3"), 64, 0, 0, 300, ()).inputs
    changes = (np.diff(inputs, axis=1) != 0).sum(axis=1)
    assert (changes[0::3] < 64 // 8).all(), "symbols are held"
    silent = np.array([np.bincount(row).max() for row in inputs[1::3]])
    assert silent.mean() > 40
    for row in inputs[2::3]:
        assert any((row[3 + period :] == row[3:-period]).all() for period in (1, 2, 3, 4))


def test_every_other_hard_row_begins_with_a_word_that_broke_it() -> None:
    known = ((5, 4, 3, 2, 1), (1, 1, 1), (2,) * 40)
    inputs = hard_batch(st.task("s3"), 16, 0, 0, 120, known).inputs
    begun = [next((word for word in known if tuple(row)[: len(word)] == word[:16]), None) for row in inputs]
    assert all(begun[::2])
    assert len(set(begun[::2])) == 3
    assert len({tuple(row) for row, word in zip(inputs[::2], begun[::2]) if word == (1, 1, 1)}) > 5, "and goes on"


def test_the_last_rows_of_a_batch_are_hard() -> None:
    task = st.task("s3")
    feed = Batches(task, torch.device("cpu"))
    request = BatchRequest(1, 12, 320, 8, ((4, 4),))
    rows = feed.get((request,), 32, (request,))
    feed.close()
    plain = task.sample(12, 32, 1, "train", 320)
    hard = hard_batch(task, 12, 1, 344, 8, ((4, 4),))
    for name in ("inputs", "targets", "mask"):
        wanted = np.concatenate([getattr(plain, name)[:24], getattr(hard, name)])
        assert (getattr(rows, name)[0].numpy() == wanted).all()


def test_those_made_ahead_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """For two replicas of one seed, of which one grows longer and learns of words in between."""
    task = st.task("s3")
    made = []
    monkeypatch.setattr("statetrack.training.batches.hard_batch", lambda *a, **k: made.append(a) or hard_batch(*a, **k))
    feed = Batches(task, torch.device("cpu"))
    for step in range(9):
        words, length = (((4, 4),), 8) if step > 3 else ((), 4)
        requests = tuple(BatchRequest(1, each, step * 16, 4, known) for each, known in ((length, words), (4, ())))
        rows = feed.get(requests, 16, tuple(each._replace(first=each.first + 16) for each in requests))
        for row, request in zip(rows.inputs, requests):
            hard = hard_batch(task, request.length, 1, step * 16 + 12, 4, request.words)
            assert (row[12:, : request.length].numpy() == hard.inputs).all()
    feed.close()
    assert len(made) <= 5, "and not made for every step"


def test_words_are_kept_once_and_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_rows, "MOST_WORDS", 3)
    broken = Broken([])
    broken.add([[1], [2], [3]])
    broken.add([[1], [4]])
    assert broken.known == ((3,), (1,), (4,))
    assert Broken.read(broken.to_dict()) == broken


def leaky() -> torch.nn.Module:
    """At least three ones, by a count that fades: wrong some zeros after the third one."""
    model = counter([0, 1], 2.5)
    with torch.no_grad():
        model.A.mul_(0.99)
    return model


def test_an_attack_finds_several_words_and_waits_for_its_turn() -> None:
    task, model = st.task("fsm"), leaky()
    attack, broken = Attack(task, model), Broken([])
    assert not attack.due(broken, 1, 1.0, 32, 16)
    step = next(step for step in range(10**6) if attack.due(broken, step, 1.0, 32, 16))
    assert not attack.due(broken, step, 0.9, 32, 16)
    attack.make(model, broken, 0, step, 32)
    assert len(broken.words) == hard_rows.MOST_FOUND
    assert not attack.due(broken, step + 1, 1.0, 32, 16)
    for word in broken.words:
        assert len(word) <= 32
        assert model(torch.tensor([word])).argmax(-1)[0, -1] != task.targets([word])[0, -1]
    again = Broken([])
    attack.make(model, again, 0, step, 32)
    assert again == broken


@pytest.mark.parametrize(
    ("task", "model"), [("track_the_stat", "gru[hidden=4]"), ("txc", "mlp"), ("txc[ask=end]", "gru")]
)
def test_where_no_word_can_be_looked_for(task: str, model: str) -> None:
    the_task = st.task(task)
    assert not Attack(the_task, built(model, the_task, 0)).due(Broken([]), 10**9, 1.0, 64, 128)


def test_only_what_the_data_may_ask_for_breaks_a_network() -> None:
    """After a wrong bracket there is one answer for ever, which no row ever asks for."""
    task = st.task("dyck")
    machine = machine_to_search(task, built("gru[hidden=4]", task, 0))
    assert machine is not None
    assert task.never_due
    assert not np.isin(machine.answers, task.never_due).any()
    assert (machine.answers >= 0).any()


@pytest.fixture
def breaks_easily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check is followed by an attack, however little was learned."""
    monkeypatch.setattr(hard_rows, "ATTACKED_FROM", 0.0)
    monkeypatch.setattr(hard_rows, "SHARE", 0)
    monkeypatch.setattr(hard_rows, "UPDATES", 0)


def trained(tmp_path: Path | None = None, seeds: tuple[int, ...] = (0,)) -> list[st.Result]:
    return st.train_many("txc", NAME, length=8, seeds=seeds, state_noise=0.2, hard_rows=0.5, settings=SHORT, words=0,
                         out=tmp_path, progress=False)  # fmt: skip


@pytest.mark.usefixtures("breaks_easily")
def test_a_run_that_goes_on_ends_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words that were found before it was cut are among what it reads."""
    whole = trained()[0]
    words = whole.record.training.trained_on_words
    assert words
    assert all(len(word) <= 8 for word in words)
    saves = []

    class Cut(Exception):
        pass

    def save(path: Path, *given: object) -> None:
        real(path, *given)
        saves.append(path)
        if len(saves) == 3:
            raise Cut

    real = checkpoint.save
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "save", save)
    with pytest.raises(Cut):
        trained(tmp_path)
    assert checkpoint.load(saves[-1])[1]["broken"][0]["words"]
    monkeypatch.setattr(checkpoint, "save", real)
    cut = trained(tmp_path)[0]
    assert cut.record.training.trained_on_words == words
    for key, weight in whole.model.state_dict().items():
        assert torch.equal(weight, cut.model.state_dict()[key]), key
    kept = read_record(next(tmp_path.glob("*.json")))
    assert isinstance(kept, TrainingRecord)
    assert kept.training.trained_on_words == words


@pytest.mark.usefixtures("breaks_easily")
def test_a_replica_reads_what_it_reads_alone() -> None:
    together = trained(seeds=(3, 4))
    for result, seed in zip(together, (3, 4)):
        alone = trained(seeds=(seed,))[0]
        assert alone.record.training.trained_on_words == result.record.training.trained_on_words
        for key, weight in alone.model.state_dict().items():
            torch.testing.assert_close(result.model.state_dict()[key], weight, atol=1e-4, rtol=1e-3)


def test_hard_rows_change_what_is_learned_and_only_then_the_key() -> None:
    assert "hard_rows" not in cell_protocol(PROTOCOLS["curriculum"])
    assert cell_protocol(PROTOCOLS["hold"])["hard_rows"] == 0.25
    with pytest.raises(st.BadInput, match=r"hard_rows=2 should be a number in 0\.\.1"):
        PROTOCOLS["curriculum"].with_changes(hard_rows=2)


def test_replicas_whose_start_is_learned_are_attacked_one_by_one() -> None:
    """All replicas share one module, whose learned start has a row for each of them."""
    task, protocol = st.task("s3"), PROTOCOLS["hold"].with_changes(**SHORT, most_tokens=64)
    name = "e88-gain-r2[heads=1,n_state=4,learned_start=true]"
    run = loop.fit(
        task, [built(name, task, seed) for seed in (0, 1)], 4, [0, 1], [2e-3] * 2, protocol, torch.device("cpu")
    )
    assert run.done
    assert run.progress[0].best != run.progress[1].best
