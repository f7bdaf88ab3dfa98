"""One colour a model, told apart by every eye."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from statetrack.reports.figures.series import HUES, SPARE, series_of

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
EYES = {
    "trichromat": np.eye(3),
    "deuteranope": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "protanope": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
}
TO_CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
TO_LAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("eye", EYES)
def test_hues_are_told_apart(eye):
    seen = {colour: oklab(EYES[eye] @ linear(colour)) for colour in (*HUES.values(), *SPARE)}
    for one, two in itertools.combinations(seen, 2):
        least = 0.07 if {one, two} <= set(HUES.values()) else 0.05  # a just noticeable difference is about 0.02
        assert np.linalg.norm(seen[one] - seen[two]) > least, (one, two)


@pytest.mark.parametrize("ground", ["#ffffff", "#1a1e24"])
def test_hues_stand_out_from_the_page(ground):
    weights = np.array([0.2126, 0.7152, 0.0722])
    for colour in (*HUES.values(), *SPARE):
        dark, light = sorted([weights @ linear(colour), weights @ linear(ground)])
        assert (light + 0.05) / (dark + 0.05) > 2


def test_no_two_models_are_drawn_alike_and_ablations_are_dashed():
    names = [
        "e88-1l", "e88-4l", "e88-1l-notanh", "e88-gain-1l", "e88-gain-1l-notanh", "mamba2-4l", "mamba2-8l",
        "mamba2-16l", "mamba2-32l", "mamba2-4l-neg", "linear-rnn", "linear-rnn-nobias", "mlp", "gru", "lstm",
        "mine.py:Net[sha256=00]", "other.py:Net",
    ]  # fmt: skip
    drawn = series_of({name: name for name in names})
    assert len({(one.colour, one.mark, one.dash) for one in drawn}) == len(names)
    by_name = {one.label: one for one in drawn}
    assert by_name["e88-gain-1l-notanh"].colour == by_name["e88-gain-1l"].colour
    assert {name for name in names if by_name[name].dashed} == {
        "e88-1l-notanh", "e88-gain-1l-notanh", "mamba2-4l-neg", "linear-rnn-nobias",
    }  # fmt: skip
    order = [one.label for one in drawn]
    assert order.index("mamba2-4l") < order.index("mamba2-8l") < order.index("mamba2-32l")


def test_an_option_draws_a_model_as_what_it_makes_of_it():
    by_name = {one.label: one for one in series_of({name: name for name in ("mamba2-4l", "mamba2-4l[negative=true]")})}
    whole, variant = by_name["mamba2-4l"], by_name["mamba2-4l[negative=true]"]
    assert (variant.colour, variant.dashed, whole.dashed) == (whole.colour, True, False)
