"""How far networks are right, precision by precision: trained ones that are proved, and weights that live on rounding.

python -m benchmarks.precision [STEPS [ROUNDED [NAME ...]]]     65536 steps, 2048 where the state is rounded, and all

    fp64            weights, states and arithmetic
    fp32, KERNEL    as a network is run; on a GPU also by its kernels, on a CPU by the readable loop as well
    tf32            on a GPU: products of matrices in TF32
    autocast        bfloat16 products around scans in float32, as `precision=bfloat16` trains
    bf16, fp16      every weight rounded to it; states and arithmetic in fp32
    ... state       and the state rounded to it after every step, which runs step by step

Rows are random, one event and then silence, and one symbol for ever. Printed is `right`, or the step of the first wrong
answer and the share of wrong ones; "cannot" where a network has no such form, with the reason below.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import statetrack as st
from benchmarks.mutants import FOLDER, Claim
from statetrack.cli.output import print_table
from statetrack.errors import BadInput
from statetrack.models import SequenceModel, answers_of
from statetrack.models.sequence import State
from statetrack.models.witnesses import counter, even_counter, falling_pair, sign, tiny_counter, toggle
from statetrack.ops.choose import VARIABLE
from statetrack.training.run import pick_device

STEPS, ROUNDED, PIECE, RANDOM = 65_536, 2_048, 4_096, 2
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
Cast = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Rung:
    """One way to run a network."""

    name: str
    weights: Cast = lambda tensor: tensor
    state: Cast | None = None  # after every step
    around: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Outcome:
    """Answers asked for, those that were wrong, and the step of the first of them (None: none)."""

    asked: int
    wrong: int
    first: int | None

    @property
    def shown(self) -> str:
        return "right" if self.first is None else f"{self.first:,}: {share(self.wrong, self.asked)}"


def share(part: int, whole: int) -> str:
    """
    >>> share(1, 3), share(1, 10_000), share(3, 3)
    ('33 %', '<1 %', '100 %')
    """
    percent = 100 * part / whole
    return "<1 %" if percent < 1 else f"{percent:.0f} %"


def networks() -> dict[str, tuple[str, SequenceModel]]:
    """A task and a network for each name: the kept ones, and the witnesses whose states are rounded numbers."""
    kept = {path.stem: Claim.read(path) for path in sorted(FOLDER.glob("*.proof"))}
    return {name: (claim.proof["task"], claim.network) for name, claim in kept.items()} | {
        "witness: e88-gain": ("txc", toggle([[0, 1], [1, 0]])),
        "witness: a count": ("rtc", counter([-1, 1], -0.5)),
        "witness: a sign that shrinks": ("txc", sign()),
        "witness: tiny numbers": ("rtc", tiny_counter()),
        "witness: a pair that falls": ("txc", falling_pair()),
        "witness: even numbers": ("txc", even_counter()),
    }


def rungs(device: torch.device) -> list[Rung]:
    """Those that this device has."""
    gpu = device.type == "cuda"
    held = [Rung("fp64", weights=lambda tensor: tensor.double()), Rung("fp32")]
    held += [Rung(f"fp32, {name}", around=lambda name=name: kernel(name)) for name in kernels(gpu)]  # type: ignore[misc]
    if gpu:
        held.append(Rung("tf32", around=tf32))
    held.append(Rung("autocast", around=lambda: torch.autocast(device.type, torch.bfloat16)))
    held += [Rung(name, weights=rounding(dtype)) for name, dtype in HALVES.items()]
    held += [Rung(f"{name} state", rounding(dtype), rounding(dtype)) for name, dtype in HALVES.items()]
    return held


def kernels(gpu: bool) -> tuple[str, ...]:
    return ("triton", "cuda") if gpu else ("reference",)


def rounding(dtype: torch.dtype) -> Cast:
    """A tensor's numbers as that type holds them, in the type that they had."""
    return lambda tensor: tensor.to(dtype).to(tensor.dtype) if tensor.is_floating_point() else tensor


