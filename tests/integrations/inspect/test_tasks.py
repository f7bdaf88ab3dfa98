"""The tasks, solvers and scorers through Inspect's own eval()."""

from __future__ import annotations

import math

import anyio
import numpy as np
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import ContentReasoning, ContentText, ModelOutput, ModelUsage
from inspect_ai.solver import generate
from rich.console import Console

from statetrack import BadInput
from statetrack import task as find_task
from statetrack.asking import Episode, Rules, dialogue, summary
from statetrack.asking import solver as core_solver
from statetrack.asking.terms import fingerprint, terms
from statetrack.integrations.inspect import registry as st
from statetrack.integrations.inspect.scorer import KEYS, by_length, episodes, records
from tests.integrations.inspect.scripted import Said, numbers, right_until, scripted, true_mode

OF_0_1_0 = {"ended", "detail", "max_length", "asked", "outcomes", "positions", "changes", "replies", "tokens"}
"""What a record in a log of 0.1.0 holds; what came since stands beside it."""


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success", log.error
    assert log.results is not None
    [score] = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


def test_the_episode_is_in_the_log(run):
    log = run(st.track_the_stat(samples=1, turns=12), scripted("five", right_until(6)))
    [sample] = log.samples
    found = metrics(log)
    assert (found["avg_max_length"], found["violation_rate"], found["episodes"], found["censored"]) == (5, 0, 1, 0)
    assert set(KEYS) <= set(found)
    stream = np.random.default_rng(0).integers(0, 100, size=300).tolist()
    said = [(message.role, message.text) for message in sample.messages]
    assert [role for role, _ in said] == ["system", *["user", "assistant"] * 6]
    assert [int(text) for role, text in said if role == "user"] == stream[:6]
    assert said[-1] == ("assistant", "[mode: 100]")
    assert sample.scores["episode"].explanation == "wrong"
    assert sample.metadata["task"] == "track_the_stat.mode"
    assert OF_0_1_0 <= sample.scores["episode"].metadata["record"].keys() == sample.store["statetrack:record"].keys()
    [record] = records(log)
    assert (record.outcomes, record.positions) == ("+++++x", [1, 2, 3, 4, 5, 6])
    # 6 turns of 2, 4, ... 12 messages at 10 tokens each, as the provider counts them
    assert record.tokens == {"sent": 420, "new": 420, "cached": 0, "generated": 30, "reasoning": 0}
    assert [place["accuracy"] for place in summary([record])["by_position"]] == [1, 1, 1, 1, 1, 0]


def test_a_task_of_ones_own(run, tmp_path):
    file = tmp_path / "mine.py"
    head = "from statetrack.tasks.finite import BinaryTask\n\nclass Mine(BinaryTask):\n    outputs = 2\n"
    file.write_text(head + "    def step(self, state, symbol):\n        return symbol\n")
    log = run(st.ask(task=f"{file}:Mine", samples=2, length=3), solver=st.random())
    assert metrics(log)["episodes"] == 2
    assert log.samples[0].metadata["task"] == find_task(f"{file}:Mine").name


def test_the_result_keys(run):
    until = {85: 3, 47: 5, 83: 12}  # by the first number of seeds 0, 1, 2

    async def answer(said: Said) -> str:
        return await right_until(until[numbers(said)[0]])(said)

    found = metrics(run(st.track_the_stat(samples=3, turns=11), scripted("three", answer)))
    lasted = [2, 4, 11]
    assert found["avg_max_length"] == pytest.approx(np.mean(lasted))
    assert found["stddev_max_length"] == pytest.approx(np.std(lasted, ddof=0))
    assert [found[key] for key in ("median_max_length", "max_max_length", "min_max_length")] == [4, 11, 2]
    compat = metrics(run(st.track_the_stat(samples=3, turns=11, compat=True), scripted("three", answer)))
    assert [compat[key] for key in ("min_max_length", "median_max_length", "max_max_length")] == [2, 4, 10]


