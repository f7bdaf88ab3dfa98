"""Rules 2 on what theory predicts: each way in which a verdict could be had for nothing is closed."""

from __future__ import annotations

from typing import Any

import pytest

import statetrack as st
from statetrack.errors import BadInput
from statetrack.results import TrainingRecord
from statetrack.results.evaluations import BreakingWord, OnWords, Power
from statetrack.results.records import read
from statetrack.theory import predict
from statetrack.verdicts import verdict
from statetrack.verdicts.measurements import from_record
from statetrack.verdicts.networks import BROKEN, MEASURED, networks, one_way
from statetrack.verdicts.outcomes import Verdict
from statetrack.verdicts.rules import both
from tests.verdicts.made_results import run, trained
from tests.verdicts.seeds_of_runs import Runs, controls, network, networks_of

GAIN, MAMBA, DELTA = "e88-gain-1l", "mamba2-4l", "gated-deltanet-neg"
FOUND = predict(GAIN, st.task("txc"), "training")
NOT_FOUND = predict(MAMBA, st.task("txc"), "training")
FADES = predict(DELTA, st.task("txc"), "training")


def given(prediction: Any, results: Runs) -> tuple[str, str]:
    found = verdict(prediction, results)
    assert found.rules == 2
    return found.outcome, found.why


# V1: failures that are none


def test_untrained_networks_confirm_nothing() -> None:
    """Three, or thirty, at chance that took no step."""
    untrained = networks_of(MAMBA, "txc", 0, 30, own=0.5, excuse="it took no step")
    assert given(NOT_FOUND, [*untrained, *controls(MAMBA, "txc")])[0] == "undecided"
    assert "30 open (it took no step)" in verdict(NOT_FOUND, untrained).why


@pytest.mark.parametrize("why", [{"excuse": "it took no step"}, {"stopped": "it stopped after 20 of 2,000 updates"}])
def test_a_word_that_breaks_an_untrained_network_confirms_nothing(why: dict[str, str]) -> None:
    broken = networks_of(MAMBA, "txc", 0, 14, own=0.5, broken="1", **why)
    assert given(NOT_FOUND, [*broken, *controls(MAMBA, "txc")])[0] == "undecided"
    solved_and_broken = networks_of(GAIN, "txc", 0, 5, broken="1", stopped="it stopped after 20 of 2,000 updates")
    assert given(FOUND, solved_and_broken)[0] == "refuted"


def test_controls_are_not_what_is_judged() -> None:
    """Five seeds trained at 4 lose 1,024; the four that were trained at 64 are right there."""
    short = [
        run(GAIN, "txc", length, seed, end, trained=4) for seed in range(5) for length, end in ((4, 1.0), (1024, 0.5))
    ]
    found = verdict(FOUND, [*networks_of(GAIN, "txc", 4, 0), *short])
    assert (found.outcome, found.seeds) == ("undecided", 4)
    assert verdict(FOUND, short).seeds == 5


def test_what_every_guess_solves_is_no_control() -> None:
    failed = networks_of(MAMBA, "txc", 0, 14, own=0.5)
    assert given(NOT_FOUND, [*failed, *controls(MAMBA, "txc")])[0] == "confirmed"
    guessed = [{**each, "floor": 1.0} for each in controls(MAMBA, "txc")]
    assert given(NOT_FOUND, [*failed, *guessed])[0] == "undecided"


@pytest.mark.parametrize("wrong", [{"accuracy": float("nan")}, {"accuracy": 1.7}, {"floor": float("nan")}])
def test_no_number_is_no_accuracy(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="should lie in"):
        verdict(NOT_FOUND, [{**each, **wrong} for each in networks_of(MAMBA, "txc", 5, 0)])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"steps": 0}, "it took no step"),
        ({"diverged_at": 7, "status": "diverged"}, "it diverged at step 7"),
        ({"steps": 240}, "it stopped after 240 of 2,000 updates"),
        ({"steps": 2000}, ""),
    ],
)
def test_why_a_run_is_no_failure_of_its_model_is_read_from_the_record(changes: dict[str, Any], why: str) -> None:
    design = {"name": "design", "check_every": 20, "most_checks": 100, "patience": 10, "first_length": 0}
    plain = trained(0, 0.5, accuracy=0.5, interval=[0.49, 0.51], tail_accuracy=0.5) | changes
    plain["cell"] = {**plain["cell"], "protocol": design}
    (one,) = networks(from_record(plain))
    assert one.right_far_out is (None if why else False)
    assert why in (one.first.excuse or one.first.stopped)
    solved = trained(0, 1.0) | changes
    solved["cell"] = plain["cell"]
    assert networks(from_record(solved))[0].right_far_out is True  # what solved it was trained well enough


# V6: rows never confirm "every length", and words may refute that training finds it


def test_every_length_is_never_confirmed_by_rows() -> None:
    outcome, why = given(FOUND, networks_of(GAIN, "txc", 30, 0))
    assert outcome == "undecided"
    assert why.startswith("usually right as far as tested: 30 of 30 seeds to 1,024 and more; none is broken by a word")
    weights = verdict(predict(GAIN, st.task("txc")), networks_of(GAIN, "txc", 30, 0))
    assert weights.outcome == "undecided"
    assert "right on 1,024 rows to 1,024, which excludes that more than 0.29% of such rows go wrong" in weights.why


