"""Weights set by hand over a million steps: how many answers are wrong, and how long it takes.

python -m benchmarks.witnesses [STEPS]
python -m benchmarks.witnesses --tanh     at how many neighbouring float32 numbers the CPU kernel's tanh falls
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import statetrack as st
from statetrack.models import SequenceModel
from statetrack.models.witnesses import (
    automaton,
    counter,
    even_counter,
    falling_pair,
    permutations,
    sign,
    swaps,
    tiny_counter,
    toggle,
)  # fmt: skip
from statetrack.models.witnesses.falling_pair import Numbers, kernel_tanh

WINDOW = 8192
CHUNK = 2**20


def cases() -> dict[str, tuple[str, SequenceModel]]:
    """A task, and a model that is right on it for ever, or for a million steps."""
    s3, s5 = (st.group(name).elements for name in ("s3", "s5"))
    table = st.task("modular_arithmetic").automaton.minimised()
    answers = table.answers.clip(min=0)
    cups = st.task("cups[n=5,items=all]")
    return {
        "e88-gain": ("txc", toggle([[0, 1], [1, 0]])),
        "linear-rnn, at least half": ("rtc", counter([-1, 1], -0.5)),
        "linear-rnn, three ones": ("fsm", counter([0, 1], 2.5)),
        "e88-gain-r2": ("s3_composition", permutations(s3, s3)),
        "e88-gain-r4": ("s5_composition", permutations(s5, s5)),
        "tanh-rnn": ("modular_arithmetic", automaton(table.steps, answers)),
        "gru": ("modular_arithmetic", automaton(table.steps, answers, cell="gru")),
        "lstm": ("modular_arithmetic", automaton(table.steps, answers, cell="lstm")),
        "e88-gain, swaps": (cups.name, swaps(cups.swaps, s5)),
        "e88-published, a sign": ("txc", sign()),
        "e88, tiny numbers": ("rtc", tiny_counter()),
        "e88, a pair that falls": ("txc", falling_pair()),
        "mamba2-4l, even numbers": ("txc", even_counter()),
    }


@torch.no_grad()
def errors(task: st.Task, model: SequenceModel, steps: int) -> int:
    state, wrong = model.initial_state(1), 0
    for _, batch in task.stream(steps, count=1, seed=0, window=WINDOW):
        logits, state = model.forward_from(torch.from_numpy(batch.inputs).long(), state)
        said = logits.argmax(-1).numpy()
        wrong += int(((said != batch.targets) & (batch.mask == 1)).sum())
    return wrong


def falls(tanh: Callable[[Numbers], Numbers]) -> tuple[int, int]:
    """At how many neighbouring float32 numbers from 2^-13 to 8 a tanh falls, and how many there are."""
    fallen = pairs = 0
    first, last = (int(np.float32(edge).view(np.int32)) for edge in (2.0**-13, 8.0))
    for begin in range(first, last, CHUNK):
        numbers = np.arange(begin, begin + CHUNK + 64, dtype=np.int32).view(np.float32)
        values = tanh(numbers)[: CHUNK + 1]
        fallen += int((np.diff(values) < 0).sum())
        pairs += CHUNK
    return fallen, pairs


def print_falls() -> None:
    for name, tanh in (("the CPU kernel's", kernel_tanh), ("torch's", lambda x: torch.from_numpy(x).tanh().numpy())):
        fallen, pairs = falls(tanh)
        print(f"{name} tanh falls at {fallen:,} of {pairs:,} pairs of neighbouring numbers")


if __name__ == "__main__":
    if sys.argv[1:] == ["--tanh"]:
        print_falls()
        sys.exit()
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{'witness':<28}{'task':<22}{'steps':>10}{'wrong':>8}{'seconds':>9}")
    total = 0
    for name, (text, model) in cases().items():
        began = time.perf_counter()
        wrong = errors(st.task(text), model, steps)
        total += wrong
        print(f"{name:<28}{text:<22}{steps:>10,}{wrong:>8}{time.perf_counter() - began:>9.1f}")
    sys.exit(1 if total else 0)
