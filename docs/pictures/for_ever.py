"""Draw the pictures of docs/for_ever.md: python docs/pictures/for_ever.py [FOLDER]

It trains two small networks on parity, on one thread of a CPU, certifies both and draws what came out: the regions of
the proof of one, and the state of the other under the word that breaks it. The folder, if it is named, keeps them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import statetrack as st
from statetrack.certificates import certify_folder
from statetrack.certificates.checker.cover import unpacked
from statetrack.cli.demo import PROVED, TRAINED_TO_HOLD
from statetrack.models import SequenceModel
from statetrack.reports.figures.figure import Figure
from statetrack.results import Store, TrainingRecord
from statetrack.training.weights import load

HERE = Path(__file__).parent
GRU = "gru[hidden=32]"
BITS = ("even", "odd")
COLOURS = ["#0b6e99", "#c8553d"]
DATA = {"name": "rows"}
WORDS, STEPS = 64, 64  # that are run to show where states lie
AFTER = 6  # steps beyond the end of the word

Floats = NDArray[np.float64]


def certified(folder: Path) -> dict[str, tuple[TrainingRecord, SequenceModel]]:
    """Both networks by their names, with what is known of them for ever."""
    torch.set_num_threads(1)
    st.train("txc", PROVED, **TRAINED_TO_HOLD, words=0, out=folder, device="cpu", progress=False)
    st.train("txc", GRU, length=16, words=0, out=folder, device="cpu", progress=False)
    tally, store = certify_folder(folder), Store(folder)
    return {record.cell.subject: (record, load(store, record.cell)) for record in tally.records}


def parities(following: NDArray[np.int64], start: int) -> dict[int, set[int]]:
    """The parities with which each region can be entered, followed from the start."""
    found: dict[int, set[int]] = {start: {0}}
    waiting = [(start, 0)]
    while waiting:
        region, bit = waiting.pop()
        for token, after in enumerate(following[region].tolist()):
            if bit ^ token not in found.setdefault(after, set()):
                found[after].add(bit ^ token)
                waiting.append((after, bit ^ token))
    return found


def run(model: SequenceModel, words: NDArray[np.int64]) -> Floats:
    """The states of words, as the network runs them: (steps, words, heads, columns, n)."""
    seen = []
    with torch.no_grad():
        state = model.initial_state(len(words))
        for tokens in words.T:
            _, state = model.step(torch.from_numpy(tokens), state)
            seen.append(state[0].numpy().astype(np.float64).swapaxes(-1, -2))
    return np.stack(seen)


def regions(model: SequenceModel, proof: dict[str, Any]) -> Figure:
    """Two numbers of the state: boxes are the regions of the proof, points are states that came up."""
    (part,) = proof["parts"]
    cover = proof["covers"][part["cover"]]
    centres, radii = (unpacked(cover[name], "<f8") for name in ("centres", "radii"))
    following = unpacked(cover["next"], "<i4").astype(np.int64)
    of = parities(following, part["start"])
    words = np.random.default_rng(0).integers(0, 2, (WORDS, STEPS))
    states = run(model, words)
    heads, columns = zip(*part["columns"])
    states = states[:, :, list(heads), list(columns)]
    bits = np.cumsum(words, axis=1).T % 2
    apart = np.abs(states[bits == 1].mean(0) - states[bits == 0].mean(0)).reshape(-1)
    x, y = np.argsort(-apart)[:2].tolist()
    flat = [each.reshape(len(centres), -1) for each in (centres, radii)]
    rows: list[dict[str, Any]] = [
        {"kind": "region", "parity": BITS[min(bit)], "x": low[x], "x2": high[x], "y": low[y], "y2": high[y]}
        for region, bit in sorted(of.items())
        for low, high in [(flat[0][region] - flat[1][region], flat[0][region] + flat[1][region])]
    ]
    start = np.stack([model.initial_state(1)[0][0].numpy().swapaxes(-1, -2)[head, column] for head, column in
                      zip(heads, columns)]).reshape(-1)  # fmt: skip
    rows.append({"kind": "state", "parity": BITS[0], "x": float(start[x]), "y": float(start[y])})
    for parity in (0, 1):
        chosen = np.unique(states[bits == parity].reshape(-1, centres[0].size).round(2), axis=0)[:400]
        rows += [{"kind": "state", "parity": BITS[parity], "x": one[x], "y": one[y]} for one in chosen]
    axis = {"type": "quantitative", "scale": {"domain": [-1.2, 1.2], "nice": False}}
    across = {**axis, "field": "x", "title": "one number of the state"}
    up = {**axis, "field": "y", "title": "another one"}
    colour = {"field": "parity", "type": "nominal", "scale": {"domain": BITS, "range": COLOURS},
              "legend": {"title": "ones so far", "orient": "top"}}  # fmt: skip
    spec = {
        "data": DATA, "height": 420,
        "layer": [
            {"transform": [{"filter": "datum.kind == 'region'"}],
             "mark": {"type": "rect", "fillOpacity": 0.06, "strokeWidth": 0.8, "strokeOpacity": 0.8},
             "encoding": {"x": across, "x2": {"field": "x2"}, "y": up, "y2": {"field": "y2"}, "color": colour,
                          "stroke": {**colour, "legend": None}}},
            {"transform": [{"filter": "datum.kind == 'state'"}],
             "mark": {"type": "point", "filled": True, "size": 14, "opacity": 1, "color": "#1c2128"},
             "encoding": {"x": across, "y": up}},
        ],
    }  # fmt: skip
    caption = f"{len(of)} regions of a proof, and states of {WORDS} random words."
    return Figure("The regions of a proof", caption, caption, rows, spec)


def word(model: SequenceModel, symbols: Iterable[int]) -> Figure:
    """Under the word that breaks a network: its numbers one by one, and by how much the right answer leads."""
    symbols = [*symbols]
    last = len(symbols)
    rows: list[dict[str, Any]] = []
    with torch.no_grad():
        state, bit = model.initial_state(1), 0
        for step, token in enumerate([*symbols, *[0] * AFTER], 1):
            bit ^= token
            logits, state = model.step(torch.tensor([token]), state)
            numbers = enumerate(state[0].reshape(-1).tolist())
            rows += [{"step": step, "number": number, "value": value} for number, value in numbers]
            rows.append({"step": step, "margin": float(logits[0, bit] - logits[0, 1 - bit])})
    across = {"field": "step", "type": "quantitative", "title": "token of the word 1 0 0 0 ...",
              "scale": {"domain": [1, last + AFTER], "nice": False}}  # fmt: skip
    spec = {
        "data": DATA, "height": 320, "resolve": {"scale": {"y": "independent"}},
        "layer": [
            {"transform": [{"filter": "isValid(datum.number)"}],
             "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.55, "color": "#8a94a3"},
             "encoding": {"x": across, "detail": {"field": "number"},
                          "y": {"field": "value", "type": "quantitative", "scale": {"domain": [-1, 1]},
                                "title": "the numbers of the state (grey)"}}},
            {"transform": [{"filter": "isValid(datum.margin)"}],
             "mark": {"type": "line", "strokeWidth": 3, "color": COLOURS[0], "point": {"color": COLOURS[0]}},
             "encoding": {"x": across,
                          "y": {"field": "margin", "type": "quantitative", "axis": {"orient": "right", "grid": False},
                                "scale": {"domainMid": 0}, "title": "by how much the right answer leads (blue)"}}},
            {"data": {"values": [{"step": last}]},
             "mark": {"type": "rule", "color": COLOURS[1], "strokeWidth": 2, "strokeDash": [5, 3]},
             "encoding": {"x": across}},
        ],
    }  # fmt: skip
    caption = f"The state of a network under the word that breaks it at token {last}."
    return Figure("The word that breaks a network", caption, caption, rows, spec)


def draw(folder: Path) -> None:
    found, store = certified(folder), Store(folder)
    for record, _ in found.values():
        print(f"{record.cell.subject}: {record.said_for_ever}")
    record, model = found[PROVED]
    proof = json.loads(store.path(record.cell, "proof").read_bytes())
    print(regions(model, proof).save(HERE / "for_ever_regions.svg"))
    record, model = found[GRU]
    assert record.broken is not None
    print(word(model, record.broken.symbols).save(HERE / "for_ever_word.svg"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            draw(Path(place) / "results")
