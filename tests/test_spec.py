"""The text of a task: what is written is read back, and what cannot be read is refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as s

from statetrack import spec
from statetrack.errors import BadInput

NAMES = s.from_regex(r"[a-z][a-z0-9_.]*", fullmatch=True)
KEYS = s.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True)
VALUES = s.one_of(
    s.integers(),
    s.booleans(),
    s.floats(allow_nan=False),
    s.lists(s.floats(allow_nan=False), min_size=1).map(tuple),
    s.text(s.characters(exclude_categories=["Cs"])),
)
TYPES = {int: int, bool: bool, float: float, tuple: tuple[float, ...], str: str}


@given(NAMES, s.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_written_is_read_back(name: str, parameters: dict[str, object]) -> None:
    read_name, texts = spec.parse(spec.write(name, parameters))
    read = {key: spec.read(value, TYPES[type(parameters[key])], key) for key, value in texts.items()}
    assert (read_name, read) == (name, parameters)
    assert [type(value) for value in read.values()] == [type(value) for value in parameters.values()]


@given(s.text(s.sampled_from('fsm[]()<>{}",=\\ k5.'), max_size=20))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    said = ""
    try:
        name, parameters = spec.parse(text)
    except BadInput as error:
        name, parameters, said = "refused", {}, str(error)
    assert name
    assert all(parameters.values())
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no task name"),
        ("[k=1]", "no task name"),
        ("fsm[k=1", "opens a '\\[' at character 4 and does not end"),
        ("fsm[k]", "'k' in .* is not of the form parameter=value"),
        ("fsm[k=]", "is not of the form"),
        ("fsm[k=1,K=2]", "'k' is given twice"),
        ("fsm[k=1,]", "is not of the form"),
        ("fsm[k=1,k=2]", "'k' is given twice"),
        ('regex[pattern="ab]', "the '\"' at character 15 of .* is left open"),
        (r'regex[pattern="a\"b]', "the '\"' at character 15 of .* is left open"),
        ("regex[pattern=(ab]", r"the '\(' at character 15 of .* is left open"),
        ("regex[pattern=(a(b),alphabet=ab]", r"the '\(' at character 15 of .* is left open"),
        ("regex[pattern=ab)]", r"the '\)' at character 17 of .* closes nothing"),
        (None, r"None should be text such as 'fsm\[k=5\]'"),
    ],
)
def test_texts_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        spec.parse(text)


def test_a_quoted_text_that_ends_too_early() -> None:
    _, parameters = spec.parse('regex[pattern="a"b]')
    with pytest.raises(BadInput, match="does not end where it should"):
        spec.read(parameters["pattern"], str, "pattern")


def test_keys_in_capitals_mean_the_same() -> None:
    assert spec.parse("fsm[K=5]") == ("fsm", {"k": "5"})


def test_blanks_around_names_and_values_do_not_count() -> None:
    assert spec.parse(" fsm [ k = 5 , p = 0.05 ] ") == ("fsm", {"k": "5", "p": "0.05"})
