"""How results decide what the documents predict."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from statetrack.verdicts.documents import DESIGN_TRAINING, AccuracyTest, DocumentPrediction, predictions
from tests.verdicts.made_results import judged, run, runs, trained, verdict_1


def by_document(kind: str, value: float, **more: Any) -> DocumentPrediction:
    test = AccuracyTest(kind, "e88-1l", "rtc", (64, 1024), value, **more)
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
    gap = DocumentPrediction(
        "k", "d", "s", "says", AccuracyTest("gap", "e88-1l", "txc", (1024,), 0.4, other="mamba2-32l")
    )
    ahead = runs("e88-1l", "txc", [1.0] * 3) + runs("mamba2-32l", "txc", [0.5] * 3)
    equal = runs("e88-1l", "txc", [0.52] * 3) + runs("mamba2-32l", "txc", [0.5] * 3)
    assert judged(gap, ahead) == "confirmed"
    assert judged(gap, equal) == "refuted"
    assert judged(gap, runs("e88-1l", "txc", [1.0] * 3)) == "undecided"
    alike = DocumentPrediction(
        "k", "d", "s", "says", AccuracyTest("alike", "e88-1l", "txc", (1024,), 0.05, other="mamba2-32l")
    )
    assert judged(alike, equal) == "confirmed"
    assert judged(alike, ahead) == "refuted"


def test_a_false_prediction_needs_no_results_but_yields_to_them() -> None:
    e88 = next(known for known in predictions() if known.key == "4.2-txc-64-e88-1l")
    assert judged(e88, []) == "refuted"
    assert "increasing" in verdict_1(e88, []).why
    assert verdict_1(e88, []).by_argument
    assert verdict_1(e88, []).text().startswith("refuted: by argument: In S = tanh")
    assert judged(e88, [run("E88-1L", "txc", 64, seed, 0.5) for seed in range(3)]) == "refuted"
    seen = [run("e88-1l", "txc", 64, seed, 0.99) for seed in range(3)]
    assert judged(e88, seen) == "confirmed"
    assert not verdict_1(e88, seen).by_argument
    open_one = next(known for known in predictions() if known.key == "p-cot")
    assert judged(open_one, []) == "undecided"


def test_the_design_document_speaks_of_networks_trained_at_that_length_by_its_protocol() -> None:
    flat = next(known for known in predictions() if known.key == "4.2-rtc-1024-e88-1l")
    beyond = [run("e88-1l", "rtc", 1024, seed, 0.6, trained=64) for seed in range(3)]
    assert judged(flat, beyond) == "undecided"
    there = [run("e88-1l", "rtc", 1024, seed, 0.99, trained=1024) for seed in range(3)]
    assert judged(flat, beyond + there) == "confirmed"
    designed = [run("e88-1l", "rtc", 1024, seed, 0.7, trained=1024, protocol="design") for seed in range(3)]
    assert judged(flat, there + designed) == "refuted"
    assert "seen: e88-1l 0.700 at 1024" in verdict_1(flat, designed[:1]).why


@pytest.mark.needs("torch")
def test_a_changed_setting_makes_another_protocol() -> None:
    from statetrack.training import PROTOCOLS

    def record(seed: int, accuracy: float, protocol: Any) -> dict[str, Any]:
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


@pytest.mark.needs("torch")
def test_the_documents_way_of_training_is_the_protocol_of_its_name() -> None:
    from statetrack.training import PROTOCOLS

    assert PROTOCOLS["design"].described() == DESIGN_TRAINING | {"name": "design", "rates": (1e-3,)}


def test_what_an_argument_refutes_shows_the_few_seeds_that_were_run_of_both_models() -> None:
    gap = next(known for known in predictions() if known.key == "8-gap-txc")
    seen = [run("e88-1l", "txc", 1024, 0, 0.5, trained=1024), run("mamba2-32l", "txc", 1024, 0, 0.56, trained=1024)]
    found = verdict_1(gap, seen)
    assert (found.outcome, found.seeds) == ("refuted", 1)
    assert found.why.endswith("Seen: e88-1l 0.500 at 1024, mamba2-32l 0.560 at 1024")
    assert "Seen" not in verdict_1(gap, []).why


def test_whole_rows_are_judged_as_well() -> None:
    whole = next(known for known in predictions() if known.key == "2-rtc-e88-full")
    records = [trained(seed, 1.0) for seed in range(3)]
    for record in records:
        record["cell"] |= {"task": "rtc", "subject": "e88-1l"}
        record |= {"full_sequence_accuracy": 0.5, "full_sequence_interval": [0.45, 0.55], "rows": 1024}
    assert judged(whole, records) == "refuted"


def test_one_protocol_stands_in_for_the_documents() -> None:
    claim = next(known for known in predictions() if known.key == "4.2-rtc-64-e88-1l")
    many = [run("e88-1l", "rtc", 64, seed, 0.99, protocol="a") for seed in range(3)]
    others = [run("e88-1l", "rtc", 64, seed, 0.6, protocol=name) for seed in range(2) for name in ("b", "c")]
    assert judged(claim, many + others) == "confirmed"