def test_compat_is_the_originals_prompt_state_and_room(run, tmp_path):
    sent: list[Said] = []

    async def answer(said: Said) -> str:
        sent.append(said)
        return "[mode: 85]"

    (tmp_path / "own.txt").write_text("Count, [{task}: n]\n=== state ===\nsee {state}\n")
    for given in ({"compat": True}, {"compat": True, "prompt": str(tmp_path / "own.txt")}):
        task = st.track_the_stat(samples=1, turns=2, **given)
        assert task.config.max_tokens is None
        log = run(task, scripted("compat", answer), solver=st.explicit(role="user"))
        [record] = records(log)
        assert (record.budget, record.max_length) == (None, 2)
        assert metrics(log)["avg_max_length"] == 1
    assert sent[0][0][1].startswith("You are going to see a sequence of numbers")
    assert sent[0][-1][1].endswith("How often each number was shown so far:\n{85: 1}")
    assert (sent[-1][0][1], sent[-1][-1][1]) == ("Count, [mode: n]\n", "see {85: 1, 63: 1}")


def test_each_epoch_is_an_episode(run):
    asked = {"n": 0}

    async def answer(said: Said) -> str:
        asked["n"] += len(numbers(said)) == 1
        return await right_until(3 if asked["n"] == 1 else 6)(said)

    log = run(st.track_the_stat(samples=1, turns=8), scripted("epochs", answer), epochs=2, max_samples=1)
    found = metrics(log)
    assert (found["episodes"], found["min_max_length"], found["max_max_length"]) == (2, 2, 5)
    assert found["stddev_max_length"] == pytest.approx(1.5)
    assert (found["half_failed_by"], found["half_failed_low"], found.get("half_failed_high")) == (3, 1, None)


def test_epochs_of_one_sample_are_no_new_samples(run):
    """Two samples, one of which is always right: five epochs of each tell no more than one."""

    async def answer(said: Said) -> str:
        return "[answer: 1]"

    task = {"task": "txc", "way": "whole", "samples": 2, "length": 3}
    once, often = (metrics(run(st.ask(**task), scripted("one", answer), epochs=epochs)) for epochs in (1, 5))
    assert (once["accuracy"], once["n"], often["accuracy"], often["n"]) == (0.5, 2, 0.5, 10)
    assert once["stderr"] == pytest.approx(0.5**1.5)
    assert often["stderr"] == pytest.approx(0.5)  # from one sample to the other: 1 and 0
    assert often["low"] <= once["low"] < once["high"] <= often["high"]


def test_metrics_of_nothing():
    assert all(math.isnan(episodes()([])[key]) for key in KEYS)
    assert math.isnan(by_length()([])["accuracy"])


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: st.oracle(), "oracle"),
        (lambda: st.copy_last(), "copy-last"),
        (lambda: st.window(width=3), "window-3"),
        (lambda: st.random(seed=4), "random-4"),
        (lambda: st.explicit(inner="window-2"), "explicit:window-2"),
    ],
)
def test_a_solver_without_a_model_gives_what_the_core_gives(run, made, name):
    log = run(st.track_the_stat(variant="median", samples=3, turns=10), solver=made())
    who = core_solver(name)
    for number, record in enumerate(records(log)):
        asked = dialogue(find_task("track_the_stat.median"), Rules(), number, 10)
        episode = Episode(asked, terms(asked, who))
        while (request := episode.request()) is not None:
            episode.receive(who.reply(request))
        assert record == episode.record(prompts=False)


def test_explicit_shows_the_state_and_keeps_it_out_of_the_history(run):
    sent: list[Said] = []

    async def answer(said: Said) -> str:
        sent.append(said)
        return await true_mode(said)

    log = run(st.track_the_stat(samples=1, turns=3), scripted("watched", answer), solver=st.explicit(role="user"))
    assert [said[-1] for said in sent] == [
        ("user", "{85: 1}"), ("user", "{85: 1, 63: 1}"), ("user", "{85: 1, 63: 1, 51: 1}"),
    ]  # fmt: skip
    assert all("{" not in text for said in sent for _, text in said[1:-1])
    assert all("{" not in message.text for message in log.samples[0].messages[1:])
    assert metrics(log)["avg_max_length"] == 3


