"""Weights set by hand over a million steps: how many answers are wrong, and how long it takes.

python -m benchmarks.witnesses [STEPS]
"""

from __future__ import annotations

import sys
import time

import torch

import statetrack as st
from statetrack.models import SequenceModel
from statetrack.models.witnesses import automaton, counter, permutations, toggle

WINDOW = 8192


def cases() -> dict[str, tuple[str, SequenceModel]]:
    """A task, and a model that is right on it for ever."""
    s3, s5 = (st.group(name).elements for name in ("s3", "s5"))
    table = st.task("modular_arithmetic").automaton.minimised()
    answers = table.answers.clip(min=0)
    return {
        "e88-gain": ("txc", toggle([[0, 1], [1, 0]])),
        "linear-rnn, at least half": ("rtc", counter([-1, 1], -0.5)),
        "linear-rnn, three ones": ("fsm", counter([0, 1], 2.5)),
        "e88-gain-r2": ("s3_composition", permutations(s3, s3)),
        "e88-gain-r4": ("s5_composition", permutations(s5, s5)),
        "tanh-rnn": ("modular_arithmetic", automaton(table.steps, answers)),
    }


@torch.no_grad()
def errors(task: st.Task, model: SequenceModel, steps: int) -> int:
    state, wrong = model.initial_state(1), 0
    for _, batch in task.stream(steps, count=1, seed=0, window=WINDOW):
        logits, state = model.forward_from(torch.from_numpy(batch.inputs).long(), state)
        said = logits.argmax(-1).numpy()
        wrong += int(((said != batch.targets) & (batch.mask == 1)).sum())
    return wrong


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{'witness':<28}{'task':<22}{'steps':>10}{'wrong':>8}{'seconds':>9}")
    total = 0
    for name, (text, model) in cases().items():
        began = time.perf_counter()
        wrong = errors(st.task(text), model, steps)
        total += wrong
        print(f"{name:<28}{text:<22}{steps:>10,}{wrong:>8}{time.perf_counter() - began:>9.1f}")
    sys.exit(1 if total else 0)
