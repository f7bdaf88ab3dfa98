"""Verdicts on results made by hand: each outcome, and the two rules on witnesses and failed trainings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

import statetrack as st
from statetrack.errors import BadInput
from statetrack.theory import predict
from statetrack.theory.predictions import Prediction
from statetrack.training import PROTOCOLS, Protocol
from statetrack.verdicts import verdict
from statetrack.verdicts.documents import DESIGN_TRAINING, DocumentPrediction, Measure, predictions
from statetrack.verdicts.measured import from_record
from statetrack.verdicts.rules import Verdict


def run(model: str, task: str, length: int, seed: int, accuracy: float, **more: Any) -> dict[str, Any]:
    """A record as training writes it, with an interval of one hundredth to each side."""
    record = {
        "model": model,
        "task": task,
        "length": length,
        "seed": seed,
        "accuracy": accuracy,
        "n": 10_000,
        "low": max(0.0, accuracy - 0.01),
        "high": min(1.0, accuracy + 0.01),
        "floor": 0.5,
        "solved": accuracy >= 0.99,
        "trained": 64,
    }
    return {**record, **more}


def runs(model: str, task: str, ends: list[float], short: float = 1.0, far: int = 1024) -> list[dict[str, Any]]:
    """For each seed the length 64 with `short`, and the far length with its own accuracy."""
    return [
        record
        for seed, end in enumerate(ends)
        for record in (run(model, task, 64, seed, short), run(model, task, far, seed, end))
    ]


def judged(prediction: Prediction | DocumentPrediction, results: list[dict[str, Any]]) -> str:
    given = verdict(prediction, results)
    assert isinstance(given, Verdict)
    assert given.outcome in given.text()
    assert given.to_dict()["seeds"] == given.seeds
    return given.outcome


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
    unknown = predict("gru", st.task("rtc"))
    assert judged(unknown, runs("gru", "rtc", [1.0] * 5)) == "undecided"


def test_other_models_and_tasks_do_not_count() -> None:
    assert judged(FOUND, runs("lstm", "txc", [1.0] * 5)) == "undecided"
    assert judged(FOUND, runs("e88-gain-1l", "fsm", [1.0] * 5)) == "undecided"


def trained(seed: int, far: float, **more: Any) -> dict[str, Any]:
    """The record of a training at length 64, as training writes it."""
    own = {"accuracy": 1.0, "interval": [0.9963, 1.0], "n": 65_536, "rows": 1024, "floor": 0.5, "solved": True}
    beyond = {
        str(length): {"accuracy": value, "interval": [value - 0.003, value], "rows": 1024, "last_32_accuracy": value}
        for length, value in ((128, 1.0), (1024, far))
    }
    cell = {"task": "txc", "subject": "E88-gain-1L", "length": 64, "seed": seed, "protocol": {}}
    return {"cell": cell, **own, "tail_accuracy": 1.0, "length_generalisation": beyond, "stream": None, **more}


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
    assert from_record(record)[2].floor == pytest.approx(1 - 1.875 / 1024, abs=1e-4)
    record["length_generalisation"]["1024"]["floor"] = 0.25
    assert from_record(record)[2].floor == 0.25
    record["length_generalisation"]["1024"]["floor"] = None  # too dear to sum over
    assert from_record(record)[2].floor == from_record(record)[1].floor == pytest.approx(1 - 1.875 / 128, abs=1e-4)


def test_being_right_where_a_guess_is_right_decides_nothing() -> None:
    """Over all positions FSM is far above its floor; at the end of a row nothing is left to know."""
    fades = predict("e88-published-1l", st.task("fsm"))
    assert fades.outcome == "fades"
    record = trained(0, 0.9999, floor_exact=True)
    record["cell"] |= {"task": "fsm", "subject": "e88-published-1l"}
    record["length_generalisation"]["1024"] |= {"interval": [0.9995, 0.9999], "floor": 1 - 1.875 / 1024}
    assert from_record(record)[2].state == "unclear"
    assert verdict(fades, [record]).outcome == "undecided"
    parity = trained(0, 0.9999, floor_exact=True)
    parity["length_generalisation"]["1024"] |= {"interval": [0.9995, 0.9999], "floor": 0.5}
    assert from_record(parity)[2].state == "solved"


def test_lengths_that_were_not_measured_are_left_out() -> None:
    record = trained(0, 0.7, stream={"accuracy": None, "reason": "the model keeps no state of constant size"})
    record["length_generalisation"]["1024"] = {"accuracy": None, "reason": "the model has 128 positions"}
    assert [one.length for one in from_record(record)] == [64, 128]
    assert from_record({"cell": record["cell"], "status": "failed"}) == []
    with pytest.raises(BadInput, match="a training record has no 'interval'"):
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


def by_document(kind: str, value: float, **more: Any) -> DocumentPrediction:
    test = Measure(kind, "e88-1l", "rtc", (64, 1024), value, **more)
    return DocumentPrediction("key", "document", "section", "says", test)


@pytest.mark.parametrize(
    ("prediction", "ends", "outcome"),
    [
        (by_document("about", 0.99, tolerance=0.02), [0.99, 0.985, 1.0], "confirmed"),
        (by_document("about", 0.99, tolerance=0.02), [0.7, 0.6, 0.99], "refuted"),
        (by_document("about", 0.99, tolerance=0.02), [0.965, 0.965, 0.965], "undecided"),
        (by_document("at least", 0.95), [0.99, 0.97, 0.98], "confirmed"),
        (by_document("at least", 0.95), [0.9, 0.9, 0.99], "refuted"),
        (by_document("at least", 0.4), [0.99, 0.97, 0.98], "undecided"),  # the floor, .5, gives it
        (by_document("at most", 0.6), [0.5, 0.55, 0.58], "refuted"),  # refuted at 64, where it is 1
        (by_document("degrades", 0.0), [0.6, 0.7, 0.8], "confirmed"),
        (by_document("degrades", 0.0), [1.0, 1.0, 1.0], "refuted"),
        (by_document("flat", 0.02), [1.0, 1.0, 0.99], "confirmed"),
        (by_document("flat", 0.02), [0.6, 0.7, 1.0], "refuted"),
    ],
)
def test_what_documents_predict(prediction: DocumentPrediction, ends: list[float], outcome: str) -> None:
    assert judged(prediction, runs("e88-1l", "rtc", ends)) == outcome


def test_gaps_and_likeness() -> None:
    gap = DocumentPrediction("k", "d", "s", "says", Measure("gap", "e88-1l", "txc", (1024,), 0.4, other="mamba2-32l"))
    ahead = runs("e88-1l", "txc", [1.0] * 3) + runs("mamba2-32l", "txc", [0.5] * 3)
    equal = runs("e88-1l", "txc", [0.52] * 3) + runs("mamba2-32l", "txc", [0.5] * 3)
    assert judged(gap, ahead) == "confirmed"
    assert judged(gap, equal) == "refuted"
    assert judged(gap, runs("e88-1l", "txc", [1.0] * 3)) == "undecided"
    alike = DocumentPrediction(
        "k", "d", "s", "says", Measure("alike", "e88-1l", "txc", (1024,), 0.05, other="mamba2-32l")
    )
    assert judged(alike, equal) == "confirmed"
    assert judged(alike, ahead) == "refuted"


def test_a_false_prediction_needs_no_results_but_yields_to_them() -> None:
    e88 = next(known for known in predictions() if known.key == "4.2-txc-64-e88-1l")
    assert judged(e88, []) == "refuted"
    assert "increasing" in verdict(e88, []).why
    assert judged(e88, [run("E88-1L", "txc", 64, seed, 0.5) for seed in range(3)]) == "refuted"
    assert judged(e88, [run("e88-1l", "txc", 64, seed, 0.99) for seed in range(3)]) == "confirmed"
    open_one = next(known for known in predictions() if known.key == "p-cot")
    assert judged(open_one, []) == "undecided"


def test_bad_records() -> None:
    with pytest.raises(BadInput, match="no 'accuracy'"):
        verdict(FOUND, [{"model": "mlp", "task": "txc", "length": 3, "seed": 0}])
    with pytest.raises(BadInput, match="interval"):
        verdict(FOUND, [run("mlp", "txc", 3, 0, 0.5, low=0.7, high=0.6)])


def test_the_design_document_speaks_of_networks_trained_at_that_length_by_its_protocol() -> None:
    flat = next(known for known in predictions() if known.key == "4.2-rtc-1024-e88-1l")
    beyond = [run("e88-1l", "rtc", 1024, seed, 0.6, trained=64) for seed in range(3)]
    assert judged(flat, beyond) == "undecided"
    there = [run("e88-1l", "rtc", 1024, seed, 0.99, trained=1024) for seed in range(3)]
    assert judged(flat, beyond + there) == "confirmed"
    designed = [run("e88-1l", "rtc", 1024, seed, 0.7, trained=1024, protocol="design") for seed in range(3)]
    assert judged(flat, there + designed) == "refuted"
    assert "seen: e88-1l 0.700 at 1024" in verdict(flat, designed[:1]).why


def test_a_changed_setting_makes_another_protocol() -> None:
    def record(seed: int, accuracy: float, protocol: Protocol) -> dict[str, Any]:
        cell = {"task": "rtc", "subject": "e88-1l", "length": 64, "seed": seed, "protocol": asdict(protocol)}
        return trained(seed, 0.5, accuracy=accuracy, interval=[accuracy - 0.005, accuracy + 0.005]) | {"cell": cell}

    claim = next(known for known in predictions() if known.key == "4.2-rtc-64-e88-1l")
    design = PROTOCOLS["design"]
    shorter = [record(seed, 0.7, design.with_changes(most_checks=1)) for seed in range(4)]
    assert judged(claim, shorter) == "refuted"
    whole = [record(seed, 0.99, design) for seed in range(3)]
    assert judged(claim, shorter + whole) == "confirmed"
    other = [record(seed, 0.99, design.with_changes(batch=64)) for seed in range(3)]
    assert judged(claim, shorter + other) == "refuted"  # the one that ran more often, not a mixture of both


def test_the_documents_way_of_training_is_the_protocol_of_its_name() -> None:
    assert asdict(PROTOCOLS["design"]) == DESIGN_TRAINING | {"name": "design", "rates": (1e-3,)}


def test_what_an_argument_refutes_shows_the_few_seeds_that_were_run_of_both_models() -> None:
    gap = next(known for known in predictions() if known.key == "8-gap-txc")
    seen = [run("e88-1l", "txc", 1024, 0, 0.5, trained=1024), run("mamba2-32l", "txc", 1024, 0, 0.56, trained=1024)]
    found = verdict(gap, seen)
    assert (found.outcome, found.seeds) == ("refuted", 1)
    assert found.why.endswith("Seen: e88-1l 0.500 at 1024, mamba2-32l 0.560 at 1024")
    assert "Seen" not in verdict(gap, []).why


def test_whole_rows_are_judged_as_well() -> None:
    whole = next(known for known in predictions() if known.key == "2-rtc-e88-full")
    records = [trained(seed, 1.0) for seed in range(3)]
    for record in records:
        record["cell"] |= {"task": "rtc", "subject": "e88-1l"}
        record |= {"full_sequence_accuracy": 0.5, "full_sequence_interval": [0.45, 0.55], "rows": 1024}
    assert judged(whole, records) == "refuted"


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


def test_one_protocol_stands_in_for_the_documents() -> None:
    claim = next(known for known in predictions() if known.key == "4.2-rtc-64-e88-1l")
    many = [run("e88-1l", "rtc", 64, seed, 0.99, protocol="a") for seed in range(3)]
    others = [run("e88-1l", "rtc", 64, seed, 0.6, protocol=name) for seed in range(2) for name in ("b", "c")]
    assert judged(claim, many + others) == "confirmed"


def test_the_floor_of_the_end_is_looked_at_in_long_trainings_too() -> None:
    record = trained(0, 0.9999, floor_exact=True, floor_by_position=[0.5] * 4000 + [1.0] * 96)
    record["cell"] |= {"task": "fsm", "length": 4096}
    record["length_generalisation"] = {}
    assert from_record(record)[0].state == "unclear"
