"""Networks made by hand, as rules 2 read them: a seed's runs at the length trained on and far out."""

from __future__ import annotations

from typing import Any

from tests.verdicts.made_results import run

Runs = list[dict[str, Any]]


def network(model: str, task: str, seed: int, far: float | None, own: float = 1.0, **more: Any) -> Runs:
    """Trained at 64: what it does there, and at 1,024 where that was tested."""
    made = [run(model, task, 64, seed, own, rows=1024, words=100, **more)]
    return made if far is None else [*made, run(model, task, 1024, seed, far, rows=1024, words=100, **more)]


def networks_of(model: str, task: str, right: int, wrong: int, own: float = 1.0, **more: Any) -> Runs:
    """So many seeds that are right far out, then so many that are not."""
    ends = [1.0] * right + [0.5] * wrong
    made = [network(model, task, seed, end, 1.0 if end == 1.0 else own, **more) for seed, end in enumerate(ends)]
    return [each for runs in made for each in runs]


def controls(model: str, task: str, flip_flop: str = "flip_flop", protocol: str = "", solved: float = 1.0) -> Runs:
    """The same training on the same task at length 4, and on a flip-flop at 64."""
    return [
        run(model, name, length, seed, solved, trained=length, protocol=protocol)
        for seed in range(3)
        for name, length in ((task, 4), (flip_flop, 64))
    ]
