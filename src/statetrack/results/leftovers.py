"""What killed runs leave in a folder, and when it may go."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from statetrack.results import plans
from statetrack.results.store import Store

OLD = 86_400.0  # seconds after which a half-written file is nobody's


def tidy(store: Store) -> None:
    """Remove half-written files of long ago, and the checkpoints of cells that are all done since."""
    for path in half_written(store, OLD):
        path.unlink(missing_ok=True)
    for path in done_with(store):
        shutil.rmtree(path, ignore_errors=True)


def half_written(store: Store, age: float = 0.0) -> Iterator[Path]:
    """Temporary files that nobody has touched for so many seconds."""
    before = time.time() - age
    for path in (*store.folder.glob(".*.part"), *store.hidden.glob("plans/.*.part")):
        if path.is_file() and path.lstat().st_mtime <= before:
            yield path


def done_with(store: Store) -> Iterator[Path]:
    """Folders of scratch whose checkpoints nobody will go on from. A checkpoint has the name that its cells share but
    for their seeds: while one of those is not finished, or none of them is known here, it stays.
    """
    before = time.time() - OLD  # a younger one may be another runner's that has saved nothing yet
    folders = [path for path in store.hidden.glob("work/*") if path.is_dir() and path.stat().st_mtime <= before]
    if not folders:
        return
    finished = {record.cell.key: record for record in store.records() if record.finished}
    planned = plans.entries(plans.saved(store))
    done = {record.cell.siblings for record in finished.values()}
    done -= {entry.cell.siblings for key, entry in planned.items()
             if key not in finished or finished[key].lacks(entry.streams)}  # fmt: skip
    for folder in folders:
        names = {path.name.partition(".")[0] for path in folder.iterdir()}
        if names <= done:
            yield folder
