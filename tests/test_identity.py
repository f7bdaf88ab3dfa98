"""What code of one's own is: all of one's own that it imports, and packages by their version."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statetrack import identity as identities
from statetrack.errors import BadInput
from statetrack.identity import identity
from statetrack.models import model

MINE = """
import torch
from parts import sizes
from parts.deep.cell import Cell

class Mine(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(inputs, sizes.WIDTH), Cell(sizes.WIDTH, outputs)

    def forward(self, ids):
        return self.head(self.table(ids))
"""
CELL = """
import torch
from ..sizes import WIDTH
from . import words

class Cell(torch.nn.Linear):
    pass
"""
FILES = {
    "mine.py": MINE,
    "parts/__init__.py": "",
    "parts/sizes.py": "WIDTH = 4",
    "parts/deep/__init__.py": "",
    "parts/deep/cell.py": CELL,
    "parts/deep/words.py": "import parts.deep.cell  # in a circle",
    "unused.py": "1 / 0",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("parts", "mine")]:
        del sys.modules[name]


@pytest.mark.parametrize("form", ["{folder}/mine.py:Mine", "mine:Mine"])
@pytest.mark.parametrize("changed", ["mine.py", *(name for name in FILES if name.startswith("parts"))])
def test_every_file_of_ones_own_counts(folder: Path, form: str, changed: str) -> None:
    address = form.format(folder=folder)
    before = model(address, inputs=2, outputs=2).text
    assert "[sha256=" in before
    (folder / "unused.py").write_text("2 / 0")
    assert identity(address).text in before
    (folder / changed).write_text((folder / changed).read_text() + "\n# another\n")
    importlib.invalidate_caches()
    assert identity(address).text not in before
    with pytest.raises(BadInput, match="has changed: its sha256 begins with"):
        model(address, inputs=2, outputs=2, sha256=before.partition("sha256=")[2].rstrip("]"))


def test_what_has_changed_is_run_anew(folder: Path) -> None:
    address = f"{folder}/mine.py:Mine"
    assert model(address, inputs=2, outputs=2).module.table.weight.shape == (2, 4)
    (folder / "parts/sizes.py").write_text("WIDTH = 16")
    assert model(address, inputs=2, outputs=2).module.table.weight.shape == (2, 16)


def test_what_was_imported_before_its_file_changed_is_run_anew(folder: Path) -> None:
    importlib.import_module("parts.sizes")  # by a notebook
    (folder / "parts/sizes.py").write_text("WIDTH = 16")
    for address in (f"{folder}/mine.py:Mine", "mine:Mine"):
        assert model(address, inputs=2, outputs=2).module.table.weight.shape == (2, 16)
    (folder / "parts/sizes.py").write_text("WIDTH = 8")
    for address in (f"{folder}/mine.py:Mine", "mine:Mine"):  # the first brings the new sizes, the second builds on them
        assert model(address, inputs=2, outputs=2).module.table.weight.shape == (2, 8)


def test_nothing_is_run_to_find_it_out(folder: Path) -> None:
    (folder / "parts/__init__.py").write_text("1 / 0")
    assert identity(f"{folder}/mine.py:Mine").own.keys() >= {"parts", "parts.sizes", "parts.deep.cell"}
    assert "parts" not in sys.modules


def test_a_file_alone_has_the_hash_that_it_had_in_0_1_0(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("import torch, math\nfrom statetrack.models import SequenceModel\n")
    whole = hashlib.sha256((tmp_path / "alone.py").read_bytes()).hexdigest()
    assert identity(f"{tmp_path}/alone.py:Mine").sha256 == whole


def test_texts_of_0_1_0_still_load(folder: Path) -> None:
    alone = hashlib.sha256((folder / "mine.py").read_bytes()).hexdigest()[:8]
    made = model(f"{folder}/mine.py:Mine", inputs=2, outputs=2, sha256=alone)
    assert alone not in str(made.text)  # a new result says more
    assert model("mine:Mine", inputs=2, outputs=2).text != "mine:Mine"


def test_packages_count_by_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("import numpy.linalg\nimport torch\n")
    address = f"{tmp_path}/mine.py:Mine"
    assert identity(address).packages == {"numpy"}
    before = identity(address).sha256
    monkeypatch.setattr(identities, "_version", lambda name: "0.0.1")
    assert identity(address).sha256 != before
    assert identity("torch.nn:GRU").packages == {"torch"}


@pytest.mark.parametrize("address", ["no.such.module:Mine", "parts.nothing:Mine", ":Mine", "a..b:Mine", "a\0b:Mine"])
def test_addresses_without_a_module(folder: Path, address: str) -> None:
    with pytest.raises(BadInput, match=r"cannot import|is not the address of a class"):
        model(address, inputs=2, outputs=2)


def test_a_file_that_is_not_python_is_refused_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\x00\xff(((")
    with pytest.raises(BadInput, match="does not run"):
        model(f"{tmp_path}/mine.py:Mine", inputs=2, outputs=2)
