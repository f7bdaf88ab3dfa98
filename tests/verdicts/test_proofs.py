"""What a proof decides: rows confirm no claim about every length, and a proof of the weights at hand does."""

from __future__ import annotations

from dataclasses import replace

import pytest

import statetrack as st
from statetrack.results import TrainingRecord
from statetrack.results.evaluations import BROKEN as BROKEN_BY
from statetrack.results.evaluations import PROVED as PROVED_HERE
from statetrack.results.evaluations import BreakingWord, ForEver, Power
from statetrack.results.records import read
from statetrack.theory import predict
from statetrack.verdicts import verdict
from statetrack.verdicts.measurements import from_record
from statetrack.verdicts.networks import BROKEN, MEASURED, PROVED, networks
from tests.verdicts.made_results import trained
from tests.verdicts.seeds_of_runs import controls, network, networks_of

GAIN, MAMBA = "e88-gain-1l", "mamba2-4l"
PROOF = {"proved": "epsilon 0.01"}
FOR_EVER = ForEver(
    seed=0, outcome=PROVED_HERE, weights="w", budget=60.0, proof="p", epsilon=0.01, margin=2.0, float32=1e-6
)


def test_a_proof_confirms_that_weights_exist() -> None:
    exist = predict(GAIN, st.task("txc"), "weights")
    assert verdict(exist, networks_of(GAIN, "txc", 5, 0)).outcome == "undecided"
    found = verdict(exist, [*network(GAIN, "txc", 0, 0.5), *network(GAIN, "txc", 3, 1.0, **PROOF)])
    assert (found.outcome, found.rules) == ("confirmed", 2)
    assert found.why == "seed 3 is proved to be right at every length (epsilon 0.01)"


def test_a_proof_refutes_that_no_weights_can() -> None:
    cannot = predict(MAMBA, st.task("txc"), "weights")
    assert verdict(cannot, networks_of(MAMBA, "txc", 5, 0)).outcome == "undecided"
    assert verdict(cannot, network(MAMBA, "txc", 0, 1.0, **PROOF)).outcome == "refuted"
    assert verdict(cannot, network(GAIN, "txc", 0, 1.0, **PROOF)).outcome == "undecided"  # of another model


def test_that_training_finds_such_weights_is_a_rate_of_proofs() -> None:
    """Five of five are usually so, three of three are not enough, and a word that breaks one speaks against it."""
    finds = predict(GAIN, st.task("txc"), "training")
    five = networks_of(GAIN, "txc", 5, 0, **PROOF)
    found = verdict(finds, five)
    assert (found.outcome, found.why[:44]) == ("confirmed", "usually proved to be right at every length: ")
    assert verdict(finds, networks_of(GAIN, "txc", 3, 0, **PROOF)).outcome == "undecided"
    unproved = [each for seed in range(5, 8) for each in network(GAIN, "txc", seed, 1.0)]
    assert verdict(finds, [*five, *unproved]).outcome == "undecided"
    assert "usually right as far as tested" in verdict(finds, [*five, *unproved]).why
    broken = networks_of(GAIN, "txc", 5, 0, broken="1 0^9")
    assert verdict(finds, [*broken, *controls(GAIN, "txc")]).outcome == "refuted"


def test_the_first_rules_know_of_no_proof() -> None:
    finds = predict(GAIN, st.task("txc"), "training")
    runs = networks_of(GAIN, "txc", 1, 4)
    proofs = [each | PROOF for each in runs]
    assert verdict(finds, runs, rules=1) == verdict(finds, proofs, rules=1)


@pytest.mark.parametrize(("changes", "kind"), [
    ({}, PROVED),
    ({"float32": 0.02}, MEASURED),  # more than epsilon: right for ever in exact numbers, and who runs those?
    ({"reason": "proof missing"}, MEASURED),
    ({"other_weights": True}, MEASURED),
    ({"outcome": "proved pruned"}, MEASURED),
])  # fmt: skip
def test_what_counts_as_a_proof_of_these_weights(changes: dict[str, object], kind: str) -> None:
    record = read(trained(0, 1.0))
    assert isinstance(record, TrainingRecord)
    proved = record.with_evaluations([replace(FOR_EVER, **changes)])
    (found,) = networks(from_record(proved))
    assert found.claim[0] == kind
    assert bool(found.first.proved) == (kind == PROVED)


def test_a_word_that_certify_found_breaks_the_network() -> None:
    record = read(trained(0, 1.0))
    assert isinstance(record, TrainingRecord)
    word = BreakingWord(parts=(Power([1]), Power([0], 9)), family="f", expected=1, given=0)
    broken = ForEver(seed=0, outcome=BROKEN_BY, weights="w", budget=60.0, word=word)
    (found,) = networks(from_record(record.with_evaluations([FOR_EVER, broken])))
    assert found.claim == (BROKEN, "1 0^9")
    assert found.right_far_out is False
