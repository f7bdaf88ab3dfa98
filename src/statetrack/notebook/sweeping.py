"""`st.sweep`: many cells into a folder, which is given back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from statetrack.errors import BadInput, refusing_unknown
from statetrack.notebook.folder import ResultsFolder, load
from statetrack.own_code import addresses
from statetrack.results import Sweep
from statetrack.results.folder_status import by_reason
from statetrack.sweeps import Options, from_blocks, read, run
from statetrack.sweeps.bar import sweep_bar
from statetrack.sweeps.rates import Given
from statetrack.trust import trusting

Blocks = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@refusing_unknown
def sweep(
    cells: str | Path | Blocks, out: Path | str, *, name: str = "sweep", models: Sequence[str] = (),
    subjects: str | Sequence[str] = (), rates: Given | None = None,
    part: tuple[int, int] | None = None, workers: int | None = None, ray: str | None = None, device: str = "auto",
    together: int | None = None, per_gpu: int | None = None, prune: bool = False, weights: bool = True,
    limit_seconds: float | None = None, cell_seconds: float | None = None, trust: str | Iterable[str] = (),
    trust_code: bool = False, progress: bool | None = None,
) -> ResultsFolder:  # fmt: skip
    """Run every cell of a sweep that the folder does not hold yet. Stop it at any moment; the next call goes on.

    cells     a shipped sweep's name ("demo"), a YAML file, or blocks of your own: a mapping or a list of them, each the
              product of its tasks, subjects, lengths and seeds, as docs/sweeps.md describes them
    out       the folder for the cells
    name      what a sweep of your own blocks is called; another with the same name takes its place in `status`
    models    language models that take the place of {model} in a file
    subjects  models that take the place of all that a file trains, beside what the folder has of it already
    rates     learning rates in place of the file's: a number or several, {model: rate}, or a file of `statetrack rates`
    part      (2, 4): the second of four parts, to run on four machines
    workers   processes; None: one for each core, or `per_gpu` for each GPU; 0: none, all in this one
    ray       the address of a Ray cluster, or "auto", in place of workers
    device    "auto", "cpu" or "cuda"
    per_gpu   workers that share a GPU; None: 8 where NVIDIA's MPS is found, else 4
    together  seeds trained side by side; None: 1 on a CPU, 8 on a GPU
    prune     skip lengths above one that no seed solved, or was above its floor at
    weights   whether trained weights are kept
    limit_seconds, cell_seconds   how long all of it, or one cell, may take
    trust, trust_code   code that a file names and that may be run: "file.py:Class", or all of it; what your own blocks
              name may be run
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never

    Gives the folder as `st.load(out)` does. Cells that failed are named on standard error, and in the folder.

        results = st.sweep({"tasks": ["txc"], "subjects": ["gru", "mlp"], "lengths": [16], "seeds": 3}, "results")
        results.figure()

    >>> from tempfile import mkdtemp
    >>> block = {"tasks": ["s3"], "subjects": ["ask:none window-4"], "lengths": [10], "seeds": 2, "protocol": "ask"}
    >>> results = sweep(block, mkdtemp(), workers=0)
    >>> [(cell.task, cell.subject, cell.seed) for cell in results.cells]
    [('s3_composition', 'window-4', 0), ('s3_composition', 'window-4', 1)]
    """
    trusted = (trust,) if isinstance(trust, str) else tuple(trust)
    options = Options(workers, ray, device, together, per_gpu, prune, weights, limit_seconds, cell_seconds)
    options.check()
    named = [subjects] if isinstance(subjects, str) else list(subjects)
    with trusting(*trusted, *addresses(named), everything=trust_code):
        wanted = _read(cells, name, models, trust_code, named, rates)
        wanted = wanted.part(*part) if part else wanted
        with sweep_bar(wanted.name, progress) as show:
            tally = run(wanted, out, options, show)
    for line in by_reason(tally.failures):
        print(f"statetrack: {line}", file=sys.stderr, flush=True)
    return load(out, trust=trusted, trust_code=trust_code)


def _read(
    cells: str | Path | Blocks,
    name: str,
    models: Sequence[str],
    trust_code: bool,
    subjects: list[str],
    rates: Given | None,
) -> Sweep:
    if isinstance(cells, str | Path):
        return read(cells, models, trust_code=trust_code, subjects=subjects, rates=rates)
    if subjects or rates is not None:
        raise BadInput("subjects and rates stand in the blocks, where these are given")
    blocks = [cells] if isinstance(cells, Mapping) else cells
    if not isinstance(blocks, Sequence) or not all(isinstance(block, Mapping) for block in blocks):
        raise BadInput("a sweep is a name, a YAML file, or blocks: mappings with tasks, subjects, lengths and seeds")
    return from_blocks(name, blocks)
