"""Cells of a folder are certified once; what is found out stands in their records, and survives kills and merges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from statetrack.certificates import certify_folder
from statetrack.certificates import folder as certified_folder
from statetrack.certificates.certify import BROKEN as FOUND_BROKEN
from statetrack.certificates.certify import OPEN as FOUND_OPEN
from statetrack.certificates.certify import PROVED as FOUND_PROVED
from statetrack.certificates.certify import Certificate, tensors_of
from statetrack.certificates.checker import hash_of, verify
from statetrack.certificates.folder import evaluation, is_known, keep_proof, keep_pruned
from statetrack.errors import BadInput
from statetrack.models.witnesses import toggle
from statetrack.results import proofs
from statetrack.results.check import check
from statetrack.results.evaluations import BROKEN as BROKEN_BY
from statetrack.results.evaluations import MISSING, OPEN, OUTCOMES, PROVED, PRUNED, BreakingWord, OnWords, Power
from statetrack.training.weights import load
from tests.certificates.certified import BROKEN, PROVABLE, certified, record_of, small

pytestmark = pytest.mark.needs("torch")


def test_what_is_found_out_stands_in_the_records(tmp_path: Path) -> None:
    store = certified(tmp_path / "results")
    proved, broken = record_of(store, PROVABLE), record_of(store, BROKEN)
    assert (proved.standing, broken.standing) == (PROVED, BROKEN_BY)
    assert proved.proved is not None
    assert proved.proved.epsilon
    assert proved.rows == record_of(small(tmp_path / "before"), PROVABLE).rows  # nothing that was there is changed
    assert broken.broken_by == "1"
    found = verify(store.path(PROVABLE, "proof"), store.path(PROVABLE, "safetensors"))
    assert (found.epsilon, found.margin) == (proved.proved.epsilon, proved.proved.margin)


def test_a_second_run_searches_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = certified(tmp_path / "results")
    before = {path.name: path.read_bytes() for path in store.folder.iterdir() if path.is_file()}
    monkeypatch.setattr(certified_folder, "certify", no_search)
    tally = certify_folder(store.folder, seconds=5)
    assert (tally.grown, len(tally.records), [each.why for each in tally.left_out]) == (0, 2, ["no weights are kept"])
    assert before == {path.name: path.read_bytes() for path in store.folder.iterdir() if path.is_file()}


def no_search(*_: object, **__: object) -> Certificate:
    raise AssertionError("searched again")


@pytest.mark.parametrize("damage", [b"", b"{}", None])
def test_a_proof_that_is_gone_claims_nothing_and_is_made_again(damage: bytes | None, tmp_path: Path) -> None:
    store = certified(tmp_path / "results")
    path = store.path(PROVABLE, "proof")
    proof = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    lost = record_of(store, PROVABLE)
    assert (lost.standing, lost.proved) == (MISSING, None)
    certify_folder(store.folder, [PROVABLE.key[:6]], seconds=5)
    assert record_of(store, PROVABLE).standing == PROVED
    assert path.read_bytes() == proof


def test_a_run_that_was_killed_before_its_record_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is written first, so what is left is a proof that no record speaks of."""
    store = small(tmp_path / "results")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(certified_folder, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            certify_folder(store.folder, [PROVABLE.key], seconds=2)
    assert store.path(PROVABLE, "proof").is_file()
    assert record_of(store, PROVABLE).standing == ""
    certify_folder(store.folder, [PROVABLE.key], seconds=2)
    assert record_of(store, PROVABLE).standing == PROVED


def test_a_word_that_the_record_knows_is_tried_before_any_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small(tmp_path / "results")
    word = BreakingWord(parts=(Power([1]),), family="f", expected=1, given=0)
    store.write(record_of(store, BROKEN).with_evaluations([OnWords(seed=0, budget=9, words=1, wrong=1, breaking=word)]))
    monkeypatch.setattr(certified_folder, "certify", no_search)
    assert certify_folder(store.folder, [BROKEN.key]).grown == 1
    found = record_of(store, BROKEN).for_ever
    assert found is not None
    assert found.word == word


def test_a_word_that_breaks_nothing_any_more_is_not_believed(tmp_path: Path) -> None:
    store = small(tmp_path / "results")
    word = BreakingWord(parts=(Power([1]), Power([0], 3)), family="f", expected=1, given=0)
    store.write(
        record_of(store, PROVABLE).with_evaluations([OnWords(seed=0, budget=9, words=1, wrong=1, breaking=word)])
    )
    certify_folder(store.folder, [PROVABLE.key], seconds=2)
    found = record_of(store, PROVABLE)
    assert found.for_ever is not None
    assert found.for_ever.outcome == PROVED
    assert found.contradiction  # both stand there, and somebody has to look
    assert found.standing == BROKEN_BY


def test_what_stayed_open_is_searched_longer_and_not_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small(tmp_path / "results")
    searches = []

    def shrugs(*_: object, seconds: float, **__: object) -> Certificate:
        searches.append(seconds)
        return Certificate(OPEN, why="nobody knows", covered=int(seconds))

    monkeypatch.setattr(certified_folder, "certify", shrugs)
    for seconds in (2.0, 2.0, 1.0, 7.0):
        certify_folder(store.folder, [PROVABLE.key], seconds=seconds)
    assert searches == [2.0, 7.0]
    record = record_of(store, PROVABLE)
    assert (record.standing, record.shown_by) == (OPEN, "every word of up to 7 tokens is right")
    assert record.said_for_ever.startswith("Open whether it is right for ever: nobody knows")


def test_other_weights_are_searched_again(tmp_path: Path) -> None:
    record = record_of(certified(tmp_path / "results"), PROVABLE)
    assert record.for_ever is not None
    assert is_known(record, record.for_ever.weights, 60)
    assert not is_known(record, "0" * 64, 60)


def test_the_hash_of_a_file_is_the_one_that_the_checker_makes(tmp_path: Path) -> None:
    store = small(tmp_path / "results")
    path = store.path(PROVABLE, "safetensors")
    assert proofs.weights_hash(path) == hash_of(tensors_of(load(store, PROVABLE)))


def test_the_outcomes_of_the_search_are_those_of_records() -> None:
    assert {FOUND_PROVED, FOUND_BROKEN, FOUND_OPEN} < set(OUTCOMES)


def test_a_key_that_no_cell_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no cell of .* has a key that begins with 'zz'"):
        certify_folder(small(tmp_path / "results").folder, ["zz"])


def test_a_pruned_network_lies_beside_the_one_that_was_trained(tmp_path: Path) -> None:
    """It has a hash and a proof of its own, and `check` takes neither for those of the trained one."""
    store = small(tmp_path / "results")
    record, weights = record_of(store, PROVABLE), store.path(PROVABLE, "safetensors")
    before = weights.read_bytes()
    pruned = toggle([[0, 1], [1, 0]])
    with torch.no_grad():
        next(pruned.parameters())[0] += 1
    keep_pruned(store, record, pruned)
    path = store.path(PROVABLE, proofs.PRUNED_WEIGHTS)
    assert weights.read_bytes() == before
    assert proofs.weights_hash(path) == hash_of(tensors_of(pruned)) != proofs.weights_hash(weights)
    found = Certificate(PRUNED, proof={"task": "txc", "weights": proofs.weights_hash(path)})
    sha256 = keep_proof(found, store.path(PROVABLE))
    claim = replace(evaluation(found, proofs.weights_hash(weights), 60, 0, sha256), epsilon=0.1, margin=1.0)
    store.write(record.with_evaluations([claim]))
    assert record_of(store, PROVABLE).standing == PRUNED
    assert (check(store).stale, check(store).damaged, check(store).weights) == ([], [], 3)
    assert store.path(PROVABLE, proofs.PRUNED_PROOF).is_file()
    assert not store.path(PROVABLE, proofs.PROOF).exists()
