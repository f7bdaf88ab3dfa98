"""Results as a stranger could send them: a trained cell whose record, and whose weights, name code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from statetrack.results import Cell, Store
from statetrack.results.archive import pack
from statetrack.training import checkpoint, train

SHORT = {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 4, "warmup": 0, "validation_rows": 16}


def archive(folder: Path, subject: str, task: str = "txc") -> Path:
    """An archive with one cell whose subject and task are these texts, beside weights that carry the same cell."""
    trained = train("txc", "mlp[hidden=4]", length=4, settings=SHORT)
    cell = Cell(task, subject, 4, 0, trained.cell.protocol)
    record = replace(trained.record, cell=cell)
    store = Store(folder / "theirs")
    assert trained.model is not None
    note = {"cell": cell.to_dict(), "training": record.training.fingerprint}
    checkpoint.save_weights(store.path(cell, "safetensors"), trained.model, note)
    store.write(record)
    packed = folder / "theirs.tar"
    pack(store.folder, packed, weights=True)
    return packed


def hub(folder: Path, marker: Path) -> str:
    """A subject that made `diagnose` run the hubconf.py of a folder, which leaves a marker."""
    (folder / "hub").mkdir()
    lines = ["from pathlib import Path", f"Path({str(marker)!r}).touch()", "def entry(*args, **kwargs): return None"]
    (folder / "hub" / "hubconf.py").write_text("\n".join(lines))
    return f"torch.hub:load[repo_or_dir={folder}/hub,model=entry,source=local]"
