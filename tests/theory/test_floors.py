"""Floors against brute force over all strings, and against the known values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

import statetrack as st
from statetrack.errors import BadInput
from statetrack.tasks.base import Task
from statetrack.theory import floors, position_floor
from statetrack.theory.floors import simulation
from statetrack.theory.floors.strategies import linear_logit

Law = Callable[[Task, Any, int], np.ndarray]


def independent(task: Task, state: Any, position: int) -> np.ndarray:
    weights = task.symbol_weights
    shares = np.ones(task.inputs) if weights is None else np.array(weights)
    return shares / shares.sum()


def brackets(task: Any, state: Any, position: int) -> np.ndarray:
    """Dyck's rule, from its description."""
    law = np.zeros(task.inputs)
    if state is None:
        return law + 1 / task.inputs
    opening = 1.0 if not state else 0.0 if len(state) == task.depth else task.p
    law[: task.kinds] = opening / task.kinds
    for kind in range(task.kinds if state else 0):
        share = 1 - task.wrong if kind == state[-1] else task.wrong / max(1, task.kinds - 1)
        law[task.kinds + kind] = (1 - opening) * share
    return law


def terms(task: Any, state: Any, position: int) -> np.ndarray:
    law = np.zeros(task.inputs)
    law[slice(0, task.m) if position % 2 == 0 else slice(task.m, None)] = 1
    return law / law.sum()


def all_strings(task: Task, length: int, law: Law) -> list[tuple[float, list[int], list[int | None]]]:
    """Every string that can come, with its probability and its answers."""
    rows: list[tuple[float, list[int], list[int | None], Any]] = [(1.0, [], [], task.start())]
    for position in range(length):
        longer = []
        for probability, symbols, answers, state in rows:
            for symbol, share in enumerate(law(task, state, position)):
                if share > 0:
                    after = task.step(state, symbol)
                    row = (probability * share, [*symbols, symbol], [*answers, task.answer(after)], after)
                    longer.append(row)
        rows = longer
    return [row[:3] for row in rows]


def brute(
    rows: list[Any], length: int, see: Callable[[list[int], int], Hashable], ask: str = "every"
) -> tuple[list[float], float]:
    """The best accuracy at each position and over all for who sees see(symbols, t); t = 0 is the first position."""
    by_position, asked_by_position = [], []
    for t in range(length):
        joint: dict[Hashable, dict[int, float]] = {}
        for probability, symbols, answers in rows:
            if answers[t] is not None:
                seen = joint.setdefault(see(symbols, t), {})
                seen[answers[t]] = seen.get(answers[t], 0.0) + probability
        by_position.append(sum(max(seen.values()) for seen in joint.values()))
        asked_by_position.append(sum(sum(seen.values()) for seen in joint.values()))
    if ask == "end":
        asked_by_position = [0.0] * (length - 1) + asked_by_position[-1:]
    total = sum(asked_by_position)
    right = sum(r for r, a in zip(by_position, asked_by_position) if a)
    shares = [r / a if a else math.nan for r, a in zip(by_position, asked_by_position)]
    return shares, right / total


def brute_constant(rows: list[Any]) -> float:
    totals: dict[int, float] = {}
    asked = 0.0
    for probability, _, answers in rows:
        for answer in answers:
            if answer is not None:
                totals[answer] = totals.get(answer, 0.0) + probability
                asked += probability
    return max(totals.values()) / asked


CASES: list[tuple[str, int, Law]] = [
    ("txc", 12, independent),
    ("txc[p=0.3]", 8, independent),
    ("fsm", 12, independent),
    ("fsm[k=2,p=0.2]", 9, independent),
    ("rtc", 12, independent),
    ("rtc[p=0.3]", 9, independent),
    ("rtc[p=1]", 5, independent),
    ("xor_lag[k=2]", 9, independent),
    ("mod_counter[m=3]", 9, independent),
    ("even_pairs", 9, independent),
    ("flip_flop[weights=[3,1,2]]", 7, independent),
    ("cycle_navigation[m=3]", 6, independent),
    ("regex[pattern=(ab)*]", 8, independent),
    ("dyck[depth=2]", 7, brackets),
    ("dyck[depth=2,p=0.7,wrong=0.2]", 6, brackets),
    ("modular_arithmetic[m=3]", 6, terms),
    ("boxes[objects=1,boxes=2]", 5, independent),
    ("cups[n=3]", 7, independent),
    ("s3", 4, independent),
    ("s3[over=generators]", 8, independent),
    ("s3[over=generators,weights=[1,3]]", 8, independent),
    ("z2_2[weights=[5,1,1,1]]", 5, independent),
]


