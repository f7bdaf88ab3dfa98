"""Verdicts on results made by hand: each outcome, and the two rules on witnesses and failed trainings."""

from __future__ import annotations

from typing import Any

import pytest

import statetrack as st
from statetrack.errors import BadInput
from statetrack.results import TrainingRecord
from statetrack.results.records import read
from statetrack.theory import predict
from statetrack.theory.predictions.predict import Prediction
from statetrack.verdicts import measurements
from statetrack.verdicts.measurements import from_record
from tests.verdicts.made_results import judged, run, runs, trained, verdict_1

EXIST = predict("e88-gain-1l", st.task("txc"))
NONE_EXIST = predict("mamba2-4l", st.task("txc"))
FOUND = predict("e88-gain-1l", st.task("txc"), "training")
NOT_FOUND = predict("mamba2-4l", st.task("txc"), "training")
FADES = predict("gated-deltanet-neg", st.task("txc"), "training")
WITNESS = [run("e88-gain-1l", "txc", 100_000, 0, 1.0, witness=True, low=0.999)]


def test_failed_training_never_refutes_that_weights_exist() -> None:
    assert judged(EXIST, runs("e88-gain-1l", "txc", [0.5] * 5, short=0.5)) == "undecided"


def test_weights_exist_by_a_witness_or_by_training() -> None:
    assert judged(EXIST, WITNESS) == "confirmed"
    assert judged(EXIST, runs("e88-gain-1l", "txc", [0.5, 1.0, 0.5])) == "confirmed"


def test_a_witness_must_run_far_and_right() -> None:
    assert judged(EXIST, [run("e88-gain-1l", "txc", 1000, 0, 1.0, witness=True)]) == "undecided"
    assert judged(EXIST, [run("e88-gain-1l", "txc", 100_000, 0, 0.7, witness=True)]) == "undecided"


def test_a_witness_never_confirms_what_training_finds() -> None:
    assert judged(FOUND, WITNESS * 5) == "undecided"
    assert judged(FOUND, [*WITNESS, *runs("e88-gain-1l", "txc", [0.5] * 3)]) == "refuted"


def test_training_finds_them() -> None:
    assert judged(FOUND, runs("e88-gain-1l", "txc", [1.0, 1.0, 1.0])) == "confirmed"
    assert judged(FOUND, runs("e88-gain-1l", "txc", [1.0, 1.0, 0.5])) == "confirmed"
    assert judged(FOUND, runs("e88-gain-1l", "txc", [0.6, 0.5, 1.0])) == "refuted"
    assert judged(FOUND, runs("e88-gain-1l", "txc", [1.0, 0.5, 1.0, 0.5])) == "undecided"


def test_three_seeds_are_needed() -> None:
    assert judged(FOUND, runs("e88-gain-1l", "txc", [1.0, 1.0])) == "undecided"
    assert judged(NOT_FOUND, runs("mamba2-4l", "txc", [0.5, 0.5])) == "undecided"


def test_near_is_not_far() -> None:
    assert judged(FOUND, runs("e88-gain-1l", "txc", [1.0] * 5, far=256)) == "undecided"


def test_wide_intervals_decide_nothing() -> None:
    wide = [{**record, "low": 0.4, "high": 1.0} for record in runs("e88-gain-1l", "txc", [1.0] * 5)]
    assert judged(FOUND, wide) == "undecided"


def test_a_floor_near_one_is_no_skill() -> None:
    """FSM at 1024: the majority by position scores .998, so .998 is not a solution."""
    prediction = predict("linear-rnn", st.task("fsm"), "training")
    lucky = [{**record, "floor": 0.998} for record in runs("linear-rnn", "fsm", [0.998] * 3)]
    assert judged(prediction, lucky) == "undecided"
    better = [{**record, "low": 0.9995, "floor": 0.998} for record in runs("linear-rnn", "fsm", [0.9999] * 3)]
    assert judged(prediction, better) == "confirmed"


def test_no_weights_exist_is_refuted_by_weights_and_never_confirmed() -> None:
    assert judged(NONE_EXIST, runs("mamba2-4l", "txc", [0.5] * 9)) == "undecided"
    assert judged(NONE_EXIST, runs("mamba2-4l", "txc", [0.5, 0.5, 1.0])) == "refuted"
    witness = run("mamba2-4l", "txc", 20_000, 0, 1.0, witness=True)
    assert judged(NONE_EXIST, [witness]) == "refuted"


def test_training_cannot_find_them() -> None:
    assert judged(NOT_FOUND, runs("mamba2-4l", "txc", [0.5] * 3, short=0.6)) == "confirmed"
    assert judged(NOT_FOUND, runs("mamba2-4l", "txc", [0.5, 0.5, 1.0])) == "refuted"
    unclear = [{**record, "high": 0.995} for record in runs("mamba2-4l", "txc", [0.5, 0.5, 0.98])]
    assert judged(NOT_FOUND, unclear) == "undecided"


