"""Draw how long parity is held against errors in the state: python docs/pictures/horizon.py [FOLDER]

It trains three networks on parity, on one thread of a CPU: a linear one, one that contracts, one that is proved. Two
runs of each differ in their parity and read the same from then on, while errors of up to s in every number of the
state, in every step, push each towards the other. Drawn is after how many steps one of them answers wrong, and what
the theorems of docs/theory.md say; the folder, if it is named, keeps the networks.

    python docs/pictures/horizon.py --of FOLDER [STEPS]

draws nothing: it measures every network of a results folder that was trained on parity and whose weights were kept, of
any family that keeps a state, and prints a table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import statetrack as st
from statetrack.cli.demo import PROVED, TRAINED_TO_HOLD
from statetrack.cli.output import print_table
from statetrack.models import SequenceModel, answers_of
from statetrack.models.sequence import State
from statetrack.reports.figures.figure import Figure
from statetrack.results import Store, TrainingRecord
from statetrack.theory.predictions.horizons import contraction, nonexpanding
from statetrack.training.weights import load

HERE = Path(__file__).parent
SIZES = tuple(round(10 ** (-power / 4), 7) for power in range(2, 21))  # .316 down to 1e-5
FEW = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)  # of many networks
PREFIX, MOST, WITHOUT = 16, 2**15, 64  # tokens before the runs differ, after it at most, and those without errors
LINEAR, CONTRACTS = "deltanet-neg[heads=1,n_state=4]", "e88-published-1l-small"
NAMES = {LINEAR: "linear (DeltaNet)", CONTRACTS: "contracting (E88 as published)", PROVED: "proved (E88 with gain)"}
COLOURS = ["#c8553d", "#d9a441", "#0b6e99"]


@dataclass(frozen=True)
class Horizons:
    """What was measured of a network: steps for each size of the errors, None where it was right to the end."""

    steps: list[int | None]
    distance: float  # of the two runs when they part, in the 2-norm
    factor: float  # by which they come closer in a step without errors


def suffixes(rows: int, steps: int) -> Tensor:
    """Silence, only ones, and random bits: (rows, steps)."""
    words = torch.randint(2, (rows, steps), generator=torch.Generator().manual_seed(1))
    words[0], words[1] = 0, 1
    return words


def parted(model: SequenceModel, count: int) -> tuple[State, State]:
    """The states of two runs whose last token differs, each `count` times."""
    word = torch.randint(2, (1, PREFIX), generator=torch.Generator().manual_seed(0))
    other = word.clone()
    other[0, -1] = 1 - word[0, -1]
    both = torch.cat([word if int(word.sum()) % 2 == 0 else other, word if int(word.sum()) % 2 else other])
    _, state = model.forward_from(both, model.initial_state(2))
    return tuple(tuple(part[row : row + 1].repeat_interleave(count, dim=0) for part in state) for row in (0, 1))  # type: ignore[return-value]


def pushed(even: Tensor, odd: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Both states with an error of at most `size` in every number, each towards the other."""
    size = size.view(-1, *[1] * (even.dim() - 1))
    move = torch.minimum(torch.maximum((odd - even) / 2, -size), size)
    return even + move, odd - move


def apart(even: State, odd: State) -> Tensor:
    """The distance of the runs in the 2-norm, (rows)."""
    return torch.stack([(a - b).flatten(1).square().sum(1) for a, b in zip(even, odd)]).sum(0).sqrt()


@torch.no_grad()
def horizons(model: SequenceModel, sizes: tuple[float, ...] = SIZES, most: int = MOST) -> Horizons:
    """After how many steps errors of these sizes have merged two parities, the soonest over some words."""
    words = suffixes(4, most)
    size = torch.tensor(sizes).repeat_interleave(len(words))
    even, odd = parted(model, len(size))
    distance = float(apart(even, odd)[0])
    parity = torch.zeros(len(size), dtype=torch.int64)
    first = torch.full((len(size),), most + 1)
    for step in range(most):
        token = words[:, step].repeat(len(sizes))
        moved = [pushed(a, b, size) for a, b in zip(even, odd)]
        logits, after = model.step(token.repeat(2), tuple(torch.cat(pair) for pair in moved))
        even, odd = (tuple(part.chunk(2)[row] for part in after) for row in (0, 1))
        parity ^= token
        said = answers_of(logits).cpu().view(2, -1)
        wrong = (said[0] != parity) | (said[1] != 1 - parity)
        first = torch.where(wrong & (first > most), step + 1, first)
        if bool((first <= most).all()):
            break
    soonest = first.view(len(sizes), len(words)).min(dim=1).values.tolist()
    return Horizons([steps if steps <= most else None for steps in soonest], distance, shrinking(model))


@torch.no_grad()
def shrinking(model: SequenceModel) -> float:
    """By which factor two runs come closer in a step, without errors, under the word that brings them closer least."""
    words = suffixes(4, WITHOUT)
    even, odd = parted(model, len(words))
    begun = apart(even, odd)
    for token in words.T:
        (_, even), (_, odd) = model.step(token, even), model.step(token, odd)
    return float(((apart(even, odd) / begun) ** (1 / WITHOUT)).max())


