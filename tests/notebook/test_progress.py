"""Progress: one bar that is updated in its place in a notebook, lines only where they are asked for, else nothing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from statetrack import progress
from statetrack.progress import progress as bar


class Page:
    """What a notebook would show: the displays, each with its looks."""

    def __init__(self) -> None:
        self.displays: list[list[dict[str, str]]] = []

    def display(self, look: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        looks = [look]
        self.displays.append(looks)

        class Handle:
            def update(self, look: dict[str, str], raw: bool) -> None:
                looks.append(look)

        return Handle()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    pytest.importorskip("IPython")
    made = Page()
    monkeypatch.setattr("IPython.display.display", made.display)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "REDRAWN", 0.0)
    return made


def test_a_notebook_has_one_bar_that_is_updated(page: Page) -> None:
    with bar("words bar", "txc, <gru>", total=4, verb="train", shown=None) as move:
        assert page.displays == []  # nothing has moved yet
        for done in range(5):
            move(completed=done, description=f"length {done}")
    (looks,) = page.displays
    assert [look["text/plain"].split(",")[0] for look in looks[:-1]] == [
        "0% length 0", "25% length 1", "50% length 2", "75% length 3", "100% length 4",
    ]  # fmt: skip
    assert '<progress value="0.5000" max="1">' in looks[2]["text/html"]
    assert looks[-1]["text/plain"] == "train txc, <gru>: 0:00"
    assert "&lt;gru&gt;" in looks[-1]["text/html"]


def test_rows_may_be_counted_on(page: Page) -> None:
    with bar("words bar", "rows", total=10) as move:
        move(advance=4)
        move(advance=4)
    assert page.displays[0][1]["text/plain"].startswith("80% rows")


def test_where_it_stopped_stays(page: Page) -> None:
    def stopped() -> None:
        with bar("words bar", "rows", total=10) as move:
            move(completed=5, description="half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert page.displays[0][-1]["text/plain"].startswith("50% half")


def test_what_is_refused_before_it_begins_shows_no_bar(page: Page) -> None:
    with pytest.raises(ValueError, match="no"), bar("words bar", "rows", total=10):
        raise ValueError("no")
    assert page.displays == []


def test_a_thousand_moves_are_not_a_thousand_looks(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REDRAWN", 1000.0)
    with bar("words bar", "rows", total=1000) as move:
        for done in range(1000):
            move(completed=done)
    assert len(page.displays[0]) == 2


def test_it_can_be_switched_off_and_is_silent_where_nobody_looks(
    page: Page, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    for shown, notebook in ((False, True), (False, False), (None, False)):
        monkeypatch.setattr(progress, "in_notebook", lambda notebook=notebook: notebook)
        with bar("words bar", "rows", total=2, verb="train", shown=shown) as move:
            move("half", completed=1)
    assert page.displays == []
    assert capsys.readouterr() == ("", "")
    with bar("words bar", "rows", total=2, verb="train", shown=True) as move:
        move("half", completed=1)
    assert capsys.readouterr() == ("", "train: half\n")


def test_no_notebook_is_seen_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not progress.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not progress.in_notebook()