def test_the_last_answer_after_a_block_of_reasoning(run):
    async def answer(said: Said) -> ModelOutput:
        right = await true_mode(said)
        text = ContentText(text=f"[mode: 100]? No: {right}")
        output = ModelOutput.from_content("scripted", [ContentReasoning(reasoning="[mode: 7]"), text])
        output.usage = ModelUsage(input_tokens=9, output_tokens=30, total_tokens=39, reasoning_tokens=20)
        return output

    log = run(st.track_the_stat(samples=1, turns=4), scripted("thinker", answer), reasoning_effort="high")
    [record] = records(log)
    assert (record.outcomes, record.reasoned, record.effort, record.budget) == ("++++", "1111", "high", 32)
    assert record.tokens["reasoning"] == 80
    assert record.prompt_sha256 == fingerprint(find_task("track_the_stat.mode"), Rules())
    assert record.prompts is None  # the log has the messages


@pytest.mark.parametrize(
    ("limit", "least"),
    [({"token_limit": 150}, 3), ({"message_limit": 8}, 3), ({"time_limit": 3}, 3), ({"turn_limit": 3}, 2)],
)
def test_a_limit_censors_and_does_not_zero(run, limit, least):
    async def answer(said: Said) -> str:
        if "time_limit" in limit and len(numbers(said)) == 4:
            await anyio.sleep(60)
        return await true_mode(said)

    log = run(st.track_the_stat(samples=1, turns=40), scripted("limited", answer), **limit)
    found = metrics(log)
    assert log.samples[0].limit is not None
    assert (found["censored"], found["violation_rate"]) == (1, 0)
    assert least <= found["avg_max_length"] < 40
    [record] = records(log)
    assert record.ended == "limit"
    assert set(record.outcomes) == {"+"}
    assert len(log.samples[0].messages) == 1 + 2 * record.max_length


def test_a_full_context_is_an_error_and_no_score(run):
    async def answer(said: Said) -> str | ModelOutput:
        if len(numbers(said)) == 5:
            return ModelOutput.from_content("scripted", "too long", stop_reason="model_length")
        return await true_mode(said)

    log = run(st.track_the_stat(samples=1, turns=9), scripted("full", answer))
    assert (log.status, log.samples[0].scores) == ("error", None) or log.samples[0].scores == {}
    assert "ModelFailed('too long')" in log.samples[0].error.message


def test_permutations_whole_by_length(run):
    prompts: list[str] = []

    async def answer(said: Said) -> str:
        """Right for up to two permutations of S3, whose products are multiplied out here."""
        prompts.append(said[-1][1])
        row = [int(text) for text in prompts[-1].partition("Sequence: ")[2].partition("\n")[0].split()]
        elements = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        product = elements[0]
        for element in row:
            product = tuple(elements[element][point] for point in product)
        return str(elements.index(product)) if len(row) < 3 else "6"

    task = st.permutation_composition(group="s3", lengths=[1, 2, 3], per_length=4)
    log = run(task, scripted("s3", answer))
    found = metrics(log)
    assert [found[key] for key in ("1", "2", "3")] == [1, 1, 0]
    assert (found["accuracy"], found["n"], found["falls_below_half"]) == (pytest.approx(2 / 3), 12, 3)
    assert found["chance"] == pytest.approx(1 / 6)
    assert found["stderr"] == pytest.approx(math.sqrt(2 / 9 / 12))
    assert found["low"] < 2 / 3 < found["high"]
    assert all(prompt.endswith("Answer:") and "group S3" in prompt for prompt in prompts)
    limited = run(task, solver=st.oracle(), limit=6)
    assert [sample.metadata["length"] for sample in limited.samples] == [1, 2, 3, 1, 2, 3]
    assert metrics(limited)["accuracy"] == 1
    assert "falls_below_half" not in metrics(limited)


