"""Baselines, the ladder, and the solver that is shown the state."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable

import pytest

import statetrack as st
from statetrack.asking import Rules, dialogue, results, solver
from statetrack.asking.episode import Episode
from statetrack.asking.run import ask
from statetrack.asking.solvers import Human, Solver, split_subject, subject_of
from statetrack.results import records

MEDIAN, MODE = st.task("track_the_stat.median"), st.task("track_the_stat.mode")


def asked(
    task: st.Task, rules: Rules, who: Solver, samples: Iterable[int], length: int | None = None
) -> list[records.EpisodeRecord]:
    return [record.episode for record in ask(task, rules, who, samples, length=length)]


def average(task: st.Task, name: str, samples: int = 250, compat: bool = False) -> float:
    return results(asked(task, Rules(), solver(name), range(samples)), compat)["avg_max_length"]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_random_baseline_lasts_as_long_as_the_originals(seed: int) -> None:
    assert 1.5 < average(MEDIAN, f"random-{seed}", compat=True) < 1.9
    assert 1.5 < average(MODE, f"random-{seed}", compat=True) < 1.95


def test_the_random_baseline_is_seeded() -> None:
    replies = [asked(MODE, Rules(history="own"), solver(name), [3], length=50)[0].replies for name in
               ("random", "random-0", "random-1")]  # fmt: skip
    assert replies[0] == replies[1] != replies[2]


def test_the_random_median_of_two_is_one_of_four() -> None:
    """85 63: the mean of two drawn with replacement is 85, 74, 74 or 63."""
    request = Episode(dialogue(MEDIAN, Rules(), 0, 2))
    request.request()
    request.receive("[median: 85]")
    second = request.request()
    assert second is not None
    drawn = Counter(solver(f"random-{seed}").reply(second) for seed in range(400))
    assert set(drawn) == {"[median: 85]", "[median: 74]", "[median: 63]"}
    assert 160 < drawn["[median: 74]"] < 240


@pytest.mark.parametrize("task", [MEDIAN, MODE])
def test_the_oracle_is_perfect(task: st.Task) -> None:
    episodes = asked(task, Rules(), solver("oracle"), range(5))
    assert [episode.max_length for episode in episodes] == [300] * 5
    assert results(episodes)["avg_max_length"] == 300
    assert results(episodes, compat=True)["avg_max_length"] == 299


def test_the_ladder() -> None:
    assert average(MEDIAN, "window-64") == pytest.approx(64.9, abs=0.1)
    assert average(MODE, "copy-last") == pytest.approx(4.2, abs=0.1)
    assert average(MEDIAN, "window-300", samples=5) == 300


@pytest.mark.parametrize("name", ["cups", "s5", "dyck", "variables", "stream.max", "modular_arithmetic"])
def test_every_task_has_its_oracle_and_its_guess(name: str) -> None:
    task = st.task(name)
    perfect = asked(task, Rules(), solver("oracle"), [0], length=21)[0]
    assert (perfect.ended, perfect.max_length) == ("done", perfect.asked)
    guessed = asked(task, Rules(history="corrected"), solver("random"), range(10), length=21)
    assert not any("f" in episode.outcomes for episode in guessed)


def test_the_state_is_shown_and_not_kept() -> None:
    game = Episode(dialogue(MEDIAN, Rules(), 0, 3))
    explicit = solver("explicit:implicit")
    for reply in ("[median: 85]", "[median: 74]"):
        game.request()
        game.receive(reply)
    request = game.request()
    assert request is not None
    sent = explicit.prepare(request)
    assert sent.messages[-1] == {"role": "assistant", "content": "[51, 63, 85]"}
    assert sent.transient == 1
    assert sent.messages[:-1] == request.messages
    assert solver("explicit-user:implicit").prepare(request).messages[-1]["role"] == "user"
    game.receive("[median: 63]")
    assert "[51, 63, 85]" not in str(game.messages)
    assert explicit.needs_model


def test_the_state_of_the_mode_counts_in_first_seen_order() -> None:
    game = dialogue(MODE, Rules(), 0)
    turn = game.turns[40]
    request = Episode(game).request()
    assert request is not None
    shown = solver("explicit:oracle").prepare(type(request)(game, turn, [])).messages[-1]["content"]
    counts = eval(shown)
    assert list(counts.items()) == list(Counter(turn.seen).items())
    assert statistics.multimode(list(turn.seen))
    assert max(counts.values()) == Counter(turn.seen).most_common(1)[0][1]


def test_a_person_types_the_bare_number() -> None:
    answers = iter(["85", " 74 ", "0"])
    episode = asked(MEDIAN, Rules(), Human(lambda request: next(answers)), [0])[0]
    assert (episode.max_length, episode.replies) == (2, ["[median: 85]", "[median: 74]", "[median: 0]"])


@pytest.mark.parametrize(
    ("name", "part"),
    [("implict", "did you mean implicit"), ("window-0", "at least 1"), ("explicit-wizard:implicit", "unknown role")],
)
def test_bad_names(name: str, part: str) -> None:
    with pytest.raises(st.BadInput, match=part):
        solver(name)


def test_a_solver_that_needs_a_model_says_so() -> None:
    with pytest.raises(st.BadInput, match="needs a model"):
        ask(MEDIAN, Rules(), solver("explicit:implicit"), [0])


@pytest.mark.parametrize("name", ["implicit", "explicit-user:implicit", "oracle", "explicit:human", "random-3"])
@pytest.mark.parametrize("model", ["openai/gpt-4o", "hf:/my models/explicit human"])
def test_a_subject_comes_apart_as_it_was_put_together(model: str, name: str) -> None:
    who = solver(name)
    assert split_subject(subject_of(model, who)) == (model if who.needs_model else "", name)