def test_words_refute_that_training_finds_it() -> None:
    """A GRU that is right on every random row, and wrong on 1 0 0 0 ..."""
    broken = networks_of(GAIN, "txc", 5, 0, broken="1 0^22")
    outcome, why = given(FOUND, broken)
    assert outcome == "refuted"
    assert "seldom right far out: 0 of 5 seeds, 5 broken by a word such as 1 0^22" in why
    assert given(FOUND, broken[:8])[0] == "undecided"  # four seeds


def test_the_word_of_a_record_counts() -> None:
    record = read(trained(0, 1.0))
    assert isinstance(record, TrainingRecord)
    word = BreakingWord(parts=(Power([1]), Power([0], 22)), family="u v^k", expected=1, given=0)
    tried = OnWords(seed=0, budget=1000, words=40, tokens=900, longest=64, wrong=1, breaking=word)
    (whole,), (lost,) = (networks(from_record(each)) for each in (record, record.with_evaluations([tried])))
    assert (whole.right_far_out, whole.first.words, whole.claim[0]) == (True, None, MEASURED)
    assert (lost.right_far_out, lost.first.words, lost.claim) == (False, 40, (BROKEN, "1 0^22"))


def test_rows_of_another_kind_count() -> None:
    """One event and then silence, at the length trained on: as good as a word."""
    off = {"accuracy": {"p=0.02": 0.998, "one event, then silence": 0.328}, "mean": 0.66, "worst": 0.328}
    (lost,) = networks(from_record(trained(0, 1.0, off_distribution=off)))
    assert (lost.right_far_out, lost.first.elsewhere) == (False, "one event, then silence: 0.328")
    assert "and not on others (one event, then silence: 0.328)" in lost.claim[1]
    fine = {**off, "accuracy": {"p=0.02": 0.998}, "worst": 0.998}
    assert networks(from_record(trained(0, 1.0, off_distribution=fine)))[0].right_far_out is True
    outcome, why = given(FOUND, networks_of(GAIN, "txc", 5, 0, elsewhere="all zeros: 0.500"))
    assert (outcome, "5 wrong on rows of another kind (all zeros: 0.500)" in why) == ("refuted", True)


def test_weights_are_decided_by_no_rows_at_all() -> None:
    """Neither by failures nor by 10,000 right steps of weights set by hand: a counter may end later."""
    none = predict(MAMBA, st.task("txc"))
    by_hand = [run(MAMBA, "txc", 1_000_000, 0, 1.0, witness=True, low=0.999)]
    for results in (by_hand, networks_of(MAMBA, "txc", 9, 0), networks_of(MAMBA, "txc", 0, 99)):
        assert given(none, results)[0] == "undecided"


# V7: rates, controls, one network for each seed


@pytest.mark.parametrize(("right", "wrong", "outcome"), [(0, 4, "undecided"), (0, 5, "refuted"), (1, 7, "refuted"),
                                                         (2, 6, "undecided"), (3, 0, "undecided")])  # fmt: skip
def test_training_finds_it_is_refuted_by_seldom(right: int, wrong: int, outcome: str) -> None:
    assert given(FOUND, networks_of(GAIN, "txc", right, wrong))[0] == outcome


def test_cannot_is_confirmed_by_rarely_with_controls() -> None:
    failed = networks_of(MAMBA, "txc", 0, 14, own=0.6)
    assert given(NOT_FOUND, [*failed, *controls(MAMBA, "txc")])[0] == "confirmed"
    outcome, why = given(NOT_FOUND, failed)
    assert outcome == "undecided"
    assert "training not shown adequate: txc at 4 was not run; flip_flop at 64 was not run" in why
    unsolved = given(NOT_FOUND, [*failed, *controls(MAMBA, "txc", solved=0.6)])[1]
    assert "txc at 4 was solved by 0 of 3; flip_flop at 64 was solved by 0 of 3" in unsolved
    seldom = networks_of(MAMBA, "txc", 0, 13, own=0.6)
    assert "for “rarely” at least 1 more seed needed" in given(NOT_FOUND, [*seldom, *controls(MAMBA, "txc")])[1]


def test_controls_must_be_of_the_same_training() -> None:
    failed = networks_of(MAMBA, "txc", 0, 14, own=0.6, protocol="curriculum")
    assert given(NOT_FOUND, [*failed, *controls(MAMBA, "txc", protocol="design")])[0] == "undecided"
    assert given(NOT_FOUND, [*failed, *controls("gru", "txc", protocol="curriculum")])[0] == "undecided"
    assert given(NOT_FOUND, [*failed, *controls(MAMBA, "txc", protocol="curriculum")])[0] == "confirmed"


