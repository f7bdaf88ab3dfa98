"""How many threads torch has while a network is trained and tested on a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import statetrack as st
from statetrack.ops import parallel
from statetrack.training import threads

SMALL, LARGE = "gru[dim=4,hidden=8]", "gru[dim=64,hidden=96]"
QUICK: dict[str, Any] = {"length": 4, "batch": 4, "check_every": 2, "most_checks": 1, "polish": 2, "validation_rows": 4}


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of four processors on which nobody has chosen a number."""
    for name in threads.SAID_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(threads, "available", lambda: 4)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def seen_in(calls: Any) -> list[tuple[int, int | None]]:
    """How many threads torch has, and rows of compiled loops, whenever something is told."""
    found: list[tuple[int, int | None]] = []
    calls(lambda *_: found.append((torch.get_num_threads(), parallel.among)))
    assert torch.get_num_threads() == 4
    assert parallel.among is None
    return sorted(set(found), key=str)


def trained(model: str) -> Any:
    return lambda tell: st.train("txc", model, **QUICK, words=0, stream=2048, report=tell, tick=tell, device="cpu")


@pytest.mark.usefixtures("four")
def test_a_small_network_has_one_thread_and_rows_are_shared_as_before() -> None:
    assert seen_in(trained(SMALL)) == [(1, 4)]
    assert seen_in(trained(LARGE)) == [(4, None)]


@pytest.mark.usefixtures("four")
def test_so_it_has_when_it_is_evaluated_diagnosed_and_certified() -> None:
    model = st.model(SMALL, inputs=2, outputs=2, seed=0)
    calls = [
        lambda tell: st.evaluate("txc", model, lengths=[4], words=0, tick=tell),
        lambda tell: st.diagnose("txc", model, length=32, trained=8, stream=64, tick=tell),
        lambda tell: st.certify("txc", model, seconds=0.1, tick=tell),
    ]
    assert [seen_in(each) for each in calls] == [[(1, 4)]] * 3


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("name", threads.SAID_BY)
def test_what_the_environment_says_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "4")
    assert seen_in(trained(SMALL)) == [(4, None)]


def test_a_number_that_torch_does_not_begin_with_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr(threads, "available", lambda: 12)
    chosen = [count for count in range(1, 17) if threads.is_chosen(count, {})]
    assert chosen == [count for count in range(1, 17) if count not in (6, 8, 12, 16)]


def test_weights_are_those_of_one_thread_however_many_there_are(four: None) -> None:
    """Sums that threads share are rounded otherwise; of a small network none are shared."""
    wide = QUICK | {"length": 64, "batch": 64, "most_checks": 2, "first_length": 0}

    def weights() -> list[Any]:
        return list(st.train("s3", "gru[hidden=32]", **wide, words=0, device="cpu").model.state_dict().values())

    found = [weights()]
    torch.set_num_threads(1)
    found.append(weights())
    torch.set_num_threads(4)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_the_bar_is_not_full_while_something_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream moves it again; when it is full its clock stands still."""
    moved: list[tuple[str, float]] = []

    @contextmanager
    def shown(*_: Any, **__: Any) -> Iterator[Any]:
        yield lambda line, completed, description: moved.append((description, completed))

    monkeypatch.setattr("statetrack.training.bar.progress", shown)
    st.train("txc", SMALL, **QUICK, words=0, stream=4096, device="cpu")
    assert all(completed < 1 for _, completed in moved)
    streamed = [completed for told, completed in moved if told.startswith("testing: stream")]
    assert streamed == [0.25, 0.5, 0.75, 0.999]
