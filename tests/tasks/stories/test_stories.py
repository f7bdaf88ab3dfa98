"""Stories against plain worlds that follow the sentences, and cups against permutations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from sympy.combinatorics import Permutation

import statetrack as st


def told(task: st.Task, symbols: list[int]) -> list[list[str]]:
    return [task.symbol_text(symbol).split() for symbol in symbols]


# ---- variables -------------------------------------------------------------------------------------------------------


def follow_variables(task: st.Task, symbols: list[int], query: str) -> int:
    held: dict[str, int] = {}
    for verb, left, _, right in told(task, symbols):
        if verb == "set":
            held[left] = int(right)
        elif verb == "copy":
            held[right] = held.get(left, 0)
        else:
            held[left], held[right] = held.get(right, 0), held.get(left, 0)
    return held.get(query, 0)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("variables", "a"),
        ("variables[v=1,values=2]", "a"),
        ("variables[v=5,values=4,query=4]", "e"),
        ("variables[v=26,values=100,query=25]", "z"),
    ],
)
def test_variables_follow_their_sentences(text: str, query: str, agree: Callable[..., None]) -> None:
    task = st.task(text)
    agree(text, lambda x: follow_variables(task, x, query), count=25, length=40)


def test_the_sentences_of_variables() -> None:
    task = st.task("variables")
    texts = [task.symbol_text(symbol) for symbol in range(task.inputs)]
    assert texts[:2] == ["set a to 0", "set a to 1"]
    assert texts[30:] == [
        *("copy a to b", "copy a to c", "copy b to a", "copy b to c", "copy c to a", "copy c to b"),
        *("swap a and b", "swap a and c", "swap b and c"),
    ]


def test_variables_are_a_finite_machine() -> None:
    automaton = st.task("variables[v=3,values=4]").automaton
    assert automaton.minimised().states == automaton.states == 4**3


# ---- cups ------------------------------------------------------------------------------------------------------------


def follow_ball(task: st.Task, symbols: list[int]) -> int:
    cups = ["ball"] + [""] * (task.n - 1)
    for _, _, a, _, b in told(task, symbols):
        cups[int(a)], cups[int(b)] = cups[int(b)], cups[int(a)]
    return cups.index("ball")


@pytest.mark.parametrize("text", ["cups", "cups[n=2]", "cups[n=9]"])
def test_the_ball(text: str, agree: Callable[..., None]) -> None:
    task = st.task(text)
    agree(text, lambda x: follow_ball(task, x))


def follow_all(task: st.Task, symbols: list[int]) -> int:
    """The product of the swaps by sympy, and its place in the list of all permutations."""
    product = Permutation(range(task.n))
    for _, _, a, _, b in told(task, symbols):
        product = product * Permutation(int(a), int(b), size=task.n)  # sympy applies the left one first
    return list(itertools.permutations(range(task.n))).index(tuple(product.array_form))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_all_items(n: int, agree: Callable[..., None]) -> None:
    task = st.task(f"cups[n={n},items=all]")
    agree(task.name, lambda x: follow_all(task, x), count=8, length=16)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_all_items_are_the_group_composed_of_swaps(n: int) -> None:
    task, group = st.task(f"cups[n={n},items=all]"), st.group(f"s{n}")
    swaps = np.tile(np.arange(n), (task.inputs, 1))
    for row, (a, b) in zip(swaps, itertools.combinations(range(n), 2)):
        row[[a, b]] = b, a
    inputs = task.sample(40, 30).inputs
    assert task.outputs == group.order
    assert np.array_equal(task.targets(inputs), group.prefix_products(np.asarray(group.id_of(swaps))[inputs]))


def test_the_table_of_all_items_is_the_machine() -> None:
    task = st.task("cups[n=4,items=all]")
    arrangements = list(itertools.permutations(range(4)))
    for number, arrangement in enumerate(arrangements):
        assert task.answer(arrangement) == task.automaton.answers[number] == number
        for symbol in range(task.inputs):
            assert arrangements[task.automaton.steps[number, symbol]] == task.step(arrangement, symbol)


def test_eight_cups() -> None:
    task = st.task("cups[n=8,items=all]")
    number = {arrangement: i for i, arrangement in enumerate(itertools.permutations(range(8)))}
    inputs = task.sample(30, 20).inputs
    for row, answers in zip(inputs.tolist(), task.targets(inputs).tolist()):
        cups = tuple(range(8))
        for symbol, answer in zip(row, answers):
            cups = task.step(cups, symbol)
            assert number[cups] == answer


def test_the_sentences_of_cups() -> None:
    task = st.task("cups[n=4,items=all]")
    assert [task.symbol_text(symbol) for symbol in (0, 4)] == ["swap cups 0 and 1", "swap cups 1 and 3"]
    assert [task.answer_text(answer) for answer in (0, 23)] == ["0 1 2 3", "3 2 1 0"]
    assert st.task("cups").answer_text(3) == "cup 3"


def test_the_ball_is_the_first_item() -> None:
    everything, ball = st.task("cups[n=4,items=all]"), st.task("cups[n=4]")
    inputs = ball.sample(30, 20).inputs
    first = [everything.answer_text(answer).split()[0] for answer in everything.targets(inputs).ravel()]
    assert [f"cup {cup}" for cup in first] == [ball.answer_text(answer) for answer in ball.targets(inputs).ravel()]


# ---- people ----------------------------------------------------------------------------------------------------------

AT_THE_START = re.compile(r"(\w+) (?:holds|is) the (\w+)")


def follow_people(task: st.Task, symbols: list[int]) -> dict[str, str]:
    """Who has what by the words alone: those of the instruction, then those of every input."""
    having = dict(AT_THE_START.findall(task.instruction))
    for words in (task.symbol_text(symbol).split() for symbol in symbols):
        names = [word for word in words if word in having]
        if names[0] != names[-1]:
            names.append(names[0])
        before = dict(having)
        for giver, taker in itertools.pairwise(names):
            having[taker] = before[giver]
    return having


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("hands", "Ann"), ("hands[n=2]", "Ann"), ("hands[n=7,query=6]", "Gus"),
        ("roles", "Ann"), ("roles[n=3,query=1]", "Ben"), ("roles[events=all]", "Ann"),
        ("roles[n=6,query=4,events=all]", "Emil"),
    ],
)  # fmt: skip
def test_people_have_what_the_sentences_say(text: str, who: str, agree: Callable[..., None]) -> None:
    task = st.task(text)
    things = [task.answer_text(answer) for answer in range(task.outputs)]
    assert who in task.instruction.rpartition("Answer with")[2]
    agree(text, lambda x: things.index(follow_people(task, x)[who]), count=10)


@pytest.mark.parametrize("text", ["hands[n=4,items=all]", "roles[items=all]", "roles[n=4,items=all,events=all]"])
def test_everything_that_people_have(text: str, agree: Callable[..., None]) -> None:
    """The answer is a list of names in the order of the things, numbered as Python lists them."""
    task = st.task(text)
    start = follow_people(task, [])
    people, things = list(start), list(start.values())
    numbers = {names: number for number, names in enumerate(itertools.permutations(people))}

    def number(symbols: list[int]) -> int:
        having = {thing: name for name, thing in follow_people(task, symbols).items()}
        names = tuple(having[thing] for thing in things)
        assert task.answer_text(numbers[names]) == " ".join(names)
        return numbers[names]

    agree(text, number, count=8, length=16)


def test_the_dense_s5_of_networks_is_the_group_composed_of_five_generators() -> None:
    task, group = st.task("roles[items=all]"), st.group("s5")
    generators = [[1, 0, 2, 3, 4], [0, 2, 1, 3, 4], [0, 1, 3, 2, 4], [0, 1, 2, 4, 3], [1, 2, 3, 4, 0]]
    inputs = task.sample(64, 50).inputs
    assert (task.inputs, task.outputs) == (5, 120)
    assert np.array_equal(task.targets(inputs), group.prefix_products(np.asarray(group.id_of(generators))[inputs]))


def test_all_events_are_all_swaps_and_all_rounds_in_their_shares() -> None:
    task = st.task("roles[events=all]")
    cycles = {
        tuple(permutation): [len(cycle) for cycle in Permutation(permutation).cyclic_form]
        for permutation in map(list, itertools.permutations(range(5)))
    }
    wanted = {move: lengths[0] for move, lengths in cycles.items() if len(lengths) == 1}
    assert sorted(task.moves) == sorted(wanted)  # every permutation of one cycle, once
    shares = dict.fromkeys(range(2, 6), 0.0)
    for move, share in zip(task.moves, task.symbol_weights):
        shares[wanted[move]] += share
    assert shares == pytest.approx({2: 0.7, 3: 0.1, 4: 0.1, 5: 0.1})


def test_another_question_is_asked_of_the_same_events() -> None:
    one, everything = (st.task(f"hands[{which}]").sample(20, 5).inputs for which in ("query=3", "items=all"))
    assert np.array_equal(one, everything)


def test_the_sentences_of_people() -> None:
    roles, hands = st.task("roles[n=4]"), st.task("hands[n=3]")
    assert [roles.symbol_text(symbol) for symbol in (0, 3)] == [
        "Ann and Ben swap jobs", "jobs go round from Ann to Ben to Cleo to Dora to Ann"
    ]  # fmt: skip
    assert [hands.symbol_text(symbol) for symbol in range(3)] == ["Ann and Ben swap", "Ann and Cleo swap",
                                                                  "Ben and Cleo swap"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hands[n=9]", r"hands: n=9 should lie in 2\.\.8"),
        ("hands[items=some]", "hands: items=some should be 'one' or 'all'"),
        ("hands[query=5]", r"hands: query=5 should lie in 0\.\.4"),
        ("roles[n=2]", r"roles: n=2 should lie in 3\.\.8"),
        ("roles[n=7,events=all]", r"roles: n=7 should lie in 3\.\.6"),
        ("roles[events=swaps]", "roles: events=swaps should be 'generators' or 'all'"),
    ],
)
def test_people_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(st.BadInput, match=said):
        st.task(text)


# ---- boxes -----------------------------------------------------------------------------------------------------------


def follow_boxes(task: st.Task, symbols: list[int]) -> int:
    """All boxes with all their objects."""
    boxes: list[set[int]] = [set() for _ in range(task.boxes)]
    for thing in range(task.objects):
        boxes[thing % task.boxes].add(thing)
    for words in told(task, symbols):
        a, b = (int(word) for word in words if word.isdigit())
        if words[0] == "move":
            for box in boxes:
                box.discard(a)
            boxes[b].add(a)
        else:
            boxes[a], boxes[b] = set(), boxes[a] | boxes[b]
    return next(number for number, box in enumerate(boxes) if task.query in box)


@pytest.mark.parametrize(
    "text", ["boxes", "boxes[objects=1,boxes=2]", "boxes[objects=7,boxes=4,query=6]", "boxes[query=2]"]
)
def test_boxes_follow_their_sentences(text: str, agree: Callable[..., None]) -> None:
    task = st.task(text)
    agree(text, lambda x: follow_boxes(task, x))


def test_the_sentences_of_boxes() -> None:
    task = st.task("boxes")
    texts = [task.symbol_text(symbol) for symbol in range(task.inputs)]
    assert texts[5] == "move object 1 to box 2"
    assert texts[9:] == [f"pour box {a} into box {b}" for a, b in itertools.permutations(range(3), 2)]
    assert task.answer_text(2) == "box 2"