def test_an_answer_that_a_limit_prevents_is_not_scored(run):
    async def answer(said: Said) -> str:
        await anyio.sleep(60)
        return ""

    log = run(st.permutation_composition(group="s3", lengths=3, per_length=1), scripted("slow", answer), time_limit=1)
    assert log.results.scores[0].unscored_samples == 1
    assert math.isnan(metrics(log)["accuracy"])


@pytest.mark.parametrize("style", ["table", "cycles", "generators"])
def test_permutations_in_other_styles(run, style):
    log = run(st.permutation_composition(group="a4", lengths=4, per_length=2, style=style, shots=1), solver=st.oracle())
    assert metrics(log)["accuracy"] == 1


@pytest.mark.parametrize(
    "given",
    [
        {"task": "txc", "length": 9},
        {"task": "txc", "way": "whole"},
        {"task": "modular_arithmetic", "length": 9, "every": 2},
        {"task": "stream.max", "length": 9, "distractors": "chatter,retractions"},
        {"task": "cups[n=4]", "length": 9, "history": "own"},
    ],
)
def test_any_task_can_be_asked(run, given):
    found = metrics(run(st.ask(samples=2, **given), solver=st.oracle()))
    if given.get("way") == "whole":
        assert (found["accuracy"], found["n"]) == (1, 2)
    else:
        assert found["min_max_length"] == found["max_max_length"] or "distractors" in given or "every" in given
        assert found["violation_rate"] == 0
        assert found["min_max_length"] >= 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: st.track_the_stat(variant="bad"), "unknown variant 'bad'; known: median, mode"),
        (lambda: st.track_the_stat(varient="mode"), "unknown parameter 'varient'; did you mean variant?"),
        (lambda: st.track_the_stat(samples=0), "samples=0 should lie in 1..1000000"),
        (lambda: st.track_the_stat(samples="many"), "samples='many' should be a whole number"),
        (lambda: st.track_the_stat(turns=10**9), "turns=1000000000"),
        (lambda: st.track_the_stat(compat="maybe"), "compat='maybe' should be true or false"),
        (lambda: st.track_the_stat(history="all"), "unknown history 'all'"),
        (lambda: st.track_the_stat(distractors=["noise"]), "unknown distractor 'noise'"),
        (lambda: st.track_the_stat(every="often"), "every='often' should be a whole number"),
        (lambda: st.permutation_composition(group="q8x"), "q8x"),
        (lambda: st.permutation_composition(group="txc"), "statetrack/ask -T task=txc"),
        (lambda: st.permutation_composition(lengths=""), "at least one length"),
        (lambda: st.permutation_composition(lengths="5,x"), "length='x' should be a whole number"),
        (lambda: st.permutation_composition(relabel="yes"), "relabel='yes'"),
        (lambda: st.ask(task="txx"), "unknown task 'txx'; did you mean txc?"),
        (lambda: st.ask(task="txc", way="sideways"), "unknown way 'sideways'"),
        (lambda: st.ask(task="txc", style="cycles"), "belong to permutation groups"),
        (lambda: st.explicit(role="judge"), "unknown role 'judge'"),
        (lambda: st.explicit(inner="nobody"), "unknown solver 'nobody'"),
        (lambda: st.window(width=0), "at least 1 input"),
        (lambda: st.window(width="wide"), "width='wide' should be a whole number"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(make, words):
    with pytest.raises(BadInput) as caught:
        make()
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_foreign_solver_is_named(run):
    log = run(st.track_the_stat(samples=1, turns=2), scripted("true", true_mode), solver=generate())
    assert log.status == "error"
    assert "--solver statetrack/implicit" in log.error.message


def test_a_person_can_answer(run, monkeypatch):
    """Types the newest number, which is the mode of seed 0 at the first turn and not at the second."""
    monkeypatch.setattr(Console, "input", lambda self, prompt, **_: prompt.split()[0])
    log = run(st.track_the_stat(samples=1, turns=5), solver=st.human())
    assert [record.outcomes for record in records(log)] == ["+x"]
