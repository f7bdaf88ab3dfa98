"""Proofs go where their weights go; what is damaged, foreign, stale or too large is named; claims need their proof."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Store, TrainingRecord, merge, pack, proofs, records, seal, unpack
from statetrack.results.check import check
from statetrack.results.evaluations import (
    BROKEN,
    MISSING,
    OPEN,
    PROVED,
    PRUNED,
    BreakingWord,
    ForEver,
    OnWords,
    Power,
)
from statetrack.results.schema import BadRecord
from statetrack.results.store import read_record
from tests.results.test_words import CELL
from tests.sweeps.counted_cells import made

WORD = BreakingWord(parts=(Power([1]), Power([0], 3)), family="f", expected=1, given=0)
WEIGHTS = b"\x00" * 8


def proof(**more: object) -> dict[str, object]:
    return {"task": "t", "weights": "ab" * 32, "covers": []} | more


def found(outcome: str, **more: object) -> ForEver:
    numbers = {"seed": 0, "outcome": outcome, "weights": "ab" * 32, "budget": 60.0}
    return ForEver(**numbers | more)  # type: ignore[arg-type]


def proved(store: Store, outcome: str = PROVED, **more: object) -> TrainingRecord:
    """A record that speaks of a proof, which lies beside it."""
    ending = proofs.PRUNED_PROOF if outcome == PRUNED else proofs.PROOF
    digest = proofs.write(store.path(CELL, ending), proof(**more))
    each = found(outcome, proof=digest, epsilon=0.01, margin=2.5, regions=9)
    record = made(CELL).with_evaluations([each])
    store.write(record)
    return record


def read(folder: Path) -> TrainingRecord:
    record = Store(folder).read(CELL)
    assert isinstance(record, TrainingRecord)
    return record


def test_a_claim_is_made_only_beside_the_proof_that_it_names(tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    proved(store)
    assert (read(store.folder).standing, read(store.folder).shown_by) == (PROVED, "epsilon 0.01, margin 2.5")
    kept = store.path(CELL, "proof").read_bytes()
    proofs.write(store.path(CELL, "proof"), proof(covers=[1]))
    assert read(store.folder).shown_by == "proof missing: another one lies there"
    store.path(CELL, "proof").unlink()
    assert (read(store.folder).standing, read(store.folder).proved) == (MISSING, None)
    store.path(CELL, "proof").write_bytes(kept)
    assert read(store.folder).proved is not None


def test_a_word_outweighs_a_proof_and_a_proof_what_is_open() -> None:
    record = made(CELL)
    assert (record.standing, record.said_for_ever, record.for_ever) == ("", "", None)
    record = record.with_evaluations([found(OPEN, covered=12, why="nothing closes")])
    assert record.shown_by == "every word of up to 12 tokens is right"
    pruned = record.with_evaluations([found(PRUNED, proof="1", epsilon=0.01, margin=1.0)])
    assert pruned.standing == PRUNED
    assert pruned.proved is None  # that network is another
    both = pruned.with_evaluations([found(PROVED, proof="2", epsilon=0.01, margin=1.0)])
    assert both.standing == PROVED
    assert both.proved is not None
    assert both.contradiction is None
    broken = both.with_evaluations([found(BROKEN, word=WORD)])
    assert (broken.standing, broken.broken_by, broken.proved) == (BROKEN, "1 0^3", None)
    assert "proved as trained, and broken by the word 1 0^3" in (broken.contradiction or "")
    by_words = both.with_evaluations([OnWords(seed=0, budget=9, words=1, wrong=1, breaking=WORD)])
    assert (by_words.standing, by_words.proved) == (BROKEN, None)


@pytest.mark.parametrize(("wrong", "why"), [
    (found("proved"), "'proved' is not one of proved as trained, proved pruned"),
    (found(PROVED), "a proof has a file and an epsilon"),
    (found(PROVED, proof="1"), "a proof has a file and an epsilon"),
    (found(OPEN, proof="1"), "a proof has a file and an epsilon"),
    (found(BROKEN), "what is broken is broken by a word"),
    (found(OPEN, word=WORD), "what is broken is broken by a word"),
    (found(BROKEN, word=replace(WORD, given=1)), "a word that breaks a network is answered wrong"),
])  # fmt: skip
def test_what_cannot_be_is_refused(wrong: ForEver, why: str) -> None:
    with pytest.raises(BadRecord, match=why.replace("'", ".")):
        records.write(made(CELL).with_evaluations([wrong]))


def test_two_searches_may_differ_and_both_are_kept(tmp_path: Path) -> None:
    """They are cut off by a clock: that one found more is no conflict, and the proof comes with its record."""
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.write(made(CELL).with_evaluations([found(OPEN, covered=9, why="no cover")]))
    proved(other)
    joined = merge([other.folder], one.folder)
    assert (joined.conflicts, joined.evaluations) == ([], 1)
    assert read(one.folder).standing == PROVED
    assert len(read(one.folder).of(ForEver)) == 2
    assert merge([other.folder], one.folder).evaluations == 0


def test_a_merge_keeps_the_proof_that_is_there_and_names_a_contradiction(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    proved(one)
    kept = one.path(CELL, "proof").read_bytes()
    proved(other, covers=[1])
    assert merge([other.folder], one.folder).conflicts == []
    assert one.path(CELL, "proof").read_bytes() == kept
    assert read(one.folder).standing == PROVED
    third = Store(tmp_path / "third")
    third.write(made(CELL).with_evaluations([found(BROKEN, word=WORD)]))
    conflicts = merge([third.folder], one.folder).conflicts
    assert ["proved as trained, and broken by the word 1 0^3" in each.what for each in conflicts] == [True]
    assert ["proved as trained" in each.what for each in check(one).conflicts] == [True]


def test_what_was_proved_of_another_training_counts_nowhere(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.write(made(CELL))
    record = proved(other)
    other.put(f"{CELL.key}.json", seal.seal(records.write(
        replace(record, training=replace(record.training, final_train_loss=0.5)))))  # fmt: skip
    merge([other.folder], one.folder)
    assert read(one.folder).standing == ""
    assert not one.path(CELL, "proof").exists()


@pytest.mark.parametrize("outcome", [PROVED, PRUNED])
def test_proofs_are_packed_with_weights_and_come_back(outcome: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    proved(store, outcome)
    store.put(f"{CELL.key}.safetensors", WEIGHTS)
    store.put(f"{CELL.key}.pruned.safetensors", WEIGHTS)
    pack(store.folder, tmp_path / "bare.tar")
    pack(store.folder, tmp_path / "full.tar.gz", weights=True)
    unpack(tmp_path / "bare.tar", tmp_path / "bare")
    assert read(tmp_path / "bare").standing == MISSING
    unpack(tmp_path / "full.tar.gz", tmp_path / "full")
    assert read(tmp_path / "full").standing == outcome
    assert (tmp_path / "full" / f"{CELL.key}.pruned.safetensors").read_bytes() == WEIGHTS
    unpack(tmp_path / "full.tar.gz", tmp_path / "bare")  # into a folder that has the record and not the proof
    assert read(tmp_path / "bare").standing == outcome


def test_a_hostile_archive_cannot_bring_a_proof_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{CELL.key}.proof"
    with tarfile.open(tmp_path / "big.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2000
        tar.addfile(member, io.BytesIO(bytes(2000)))
    monkeypatch.setattr("statetrack.results.archive.MOST_JSON", 1000)
    with pytest.raises(BadInput, match=f"holds {name} of 2,000 bytes"):
        unpack(tmp_path / "big.tar", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_proof_that_is_too_large_is_neither_read_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "a")
    proved(store)
    monkeypatch.setattr(proofs, "MOST_PROOF", 10)
    assert read(store.folder).standing == MISSING
    assert "more than the 10 that are read" in check(store).damaged[0]
    with pytest.raises(BadRecord, match="more than the 10"):
        proofs.write(tmp_path / "x.proof", proof())


def test_check_names_what_is_wrong_with_proofs(tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    proved(store)
    assert (check(store).proofs, check(store).stale, check(store).damaged) == (1, [], [])
    path = store.path(CELL, "proof")
    whole = path.read_bytes()

    def stale(**more: object) -> str:
        proofs.write(path, proof(**more))
        return next(line for line in check(store).stale if line.startswith(path.name))

    assert "a proof about 'u', and its cell is of t" in stale(task="u")
    assert "its cell's record does not speak of it" in stale(covers=[3])
    assert [line for line in check(store).stale if line.startswith(f"{CELL.key}: ")]
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    store.put(f"{CELL.key}.safetensors", len(header).to_bytes(8, "little") + header + bytes(4))
    assert "a proof about other weights than those of its cell" in stale()
    path.write_bytes(whole.replace(b"covers", b"cover5"))
    assert f"{path.name}: its checksum is wrong" in check(store).damaged
    path.write_bytes(b'{"task": 1}')
    assert f"{path.name}: not a proof: it does not say its task" in check(store).damaged
    path.unlink()
    (store.folder / f"{'0' * 20}.proof").write_bytes(whole)
    (store.folder / "notes.proof").write_text("of a theorem")
    assert f"{'0' * 20}.proof: a proof without a result" in check(store).stale
    assert check(store).foreign == ["notes.proof"]
    assert main(["check", str(store.folder)]) == 1  # the weights above are none of ours


def test_weights_that_are_not_float32_have_no_hash(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(2))
    with pytest.raises(BadRecord, match="w is BF16, not float32"):
        proofs.weights_hash(path)
    path.write_bytes(bytes(100))
    with pytest.raises(BadRecord, match="not a safetensors file"):
        proofs.weights_hash(path)


def test_results_of_a_conflict_keep_their_proof(tmp_path: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    for store, loss in ((one, 0.25), (other, 0.5)):
        record = proved(store)
        store.put(f"{CELL.key}.json", seal.seal(records.write(
            replace(record, training=replace(record.training, final_train_loss=loss)))))  # fmt: skip
        store.put(f"{CELL.key}.safetensors", WEIGHTS)
    merge([other.folder], one.folder)
    (aside,) = one.folder.glob("*.conflict.proof")
    assert aside.read_bytes() == other.path(CELL, "proof").read_bytes()
    pack(one.folder, tmp_path / "a.tar", weights=True)
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert aside.name in tar.getnames()


def test_tables_show_what_is_known_for_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "a")
    proved(store)
    broken, plain = replace(CELL, seed=1), replace(CELL, seed=2)
    store.write(made(broken).with_evaluations([found(BROKEN, word=WORD)]))
    store.write(made(plain))
    assert main(["results", str(store.folder)]) == 0
    said = capsys.readouterr().out
    assert "for ever" in said
    assert "proved as trained" in said
    assert "1 0^3" in said
    assert main(["results", str(store.folder), "--csv", str(tmp_path / "wide.csv")]) == 0
    assert main(["results", str(store.folder), "--long", "--csv", str(tmp_path / "long.csv")]) == 0
    with (tmp_path / "wide.csv").open() as file:
        wide = {row["seed"]: row for row in csv.DictReader(file)}
    assert (wide["0"]["for_ever.standing"], wide["0"]["for_ever.epsilon"]) == (PROVED, "0.01")
    assert (wide["1"]["for_ever.standing"], wide["1"]["words.broken_by"]) == (BROKEN, "1 0^3")
    assert wide["2"]["for_ever.standing"] == ""
    with (tmp_path / "long.csv").open() as file:
        long = {row["seed"]: row for row in csv.DictReader(file) if row["of"] == "for ever"}
    assert [(long[seed]["case"], long[seed]["broken_by"], long[seed]["epsilon"]) for seed in ("0", "1")] == [
        (PROVED, "", "0.01"), (BROKEN, "1 0^3", ""),
    ]  # fmt: skip
    capsys.readouterr()
    shutil.rmtree(tmp_path / "a")
    store = Store(tmp_path / "a")
    store.write(made(plain))
    main(["results", str(store.folder)])
    assert "for ever" not in capsys.readouterr().out


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    record = proved(store)
    assert read_record(store.path(CELL)) == record
    assert read(store.folder) == record