@contextmanager
def kernel(name: str) -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@contextmanager
def tf32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def rows(task: st.Task, steps: int) -> np.ndarray:
    """Random symbols, the last symbol followed by silence, and every one of a few symbols for ever."""
    random = np.random.default_rng(0).integers(0, task.inputs, (RANDOM, steps))
    event = np.zeros((1, steps), dtype=int)
    event[0, 0] = task.inputs - 1
    held = np.repeat(np.array([[0], [task.inputs - 1]]), steps, axis=1)
    return np.concatenate([random, event, held]).astype(np.int32)


@torch.no_grad()
def outcome(task: st.Task, model: SequenceModel, rung: Rung, steps: int, device: torch.device) -> Outcome:
    """The model run on the rows in pieces, or step by step where the state is rounded."""
    changed = copy.deepcopy(model).to(device)
    for parameter in changed.parameters():
        parameter.data = rung.weights(parameter.data)
    inputs = rows(task, steps)
    due = task.run(inputs).targets  # these tasks are asked at every step
    ids = torch.from_numpy(inputs).long().to(device)
    state = changed.initial_state(len(ids), device)
    asked = wrong = 0
    first: int | None = None
    with rung.around():
        for begin in range(0, steps, PIECE):
            here = slice(begin, min(begin + PIECE, steps))
            logits, state = stepped(changed, ids[:, here], state, rung.state)
            said = answers_of(logits).cpu().numpy()
            off = said != due[:, here]
            asked += off.size
            wrong += int(off.sum())
            if first is None and off.any():
                first = begin + int(np.flatnonzero(off.any(axis=0))[0]) + 1
    return Outcome(asked, wrong, first)


def stepped(model: SequenceModel, ids: Tensor, state: State, rounded: Cast | None) -> tuple[Tensor, State]:
    if rounded is None:
        return model.forward_from(ids, state)
    said = []
    for step in range(ids.shape[1]):
        logits, state = model.step(ids[:, step], tuple(rounded(part) for part in state))
        said.append(logits)
    return torch.stack(said, dim=1), state


def ladder(
    chosen: dict[str, tuple[str, SequenceModel]], held: list[Rung], steps: int, rounded: int, device: torch.device
) -> tuple[list[list[str]], list[str]]:
    """A row for each network with a cell for each rung, and why some could not be run."""
    table: list[list[str]] = []
    reasons: list[str] = []
    for name, (text, model) in chosen.items():
        row = [name, text]
        for rung in held:
            try:
                row.append(outcome(st.task(text), model, rung, rounded if rung.state else steps, device).shown)
            except (BadInput, RuntimeError, ImportError) as error:
                reasons.append(f"{name}, {rung.name}: {' '.join(str(error).split())[:200]}")
                row.append("cannot")
        table.append(row)
    return table, reasons


def main(arguments: list[str]) -> int:
    numbers = [int(each) for each in arguments[:2]]
    steps, rounded = (numbers + [STEPS, ROUNDED][len(numbers) :])[:2]
    every = networks()
    if unknown := [name for name in arguments[2:] if name not in every]:
        print(f"no network {', '.join(unknown)}; there are: {', '.join(every)}", file=sys.stderr)
        return 2
    device = pick_device("auto")
    print(f"on {torch.cuda.get_device_name() if device.type == 'cuda' else 'a CPU'}", flush=True)
    chosen, held = {name: every[name] for name in arguments[2:] or every}, rungs(device)
    table, reasons = ladder(chosen, held, steps, min(steps, rounded), device)
    print_table(["network", "task", *(rung.name for rung in held)], table)
    print(f"{steps:,} steps, {min(steps, rounded):,} where the state is rounded; 123: 9 % is wrong first at step 123")
    for reason in reasons:
        print(f"cannot: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
