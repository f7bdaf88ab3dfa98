"""Flip single bits of records, weights, checkpoints and archives as they are written now, and read them again.

python -m benchmarks.bitflips           10,000 flips
python -m benchmarks.bitflips 2000      another number

A flip is noticed (the file is refused and named), without effect (what is read is the same), or unnoticed: something
else is read. The last must not happen.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from statetrack.errors import BadInput
from statetrack.results import AskedRecord, Cell, Store, pack, unpack
from statetrack.results.records import EpisodeRecord, no_result
from statetrack.training import checkpoint
from tests.sweeps.counted_cells import made

Read = Callable[[Path], Any]  # what a file holds, in a form that can be compared; raises BadInput where it is damaged
REFUSED = "refused"


def records(store: Store) -> list[Cell]:
    """A record of every kind."""
    trained, failed = Cell("txc", "mlp", 8, 0, {"name": "design"}), Cell("txc", "gru", 8, 0, {"name": "design"})
    asked = Cell("txc", "m implicit", 3, 0, {"name": "ask"})
    episode = EpisodeRecord(ended="done", max_length=3, asked=3, outcomes="+++", positions=[0, 1, 2], changes="-01",
                            replies=["[answer: 1]", "[answer: 0]", "[answer: 1]"],
                            tokens={"sent": 300, "generated": 21})  # fmt: skip
    for record in (made(trained, 1.5), no_result(failed, "failed", "it fell over", 2.0),
                   AskedRecord(cell=asked, episode=episode, seconds=3.0)):  # fmt: skip
        store.write(record)
    return [trained, failed, asked]


def weights(path: Path, seed: int) -> None:
    numbers = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(3, 5, generator=numbers) for name in ("cell.weight", "head.weight")}
    checkpoint.save(path, tensors, {"cell": {"task": "txc"}, "run": "0123", "seeds": [0, 1]})


def read_weights(path: Path) -> Any:
    tensors, note = checkpoint.load(path)
    told = {key: value for key, value in note.items() if key in ("cell", "run", "seeds", "training")}
    return {name: (str(each.dtype), each.tolist()) for name, each in sorted(tensors.items())}, told


def read_record(path: Path) -> Any:
    entries = list(Store(path.parent).entries())
    held = [entry for key, entry in entries if key == path.stem]
    if not held or not hasattr(held[0], "cell"):
        raise BadInput("damaged")
    return held[0]


def read_archive(path: Path) -> Any:
    back = path.parent / "back"
    shutil.rmtree(back, ignore_errors=True)
    joined = unpack(path, back)
    if joined.damaged:
        raise BadInput("damaged")
    files = [each for each in back.rglob("*") if each.is_file()]
    return {str(each.relative_to(back)): each.read_bytes() for each in files}


def subjects(place: Path) -> list[tuple[str, Path, Read]]:
    store = Store(place / "cells")
    cells = records(store)
    weights(store.path(cells[0], "safetensors"), 0)
    saved = place / "run.checkpoint.safetensors"
    weights(saved, 1)
    archives = [place / "a.tar", place / "a.tar.gz"]
    for archive in archives:
        pack(store.folder, archive, weights=True)
    return [
        *(("record", store.path(cell), read_record) for cell in cells),
        ("weights", store.path(cells[0], "safetensors"), read_weights),
        ("checkpoint", saved, read_weights),
        *(("archive" + archive.name[1:], archive, read_archive) for archive in archives),
    ]


def read(path: Path, how: Read) -> Any:
    try:
        return how(path)
    except BadInput:
        return REFUSED


def main(count: int) -> bool:
    place, chance = Path(tempfile.mkdtemp(prefix="flips-")), random.Random(0)
    tally: dict[str, list[int]] = {}
    chosen = subjects(place)
    for number in range(count):
        what, path, how = chosen[number % len(chosen)]
        whole = path.read_bytes()
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        expected = read(path, how)
        assert expected != REFUSED
        path.write_bytes(flipped)
        found = read(path, how)
        path.write_bytes(whole)
        counts = tally.setdefault(what, [0, 0, 0])
        counts[0 if found == REFUSED else 1 if found == expected else 2] += 1
    shutil.rmtree(place)
    print(f"{'file':<14}{'flips':>8}{'refused':>9}{'no effect':>11}{'unnoticed':>11}")
    for what, (refused, same, unnoticed) in tally.items():
        print(f"{what:<14}{refused + same + unnoticed:>8}{refused:>9}{same:>11}{unnoticed:>11}")
    return not any(unnoticed for _, _, unnoticed in tally.values())


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if sys.argv[1:] else 10_000) else "a flipped bit was read as if it were right")
