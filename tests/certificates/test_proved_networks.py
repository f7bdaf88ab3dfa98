"""Trained networks that are proved right for ever, checked anew in every test run, and mutants of their proofs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import statetrack as st
from benchmarks.mutants import CHANGES, FOLDER, LARGE, Claim, is_accepted, mutants, what_is_false, wrong_answers
from statetrack.certificates.certify import BROKEN, OPEN, certify
from statetrack.certificates.checker import check, verify
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton
from statetrack.training.breaking import on_words

NAMES = sorted(path.stem for path in FOLDER.glob("*.proof"))
SMALL = {name for name in NAMES if (FOLDER / f"{name}.proof").stat().st_size <= LARGE}
WORD_TOKENS = 2**15


@cache
def claim(name: str) -> Claim:
    return Claim.read(FOLDER / f"{name}.proof")


def test_networks_are_kept_for_what_was_proved() -> None:
    tasks = {claim(name).proof["task"] for name in NAMES}
    assert tasks >= {"txc", "mod_counter", "s3_composition", "s4_composition", "a5_composition", "s5_composition"}
    assert {claim(name).proof["network"] for name in NAMES} == set(NETWORKS)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4e6


@pytest.mark.parametrize("name", NAMES)
def test_a_trained_network_is_proved(name: str) -> None:
    found = verify(FOLDER / f"{name}.proof", FOLDER / f"{name}.safetensors")
    assert found.covers_float32
    assert found.epsilon >= found.float32 > 0
    assert found.margin > 2 * found.float32_logits > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_proved_network_answers_rightly_itself(name: str) -> None:
    """The proof is about this very model: in float32, on random rows and on hard words, and by the margin proved."""
    own = claim(name)
    task, model = st.task(own.proof["task"]), own.network
    assert wrong_answers(model, task) == 0
    found = on_words(task, model, 16, 0, WORD_TOKENS)
    assert found.breaking is None
    rows = np.random.default_rng(1).integers(0, task.inputs, (16, 64))
    due = torch.from_numpy(task.run(rows.astype(np.int32)).targets).long()[..., None]
    with torch.no_grad():
        logits = model(torch.from_numpy(rows))
    right = logits.gather(2, due)[..., 0]
    above = right - logits.scatter(2, due, -torch.inf).max(dim=2).values
    checked = check(own.proof, own.tensors)
    assert float(above.min()) >= checked.margin - 2 * checked.float32_logits


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_refused_or_true(name: str) -> None:
    """`python -m benchmarks.mutants` tries a thousand of each."""
    for kind, mutant in mutants(claim(name), len(CHANGES) if name in SMALL else 2):
        if is_accepted(mutant):
            assert not what_is_false(mutant), kind


def test_what_is_false_is_seen() -> None:
    """What mutants are tried by finds images that leave their regions, a start outside, and wrong answers."""
    for change, said in (("centres", "an image"), ("start", "the start"), ("head.bias", "an answer")):
        own = claim("parity-tanh-rnn").copied()
        if change == "centres":
            own.proof["epsilon"] = 0.5
        elif change == "start":
            own.proof["parts"][0]["start"] = 1
        else:
            own.tensors["head.bias"] += np.array([50.0, 0.0])
        assert what_is_false(own) == said


def planted(word: list[int], before: bool) -> SequenceModel:
    """Parity, but wrong after exactly this word: as all there is so far, or wherever the last tokens are this word."""
    states = [(parity, at) for parity in (0, 1) for at in range(len(word) + (2 if before else 1))]
    number = {state: place for place, state in enumerate(states)}

    def after(at: int, bit: int) -> int:
        if before:
            return at + 1 if at < len(word) and word[at] == bit else len(word) + 1
        seen = [*word[:at], bit]
        return next(n for n in range(len(word), -1, -1) if n <= len(seen) and seen[len(seen) - n :] == word[:n])

    steps = np.array([[number[parity ^ bit, after(at, bit)] for bit in (0, 1)] for parity, at in states])
    return automaton(steps, np.array([parity ^ (at == len(word)) for parity, at in states]))


@pytest.mark.parametrize("before", [True, False], ids=["as all there is", "as the last tokens"])
@pytest.mark.parametrize("bits", [11, 24])
def test_a_network_that_errs_on_one_rare_word_is_never_proved(bits: int, before: bool) -> None:
    word = np.random.default_rng(bits).integers(0, 2, bits).tolist()
    task, model = st.task("txc"), planted(word, before)
    rows = torch.tensor([word])
    right = np.cumsum(word) % 2
    wrong = model(rows).argmax(-1).numpy()[0] != right
    assert wrong.tolist() == [False] * (bits - 1) + [True]
    found = certify(task, model, seconds=1.0)
    assert found.outcome in (BROKEN, OPEN)
    assert found.proof is None
    if found.word:
        given = model(torch.tensor([found.word.symbols])).argmax(-1)
        assert int(given[0, -1]) != sum(found.word.symbols) % 2


def test_every_network_says_where_it_came_from() -> None:
    told = (FOLDER / "README.md").read_text()
    for name in NAMES:
        assert f"`{name}`" in told
        assert json.loads((FOLDER / f"{name}.proof").read_bytes())["model"].split("[")[0] in told
    assert {path.suffix for path in Path(FOLDER).iterdir()} == {".proof", ".safetensors", ".md"}