def test_a_control_that_theory_denies_gives_way_to_a_task_that_it_grants() -> None:
    """No linear RNN does parity at 4; what it can sum, it must be seen to learn."""
    failed = networks_of("linear-rnn", "txc", 0, 14, own=0.5)
    prediction = predict("linear-rnn", st.task("txc"), "training")
    without = given(prediction, [*failed, *controls("linear-rnn", "txc")])
    assert without[0] == "undecided"
    assert "theory denies it txc, and no task that it grants was solved at 4" in without[1]
    summing = [run("linear-rnn", "rtc", 4, 0, 1.0, trained=4)]
    outcome, why = given(prediction, [*failed, *controls("linear-rnn", "txc"), *summing])
    assert outcome == "confirmed"
    assert "in place of txc, which theory denies it: rtc at 4 was solved by 1 of 1" in why


def test_the_flip_flop_has_as_many_symbols_as_the_task() -> None:
    prediction = predict(GAIN, st.task("s3"), "training")
    assert prediction.outcome == "cannot"
    failed = networks_of(GAIN, "s3_composition", 0, 14, own=0.4)
    assert "flip_flop[symbols=6] at 64 was not run" in given(prediction, failed)[1]
    held = controls(GAIN, "s3_composition", "flip_flop[symbols=6]")
    assert given(prediction, [*failed, *held])[0] == "confirmed"


def test_cannot_is_refuted_by_usually_if_words_were_tried() -> None:
    solved = networks_of(MAMBA, "txc", 5, 0)
    assert given(NOT_FOUND, solved)[0] == "refuted"
    untried = [{**each, "words": None} for each in solved]
    assert given(NOT_FOUND, untried)[0] == "undecided"
    assert given(NOT_FOUND, networks_of(MAMBA, "txc", 1, 3))[0] == "undecided"


def test_random_rows_that_forget_refute_nothing() -> None:
    fades = predict("e88-1l", st.task("flip_flop"), "training")
    assert fades.rows_forget
    outcome, why = given(fades, networks_of("e88-1l", "flip_flop", 9, 0))
    assert (outcome, "which do not ask how long a state is held" in why) == ("undecided", True)


def test_a_seed_is_one_network_and_not_the_best_of_several() -> None:
    """Solved by one of two lengths or protocols with every seed: under rules 1 each seed had solved it."""
    long = [
        record
        for seed in range(5)
        for record in (
            run(GAIN, "txc", 16, seed, 1.0, trained=16), run(GAIN, "txc", 256, seed, 1.0, trained=16),
            *network(GAIN, "txc", seed, 0.5),
        )
    ]  # fmt: skip
    assert verdict(FOUND, long, rules=1).outcome == "confirmed"
    assert given(FOUND, long)[0] == "refuted"  # by those trained at 64, the longest of equals
    mixed = [*networks_of(GAIN, "txc", 0, 6, protocol="a"), *networks_of(GAIN, "txc", 5, 0, protocol="b")]
    chosen = one_way(networks(from_plain(mixed)))
    assert {one.first.protocol for one in chosen} == {"a"}
    assert given(FOUND, mixed)[0] == given(FOUND, mixed[::-1])[0] == "refuted"
    equal = [*networks_of(GAIN, "txc", 0, 5, protocol="a"), *networks_of(GAIN, "txc", 5, 0, protocol="b")]
    assert given(FOUND, equal) == given(FOUND, equal[::-1])  # whatever the order


def from_plain(records: Runs) -> list[Any]:
    from statetrack.verdicts.measurements import Measurement

    return [Measurement.read(each) for each in records]


# V4: the mechanism


def test_fading_is_confirmed_by_a_diagnosis_that_names_it() -> None:
    lost = networks_of(DELTA, "txc", 0, 5)
    assert given(FADES, lost) == ("undecided", "not diagnosed: lost far out by 5 of 5, by fading or otherwise")
    assert given(FADES, [{**each, "mechanism": "fades"} for each in lost])[0] == "confirmed"
    outcome, why = given(FADES, [{**each, "mechanism": "explodes"} for each in lost])
    assert outcome == "refuted"
    assert "by fading alone 0 of 5 seeds; seen: explodes" in why
    assert given(FADES, networks_of(DELTA, "txc", 5, 0))[0] == "refuted"
    assert given(FADES, networks_of(DELTA, "txc", 0, 5, own=0.5, mechanism="fades"))[0] == "undecided"


# V8: the version


def test_a_verdict_says_under_which_rules_it_was_given() -> None:
    results = networks_of(GAIN, "txc", 3, 0)
    old, new = verdict(FOUND, results, rules=1), verdict(FOUND, results)
    assert [(each.outcome, each.rules) for each in (old, new)] == [("confirmed", 1), ("undecided", 2)]
    assert new.to_dict()["rules"] == 2
    with pytest.raises(BadInput, match="rules 3 should be 1 or 2"):
        verdict(FOUND, results, rules=3)


def test_both_verdicts_are_given_where_they_differ() -> None:
    results = networks_of(GAIN, "txc", 3, 0)
    assert both(FOUND, results, 2).before is None
    before = both(FOUND, results, 1).before
    assert isinstance(before, Verdict)
    assert before.outcome == "confirmed"
    assert both(FOUND, [], 1).before is None  # undecided by both
