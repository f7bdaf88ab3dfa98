"""What the permutation benchmark predicts, judged on trained and on asked records at lengths that sweeps produce."""

from __future__ import annotations

from typing import Any

import pytest

from statetrack.asking import Rules
from statetrack.results import AskedRecord, Cell
from statetrack.results.records import EpisodeRecord
from statetrack.verdicts import verdict
from statetrack.verdicts.documents import predictions
from statetrack.verdicts.judge import sentences
from tests.verdicts.made_results import run

KNOWN = {known.key: known for known in predictions()}
LM = "hf:tiny implicit"


def asked(right: int, wrong: int, *, task: str = "s5_composition", length: int = 8, letter: str = "x",
          **rules: Any) -> list[AskedRecord]:  # fmt: skip
    """Samples with one answer each; `letter` says how the wrong ones are wrong."""
    protocol = {"name": "ask", **Rules(way="whole", **rules).to_dict()}
    made = []
    for sample in range(right + wrong):
        fine = sample < right
        episode = EpisodeRecord(
            ended="done" if fine else "wrong", max_length=int(fine), asked=1, outcomes="+" if fine else letter,
            positions=[length], changes="-", replies=["[answer: 0]"], tokens={},
        )  # fmt: skip
        made.append(AskedRecord(cell=Cell(task, LM, length, sample, protocol), episode=episode))
    return made


def outcome(key: str, results: list[Any]) -> str:
    return verdict(KNOWN[key], results).outcome


@pytest.mark.parametrize("length", [7, 32, 64, 333])
def test_state_space_models_are_judged_at_any_length(length: int) -> None:
    failed = [run("mamba2-4l", "s5_composition", length, seed, 0.01, trained=length, floor=0.0083) for seed in range(5)]
    assert outcome("p-ssm-s5", failed) == "undecided"  # training not shown adequate
    beside = [run("mamba2-4l", name, at, 0, 1.0, trained=at)
              for name, at in (("s5_composition", 4), ("flip_flop[symbols=120]", length))]  # fmt: skip
    assert outcome("p-ssm-s5", [*failed, *beside]) == "confirmed"
    better = [{**each, "accuracy": 0.3, "low": 0.29, "high": 0.31} for each in failed]
    assert outcome("p-ssm-s5", better) == "refuted"


def test_transformers_that_were_not_trained_for_it() -> None:
    assert outcome("p-transformer", []) == "undecided"
    assert outcome("p-transformer", asked(0, 20)) == "undecided"  # allows 14 %
    assert outcome("p-transformer", asked(0, 100)) == "confirmed"
    assert outcome("p-transformer", asked(20, 80)) == "refuted"
    assert outcome("p-transformer", asked(0, 100, letter="f")) == "undecided"  # it failed at the format
    assert outcome("p-transformer", asked(0, 100, length=4)) == "undecided"  # shorter than the document means
    assert outcome("p-transformer", asked(0, 100, task="rtc")) == "undecided"


def test_thinking_is_compared_on_the_same_samples() -> None:
    at_once, thinking = asked(2, 8), asked(9, 1, regime="thinking")
    assert outcome("p-cot", [*at_once, *thinking]) == "confirmed"
    assert outcome("p-cot", [*asked(9, 1), *asked(2, 8, regime="thinking")]) == "refuted"
    assert outcome("p-cot", [*at_once, *asked(2, 8, regime="thinking")]) == "undecided"
    assert outcome("p-cot", thinking) == "undecided"


def test_longer_sequences() -> None:
    def trained(far: float) -> list[dict[str, Any]]:
        return [run("transformer", "s5_composition", length, seed, accuracy, trained=32, floor=0.0083)
                for seed in range(5) for length, accuracy in ((32, 0.9), (256, far))]  # fmt: skip

    assert outcome("p-length", trained(0.2)) == "confirmed"
    assert outcome("p-length", trained(0.9)) == "refuted"
    assert outcome("p-length", trained(0.2)[:6]) == "undecided"
    one_model = [*asked(50, 0), *asked(0, 50, length=64)]
    assert "in 1 of 1" in verdict(KNOWN["p-length"], one_model).why  # one model decides no rate


def test_groups_of_one_order_are_compared() -> None:
    def trained(solvable: float, not_solvable: float) -> list[dict[str, Any]]:
        return [run("gru", name, 32, seed, accuracy, trained=32, floor=0.0167) for seed in range(5)
                for name, accuracy in (("z60_composition", solvable), ("a5_composition", not_solvable))]  # fmt: skip

    assert outcome("p-solvable", trained(0.9, 0.3)) == "confirmed"
    assert outcome("p-solvable", trained(0.3, 0.9)) == "refuted"
    assert outcome("p-solvable", trained(0.5, 0.5)) == "undecided"
    other_order = [each for each in trained(0.9, 0.3) if each["task"] != "a5_composition"]
    assert outcome("p-solvable", [*other_order, run("gru", "s5_composition", 32, 0, 0.1)]) == "undecided"


def test_a_folder_of_asked_cells_alone_is_judged() -> None:
    told = {each.prediction.key: each.verdict.outcome for each in sentences([], asked(20, 80))}
    assert told == {"p-transformer": "refuted", "p-cot": "undecided", "p-length": "undecided",
                    "p-solvable": "undecided"}  # fmt: skip


ORDERS = ("s5_composition", "a5_composition", "s4_composition", "s3_composition", "z60_composition")


def test_lengths_are_compared_under_the_same_rules() -> None:
    def both(**short: Any) -> list[AskedRecord]:
        return [
            each for task in ORDERS for each in [*asked(50, 0, task=task, **short), *asked(0, 50, task=task, length=64)]
        ]

    assert outcome("p-length", both()) == "confirmed"
    assert outcome("p-length", both(regime="thinking")) == "undecided"


def test_a_sample_counts_once() -> None:
    assert outcome("p-transformer", asked(0, 1) * 100) == "undecided"


def test_a_guess_in_a_small_group_is_not_near_zero() -> None:
    assert outcome("p-transformer", asked(50, 50, task="z2_composition")) == "undecided"


def test_a_network_that_diverged_makes_no_group_hard() -> None:
    taught = [run("gru", "z60_composition", 32, seed, 0.9, trained=32, floor=0.0167) for seed in range(5)]
    failed = [run("gru", "a5_composition", 32, seed, 0.02, trained=32, floor=0.0167) for seed in range(5)]
    assert outcome("p-solvable", [*taught, *failed]) == "confirmed"
    assert outcome("p-solvable", [*taught, *({**each, "excuse": "it diverged"} for each in failed)]) == "undecided"
