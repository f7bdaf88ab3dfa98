"""The benchmarks can be imported as the code stands, and `python -m benchmarks` says what it did not do."""

from __future__ import annotations

import importlib

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import train


@pytest.mark.parametrize("name", [*benchmarks.ALL, *benchmarks.BY_HAND])
def test_a_benchmark_finds_what_it_imports(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")


def test_the_step_that_is_timed_is_one_of_training() -> None:
    losses, norms = train.stepper("mlp", replicas=2, batch=3, length=4)()
    assert losses.shape == norms.shape == (2,)
    assert norms.min() > 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The benchmarks that would have been started: all end well but `train`, and `gpu` does not fit."""
    names: list[str] = []
    monkeypatch.setattr(benchmarks, "start", lambda name: names.append(name) or int(name == "train"))
    monkeypatch.setattr(benchmarks, "obstacle", lambda name: "needs a CUDA device" if name == "gpu" else None)
    return names


def test_all_that_fit_are_run_and_one_that_fails_does_not_stop_the_rest(
    started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmarks.main([]) == 1
    assert started == [name for name in benchmarks.ALL if name != "gpu"]
    assert capsys.readouterr().out.splitlines()[-2:] == ["left out: gpu, needs a CUDA device", "failed: train"]


@pytest.mark.parametrize(
    ("names", "code", "ran"),
    [(["data"], 0, ["data"]), (["gpu"], 1, []), (["train", "data"], 1, ["train", "data"]), (["nothing"], 2, [])],
)
def test_those_that_are_named(started: list[str], names: list[str], code: int, ran: list[str]) -> None:
    assert (benchmarks.main(names), started) == (code, ran)


def test_what_fits_is_asked_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    said = {path.stem for path in benchmarks.FOLDER.glob("[!_]*.py") if "needs a CUDA device" in path.read_text()}
    on_gpu = said.intersection(benchmarks.ALL)
    assert {name for name in benchmarks.ALL if benchmarks.obstacle(name) == "needs a CUDA device"} == on_gpu
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert [name for name in benchmarks.ALL if benchmarks.obstacle(name) and name != "report"] == []
