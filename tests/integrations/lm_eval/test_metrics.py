"""The numbers that the harness reports, against numbers computed here."""

from __future__ import annotations

import json
import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.metrics import aggregate_subtask_metrics
from lm_eval.tasks import TaskManager
from lm_eval.utils import make_table

from statetrack.asking import Rules, question
from statetrack.asking.metrics import falls_below
from statetrack.integrations.lm_eval import task
from statetrack.integrations.lm_eval.metrics import NoSample
from statetrack.tasks.groups.task import GroupTask
from tests.integrations.lm_eval.scripted_models import Scripted, by_cycles, by_table, sequence, symmetric_by_id, tag

Evaluate = Callable[..., dict[str, Any]]
LENGTHS = range(5, 501, 5)

PROMPT = """\
You are given a sequence of permutations from the group PSL(2,7), identified by their integer IDs. Your task is to \
compute their composed product.

The composition must be performed sequentially from right to left, following the standard mathematical convention \
(p_n ∘ ... ∘ p_2 ∘ p_1).

Sequence: {sequence}

Question: What is the single integer ID of the final composed permutation? Your response must be only the integer.

Answer:"""


def test_the_prompt_is_the_seed_documents(evaluate: Evaluate) -> None:
    model = Scripted(lambda prompt: "")
    evaluate(model, ["psl2_7_composition"], limit=3)
    task = GroupTask(group="psl2_7")
    for prompt, answer in model.seen:
        row = [int(word) for word in sequence(prompt)]
        assert prompt == PROMPT.format(sequence=" ".join(map(str, row)))
        asked = question(task, row, Rules(way="whole"))
        assert (prompt, answer) == (asked.prompt, f" {asked.target}")


@pytest.mark.parametrize(("kind", "count"), [("", 300), ("_gen", 200)])
def test_a_solver_of_our_own_is_right_everywhere(evaluate: Evaluate, kind: str, count: int) -> None:
    found = evaluate(Scripted(symmetric_by_id(4)), [f"s4_composition{kind}"], limit=count)
    got = found["results"][f"s4_composition{kind}"]
    assert all(got[f"{length},none"] == 1 for length in LENGTHS)
    assert got["acc,none"] == 1
    assert got["chance,none"] == 1 / 24
    assert got["n_per_length,none"] == count // 100
    assert got["falls_below_half,none"] == -1
    assert got["too_long,none"] == 0
    assert found["versions"][f"s4_composition{kind}"] == 2.0


def test_composing_backwards_is_wrong_in_a_group_that_does_not_commute(evaluate: Evaluate) -> None:
    got = evaluate(Scripted(symmetric_by_id(4, backwards=True)), ["s4_composition"], limit=200)["results"]
    assert got["s4_composition"]["acc,none"] < 0.3


def test_accuracies_and_standard_errors_are_those_of_each_length(evaluate: Evaluate) -> None:
    solve, draw = symmetric_by_id(3), random.Random(0)
    right: dict[int, list[float]] = defaultdict(list)

    def unsteady(prompt: str) -> str:
        knows = draw.random() < 1 - len(sequence(prompt)) / 500
        right[len(sequence(prompt))].append(float(knows))
        return solve(prompt) if knows else " -"

    found = evaluate(Scripted(unsteady), ["s3_composition"], metadata={"per_length": 4}, limit=350)
    got = found["results"]["s3_composition"]
    flat = [each for scores in right.values() for each in scores]
    assert len(flat) == got["sample_len"] == 350
    assert got["acc,none"] == pytest.approx(sum(flat) / 350)
    for length, scores in right.items():
        mean = sum(scores) / len(scores)
        spread = math.sqrt(sum((each - mean) ** 2 for each in scores) / (len(scores) - 1))
        assert got[f"{length},none"] == pytest.approx(mean)
        assert got[f"{length}_stderr,none"] == pytest.approx(spread / math.sqrt(len(scores)))
    assert got["n_per_length,none"] == 3
    pairs = [(n, score) for n, scores in right.items() for score in scores]
    assert got["falls_below_half,none"] == falls_below(pairs) == pytest.approx(250, abs=60)


