"""Products: the direction, the laws, the prefixes, and the two implementations against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.errors import BadInput
from statetrack.tasks import native
from statetrack.tasks.groups import Group, group

TABLE = ["s3", "q8", "a5", "psl2_7", "z3_4", "a4xz5", "<(0 1 2)>"]  # multiplied through a table
IMAGES = [
    "s7",
    "m11",
    "psl3_3",
    "m12",
    "s9",
    "psl3_5",
    "s5xd11",
    "<(0 1 2 3 4 5 6),(0 9)>",
]  # through images of the base

some_group = st.sampled_from(TABLE + IMAGES).map(group)


@st.composite
def words(draw: st.DrawFn, longest: int = 40) -> tuple[Group, list[int]]:
    g = draw(some_group)
    return g, draw(st.lists(st.integers(0, g.order - 1), min_size=1, max_size=longest))


def by_hand(g: Group, ids: list[int]) -> list[int]:
    """Every prefix product by following each point: p_1 first."""
    where, out = list(range(g.degree)), []
    for i in ids:
        where = [int(g.elements[i][point]) for point in where]
        out.append(g.id_of(where))
    return out


def test_the_first_element_acts_first() -> None:
    """In S3: 3 is [1,2,0], 2 is [1,0,2]. First 3, then 2: 0 -> 1 -> 0, 1 -> 2 -> 2, 2 -> 0 -> 1: [0,2,1], the ID 1."""
    s3 = group("s3")
    assert s3.elements.tolist() == [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    assert s3.then(3, 2) == 1
    assert s3.then(2, 3) == 5
    assert s3.product([3, 2]) == 1
    assert s3.cayley[3, 2] == 1
    assert s3.prefix_products([3, 2, 1]).tolist() == [3, 1, 0]


def test_the_same_direction_in_a_large_group() -> None:
    """In S9, (0 1) and then (1 2) takes 0 to 1 to 2."""
    s9 = group("s9")
    first, second = s9.id_of([1, 0, 2, 3, 4, 5, 6, 7, 8]), s9.id_of([0, 2, 1, 3, 4, 5, 6, 7, 8])
    assert s9.elements[s9.then(first, second)].tolist() == [2, 0, 1, 3, 4, 5, 6, 7, 8]
    assert s9.elements[s9.product([first, second])].tolist() == [2, 0, 1, 3, 4, 5, 6, 7, 8]


@given(words())
def test_prefixes_follow_the_points(word: tuple[Group, list[int]]) -> None:
    g, ids = word
    expected = by_hand(g, ids)
    assert g.prefix_products(ids).tolist() == expected
    assert g.product(ids) == expected[-1]
    assert [g.product(ids[: t + 1]) for t in range(len(ids))] == expected


@given(some_group, st.data())
def test_the_laws_of_a_group(g: Group, data: st.DataObject) -> None:
    a, b, c = data.draw(st.lists(st.integers(0, g.order - 1), min_size=3, max_size=3))
    assert g.then(g.then(a, b), c) == g.then(a, g.then(b, c))
    assert g.then(a, 0) == g.then(0, a) == a
    assert g.then(a, g.inverse(a)) == g.then(g.inverse(a), a) == 0
    assert g.inverse(g.then(a, b)) == g.then(g.inverse(b), g.inverse(a))


@given(words(), st.data())
def test_a_stream_can_be_taken_piece_by_piece(word: tuple[Group, list[int]], data: st.DataObject) -> None:
    g, ids = word
    cut = data.draw(st.integers(0, len(ids)))
    whole = g.prefix_products(ids)
    head = g.prefix_products(ids[:cut])
    tail = g.prefix_products(ids[cut:], start=int(head[-1]) if cut else 0)
    assert np.concatenate([head, tail]).tolist() == whole.tolist()


@pytest.mark.parametrize("name", TABLE + IMAGES)
@pytest.mark.parametrize(("count", "length"), [(1, 1), (3, 50), (17, 33), (700, 20)])
def test_numpy_and_numba_give_the_same(name: str, count: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    g = group(name)
    draw = np.random.default_rng(length)
    ids, start = draw.integers(0, g.order, (count, length)), draw.integers(0, g.order, count)
    monkeypatch.setenv("STATETRACK_NUMBA", "0")
    assert not native.available()
    plain = g.prefix_products(ids, start)
    monkeypatch.setenv("STATETRACK_NUMBA", "1")
    fast = g.prefix_products(ids, start)
    assert (plain == fast).all()
    assert plain.dtype == fast.dtype == np.int32
    for row in (0, count // 2, count - 1):
        assert plain[row].tolist() == by_hand(g, [int(start[row]), *ids[row].tolist()])[1:]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("name", ["s5", "s7"])
def test_any_integers_in_any_layout(name: str, dtype: type) -> None:
    g = group(name)
    ids = np.random.default_rng(0).integers(0, 120, (9, 14)).astype(dtype)
    expected = [by_hand(g, row) for row in ids.tolist()]
    assert g.prefix_products(ids).tolist() == expected
    assert g.prefix_products(np.asfortranarray(ids)).tolist() == expected
    assert g.prefix_products(ids.repeat(2, axis=0)[::2]).tolist() == expected
    assert [g.prefix_products(row).tolist() for row in ids] == expected


@pytest.mark.parametrize("name", ["s4", "s8"])
def test_nothing_to_multiply(name: str) -> None:
    g = group(name)
    assert g.product([]) == 0
    assert g.prefix_products([]).shape == (0,)
    assert g.prefix_products(np.zeros((3, 0), int)).shape == (3, 0)
    assert g.prefix_products(np.zeros((0, 3), int)).shape == (0, 3)


def test_then_and_inverse_on_arrays() -> None:
    g = group("psl2_7")
    everything = np.arange(g.order)
    assert (g.then(everything[:, None], everything) == g.cayley).all()
    assert (g.then(everything, g.inverse(everything)) == 0).all()
    assert g.then(everything[:, None], 5).shape == (168, 1)
    assert isinstance(g.then(1, 2), int)
    assert isinstance(g.inverse(1), int)


def test_the_table_has_every_element_once_in_a_row_and_a_column() -> None:
    table = group("f21").cayley
    assert all(sorted(line) == list(range(21)) for line in [*table.tolist(), *table.T.tolist()])
    with pytest.raises(BadInput, match="m11 has 7920 elements; a table is made for groups of up to 1024"):
        _ = group("m11").cayley


@pytest.mark.parametrize("name", ["s5", "s7"])
def test_ids_outside_the_group_are_named_with_their_place(name: str) -> None:
    g = group(name)
    last = g.order - 1
    with pytest.raises(BadInput, match=f"ID {g.order} at position 2 is outside 0..{last} of {name}"):
        g.product([0, 1, g.order])
    with pytest.raises(BadInput, match=f"ID -1 at row 1, position 0 is outside 0..{last} of {name}"):
        g.prefix_products([[0, 1], [-1, 2]])
    with pytest.raises(BadInput, match=f"ID {g.order} is outside 0..{last}"):
        g.then(0, g.order)
    with pytest.raises(BadInput, match="ID -7 is outside"):
        g.inverse(-7)
    with pytest.raises(BadInput, match="start 99999 is outside"):
        g.prefix_products([1], start=99999)
    with pytest.raises(BadInput, match=r"start should be one ID or 2, one per row, not of shape \(3,\)"):
        g.prefix_products([[1], [2]], start=[0, 0, 0])
    with pytest.raises(BadInput, match=f"ID of {name} should be a whole number, not float64"):
        g.prefix_products([0.5])
    with pytest.raises(BadInput, match=r"not \(1, 1, 1\)"):
        g.prefix_products([[[1]]])
    with pytest.raises(BadInput, match=r"a product is of one sequence of IDs, not of an array of shape \(1, 2\)"):
        g.product([[1, 2]])


def test_direct_products_act_apart() -> None:
    """The left factor's points come first, so its IDs are the high part."""
    left, right, both = group("a4"), group("z5"), group("a4xz5")
    assert (both.order, both.degree) == (60, 9)
    for i in range(60):
        a, b = divmod(i, 5)
        assert both.elements[i].tolist() == [*left.elements[a].tolist(), *(right.elements[b] + 4).tolist()]
    ids = np.random.default_rng(0).integers(0, 60, (4, 30))
    expected = left.prefix_products(ids // 5) * 5 + right.prefix_products(ids % 5)
    assert (both.prefix_products(ids) == expected).all()
    assert group("z2xs3xz3").order == 36
    assert group("z2xz3").is_abelian


@pytest.mark.parametrize("name", ["a5xa5", "s3xs6", "m11xz2", "z100xz99"])
def test_products_too_large_for_a_table(name):
    """Factors act on points of their own, so a product's base has points far apart."""
    whole = group(name)
    assert whole.order > 1024
    ids = np.random.default_rng(0).integers(0, whole.order, (5, 40))
    products = whole.prefix_products(ids)
    for row, answers in zip(ids, products):
        images = np.arange(whole.degree)
        for element, answer in zip(row, answers):
            images = whole.elements[element][images]
            assert (whole.elements[answer] == images).all()
