"""Networks whose faults are known: the word that breaks them is found, cut at its first wrong answer, and short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import statetrack as st
from statetrack.models import SequenceModel, answers_of
from statetrack.models.custom import Adapted
from statetrack.models.sequence import State
from statetrack.results.evaluations import BreakingWord, OnWords
from statetrack.training import breaking, evaluate
from statetrack.training.breaking import RIGHT, WordTest, on_words, shortened
from statetrack.training.weights import built
from statetrack.training.words import EVENT, RARE, hard_words

BUDGET = 2**16


class Machine(SequenceModel):
    """The task itself as a network, by its table. `wrong` may spoil answers: it is given (B, T, what is counted)."""

    def __init__(self, task: str) -> None:
        table = st.task(task).automaton  # type: ignore[attr-defined]
        super().__init__(st.task(task).inputs, st.task(task).outputs)
        self.steps, self.answers = torch.from_numpy(table.steps).long(), torch.from_numpy(table.answers).long()
        self.one = nn.Parameter(torch.ones(1))

    def state_shapes(self) -> list[tuple[int, ...]]:
        return [(3,)]  # the machine's state, how much of a word was matched or how long all was still, steps so far

    def count(self, counted: Tensor, symbol: Tensor, step: Tensor) -> Tensor:
        return counted

    def spoilt(self, counted: Tensor, step: Tensor) -> Tensor:
        return torch.zeros_like(counted, dtype=torch.bool)

    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        at, counted, step = state[0].long().unbind(1)
        logits = []
        for symbol in ids.unbind(1):
            at, counted, step = self.steps[at, symbol], self.count(counted, symbol, step), step + 1
            due = (self.answers[at] + self.spoilt(counted, step)) % self.outputs
            logits.append(nn.functional.one_hot(due, self.outputs) * self.one)
        return torch.stack(logits, 1), (torch.stack([at, counted, step], 1).float(),)


class WrongAfterOneWord(Machine):
    """Right on everything but one word."""

    def __init__(self, task: str, word: list[int]) -> None:
        super().__init__(task)
        self.word = torch.tensor([*word, -1])

    def count(self, counted: Tensor, symbol: Tensor, step: Tensor) -> Tensor:
        on = (counted == step) & (step < len(self.word) - 1)
        return counted + (on & (self.word[step.clamp(max=len(self.word) - 1)] == symbol))

    def spoilt(self, counted: Tensor, step: Tensor) -> Tensor:
        return (counted == len(self.word) - 1) & (step == len(self.word) - 1)


class Leaky(Machine):
    """Wrong once `most` silent symbols stood in a row after an event: what it holds has faded."""

    def __init__(self, task: str, most: int) -> None:
        super().__init__(task)
        self.most = most

    def count(self, counted: Tensor, symbol: Tensor, step: Tensor) -> Tensor:
        begun = torch.where(counted > 0, counted + 1, counted)  # 0 until the first event
        return torch.where(symbol == 0, begun, torch.ones_like(counted))

    def spoilt(self, counted: Tensor, step: Tensor) -> Tensor:
        return counted > self.most


def search(task: str, model: nn.Module, length: int = 16, budget: int | None = BUDGET) -> OnWords:
    found = on_words(st.task(task), model, length, 0, budget)  # type: ignore[arg-type]
    assert found.reason == ""
    return found


def replayed(task: str, model: SequenceModel, word: BreakingWord) -> None:
    """Run on the word alone, in one pass: every answer is right but the last."""
    due = st.task(task).targets(word.symbols)
    with torch.no_grad():
        said = answers_of(model(torch.tensor([word.symbols])))[0].numpy()
    assert (said[:-1] == due[:-1]).all()
    assert (said[-1], due[-1]) == (word.given, word.expected)


@pytest.mark.parametrize(
    ("task", "word", "text"),
    [
        ("txc", [1] + [0] * 22, "1 0^22"),
        ("txc", [0, 1, 1] + [1, 0, 0] * 30, "0 1^2 (1 0 0)^30"),
        ("fsm", [1, 0, 1, 0] * 10, "(1 0)^20"),
        ("txc", [1], "1"),
        ("s3_composition", [4] + [0] * 100, "4 0^100"),
        ("dyck", [0, 2] * 40, "(0 2)^40"),
    ],
)
def test_a_network_that_is_wrong_after_one_word_alone_is_found(task: str, word: list[int], text: str) -> None:
    model = WrongAfterOneWord(task, word)
    found = search(task, model)
    assert found.breaking is not None
    assert (found.breaking.word, found.breaking.symbols, found.breaking.tokens) == (text, word, len(word))
    words = hard_words(st.task(task), BUDGET, 0, 16)
    begins = [(family.symbols(0, len(word)) == word).all(axis=1).sum() for family in words.families]
    assert found.wrong == sum(begins)
    assert (found.words, found.longest, found.how) == (len(words), words.steps, "families")
    assert found.tokens == len(words) * words.steps - found.wrong * (words.steps - len(word))
    replayed(task, model, found.breaking)


@pytest.mark.parametrize("task", ["txc", "fsm", "s3_composition", "dyck", "flip_flop", "modular_arithmetic"])
def test_a_network_that_is_the_machine_is_not_broken(task: str) -> None:
    """Of Dyck too, though a bracket too many is answered by a class that the data never show."""
    found = search(task, Machine(task))
    assert (found.wrong, found.breaking) == (0, None)
    assert found.tokens == found.words * found.longest > BUDGET // 8


@pytest.mark.parametrize("most", [9, 40, 200])
def test_a_leaky_network_is_broken_by_one_event_and_silence(most: int) -> None:
    found = search("txc", Leaky("txc", most))
    assert found.breaking is not None
    assert (found.breaking.word, found.breaking.family) == (f"1 0^{most}", EVENT)
    assert found.breaking.given is not None
    assert found.wrong > 1


def test_one_that_leaks_slowly_is_broken_by_a_word_longer_than_all_others() -> None:
    found = search("txc", Leaky("txc", 3000))
    assert found.breaking is not None
    assert (found.breaking.word, found.breaking.family) == ("1 0^3000", EVENT)
    assert (found.wrong, found.longest < 3000) == (1, True)
    assert search("txc", Leaky("txc", BUDGET)).breaking is None, "a part of the budget is all that it may take"


def test_a_word_is_shortened_as_far_as_it_goes() -> None:
    """A rare word of which most letters do nothing: only the silence after the last event matters."""
    model = Leaky("txc", 40)
    test = WordTest(st.task("txc"), model, 16)
    head = ((1, 0, 0, 1, 0, 1, 1) * 12)[:80]
    word = test.alone((head, (0,)), 200, RARE)
    assert word is not None
    assert word[1] > 100
    short = shortened(test, (head, (0,)), *word, budget=10**6)
    assert (short.word, short.family) == ("1 0^40", RARE)
    assert shortened(test, (head, (0,)), *word, budget=0) == word[0]  # no tokens, no attempt
    replayed("txc", model, short)


class Tired(Machine):
    """Wrong from the tenth one on."""

    def count(self, counted: Tensor, symbol: Tensor, step: Tensor) -> Tensor:
        return counted + symbol

    def spoilt(self, counted: Tensor, step: Tensor) -> Tensor:
        return counted >= 10


def test_v_is_shortened_too() -> None:
    test, pair = WordTest(st.task("txc"), Tired("txc"), 16), ((0, 1), (0, 0, 1, 0))
    word = test.alone(pair, 60, "f")
    assert word is not None
    assert word[0].word == "0 1 (0 0 1 0)^8 0^2 1"
    assert shortened(test, pair, *word, budget=10**6).word == "1^10"


class NotANumber(Machine):
    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        logits, after = super().forward_from(ids, state)
        steps = after[0][:, 2:] - ids.shape[1] + 1 + torch.arange(ids.shape[1])
        return logits + torch.where(steps >= 30, float("nan"), 0.0).unsqueeze(-1), after


def test_what_is_not_a_number_is_wrong() -> None:
    found = search("txc", NotANumber("txc"))
    assert found.wrong == found.words
    assert found.breaking is not None
    assert (found.breaking.tokens, found.breaking.given) == (30, None)


class WrongBesideOthers(Machine):
    def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        logits, after = super().forward_from(ids, state)
        return logits.flip(-1) if len(ids) > 1 else logits, after


def test_what_is_right_alone_breaks_nothing() -> None:
    found = search("txc", WrongBesideOthers("txc"))
    assert found.wrong > 0
    assert found.breaking is None


class WrongWherever(Machine):
    """Wrong at these steps of every word."""

    at: tuple[int, ...] = ()

    def spoilt(self, counted: Tensor, step: Tensor) -> Tensor:
        return torch.isin(step, torch.tensor(self.at))


def test_where_the_end_is_asked_about_only_ends_count() -> None:
    """Of words of 1, 2, 4, ... times the length trained on."""
    model = WrongWherever("txc")
    model.at = (1, 2, 3, 8, 15, 17, 24, 48)
    assert search("txc", model, length=16).breaking is not None
    assert search("txc[ask=end]", model, length=16).wrong == 0
    model.at = (24, 32)
    found = search("txc[ask=end]", model, length=16)
    assert found.wrong == found.words
    assert found.breaking is not None
    assert found.breaking.tokens == 32


class Batched(nn.Module):
    """Somebody's own network: a GRU whose state has the batch in its second dimension."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.cell, self.head = nn.GRU(2, 4, num_layers=2, batch_first=True), nn.Linear(4, 2)

    def initial_state(self, batch: int, device: Any) -> Tensor:
        return torch.zeros(2, batch, 4)

    def forward_from(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        out, after = self.cell(nn.functional.one_hot(ids, 2).float(), state)
        return self.head(out), after

    def forward(self, ids: Tensor) -> Tensor:
        return self.forward_from(ids, self.initial_state(len(ids), None))[0]


@pytest.mark.parametrize(
    "name", ["gru[dim=4,hidden=8]", "e88-gain-1l-small", "mlp[hidden=4]", "transformer[dim=8,layers=1,heads=1]", "own"]
)
def test_first_errors_are_those_of_one_pass_over_whole_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In small windows, with words left out on the way, few at a time."""
    task, steps = st.task("rtc"), 60
    model = Adapted(Batched(), 2, 2) if name == "own" else built(name, task, 0)
    monkeypatch.setitem(evaluate.PASS_TOKENS, "cpu", 7 * steps)
    monkeypatch.setattr(breaking, "WINDOW", 9)
    test = WordTest(task, model, 8)
    for family in hard_words(task, 2**13, 0, 8).families:
        batch = task.batch(family.symbols(0, steps))
        with torch.no_grad():
            wrong = answers_of(model(torch.from_numpy(batch.inputs).long())).numpy() != batch.targets
        found = test.first_errors(family, steps)
        first = np.where(wrong.any(axis=1), wrong.argmax(axis=1), RIGHT)
        assert (found.at == first).all()
        bad = np.flatnonzero(wrong.any(axis=1))
        assert (found.expected[bad] == batch.targets[bad, first[bad]]).all()
        assert (found.given[bad] == 1 - found.expected[bad]).all()


def test_a_network_is_run_as_far_as_it_can_be() -> None:
    lengths = {"dim=8,layers=1,heads=1": 16 * 8, "dim=8,layers=1,heads=1,positions=40": 40}
    for options, steps in lengths.items():
        assert search("txc", built(f"transformer[{options}]", st.task("txc"), 0), length=8).longest == steps
    assert search("txc", built("mlp[hidden=4]", st.task("txc"), 0), length=8).longest == BUDGET // 256


def test_where_memory_runs_out_fewer_words_are_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, tried = Leaky.forward_from, []

    def small_memory(self: Leaky, ids: Tensor, state: State) -> tuple[Tensor, State]:
        tried.append(len(ids))
        if len(ids) > 40:
            raise torch.OutOfMemoryError("no more")
        return honest(self, ids, state)

    whole = search("txc", Leaky("txc", 40))
    monkeypatch.setattr(Leaky, "forward_from", small_memory)
    assert search("txc", Leaky("txc", 40)) == whole
    assert max(tried) > 40  # else nothing was made smaller


def test_a_network_that_cannot_be_run_says_why() -> None:
    class Breaks(Machine):
        def forward_from(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
            raise ValueError("no such step")

    found = on_words(st.task("txc"), Breaks("txc"), 16, 0, BUDGET)
    assert found == replace(OnWords(seed=0, budget=BUDGET), reason="ValueError: no such step")


def test_the_usual_budget_is_bounded_by_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert search("txc", Leaky("txc", 3), budget=None).budget == breaking.TOKENS["cpu"]
    monkeypatch.setitem(breaking.TEST_LOGITS, "cpu", 2 * 1000)
    assert search("txc", Leaky("txc", 3), budget=None).budget == 1000
    assert search("txc", Leaky("txc", 3), length=2000, budget=None).budget == 2000  # one word of the length at least
