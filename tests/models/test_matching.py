"""Models of one size: the width that is chosen, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import model
from statetrack.models.build import read_options
from statetrack.models.catalogue import CATALOGUE, without_width
from statetrack.models.matching import NEAR, Match, hollow, last_below, matched, read_count

ALPHABETS = {"z2": 2, "s3": 6, "s4": 24, "a5": 60, "s5": 120}
SHALLOW = [name for name in CATALOGUE if "32l" not in name and "notanh" not in name]


def parameters(text: str, symbols: int) -> int:
    name, options = read_options(text)
    return hollow(name, symbols, symbols, options).parameter_count


@pytest.mark.parametrize("name", SHALLOW)
def test_every_model_of_the_catalogue_has_a_width_for_100k(name: str) -> None:
    for symbols in (2, 120):
        text = matched(name, symbols, symbols, Match(100_000))
        assert abs(parameters(text, symbols) - 100_000) <= NEAR * 100_000, text
        assert without_width(text) == name


@pytest.mark.parametrize("name", ["gru", "e88-gain-1l[heads=8,n_state=16]", "linear-rnn", "transformer-rope[heads=2]"])
def test_no_other_width_is_nearer(name: str) -> None:
    """By trying all of them."""
    bare, options = read_options(name)
    line = CATALOGUE[bare]
    for wanted in (30_000, 100_000):
        counts = {}
        for wide in range(1, 400):
            try:
                counts[wide] = hollow(bare, 24, 24, options | {line.width: wide}).parameter_count
            except BadInput:
                continue
        nearest = min(counts, key=lambda wide: (abs(counts[wide] - wanted), wide))
        if abs(counts[nearest] - wanted) > NEAR * wanted:
            continue
        chosen = read_options(matched(name, 24, 24, Match(wanted)))[1]
        assert chosen.get(line.width, line.options[line.width]) == nearest


def test_shapes_alone_are_counted_and_the_count_is_that_of_the_model() -> None:
    for name in ("mamba2-4l-neg[head_dim=8]", "transformer-rope", "deltaproduct-3"):
        text = matched(name, 24, 24, Match(50_000))
        made = model(text, inputs=24, outputs=24, seed=0)
        assert made.parameter_count == parameters(text, 24)
        assert abs(made.parameter_count - 50_000) <= 1_000
        assert made.text == text
        bare, options = read_options(text)
        assert all(each.is_meta for each in hollow(bare, 24, 24, options).parameters())


def test_the_finer_option_moves_only_where_no_width_is_near_enough() -> None:
    assert matched("mamba2-4l", 120, 120, Match(100_000)) == "mamba2-4l[d_model=56]"
    assert matched("mamba2-4l", 60, 60, Match(100_000)) == "mamba2-4l[d_model=56,d_state=27]"
    assert matched("mamba2-4l", 24, 24, Match(parameters("mamba2-4l", 24))) == "mamba2-4l"  # as it is by name


REFUSED = [
    ("e88-1l", Match(12_000), "e88-1l has no dim with 12,000 parameters, within 2%; nearest: 10,428 at dim=5"),
    ("mamba2-4l", Match(300), "mamba2-4l has no d_model with 300 parameters, within 2%; nearest: 3,"),
    ("gru[hidden=3]", Match(9_000), "gru[hidden=3] gives hidden, which is for match to choose; leave one of the two"),
    ("transformer[feed=3]", Match(9_000), "transformer[feed=3] gives feed, which is for match to choose"),
    ("gru", Match(9_000, width="depth"), "gru has no depth up to 512: model gru has no option 'depth'; it has cell"),
    ("gruu", Match(9_000), "unknown model 'gruu'; did you mean gru"),
]


@pytest.mark.parametrize(("text", "match", "said"), REFUSED)
def test_what_cannot_be_matched_is_said_in_one_line(text: str, match: Match, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        matched(text, 6, 6, match)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["0", "-5", "many", "1.5", "nan", "inf", "1e99", True, None, [], "k", "10G"])
def test_numbers_of_parameters_that_make_no_sense(given: object) -> None:
    with pytest.raises(BadInput, match=r"should be a number such as 100k, 1\.5m or 4096"):
        read_count(given)


@pytest.mark.parametrize("given", ["100k", {}, {"parameters": "1k", "widht": "dim"}, 100_000, ["parameters"], None])
def test_a_match_says_how_many_parameters(given: object) -> None:
    with pytest.raises(BadInput):
        Match.read(given)


@pytest.mark.parametrize("wanted", [1, 2, 7, 300, 12_345, 10**6])
def test_the_search_finds_the_last_below_of_any_counts_that_grow(wanted: int) -> None:
    for count in (lambda n: n, lambda n: 3 * n * n + 2, lambda n: n**3 + n, lambda n: 100 * n + 7):
        below = last_below(count, wanted, 2**16)
        assert below == 0 or count(below) <= wanted
        assert below == 2**16 or count(below + 1) > wanted


OWN = """
import torch


class Own(torch.nn.Module):
    def __init__(self, inputs, outputs, wide=4):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, wide)
        self.head = torch.nn.Linear(wide, outputs)

    def forward(self, ids):
        return self.head(self.table(ids))
"""


def test_a_model_of_ones_own_says_which_option_is_its_width(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    settings = {"most_checks": 1, "check_every": 1, "polish": 0, "batch": 4}
    name = f"{tmp_path}/own.py:Own"
    given = {"length": 4, "settings": settings, "words": 0, "device": "cpu"}
    result = st.train("s3", name, match={"parameters": "1k", "width": "wide"}, **given)
    assert abs(result.record["parameters"] - 1_000) <= 20
    with pytest.raises(BadInput, match=r"does not say which of its options is its width; say it"):
        st.train("s3", name, match="parameters=1k", **given)
    with pytest.raises(BadInput, match="match chooses the width of a model that is built by name"):
        st.train("s3", torch.nn.Embedding(6, 6), match="parameters=1k", **given)


def test_on_another_task_it_is_as_large_as_it_would_be_there(tmp_path: Path) -> None:
    settings = {"most_checks": 1, "check_every": 1, "polish": 0, "batch": 4}
    given = {"length": 4, "settings": settings, "words": 0, "device": "cpu"}
    here = st.train("a5", "gru", match="parameters=50k", **given)
    control = st.train("flip_flop[symbols=60]", "gru", match="parameters=50k,task=a5", **given)
    assert here.cell.subject == control.cell.subject != "gru"
    assert abs(here.record["parameters"] - 50_000) <= 1_000