def test_fading() -> None:
    assert judged(FADES, runs("gated-deltanet-neg", "txc", [0.5, 0.6, 0.5])) == "confirmed"
    assert judged(FADES, runs("gated-deltanet-neg", "txc", [1.0, 1.0, 0.5])) == "refuted"
    assert judged(FADES, runs("gated-deltanet-neg", "txc", [0.5] * 3, short=0.5)) == "undecided"


def test_rows_that_forget_do_not_refute_what_is_said_of_every_input() -> None:
    """A contraction loses a bit that is held for long, but only a third of the random inputs of flip_flop hold it."""
    for about in ("weights", "training"):
        fades = predict("e88-1l", st.task("flip_flop"), about)
        assert (fades.outcome, fades.rows_forget) == ("fades", True)
        assert judged(fades, runs("e88-1l", "flip_flop", [1.0] * 3)) == "undecided"
        kept = predict("e88-published-1l", st.task("txc"), about)
        assert (kept.outcome, kept.rows_forget) == ("fades", False)
        assert judged(kept, runs("e88-published-1l", "txc", [1.0] * 3)) == "refuted"


def test_growing_with_depth() -> None:
    grows = predict("transformer", st.task("s5"), "training")
    assert grows.outcome == "grows with depth"
    deep = Prediction(**{**grows.to_dict(), "family": "diagonal", "model": "mamba2-4l", "conditions": ()})

    def depth(layers: int, solved_to: int) -> list[dict[str, Any]]:
        return [
            run(f"mamba2-{layers}l", "s5_composition", length, seed, 1.0 if length <= solved_to else 0.1)
            for length in (16, 64, 256)
            for seed in range(3)
        ]

    assert judged(deep, depth(4, 16) + depth(8, 64)) == "confirmed"
    assert judged(deep, depth(4, 256) + depth(8, 256)) == "refuted"
    assert judged(deep, depth(4, 64) + depth(8, 16)) == "refuted"
    assert judged(deep, depth(4, 16) + depth(8, 16)) == "undecided"
    assert judged(deep, depth(4, 16)) == "undecided"
    own = [{**record, "model": "mine.py:Model"} for record in depth(8, 64)]
    assert judged(deep, depth(4, 16) + own) == "undecided"


def test_what_was_not_predicted_is_undecided() -> None:
    unknown = predict("gru", st.task("track_the_stat.mode"))
    assert judged(unknown, runs("gru", "track_the_stat.mode", [1.0] * 5)) == "undecided"


def test_other_models_and_tasks_do_not_count() -> None:
    assert judged(FOUND, runs("lstm", "txc", [1.0] * 5)) == "undecided"
    assert judged(FOUND, runs("e88-gain-1l", "fsm", [1.0] * 5)) == "undecided"


def test_a_training_record_is_one_result_for_each_length() -> None:
    stream = {"accuracy": {"1024": 0.9, "2048": 0.8, "4096": None}, "rows": 64, "positions": 1024}
    read = from_record(trained(3, 0.7, stream=stream))
    assert [(one.length, one.accuracy, one.solved, one.n) for one in read] == [
        (64, 1.0, True, 65_536), (128, 1.0, True, 1024), (1024, 0.7, False, 1024), (2048, 0.8, False, 64)
    ]  # fmt: skip
    assert {(one.model, one.task, one.seed, one.trained, one.floor) for one in read} == {
        ("E88-gain-1L", "txc", 3, 64, 0.5)
    }
    assert (read[2].low, read[2].high) == (0.697, 0.7)
    assert read[3].low < 0.75 < 0.85 < read[3].high < 0.9  # 64 independent rows, not 65,536 positions


def test_the_floor_of_a_longer_length_is_its_own() -> None:
    record = trained(0, 0.7)
    record["cell"]["task"] = "fsm"
    for length, entry in record["length_generalisation"].items():
        entry["floor"] = 1 - 1.875 / int(length)
    assert from_record(record)[2].floor == 1 - 1.875 / 1024
    record["length_generalisation"]["1024"]["floor"] = None  # too costly to sum over
    assert from_record(record)[2].floor == from_record(record)[1].floor == 1 - 1.875 / 128


def test_a_record_is_judged_as_its_plain_data_are() -> None:
    stream = {"accuracy": {"1024": 0.9, "2048": 0.8}, "rows": 64, "positions": 1024}
    plain = trained(3, 0.7, stream=stream, full_sequence_accuracy=0.5, full_sequence_interval=[0.45, 0.55])
    record = read(plain)
    assert isinstance(record, TrainingRecord)
    assert from_record(record) == from_record(plain)
    assert {one.length: one.end_floor for one in measurements.tested(record)} == dict.fromkeys((64, 128, 1024, 2048))
    known = trained(3, 0.7, stream=stream, floor_exact=True)
    for entry in known["length_generalisation"].values():
        entry["floor"] = 0.5
    exact = read(known)
    assert isinstance(exact, TrainingRecord)
    assert [one.end_floor for one in measurements.tested(exact)] == pytest.approx([0.5] * 4)
    assert verdict_1(FOUND, [exact]) == verdict_1(FOUND, [known])


