"""Hard words are tried on what is trained; on what lies in a folder only where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Store
from statetrack.results.evaluations import BreakingWord, OnWords, Power
from statetrack.results.plans import entries, save, saved, united
from statetrack.sweeps import Options, from_blocks, run
from statetrack.training import loop, train
from statetrack.training.breaking import TOKENS
from tests.training.test_breaking import replayed
from tests.training.test_evaluations import MODEL, SHORT, block, kept, untimed

OWN = {"length": 4, "settings": SHORT, "device": "cpu"}


def test_every_network_that_is_trained_meets_hard_words(tmp_path: Path) -> None:
    result = train("txc", MODEL, **OWN)
    assert result.record.words is not None
    assert result.record.words.budget == TOKENS["cpu"]
    (cell,) = from_blocks("one", block()).cells
    run(from_blocks("one", block()), tmp_path, Options(workers=0, device="cpu"))
    assert kept(tmp_path, cell).words == result.record.words
    assert train("txc", MODEL, words=0, **OWN).record.words is None
    few = train("txc", MODEL, words=5000, **OWN).record
    assert few.words is not None
    assert 0 < few.words.tokens <= 5000
    assert few.cell == result.cell  # how it is evaluated is no part of it


def test_what_was_kept_without_stays_so_until_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train("txc", MODEL, words=5000, **OWN).record
    first = train("txc", MODEL, words=0, out=tmp_path, **OWN).record
    path = Store(tmp_path).path(first.cell)
    held = path.read_bytes()
    monkeypatch.setattr(loop.Stepper, "__call__", None)  # a step would fail
    assert train("txc", MODEL, out=tmp_path, **OWN).record == first
    assert path.read_bytes() == held
    later = train("txc", MODEL, words=5000, out=tmp_path, **OWN).record
    assert later.training == first.training
    assert later.evaluations == (*first.evaluations, whole.words)
    assert kept(tmp_path, first.cell) == later
    assert train("txc", MODEL, words=3000, out=tmp_path, **OWN).record == later  # more were tried already


def test_for_words_alone_nothing_is_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train("txc", MODEL, words=0, out=tmp_path, **OWN).record
    Store(tmp_path).path(first.cell, "safetensors").unlink()
    monkeypatch.setattr(loop.Stepper, "__call__", None)
    told: list[str] = []
    assert train("txc", MODEL, words=5000, out=tmp_path, warn=told.append, **OWN).record == first
    assert told[0].endswith("safetensors is not there; so hard words are not tried on it")
    run(from_blocks("one", block(words=5000)), tmp_path, Options(workers=0, device="cpu"))
    assert kept(tmp_path, first.cell) == first


def test_a_sweep_that_asks_for_words_later_does_only_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, more = from_blocks("one", block(2, words=0)), from_blocks("one", block(2, words="5e3"))
    assert plain.cells == more.cells
    run(plain, tmp_path, Options(workers=0, device="cpu"))
    before = [kept(tmp_path, cell) for cell in plain.cells]
    assert [record.words for record in before] == [None, None]
    monkeypatch.setattr(loop.Stepper, "__call__", None)
    run(from_blocks("one", block(2)), tmp_path, Options(workers=0, device="cpu"))  # nothing is asked for
    assert [kept(tmp_path, cell) for cell in plain.cells] == before
    run(more, tmp_path, Options(workers=0, device="cpu", together=2))
    after = [kept(tmp_path, cell) for cell in plain.cells]
    for old, new in zip(before, after):
        assert untimed(new).training == untimed(old).training
        assert new.evaluations[:-1] == old.evaluations
        assert new.words is not None
        assert new.words.budget == 5000


def test_a_plan_remembers_the_words_that_it_asks_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    asks = {name: from_blocks(name, block(**({} if words is None else {"words": words})))
            for name, words in (("usual", None), ("none", 0), ("many", 9000))}  # fmt: skip
    for sweep in asks.values():
        save(store, sweep)
    assert {sweep.name: sweep.entries[0].words for sweep in saved(store)} == {"usual": None, "none": 0, "many": 9000}
    assert [entry.words for entry in entries(saved(store)).values()] == [9000]
    both = united([*asks["usual"].entries, *asks["none"].entries])
    assert [entry.words for entry in both] == [0]


@pytest.mark.parametrize("words", [3, -1, True, 2.5, "many", 2**40])
def test_a_number_of_words_that_makes_no_sense_is_refused(words: object) -> None:
    with pytest.raises(BadInput, match="words "):
        train("txc", MODEL, words=words, **OWN)
    with pytest.raises(BadInput, match="words "):
        from_blocks("one", block(words=words))


def test_the_verbs_tell_of_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [part for name, value in SHORT.items() for part in ("--set", f"{name}={value}")]
    call = ["train", "txc", MODEL, "--length", "4", "--device", "cpu", "--out", str(tmp_path), *settings]
    assert main([*call, "--words", "0"]) == 0
    assert "seed 0: no hard words were tried" in capsys.readouterr().out
    assert main(["results", str(tmp_path)]) == 0
    header, row = capsys.readouterr().out.splitlines()[:2]
    assert header.rstrip().endswith("broken by")
    assert row.rstrip().endswith("no")  # not solved, and nothing tried
    assert main([*call, "--words", "4000"]) == 0
    assert "seed 0: broken by the word " in capsys.readouterr().out
    (record,) = Store(tmp_path).records()
    assert main(["results", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.rstrip().endswith(record.broken.word)  # type: ignore[attr-defined]
    assert main([*call, "--words", "3"]) == 2
    assert "words 3 should be 0, or a number of tokens in 4 (the length)" in capsys.readouterr().err


def test_one_line_says_what_words_showed() -> None:
    record = train("txc", "mlp[hidden=4]", words=0, **OWN).record
    numbers = {"seed": 0, "budget": 9000, "words": 30, "tokens": 7500, "longest": 250}
    word = BreakingWord(parts=(Power([1]), Power([0], 22)), family="f", expected=1, given=0)
    tries = {
        "right on 30 hard words (7,500 tokens, up to 250 steps)": {},
        "broken by the word 1 0^22 (23 tokens): it answers 0, right is 1": {"wrong": 4, "breaking": word},
        "4 hard words of 30 wrong beside others, none when run alone": {"wrong": 4},
    }
    for said, more in tries.items():
        assert record.with_evaluations([OnWords(**numbers, **more)]).on_words == said  # type: ignore[arg-type]


def test_a_gru_that_solves_parity_is_broken_by_one_event_and_silence() -> None:
    """Right on random rows to 16 times its length, which hold no silence that is long enough."""
    result = train("txc", "gru[hidden=32]", length=16, seed=0, device="cpu")
    record = result.record
    assert record.solved
    assert [each.last_32_accuracy for each in record.beyond.values()] == [1.0] * 4
    word = record.broken
    assert word is not None
    assert word.symbols == [1] + [0] * (word.tokens - 1)
    assert result.model is not None
    replayed("txc", result.model, word)