def test_a_length_without_samples_says_minus_one_and_is_in_no_mean(evaluate: Evaluate, tmp_path: Path) -> None:
    """c2 has rows of the lengths 5 and 325, s3 of 5 alone; c2 is right at both and s3 wrong."""
    pair = {
        "group": "pair",
        "task": ["c2_composition", "s3_composition"],
        "aggregate_metric_list": [{"metric": name, "weight_by_size": False} for name in ("acc", "5", "325", "10")],
    }
    (tmp_path / "pair.yaml").write_text(json.dumps(pair))
    solve = symmetric_by_id(2)
    model = Scripted(lambda prompt: solve(prompt) if "group C2," in prompt else "")
    samples = {"c2_composition": [0, 1], "s3_composition": [0]}
    found = evaluate(model, ["pair"], include=tmp_path, samples=samples, bootstrap_iters=0)
    c2, s3 = found["results"]["c2_composition"], found["results"]["s3_composition"]
    assert (c2["5,none"], c2["325,none"], c2["10,none"], c2["acc,none"]) == (1, 1, -1, 1)
    assert (s3["5,none"], s3["325,none"], s3["10,none"], s3["acc,none"]) == (0, -1, -1, 0)
    assert c2["10_stderr,none"] == "N/A"
    mean = found["groups"]["pair"]
    assert (mean["5,none"], mean["325,none"], mean["10,none"], mean["acc,none"]) == (0.5, 1, -1, 0.5)
    assert json.loads(json.dumps(mean))["10,none"] == -1


def test_the_harness_table_has_a_dash_where_no_row_was_asked_and_says_how_to_read_it(
    evaluate: Evaluate, caplog: pytest.LogCaptureFixture
) -> None:
    task._say_how_to_read.cache_clear()
    with caplog.at_level(logging.INFO):
        found = evaluate(Scripted(symmetric_by_id(3)), ["s3_composition"], limit=2)
    lines = {line.split("|")[5].strip(): line.split("|")[7].strip() for line in make_table(found).splitlines()[2:]}
    assert {length: float(lines[str(length)]) for length in (5, 325)} == {5: 1, 325: 1}
    assert all(lines[str(length)] == "-" for length in LENGTHS if length not in (5, 325))
    assert caplog.text.count("`statetrack results FOLDER`") == 1


@given(st.lists(st.tuples(st.none() | st.floats(0, 1), st.integers(1, 9)), min_size=1), st.booleans())
def test_the_harness_mean_passes_over_missing_values(pairs: list[tuple[float | None, int]], weighted: bool) -> None:
    values = [NoSample() if value is None else value for value, _ in pairs]
    found = aggregate_subtask_metrics(values, [size for _, size in pairs], weighted)
    there = [(value, size if weighted else 1) for value, size in pairs if value is not None]
    if there:
        assert found == pytest.approx(sum(value * size for value, size in there) / sum(size for _, size in there))
    else:
        assert found == -1


def test_means_over_the_three_selectors(evaluate: Evaluate) -> None:
    """A model that knows cyclic groups alone is right in 29 of the 72 solvable groups."""
    model = Scripted(lambda prompt: f" {sum(map(int, sequence(prompt))) % order(prompt)}")

    def order(prompt: str) -> int:
        name = prompt.partition("group ")[2].partition(",")[0]
        return int(name[1:]) if name[0] == "C" else 10**9

    found = evaluate(model, ["permutation_groups"], limit=2)
    exact = [name for name in found["results"] if name.startswith("c") and name.endswith("_composition")]
    assert len(exact) == 29
    assert all(found["results"][name]["acc,none"] == 1 for name in exact)
    for selector in ("permutation_groups", "tc0_groups", "nc1_groups"):
        members = [name for name in found["results"] if name.endswith("_composition")]
        if selector != "permutation_groups":
            members = found["group_subtasks"][selector]
        got = found["groups"][selector]
        for metric in ("acc,none", "5,none", "325,none", "chance,none"):
            mean = sum(found["results"][name][metric] for name in members) / len(members)
            assert got[metric] == pytest.approx(mean)
        assert got["acc_stderr,none"] >= 0
        assert got["10,none"] == -1
        assert found["versions"][selector] == "2.0"


def test_processes_share_the_rows_and_report_the_same_metrics(task_files: Path) -> None:
    """As under `accelerate launch`: the harness gathers every metric of the first process from all of them."""
    told, rows = [], []
    for rank in range(2):
        task = TaskManager(include_path=str(task_files), include_defaults=False).load(["c5_composition"])["tasks"]
        task["c5_composition"].build_all_requests(limit=7, rank=rank, world_size=2)
        instances = task["c5_composition"].instances
        rows.append([instance.doc["row"] for instance in instances])
        told += [task["c5_composition"].process_results(instance.doc, [(0.0, True)]) for instance in instances]
    assert rows == [[0, 2, 4, 6], [1, 3, 5]]
    assert len({tuple(metrics) for metrics in told}) == 1
    means = {name: total([each[name] for each in told]) for name, total in task["c5_composition"].aggregation().items()}
    assert means["acc"] == 1
    assert sum(means[str(length)] == 1 for length in LENGTHS) == 7
    assert sum(means[str(length)] == -1 for length in LENGTHS) == 93