def test_being_right_where_a_guess_is_right_decides_nothing() -> None:
    """Over all positions FSM is far above its floor; at the end of a row nothing is left to know."""
    fades = predict("e88-published-1l", st.task("fsm"))
    assert fades.outcome == "fades"
    record = trained(0, 0.9999, floor_exact=True)
    record["cell"] |= {"task": "fsm", "subject": "e88-published-1l"}
    record["length_generalisation"]["1024"] |= {"interval": [0.9995, 0.9999], "floor": 1 - 1.875 / 1024}
    assert from_record(record)[2].state == "unclear"
    assert verdict_1(fades, [record]).outcome == "undecided"
    parity = trained(0, 0.9999, floor_exact=True)
    parity["length_generalisation"]["1024"] |= {"interval": [0.9995, 0.9999], "floor": 0.5}
    assert from_record(parity)[2].state == "solved"


def test_lengths_that_were_not_measured_are_left_out() -> None:
    record = trained(0, 0.7, stream={"accuracy": None, "reason": "the model keeps no state of constant size"})
    record["length_generalisation"]["1024"] = {"accuracy": None, "reason": "the model has 128 positions"}
    assert [one.length for one in from_record(record)] == [64, 128]
    assert from_record({"cell": record["cell"], "status": "failed"}) == []
    with pytest.raises(BadInput, match=r"a training record cannot be read: training\.learning_rate is missing"):
        from_record({"cell": record["cell"], "accuracy": 0.5})


def test_the_verdict_reads_training_records() -> None:
    assert judged(FOUND, [trained(seed, 1.0) for seed in range(3)]) == "confirmed"
    assert judged(FOUND, [trained(seed, 0.6) for seed in range(3)]) == "refuted"
    assert judged(EXIST, [trained(0, 1.0)]) == "confirmed"


def test_a_stream_of_few_rows_can_take_a_solution_back_and_not_add_one() -> None:
    def streams(accuracy: float) -> list[dict[str, Any]]:
        stream = {"accuracy": {"65536": accuracy}, "rows": 64, "positions": 1024}
        return [trained(seed, 1.0, stream=stream) for seed in range(3)]

    assert judged(FOUND, streams(1.0)) == "confirmed"
    assert judged(FOUND, streams(0.6)) == "refuted"
    assert judged(FOUND, streams(0.985)) == "undecided"


def test_bad_records() -> None:
    with pytest.raises(BadInput, match="no 'accuracy'"):
        verdict_1(FOUND, [{"model": "mlp", "task": "txc", "length": 3, "seed": 0}])
    with pytest.raises(BadInput, match="interval"):
        verdict_1(FOUND, [run("mlp", "txc", 3, 0, 0.5, low=0.7, high=0.6)])


def test_a_seed_trained_at_several_lengths_is_judged_network_by_network() -> None:
    """Far is 8 times the length a network was trained on, not 8 times the shortest of all."""

    def grid(near: float, far: float) -> list[dict[str, Any]]:
        return [
            run("e88-gain-1l", "txc", length, seed, accuracy, trained=at)
            for seed in range(3)
            for at, length, accuracy in [(16, 16, 1.0), (16, 256, 0.5), (256, 256, near), (256, 4096, far)]
        ]

    assert judged(FOUND, grid(1.0, 1.0)) == "confirmed"
    assert judged(FOUND, grid(1.0, 0.5)) == "refuted"
    near_only = [record for record in grid(1.0, 1.0) if record["length"] <= 256 and record["trained"] == 256]
    assert judged(FOUND, near_only) == "undecided"
    fades = predict("gated-deltanet-neg", st.task("txc"), "training")
    assert judged(fades, [{**record, "model": "gated-deltanet-neg"} for record in grid(1.0, 0.5)]) == "confirmed"


def test_a_network_that_may_have_solved_it_keeps_its_seed_from_having_failed() -> None:
    """One trained at 8 fails far out; the other, trained at 64, is right far out, but on too few rows to be sure."""
    few = {"low": 0.8, "high": 1.0, "n": 16}
    runs = [
        record
        for seed in range(3)
        for record in (
            run("mamba2-4l", "txc", 8, seed, 1.0, trained=8), run("mamba2-4l", "txc", 64, seed, 0.5, trained=8),
            run("mamba2-4l", "txc", 64, seed, 1.0, trained=64), run("mamba2-4l", "txc", 512, seed, 1.0, **few),
        )
    ]  # fmt: skip
    assert judged(NOT_FOUND, runs) == "undecided"
    assert judged(NOT_FOUND, [record for record in runs if record["trained"] == 8]) == "confirmed"


def test_networks_of_two_protocols_are_two_networks() -> None:
    solved = [run("e88-gain-1l", "txc", length, 0, 1.0, protocol="curriculum") for length in (64, 512)]
    failed = [run("e88-gain-1l", "txc", length, 0, 0.6, protocol="design") for length in (64, 1024)]
    assert judged(EXIST, solved + failed) == "confirmed"


def test_the_floor_of_the_end_is_looked_at_in_long_trainings_too() -> None:
    record = trained(0, 0.9999, floor_exact=True, floor_by_position=[0.5] * 4000 + [1.0] * 96)
    record["cell"] |= {"task": "fsm", "length": 4096}
    record["length_generalisation"] = {}
    assert from_record(record)[0].state == "unclear"