def predicted(name: str, found: Horizons, size: float) -> int | None:
    """What theorem D says of a linear network, and A of one that contracts; None where neither speaks."""
    if name == LINEAR:
        return nonexpanding(found.distance, size)
    return contraction(found.factor, found.distance, size) if name == CONTRACTS else None


def figure(found: dict[str, Horizons], epsilon: float, most: int = MOST) -> Figure:
    """Both axes logarithmic. An open mark lies at the end of the run: right as far as it was run."""
    rows: list[dict[str, Any]] = []
    for name, own in found.items():
        for size, steps in zip(SIZES, own.steps):
            rows.append(
                {"network": NAMES[name], "s": size, "steps": steps or most, "kind": "held" if steps is None else "lost"}
            )
            if (said := predicted(name, own, size)) is not None and said <= most:
                rows.append({"network": NAMES[name], "s": size, "steps": said, "kind": "predicted"})
    across = {"field": "s", "type": "quantitative", "title": "error in every number of the state in every step",
              "scale": {"type": "log", "domain": [SIZES[-1], 0.4]}, "axis": {"format": ".0e"}}  # fmt: skip
    up = {"field": "steps", "type": "quantitative", "title": "steps until an answer is wrong",
          "scale": {"type": "log", "domain": [1, 2 * most]}}  # fmt: skip
    colour = {"field": "network", "type": "nominal", "scale": {"domain": list(NAMES.values()), "range": COLOURS},
              "legend": {"title": None, "orient": "top"}}  # fmt: skip
    measured = {"x": across, "y": up, "color": colour}
    spec = {
        "data": {"name": "rows"}, "height": 380,
        "layer": [
            {"transform": [{"filter": "datum.kind != 'predicted'"}], "mark": {"type": "line", "strokeWidth": 2},
             "encoding": measured},
            {"transform": [{"filter": "datum.kind == 'lost'"}], "mark": {"type": "point", "filled": True, "size": 46},
             "encoding": measured},
            {"transform": [{"filter": "datum.kind == 'held'"}],
             "mark": {"type": "point", "filled": False, "size": 60, "shape": "triangle-up"}, "encoding": measured},
            {"transform": [{"filter": "datum.kind == 'predicted'"}],
             "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.6}, "encoding": measured},
            {"data": {"values": [{"s": epsilon}]},
             "mark": {"type": "rule", "color": COLOURS[2], "strokeDash": [2, 3], "strokeWidth": 1.6},
             "encoding": {"x": across}},
        ],
    }  # fmt: skip
    caption = "How long errors of a size leave two parities apart: measured, and predicted (dashed)."
    return Figure("Horizon against errors", caption, caption, rows, spec)


def draw(folder: Path) -> None:
    torch.set_num_threads(1)
    plain = {"length": 64, "words": 0, "out": folder, "device": "cpu", "progress": False}
    results = {name: st.train("txc", name, **plain) for name in (LINEAR, CONTRACTS)}  # type: ignore[arg-type]
    results[PROVED] = st.train("txc", PROVED, **TRAINED_TO_HOLD, words=0, out=folder, device="cpu", progress=False)
    certificate = st.certify("txc", results[PROVED], progress=False)
    assert certificate.checked is not None
    found = {name: horizons(result.model) for name, result in results.items()}
    print(f"{'s':>10}" + "".join(f"{NAMES[name]:>34}{'said':>8}" for name in found))
    for place, size in enumerate(SIZES):
        cells = [(own.steps[place], predicted(name, own, size)) for name, own in found.items()]
        shown = "".join(f"{steps or f'> {MOST:,}':>34}{'-' if said is None else said:>8}" for steps, said in cells)
        print(f"{size:>10.2g}{shown}")
    print(f"proved for errors of up to {certificate.checked.epsilon:.3g}")
    print(figure(found, certificate.checked.epsilon).save(HERE / "for_ever_horizon.svg"))


def of_folder(folder: Path, most: int = MOST, sizes: tuple[float, ...] = FEW) -> Iterator[list[str]]:
    """A row for each network on parity: how far apart two runs are, how they come together without errors in a step,
    and after how many steps errors of each size have merged them.
    """
    store = Store.existing(folder)
    for record in store.records():
        if not isinstance(record, TrainingRecord) or record.cell.task != "txc" or store.weights(record.cell) is None:
            continue
        model = load(store, record.cell)
        if not model.recurrent or not model.state_shapes():
            continue
        found = horizons(model, sizes, most)
        held = ["held" if steps is None else f"{steps:,}" for steps in found.steps]
        solved = "yes" if record.solved else "no"
        yield [
            record.cell.subject,
            str(record.cell.seed),
            solved,
            f"{found.distance:.3g}",
            f"{found.factor:.4f}",
            *held,
        ]


def print_folder(folder: Path, most: int) -> None:
    headers = ["model", "seed", "solved", "apart", "a step", *(f"{size:g}" for size in FEW)]
    print_table(headers, list(of_folder(folder, most)))
    print(f"steps until errors of a size in every number of the state merge two parities; held: not in {most:,}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"] and len(sys.argv) in (3, 4):
        print_folder(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else MOST)
    elif len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            draw(Path(place) / "results")