# ---- styles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "_gen"])
@pytest.mark.parametrize(("style", "greedy"), [("table", by_table), ("cycles", by_cycles(5)), ("generators", by_table)])
def test_every_style_can_be_solved_from_its_prompt(
    evaluate: Evaluate, kind: str, style: str, greedy: Callable[[str], str]
) -> None:
    options = {"style": style} if style != "table" else {"style": style, "relabel": 3}
    got = evaluate(Scripted(greedy), [f"a5_composition{kind}"], options, limit=20)["results"][f"a5_composition{kind}"]
    assert got["acc,none"] == 1


def test_relabelled_ids_are_other_ids_of_the_same_rows(evaluate: Evaluate) -> None:
    plain, other = Scripted(lambda prompt: ""), Scripted(lambda prompt: "")
    evaluate(plain, ["a5_composition"], limit=30)
    evaluate(other, ["a5_composition"], {"relabel": 1}, limit=30)
    names: dict[str, str] = {}
    for (before, target), (after, renamed) in zip(plain.seen, other.seen):
        for old, new in zip([*sequence(before), target.strip()], [*sequence(after), renamed.strip()]):
            assert names.setdefault(old, new) == new
    assert len(set(names.values())) == len(names) == 60
    assert any(old != new for old, new in names.items())


def test_shots_are_worked_examples_of_other_rows(evaluate: Evaluate) -> None:
    solve, model = symmetric_by_id(3), Scripted(lambda prompt: "")
    found = evaluate(model, ["s3_composition"], limit=4, num_fewshot=3)
    assert found["n-shot"]["s3_composition"] == 3
    for prompt, answer in model.seen:
        examples = prompt.partition("Examples:")[2].split("Sequence: ")[1:-1]
        assert len(examples) == 3
        for example in examples:
            row, _, shown = example.strip().partition("\nAnswer:")
            assert solve(f"Sequence: {row}") == shown
        assert solve(prompt) == answer


# ---- generating ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "strict", "lenient"),
    [("{}", 1, 1), (" {} ", 1, 1), ("{}.0", 1, 1), ("It is {}", 0, 1), ("{}1", 0, 0), ("no idea", 0, 0), ("", 0, 0)],
)
def test_replies_are_read_as_a_whole(evaluate: Evaluate, reply: str, strict: int, lenient: int) -> None:
    solve = symmetric_by_id(5)
    model = Scripted(lambda prompt: reply.format(solve(prompt).strip()))
    for parser, right in (("strict", strict), ("lenient", lenient)):
        got = evaluate(model, ["s5_composition_gen"], {"parser": parser}, limit=10)["results"]["s5_composition_gen"]
        assert got["acc,none"] == right
        unread = reply in ("no idea", "") or (parser == "strict" and reply.startswith("It"))
        assert got["violations,none"] == unread


def test_a_prefix_of_the_answer_is_not_the_answer(evaluate: Evaluate) -> None:
    """Log-likelihood credits "1" to a model that goes on to "117"; reading the whole reply does not."""
    solve = symmetric_by_id(5)
    long = Scripted(lambda prompt: solve(prompt) + "7")
    assert evaluate(long, ["s5_composition_gen"], limit=20)["results"]["s5_composition_gen"]["acc,none"] == 0


def test_generation_ends_with_the_line_and_has_room_for_the_answer(evaluate: Evaluate) -> None:
    for options, until, room in (({}, ["\n"], 32), ({"regime": "thinking"}, [], 2048), ({"room": 50}, ["\n"], 50)):
        model = Scripted(lambda prompt: "")
        evaluate(model, ["s5_composition_gen"], options, limit=1)
        assert model.seen[0][1] == {"until": until, "do_sample": False, "max_gen_toks": room}
    model = Scripted(by_table)
    evaluate(model, ["psl3_5_composition_gen"], {"style": "table"}, limit=1)
    assert model.seen[0][1]["max_gen_toks"] >= len(by_table(model.seen[0][0]))


def test_thinking_counts_the_last_answer(evaluate: Evaluate) -> None:
    solve = symmetric_by_id(5)
    model = Scripted(lambda prompt: f"Perhaps [{tag(prompt)}: 3]?\nNo.\n[{tag(prompt)}:{solve(prompt)}]")
    got = evaluate(model, ["s5_composition_gen"], {"regime": "thinking"}, limit=10)["results"]["s5_composition_gen"]
    assert got["acc,none"] == 1