@pytest.mark.parametrize(("name", "length", "law"), CASES, ids=[name for name, _, _ in CASES])
def test_floors_are_what_all_strings_say(name: str, length: int, law: Law) -> None:
    task = st.task(name)
    known = floors(task, length, window=3)
    rows = all_strings(task, length, law)
    assert known["constant"].average == pytest.approx(brute_constant(rows), abs=1e-12)
    sights: dict[str, Callable[[list[int], int], Hashable]] = {
        "position": lambda symbols, t: 0,
        "input": lambda symbols, t: symbols[t],
        "window": lambda symbols, t: tuple(symbols[max(0, t - 2) : t + 1]),
        "counts": lambda symbols, t: tuple(sorted(symbols[: t + 1])),
    }
    checked = [floor for floor in sights if floor in known.names]
    assert {"position", "input", "window"} <= set(checked)
    for floor in checked:
        by_position, average = brute(rows, length, sights[floor])
        assert known[floor].exact
        np.testing.assert_allclose(known[floor].by_position, by_position, atol=1e-12)
        assert known[floor].average == pytest.approx(average, abs=1e-12)


def test_counts_were_checked_where_order_matters() -> None:
    for name in ("flip_flop", "xor_lag[k=2]", "cups[n=3]", "s3[over=generators]"):
        assert "counts" in floors(st.task(name), 6).names


@pytest.mark.parametrize("name", ["fsm[ask=end]", "rtc[ask=end]", "flip_flop[ask=end]", "s3[ask=end]"])
def test_asked_at_the_end_alone(name: str) -> None:
    task = st.task(name)
    known = floors(task, 5, window=2)
    rows = all_strings(task, 5, independent)
    by_position, average = brute(rows, 5, lambda symbols, t: symbols[t], "end")
    np.testing.assert_allclose(known["input"].by_position, by_position, atol=1e-12)
    assert known["input"].average == pytest.approx(average)
    last = {answer: sum(p for p, _, answers in rows if answers[-1] == answer) for answer in range(task.outputs)}
    assert known["constant"].average == pytest.approx(max(last.values()))


@pytest.mark.parametrize("name", ["s3", "a4", "z2_2", "s3[over=generators]", "a4[over=generators]"])
def test_the_floors_of_groups_alone(name: str) -> None:
    task = st.task(name)
    length = 4 if task.inputs < 12 else 3
    known = floors(task, length)
    cosets = task.group_object.abelianisation.cosets  # type: ignore[attr-defined]
    rows = all_strings(task, length, independent)

    def coset(symbols: list[int], t: int) -> int:
        return int(cosets[task.targets(symbols)[t]])

    by_position, average = brute(rows, length, coset)
    np.testing.assert_allclose(known["abelianisation"].by_position, by_position, atol=1e-12)
    assert known["abelianisation"].average == pytest.approx(average)
    copied = [sum(p for p, symbols, answers in rows if symbols[t] == answers[t]) for t in range(length)]
    np.testing.assert_allclose(known["last element"].by_position, copied, atol=1e-12)
    assert known["uniform"].average == pytest.approx(1 / task.outputs)


def test_large_groups_by_algebra() -> None:
    known = floors(st.task("s9"), 500)
    assert known["position"].average == pytest.approx(1 / 362880)
    assert known["abelianisation"].average == pytest.approx(2 / 362880)
    assert floors(st.task("psl3_5"), 10)["abelianisation"].average == pytest.approx(1 / 372000)
    assert floors(st.task("m11[over=generators]"), 20)["position"].by_position[-1] < 0.001


def test_the_linear_logit_is_the_best_threshold() -> None:
    """All thresholds of up to four bits have weights of at most 3 (there are 1882 of them on four bits)."""
    for t in (1, 2, 3, 4):
        points = np.array(list(itertools.product([0, 1], repeat=t)))
        parity = points.sum(axis=1) % 2
        weights = np.array(list(itertools.product(range(-3, 4), repeat=t)))
        sums = weights @ points.T
        best = max(float(((sums >= b) == parity).mean(axis=1).max()) for b in np.arange(-12.5, 13))
        assert linear_logit(t)[-1] == pytest.approx(best)


KNOWN = {
    ("rtc", "position"): {16: 0.573, 64: 0.543, 256: 0.523, 1024: 0.512},
    ("rtc", "input"): {16: 0.671, 64: 0.592, 256: 0.548, 1024: 0.524},
    ("txc", "linear logit"): {16: 0.671, 64: 0.592, 256: 0.548, 1024: 0.524},
    ("fsm", "constant"): {T: 1 - 5 / T for T in (64, 256, 1024)},
    ("fsm", "position"): {T: 1 - 1.875 / T for T in (64, 256, 1024)},
}


@pytest.mark.parametrize(("name", "floor"), KNOWN)
def test_known_values_to_three_digits(name: str, floor: str) -> None:
    for length, value in KNOWN[name, floor].items():
        assert floors(st.task(name), length)[floor].average == pytest.approx(value, abs=6e-4)


