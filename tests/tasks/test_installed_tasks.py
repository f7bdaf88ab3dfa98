"""Tasks that other packages offer: what is wrong with one is told in a line, and the others stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

import statetrack as st
from statetrack import plugins
from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.tasks import catalogue
from statetrack.tasks.base import Task
from statetrack.tasks.finite import BinaryTask, FiniteTask


@dataclass(frozen=True, kw_only=True)
class Newest(FiniteTask, BinaryTask):
    """The newest bit."""

    base_name = "newest"
    outputs = 2

    def step(self, state: int, symbol: int) -> int:
        return symbol


@dataclass(frozen=True, kw_only=True)
class Needy(Newest):
    """The newest bit, of k."""

    k: int
    base_name = "needy"


@dataclass(frozen=True, kw_only=True)
class Unfinished(Task):
    """A task without a step."""

    base_name = "unfinished"


@dataclass(frozen=True, kw_only=True)
class Failing(Newest):
    """A task that cannot say how many classes it has."""

    base_name = "failing"

    @property
    def outputs(self) -> int:  # type: ignore[override]
        raise RuntimeError("no classes\ntoday")


class Undocumented(Newest):
    base_name = "undocumented"


Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Entry points, by name, with what they name in this file."""

    def forget() -> None:
        catalogue._offered.cache_clear()
        plugins.say.cache_clear()

    def made(**places: str) -> None:
        points = [
            EntryPoint(name, place if ":" in place else f"{__name__}:{place}", "statetrack.tasks")
            for name, place in places.items()
        ]
        monkeypatch.setattr(plugins, "entry_points", lambda group: points)
        forget()

    yield made
    forget()


def test_an_installed_task_is_listed_and_found(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    offer(Newest="Newest")
    assert list(catalogue.names())[-1] == "newest"
    assert st.task("newest[p=0.2]") == Newest(p=0.2)
    assert main(["list", "tasks", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[-1] == {
        "task": "newest", "title": "newest", "inputs": 2, "classes": 2, "what": "The newest bit."
    }  # fmt: skip
    assert printed.err == ""


WRONG = {
    "needy": ("Needy", "needy needs k: needy[k=...]"),
    "gone": (
        "their.tasks:Gone",
        "their.tasks:Gone cannot be loaded: ModuleNotFoundError: No module named 'their'",
    ),
    "absent": ("NoSuch", "has no attribute 'NoSuch'"),
    "other": ("offer", "is not a class of statetrack.Task"),
    "unfinished": ("Unfinished", "TypeError: Can't instantiate abstract class Unfinished"),
    "failing": ("Failing", "RuntimeError: no classes today"),
    "misnamed": ("Newest", "calls itself 'newest'; its base_name should be 'misnamed'"),
}


def test_what_is_wrong_with_one_is_a_line_and_the_others_stay(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    offer(newest="Newest", **{name: place for name, (place, _) in WRONG.items()})
    for options in ([], ["--json"]):
        plugins.say.cache_clear()
        assert main(["list", "tasks", *options]) == 0
        printed = capsys.readouterr()
        lines = printed.err.splitlines()
        assert len(lines) == len(WRONG)
        for line, (name, (_, reason)) in zip(lines, WRONG.items()):
            assert line.startswith(f"statetrack: {name} (statetrack.tasks) is left out: ")
            assert reason in line
        if options:
            listed = [entry["task"] for entry in json.loads(printed.out)]
            assert listed == list(catalogue.names())
            assert "newest" in listed
            assert not set(listed) & WRONG.keys()


def test_one_without_a_docstring_is_listed_by_its_title(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    offer(undocumented="Undocumented")
    assert main(["list", "tasks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["what"] == "undocumented"


def test_one_that_needs_a_parameter_can_be_asked_for_with_it(offer: Offer) -> None:
    offer(needy="Needy")
    assert st.task("needy[k=3]") == Needy(k=3)
    with pytest.raises(BadInput, match=r"needy needs k: needy\[k=...\]"):
        st.task("needy")


@pytest.mark.parametrize(("name", "message"), [("gone", "cannot be loaded"), ("other", "is not a class")])
def test_one_that_cannot_be_used_is_refused_by_name(offer: Offer, name: str, message: str) -> None:
    offer(**{name: WRONG[name][0]})
    with pytest.raises(BadInput, match=message):
        st.task(name)


@pytest.mark.parametrize("name", ["txc", "TXC", "s5", "s5_composition", "track_the_stat", "parity"])
def test_the_name_of_a_catalogued_task_stays_with_it(
    offer: Offer, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = list(catalogue.names())
    own = st.task(name)
    offer(**{name: "Newest"})
    assert list(catalogue.names()) == before
    assert st.task(name) == own
    assert main(["list", "tasks"]) == 0
    assert capsys.readouterr().err == (
        f"statetrack: {name} (statetrack.tasks) is left out: statetrack has that name already\n"
    )
