"""The two charts of Track the Stat's original: mean length reached and violations, with lines for guess and person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import statetrack as st
from statetrack.asking import Reply, Request, Rules, solver
from statetrack.asking.run import ask
from statetrack.asking.solvers import Human
from statetrack.reports import page_of
from statetrack.reports.figures import vega
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.series import group_of
from tests.asking.test_external import results

MODE = st.task("track_the_stat.mode")


class Fails:
    """A model that is right before some turn, later where it sees the state, and then says nothing of use."""

    batch = 8

    def __init__(self, name: str, turn: int) -> None:
        self.name, self.turn = name, turn

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        last = self.turn + 4 * bool(request.transient)
        good = len(request.turn.seen) < last
        return Reply(request.dialogue.reply(request.turn) if good else "well" if request.sample % 2 else "[mode: 100]")

    def close(self) -> None: ...


def asked(folder: Path, rules: Rules, samples: int = 4, length: int = 20) -> None:
    for name, turn in (("some/model", 3), ("other/model", 6)):
        for who in ("implicit", "explicit-user:implicit"):
            ask(MODE, rules, solver(who), range(samples), length=length, model=name, out=folder,
                engine=lambda name=name, turn=turn: Fails(name, turn))  # fmt: skip
    for who in (solver("random"), Human(lambda request: request.turn.text)):
        ask(MODE, rules, who, range(samples), length=length, out=folder)


def figures(folder: Path) -> dict[str, Figure]:
    return {figure.key.removeprefix("track-the-stat-mode-"): figure for figure in page_of(folder).figures}


def rows(figure: Figure) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["model"], row["state"]): row for row in figure.rows}


def test_bars_and_lines(tmp_path: Path) -> None:
    asked(tmp_path, Rules(compat=True))
    drawn = figures(tmp_path)
    found = rows(drawn["asked-lasted"])
    means = {who: row["lasted"] for who, row in found.items() if not row["line"]}
    assert means == {("some/model", "implicit"): 2, ("some/model", "explicit"): 6, ("other/model", "implicit"): 5,
                     ("other/model", "explicit"): 9}  # fmt: skip
    assert {who: row["line"] for who, row in found.items() if row["line"]} == {
        ("random", "implicit"): "random", ("human", "implicit"): "human",
    }  # fmt: skip
    violated = rows(drawn["asked-violations"])["some/model", "implicit"]
    assert (violated["violations"], violated["violations_low"]) == (0.5, pytest.approx(0.15, abs=0.01))
    assert "tokens_in" in violated


def test_a_server_that_failed_is_no_bar_and_rules_and_lengths_tell_bars_apart(tmp_path: Path) -> None:
    asked(tmp_path, Rules(compat=True))
    asked(tmp_path, Rules(history="own"), length=10)
    dead = type("Dead", (Fails,), {"reply": lambda self, request: Reply(failure="server", detail="503")})
    ask(MODE, Rules(compat=True), solver("implicit"), range(2), length=20, model="dead/model", out=tmp_path,
        engine=lambda: dead("dead/model", 1))  # fmt: skip
    models = {who for who, _ in rows(figures(tmp_path)["asked-lasted"])}
    assert models == {f"{who} · {how}" for who in ("some/model", "other/model", "random", "human")
                      for how in ("compat · 20 inputs", "history=own · 10 inputs")}  # fmt: skip


def test_lines_alone_are_no_chart(tmp_path: Path) -> None:
    ask(MODE, Rules(), solver("random"), range(3), length=5, out=tmp_path)
    assert set(figures(tmp_path)) == {"survival"}


@pytest.mark.needs("vl_convert")
def test_vega_lite_draws_them(tmp_path: Path) -> None:
    asked(tmp_path, Rules(compat=True), samples=2)
    for name in ("asked-lasted", "asked-violations"):
        assert vega.drawings(figures(tmp_path)[name])


def test_where_only_language_models_were_asked_the_page_opens_with_what_they_did(tmp_path: Path) -> None:
    """No prediction speaks of them: a first tab that says so and nothing else is in the way."""
    asked(tmp_path, Rules(compat=True))
    assert [section.title for section in page_of(tmp_path).sections] == ["track_the_stat.mode", "About this run"]


def test_what_the_documents_say_is_left_out_where_nothing_was_trained(tmp_path: Path) -> None:
    """They speak of language models too, of which one that was asked was judged under the first tab."""
    asked(tmp_path, Rules())
    ask(st.task("s5_composition"), Rules(way="whole"), solver("implicit"), range(4), length=5, model="some/model",
        out=tmp_path, engine=lambda: Fails("some/model", 1))  # fmt: skip
    page = page_of(tmp_path)
    assert page.sections[0].title == "s5_composition"
    assert not [sentence for sentence in page.summary if "design documents" in sentence]


def test_one_model_on_two_tasks_is_one_model_and_a_guess_is_a_baseline(tmp_path: Path) -> None:
    asked(tmp_path, Rules(), samples=2)
    ask(st.task("s3_composition"), Rules(way="whole"), solver("implicit"), range(2), length=5, model="some/model",
        out=tmp_path, engine=lambda: Fails("some/model", 1))  # fmt: skip
    page = page_of(tmp_path)
    assert page.summary[0] == "2 models and 2 baselines asked in 14 episodes."
    assert ("2", "models") in page.facts


def test_a_model_of_transformers_has_one_name_and_hue_whoever_asked_it(tmp_path: Path) -> None:
    ask(st.task("s3_composition"), Rules(way="whole"), solver("implicit"), range(2), length=5, model="hf:net",
        out=tmp_path, engine=lambda: Fails("hf:net", 9))  # fmt: skip
    (tmp_path / "results_now.json").write_text(json.dumps(results(), indent=2))
    page = page_of(tmp_path)
    assert ("1", "model") in page.facts
    [figure] = [figure for figure in page.figures if figure.key == "s3-composition-asked"]
    assert {row["model"] for row in figure.rows} == {"hf/net implicit · whole", "hf/net · lm-eval"}
    assert {group_of(row["model"]) for row in figure.rows} == {"hf/net"}
