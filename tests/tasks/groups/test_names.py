"""Names in and out, and everything that can be wrong with one."""

from __future__ import annotations

import re

import pytest

from statetrack.errors import BadInput
from statetrack.tasks.groups import Group, canonical, catalogue, family, group, looks_like_group, usual_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("S5", "s5"),
        (" psl2_7 ", "psl2_7"),
        ("A4 x Z5", "a4xz5"),
        ("A4XZ5", "a4xz5"),
        ("z007", "z7"),
        ("<(0 1 2), (0 1)>", "<(0 1 2),(0 1)>"),
        ("< ( 0,1,  2 )(3 4),(0 1) >", "<(0 1 2)(3 4),(0 1)>"),
        ("<[1, 2, 0] ,[1 0 2]>", "<[1,2,0],[1,0,2]>"),
        ("<(0 1)> x Q8 x <[1,0]>", "<(0 1)>xq8x<[1,0]>"),
    ],
)
def test_canonical(text: str, name: str) -> None:
    assert canonical(text) == name
    assert canonical(name) == name
    assert group(text) is group(name)
    assert group(text).name == name


def test_usual_names_and_families() -> None:
    usual = {
        "s5": "S5", "a4": "A4", "c7": "C7", "d10": "D10", "q8": "Q8", "f20": "F20", "v4": "V4", "z2_3": "Z_2^3",
        "z5_1": "Z_5", "psl2_7": "PSL(2,7)", "psl3_4": "PSL(3,4)", "m11": "M11", "z60": "Z60", "a4xz5": "A4 x Z5",
        "<(0 1)>xs3": "<(0 1)> x S3",
    }  # fmt: skip
    assert {name: usual_name(name) for name in usual} == usual
    assert len({usual_name(name) for name in catalogue()}) == 94
    assert (family("z60"), family("a4xz5"), family("<(0 1)>")) == ("cyclic", "product", "generated")


def test_alias_and_text_give_the_same_groups() -> None:
    assert (group("z12").elements == group("c12").elements).all()
    assert (group("z255").order, group("z255").degree) == (255, 255)
    assert (group("<(0 1 2 3 4),(0 1)>").elements == group("s5").elements).all()
    assert (group("<[1,2,0],[1,0,2]>").elements == group("s3").elements).all()
    assert (group("<(0 1 2 3 4)>x<(0 1)>").elements == group("z5xz2").elements).all()
    assert group("<(0 1),()>").generators.tolist() == [[1, 0], [0, 1]]  # the identity may be an input like any other
    assert group("<(0 1),[0,1,2]>").degree == 3


def test_looks_like_group() -> None:
    assert all(looks_like_group(name) for name in [*catalogue(), "z60", "z999", "A4xZ5", "s5xnothing", "<oops"])
    assert not any(
        looks_like_group(name) for name in ["rtc", "fsm", "max", "txc", "", "x", "s55", "track_the_stat.max"]
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s55", "unknown group 's55'; did you mean s5"),
        ("a5xspl2_7", "unknown group 'spl2_7'; did you mean psl2_7"),
        ("", "unknown group ''"),
        ("s5x", "group 's5x': a factor is missing at character 4"),
        ("xs5", "group 'xs5': a factor is missing at character 1"),
        ("z1", "group 'z1': the cyclic group z<n> needs n in 2..255"),
        ("z256", "group 'z256': the cyclic group z<n> needs n in 2..255"),
        ("z99999999999999999999", "the cyclic group z<n> needs n in 2..255"),
        ("z200xz56", "group 'z200xz56' would have degree 256; a degree may be at most 255"),
        ("<(0 1 2)", "generators '<(0 1 2)', character 9: '>' should stand here, not the end"),
        ("<(0 1 2", "character 8: a point should be a whole number, not the end"),
        ("<(0 1 a)>", "character 7: a point should be a whole number, not 'a'"),
        ("<(0 -1)>", "character 5: a point should be a whole number, not '-'"),
        ("<(0 1 0)>", "character 7: point 0 appears twice in the cycles of one generator"),
        ("<(0 1)(1 2)>", "character 8: point 1 appears twice in the cycles of one generator"),
        ("<(0 255)>", "character 5: point 255 should lie in 0..254"),
        ("<(0 1),>", "character 8: a generator starts with '(' or '[', not with '>'"),
        ("<>", "character 2: a generator starts with '(' or '[', not with '>'"),
        ("<()>", "the generators name no point; an image list such as <[0,1,2]> says the degree"),
        ("<[]>", "the generators name no point"),
        ("<(0 1)>5", "character 8: '5' follows the closing '>'"),
        ("<[1,2,3]>", "character 2: an image list of 3 points is a permutation of 0..2, but 0 is missing"),
        ("<[1,1,0]>", "character 5: point 1 appears twice in one image list"),
        ("<[1,,0]>", "character 5: a point should be a whole number, not ','"),
        ("<[1,0],[1,2,0]>", "generator 2 has degree 3, but generator 1 has degree 2; all must act on the same points"),
        ("<[1,0],(0 2)>", "generator 2 has degree 3, but generator 1 has degree 2; all must act on the same points"),
        ("s3 x <(0 9 9)>", "character 12: point 9 appears twice"),
    ],
)
def test_bad_names(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)) as caught:
        group(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ([[1, 0], [1, 2, 0]], "generator 2 has degree 3, but generator 1 has degree 2"),
        ([[1, 0, 2], [1, 1, 2]], "generator 2 is not a permutation: it takes the points 0 and 1 both to 1"),
        ([[0, 3, 1]], "generator 1 is not a permutation: it takes point 1 to 3, outside 0..2"),
        ([[0, -1]], "generator 1 is not a permutation: it takes point 1 to -1, outside 0..1"),
        ([[0.5, 1.0]], "generator 1 should be a list of 1..255 whole numbers"),
        ([[[0, 1]]], "generator 1 should be a list of 1..255 whole numbers"),
        ([list(range(256))], "generator 1 should be a list of 1..255 whole numbers"),
        ([[]], "generator 1 should be a list of 1..255 whole numbers"),
        ([], "a group needs at least one generator"),
    ],
)
def test_bad_generators(generators: list[list[int]], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        Group.from_generators(generators)


def test_a_group_without_a_name_is_called_by_its_generators() -> None:
    assert Group.from_generators([[1, 2, 0], [1, 0, 2]]).name == "<(0 1 2),(0 1)>"
    assert Group.from_generators([[1, 0, 2]]).name == "<[1,0,2]>"  # cycles would lose the point 2
    assert Group.from_generators([[1, 0]], name="swap").name == "swap"
    assert repr(group("a5")) == "Group('a5', order=60, degree=5)"
