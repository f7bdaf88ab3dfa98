"""docs/tutorial.ipynb, run from its first cell to its last; `python -m tests.notebook.tutorial` writes its outputs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"
SECONDS = 300  # that a cell may take on a machine that is busy


def executed(folder: Path) -> Any:
    """The notebook with the outputs of a run in this folder; a cell that raises ends it (CellExecutionError)."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(PATH, as_version=4)
    client = NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    return book


def tidy(book: Any) -> Any:
    """Without what differs from run to run and says nothing: when a cell ran, and which display it was."""
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
    return book


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(tidy(executed(Path(folder))), PATH)
