"""The tutorial runs, shows what its text speaks of, and is committed with outputs that are small and of no machine."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.notebook import tutorial

nbformat = pytest.importorskip("nbformat")


def code(book: Any) -> dict[str, Any]:
    """The cells with code, by the first word of each."""
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return {re.split(r"[ (\n]", cell.source.removeprefix("%%writefile "))[0]: cell for cell in cells}


def given(cell: Any) -> Any:
    """What the last line of a cell gave, by its kinds."""
    (output,) = [output for output in cell.outputs if output.output_type == "execute_result"]
    return output.data


def plain(cell: Any) -> str:
    return str(given(cell)["text/plain"])


def bars(cell: Any) -> list[str]:
    return [output.data["text/plain"] for output in cell.outputs if output.output_type == "display_data"]


@pytest.mark.needs("torch")
@pytest.mark.needs("ipykernel")
@pytest.mark.needs("vl_convert")
@pytest.mark.needs("pandas")
def test_every_cell_runs_and_shows_what_the_text_speaks_of(tmp_path: Path) -> None:
    ran = code(tutorial.executed(tmp_path))  # raises where a cell does
    assert list(ran) == ["import", "how", "my_layer.py", "flip", "found", "held", "results", "results.figure", "rows"]
    assert "[[1 1 0 1 0 1 1 0 0 0]]" in ran["import"].outputs[0].text
    assert [re.sub(r"\d+:\d\d$", "", bar) for bar in bars(ran["how"])] == ["train txc, gru[hidden=16]: "]
    assert "solved by 2 of 2 seeds" in plain(ran["how"])
    assert plain(ran["flip"]).startswith(
        "txc, my_layer.py:Flip, length 16, seed 0: solved on random rows, accuracy 1.0"
    )
    assert re.search(r"^rows +256 .* no$", plain(ran["flip"]), re.MULTILINE)
    assert plain(ran["found"]).splitlines()[0].endswith("trained at 16, seed 0: fades")
    assert "It fades: right up to about" in plain(ran["found"])
    assert re.search(r"^stream +16,384 +64 +1\.0000 .* yes$", plain(ran["held"]), re.MULTILINE)
    assert [bar.split()[0] for bar in bars(ran["held"])] == ["train", "evaluate"]
    for name in ("how", "flip", "found", "held", "results"):
        assert given(ran[name])["text/html"].count('<img src="data:image/svg+xml;base64,') == 1
    assert len(list((tmp_path / "results").glob("*.safetensors"))) == 6
    ends = {line.split()[0].partition("[")[0]: float(line.split()[-1]) for line in plain(ran["rows"]).splitlines()[2:]}
    assert ends["my_layer.py:Flip"] < 0.9 < 0.99 < min(ends["my_layer.py:Held"], ends["gru"])


def test_it_is_committed_with_its_outputs() -> None:
    book = nbformat.read(tutorial.PATH, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells)
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    kinds = given(code(book)["results.figure"]).keys()
    assert kinds == {"image/svg+xml", "application/vnd.vegalite.v6+json", "text/plain"}
    text = tutorial.PATH.read_text()
    assert len(text) < 250_000
    assert not re.search(r"/(tmp|home|root|work|usr)/", text)


def test_it_can_be_read_as_a_text() -> None:
    """Each step says what it is before its code, in lines that are no wider than those of the other pages."""
    book = nbformat.read(tutorial.PATH, as_version=4)
    steps = ("import", "how", "%%writefile", "found", "held", "results =")
    for before, cell in pairwise(book.cells):
        if cell.cell_type == "code" and cell.source.startswith(steps):
            assert before.cell_type == "markdown"
    assert all(len(line) <= 140 for cell in book.cells for line in cell.source.splitlines())
    linked = re.findall(r"\]\((\w+\.md)\)", tutorial.PATH.read_text())
    assert "python.md" in linked
    assert all((tutorial.PATH.parent / name).exists() for name in linked)
