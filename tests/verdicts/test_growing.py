"""Growing with depth, and the law of the longest length against depth: every depth is looked at."""

from __future__ import annotations

from typing import Any

import pytest

import statetrack as st
from statetrack.reports.figures.depth import depth_law
from statetrack.theory import predict
from statetrack.theory.predictions.predict import Prediction
from statetrack.verdicts import verdict
from statetrack.verdicts.depth_law import DepthLaw, laws
from statetrack.verdicts.documents import predictions
from statetrack.verdicts.measurements import Measurement
from tests.verdicts.made_results import run

LENGTHS = (16, 32, 64, 128, 256)
LAW = next(known for known in predictions() if known.key == "3.3-mamba-txc")


def depths(reach: dict[int, int], task: str = "txc", seeds: int = 3, lengths: Any = LENGTHS) -> list[dict[str, Any]]:
    """Every seed of each depth solves what is in its reach, and nothing beyond."""
    return [
        run(f"mamba2-{layers}l", task, length, seed, 1.0 if length <= most else 0.6, trained=length)
        for layers, most in reach.items()
        for length in lengths
        for seed in range(seeds)
    ]


def test_the_cells_that_grow_by_4_a_layer_refute_2_to_the_depth() -> None:
    """4 layers alone look like 2^D: 16. The others do not."""
    four_d = depths({4: 16, 8: 32, 16: 64, 32: 128})
    found = verdict(LAW, four_d)
    assert found.outcome == "refuted"
    assert "4 layers 16, 8 layers 32, 16 layers 64, 32 layers 128; best as c D: 4.0 D, as a power: D^1.00" in found.why
    assert verdict(LAW, four_d, rules=1).outcome == "confirmed"  # which looks at 4 layers only
    assert verdict(LAW, depths({4: 16})).outcome == "undecided"


def test_cells_that_double_with_each_layer_confirm_it() -> None:
    doubling = depths({4: 16, 5: 32, 6: 64, 7: 128}, seeds=5)
    assert verdict(LAW, doubling).outcome == "confirmed"
    assert verdict(LAW, depths({4: 256, 5: 256, 6: 256}, seeds=5)).outcome == "refuted"  # right beyond it


def test_where_a_guess_is_right_at_the_end_no_length_is_solved() -> None:
    easy = [{**each, "end_floor": 0.999} for each in depths({4: 16, 8: 32, 16: 64, 32: 128})]
    assert verdict(LAW, easy).outcome == "undecided"


def test_the_law_is_fitted_and_drawn() -> None:
    (law,) = laws([Measurement.read(each) for each in depths({4: 16, 8: 32, 16: 64, 32: 128})], "txc")
    assert law == DepthLaw("mamba2", {4: 16, 8: 32, 16: 64, 32: 128})
    figure = depth_law("txc", [law])
    drawn = {name: [(row["layers"], row["length"]) for row in figure.rows if row["law"] == name]
             for name in ("mamba2: all seeds solve it", "mamba2: 4.0 D, fitted", "2^D")}  # fmt: skip
    seen, fitted, doubling = drawn.values()
    assert seen == fitted == [(4, 16), (8, 32), (16, 64), (32, 128)]
    assert doubling == [(4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 512)]


def test_growing_with_depth_is_about_rates() -> None:
    grows = predict("transformer", st.task("s5"), "training")
    deep = Prediction(**{**grows.to_dict(), "family": "diagonal", "model": "mamba2-4l", "conditions": ()})
    lengths = (16, 64, 256)

    def outcome(reach: dict[int, int], seeds: int = 5) -> str:
        return verdict(deep, depths(reach, "s5_composition", seeds, lengths)).outcome

    assert outcome({4: 16, 8: 64}) == "confirmed"
    assert outcome({4: 16, 8: 64}, seeds=3) == "undecided"
    assert outcome({4: 256, 8: 256}) == "refuted"
    assert outcome({4: 64, 8: 16}) == "refuted"
    assert outcome({4: 16, 8: 16}) == "undecided"
    assert outcome({4: 16}) == "undecided"


def test_no_law_where_two_points_make_any_or_nobody_stops() -> None:
    def drawn(reach: dict[int, int]) -> list[DepthLaw]:
        return laws([Measurement.read(each) for each in depths(reach)], "txc")

    assert drawn({4: 16, 8: 32}) == []
    assert drawn({4: 256, 8: 256, 16: 256}) == []
    assert [law.model for law in drawn({4: 32, 8: 32, 16: 32})] == ["mamba2"]


@pytest.mark.parametrize(
    ("shallow", "deep", "outcome"),
    [
        ("transformer[layers=2]", "transformer", "confirmed"),
        ("transformer[layers=2,dim=16]", "transformer[dim=512]", "undecided"),
        ("transformer[layers=2]", "transformer-rope", "undecided"),
    ],
)
def test_depths_are_compared_where_nothing_else_differs(shallow: str, deep: str, outcome: str) -> None:
    grows = predict("transformer", st.task("s5"), "training")
    records = [
        run(model, "s5_composition", length, seed, 1.0 if length <= most else 0.01, trained=length, floor=0.01)
        for model, most in ((shallow, 16), (deep, 64))
        for length in (16, 64, 256)
        for seed in range(5)
    ]
    assert verdict(grows, records).outcome == outcome