def test_majority_of_numbers_is_rtc_and_long_lengths_do_not_overflow() -> None:
    assert floors(st.task("stream.majority"), 40)["input"].average == pytest.approx(
        floors(st.task("rtc"), 40)["input"].average
    )
    assert 0.5 < floors(st.task("rtc"), 3000)["position"].by_position[-1] < 0.51


@pytest.mark.parametrize("name", ["fsm", "flip_flop", "even_pairs"])
def test_simulation_agrees_with_the_exact_floor(name: str) -> None:
    task = st.task(name)
    exact, simulated = floors(task, 16), simulation.strategies(task, 16)
    for floor in ("constant", "position"):
        low, high = simulated[floor].interval
        assert low <= exact[floor].average <= high
        np.testing.assert_allclose(simulated[floor].by_position, exact[floor].by_position, atol=0.05)


@pytest.mark.parametrize("name", ["track_the_stat.median", "stream.distinct", "stream.echo"])
def test_streams_say_that_they_were_simulated(name: str) -> None:
    known = floors(st.task(name), 20)
    assert any(note.startswith("window: not given") for note in known.notes)
    assert any(note.startswith("counts: not given") for note in known.notes) == ("counts" not in known.names)
    for floor in known.floors:
        if floor.name == "counts":
            continue
        assert not floor.exact
        assert floor.rows
        assert floor.low is not None
        assert floor.high is not None
        assert floor.low <= floor.average <= floor.high
    assert "simulated" in known.text()
    assert known["position"].average >= known["constant"].average - 0.05


@pytest.mark.parametrize("name", ["track_the_stat.median", "track_the_stat.mode", "stream.distinct"])
def test_the_counts_decide_what_is_asked_of_a_histogram(name: str) -> None:
    task = st.task(name)
    known = floors(task, 20)["counts"]
    assert (known.average, known.exact, known.says) == (1.0, True, "the answer is a function of the counts")
    assert (known.by_position == 1).all()
    rows = task.sample(20, 30).inputs
    shuffled = np.random.default_rng(0).permuted(rows, axis=1)
    assert np.array_equal(task.targets(rows)[:, -1], task.targets(shuffled)[:, -1])


@pytest.mark.parametrize("length", [3, 12, 64, 300])
@pytest.mark.parametrize(
    "name", ["track_the_stat.median", "track_the_stat.mode", "stream.distinct", "stream.echo", "stream.window_median"]
)
def test_who_sees_the_input_sees_the_position_too(name: str, length: int) -> None:
    known = floors(st.task(name), length)
    assert known["input"].average >= known["position"].average


def test_the_first_distinct_number_is_certain_and_an_echo_is_not_asked_at_first() -> None:
    assert floors(st.task("stream.distinct"), 5)["position"].by_position[0] == 1
    echo = floors(st.task("stream.echo"), 5)["position"].by_position
    assert np.isnan(echo[:2]).all()
    assert not np.isnan(echo[2:]).any()


def test_too_many_counts_are_said_to_be_too_many() -> None:
    known = floors(st.task("dyck"), 200)
    assert "counts" not in known.names
    assert any(note.startswith("counts") for note in known.notes)


@pytest.mark.parametrize("name", ["rtc", "fsm[ask=end]", "s5", "flip_flop", "track_the_stat.mode"])
def test_the_floor_by_position_alone_is_the_one_among_all(name: str) -> None:
    alone, among = position_floor(st.task(name), 12), floors(st.task(name), 12)["position"]
    assert (alone.name, alone.average, alone.exact) == (among.name, among.average, among.exact)
    assert np.array_equal(alone.by_position, among.by_position, equal_nan=True)
    assert position_floor(st.task(name), 12) is alone


def test_the_dictionary_is_plain() -> None:
    import json

    known = floors(st.task("even_pairs"), 4)
    assert json.loads(json.dumps(known.to_dict()))["floors"][0]["name"] == "constant"
    echoed = json.loads(json.dumps(floors(st.task("stream.echo"), 4).to_dict()))
    assert echoed["floors"][0]["by_position"][0] is None


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="length 0"):
        floors(st.task("txc"), 0)
    with pytest.raises(BadInput, match="window 0"):
        floors(st.task("txc"), 4, window=0)
    with pytest.raises(BadInput, match="no floor 'lazy'; it has constant"):
        floors(st.task("txc"), 4)["lazy"]


def test_what_keeps_count_is_not_called_a_guess() -> None:
    """On parity it is always right, and no guess is."""
    guesses, _, sums = floors(st.task("txc"), 64).text().partition("not guesses, for they keep a count or a sum of all")
    assert [line.split()[0] for line in guesses.splitlines()] == ["constant", "position", "input", "window"]
    assert "1.000" not in guesses
    assert [line.split("  ")[0] for line in sums.splitlines()[1:]] == ["counts", "linear logit"]
    told = {floor["name"]: floor["guess"] for floor in floors(st.task("c2"), 8).to_dict()["floors"]}
    assert [name for name, guess in told.items() if not guess] == ["abelianisation", "counts"]
