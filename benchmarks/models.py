"""A training step of every catalogued model at 64 rows of 1,024 tokens, on a GPU: milliseconds and memory.

python -m benchmarks.models                  the whole catalogue
python -m benchmarks.models m2rnn lstm       these alone
"""

from __future__ import annotations

import sys

import torch

from benchmarks.gpu import GIB, milliseconds, training_step
from statetrack.models.catalogue import CATALOGUE

BATCH, LENGTH = 64, 1024
LIMIT = 15.0  # ms, of all but deep Mamba-2 and the large E88


def step_of(name: str) -> tuple[float, float]:
    """Milliseconds of a step, and the GiB that it holds, its recorded graph included."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    work = training_step(name, BATCH, LENGTH)
    return milliseconds(work, tries=5), (torch.cuda.memory_reserved() - before) / GIB


def main(names: list[str]) -> None:
    if not torch.cuda.is_available():
        sys.exit("benchmarks.models needs a CUDA device")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; a training step of {BATCH} x {LENGTH} tokens")
    for name in names or CATALOGUE:
        time, gib = step_of(name)
        over = f"  above {LIMIT:g} ms" if time > LIMIT else ""
        print(f"  {name:<32}{time:>8.2f} ms{gib:>8.2f} GiB{over}", flush=True)
        torch._dynamo.reset()


if __name__ == "__main__":
    main(sys.argv[1:])
