"""The pictures of docs/for_ever.md are drawn from what networks do."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import statetrack as st
from docs.pictures import for_ever, horizon, points
from statetrack.certificates import certify
from statetrack.certificates.checker import read_tensors
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.models.witnesses import toggle
from statetrack.tasks import task
from statetrack.tasks.groups import group as named_group

pytestmark = pytest.mark.needs("torch")
PAGE = Path(for_ever.__file__).parents[1] / "for_ever.md"


def test_the_parity_of_a_region_is_that_of_the_words_that_lead_there() -> None:
    assert for_ever.parities(np.array([[0, 1], [1, 0], [2, 2]]), 0) == {0: {0}, 1: {1}}
    assert for_ever.parities(np.array([[0, 0]]), 0) == {0: {0, 1}}


def test_the_line_of_a_word_is_the_lead_of_the_right_answer() -> None:
    """A network that is right leads at every step, one that keeps no bit falls behind at the first 1."""
    rows = for_ever.word(toggle([[0, 1], [1, 0]]), [1, 0, 0]).rows
    leads = [row["margin"] for row in rows if "margin" in row]
    assert len(leads) == 3 + for_ever.AFTER
    assert min(leads) > 0
    wrong = for_ever.word(toggle([[0, 1], [1, 0]], (1, 0)), [1]).rows
    assert max(row["margin"] for row in wrong if "margin" in row) < 0


def test_boxes_are_the_regions_of_the_proof_and_hold_the_points() -> None:
    model = toggle([[0, 1], [1, 0]])
    proof = certify(task("txc"), model, seconds=2).proof
    assert proof is not None
    rows = for_ever.regions(model, proof).rows
    boxes = [row for row in rows if row["kind"] == "region"]
    assert {row["parity"] for row in boxes} == {"even", "odd"}
    assert len(boxes) <= proof["covers"][0]["next"]["shape"][0]
    for point in (row for row in rows if row["kind"] == "state"):
        same = [box for box in boxes if box["parity"] == point["parity"]]
        assert any(
            box["x"] - 0.01 <= point["x"] <= box["x2"] + 0.01 and box["y"] - 0.01 <= point["y"] <= box["y2"] + 0.01
            for box in same
        )


def test_the_page_shows_the_pictures_that_are_there() -> None:
    shown = re.findall(r"\]\((pictures/[a-z_]+\.svg)\)", PAGE.read_text())
    assert len(shown) == 4
    for path in shown:
        assert "<svg" in (PAGE.parent / path).read_text()[:500]


def test_the_network_of_the_page_is_that_of_the_demo() -> None:
    said = json.dumps(for_ever.TRAINED_TO_HOLD, sort_keys=True)
    assert for_ever.PROVED in PAGE.read_text()
    assert '"length": 12' in said


def test_errors_bring_two_states_together_and_never_past_each_other() -> None:
    even, odd = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0], [1.0, 0.9]])
    first, second = horizon.pushed(even, odd, torch.tensor([0.1, 2.0]))
    torch.testing.assert_close(first, torch.tensor([[0.1, 1.0], [0.5, 0.95]]))
    torch.testing.assert_close(second, torch.tensor([[0.9, 1.0], [0.5, 0.95]]))


def test_a_network_that_pulls_back_holds_against_small_errors_and_not_against_large_ones() -> None:
    found = horizon.horizons(toggle([[0, 1], [1, 0]]), sizes=(2.0, 0.01), most=60)
    assert found.steps == [1, None]
    assert found.distance > 0.5


def test_networks_of_any_family_are_measured_in_a_folder(tmp_path: Path) -> None:
    settings = {"most_checks": 1, "check_every": 1, "polish": 0, "batch": 4}
    for name in ("gru[hidden=4]", "mamba2-1l[d_model=8]", "deltanet-neg", "transformer-rope", "mlp[hidden=4]"):
        st.train("txc", name, length=4, settings=settings, words=0, out=tmp_path, device="cpu", progress=False)
    st.train("rtc", "gru[hidden=4]", length=4, settings=settings, words=0, out=tmp_path, device="cpu", progress=False)
    found = {row[0]: row for row in horizon.of_folder(tmp_path, most=8, sizes=(10.0, 1e-6))}
    assert set(found) == {"gru[hidden=4]", "mamba2-1l[d_model=8]", "deltanet-neg"}  # parity, and a state to push
    assert all(len(row) == 5 + 2 and float(row[3]) >= 0 for row in found.values())


def test_predictions_stand_beside_those_of_whom_theory_speaks() -> None:
    found = horizon.Horizons([3, None], 2.0, 0.9)
    assert horizon.predicted(horizon.LINEAR, found, 0.01) == 100
    assert horizon.predicted(horizon.CONTRACTS, found, 0.01) == 23
    assert horizon.predicted(horizon.PROVED, found, 0.01) is None


def test_the_points_of_the_network_on_s5_are_moved_as_pairs_of_five_things_are() -> None:
    kept, around = points.settled(json.loads(points.PROOF.read_bytes())["covers"][0])
    weights = read_tensors(points.PROOF.with_suffix(".safetensors"))
    matrix = NETWORKS["e88-gain-reflections"](weights, 120).maps.matrix.middle[:, 0]
    places = around[:, kept]
    images = np.tanh(np.nan_to_num(around) @ matrix.transpose(0, 2, 1))[:, :, kept]
    apart = np.abs(images[:, :, None] - places).max(axis=3)
    assert apart.min(axis=2).max() < 0.1
    moved = apart.argmin(axis=2)  # (elements, points)
    pairs = list(itertools.combinations(range(5), 2))
    group = named_group("s5")
    still = [sum({own[a], own[b]} == {a, b} for a, b in pairs) for own in group.elements]
    assert still == (moved == np.arange(len(places))).sum(axis=1).tolist()
    for one, other in itertools.product(range(0, 120, 7), range(0, 120, 5)):
        assert (moved[group.product([one, other])] == moved[other][moved[one]]).all()
