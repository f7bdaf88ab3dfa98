"""A folder in parts below a size, and back."""

from __future__ import annotations

import errno
import io
import random
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import Cell, Store, pack, pack_parts, unpack
from statetrack.results.parts import SMALLEST, _filled, _room, part_name, size_in_bytes, write_parts
from tests.sweeps.counted_cells import made

SIZES = some.lists(some.integers(0, 70_000), min_size=1, max_size=4)


def filled(folder: Path, sizes: list[int], seed: int = 0) -> Path:
    """A folder with a record, weights and a checkpoint for each size; every other file is easy to compress."""
    store, chance = Store(folder), random.Random(seed)
    for number, size in enumerate(sizes):
        cell = Cell("t", "s", number + 1, 0, {})
        data = chance.randbytes(size) if number % 2 == 0 else b"weights " * (size // 8)
        store.write(made(cell))
        store.path(cell, "safetensors").write_bytes(data)
        scratch = store.scratch([cell])
        scratch.mkdir(parents=True)
        (scratch / f"{cell.key}.checkpoint.safetensors").write_bytes(data[::-1])
    (folder / f"{'0' * 20}.replies.jsonl").write_bytes(b'{"reply": 1}\n' * 9000)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=15, deadline=None)
@given(SIZES, some.integers(SMALLEST, 90_000), some.sampled_from([".tar", ".tar.gz"]), some.randoms())
def test_a_folder_in_parts_is_the_same_folder_again(
    sizes: list[int], size: int, end: str, chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as place:
        here, away = Path(place, "here"), Path(place, "away")
        here.mkdir()
        away.mkdir()
        before = contents(filled(here / "out", sizes))
        cells, parts = pack_parts(here / "out", here / f"packed{end}", size, weights=True, checkpoints=True)
        assert cells == len(sizes)
        assert all(part.stat().st_size < size for part in parts)
        assert sum(part.stat().st_size for part in parts) >= (len(parts) - 1) * size // 2 or end == ".tar.gz"
        chance.shuffle(parts)
        moved = [Path(shutil.move(part, away / f"{number}{end}")) for number, part in enumerate(parts)]
        unpack(moved, here / "back")
        assert contents(here / "back") == before
        unpack(chance.choice(moved), here / "again")  # finds the others, whatever they are called
        assert contents(here / "again") == before


@pytest.mark.parametrize("end", [".tar", ".tar.gz"])
def test_a_file_that_just_fills_a_part(end: str) -> None:
    """One byte after another, around the size from which on a file has to be cut."""
    name, most = "1" * 20 + ".safetensors", 15_000
    data, edge = random.Random(0).randbytes(2 * most), _room(most, 0, name)
    cut = []
    for size in range(edge - 40, edge + 40):
        parts = _filled([("0" * 20 + ".json", b"{}"), (name, data[:size])], io.BytesIO(), Path(f"a{end}"), most)
        assert all(part.size <= most for part in parts)
        assert len(parts) <= 3
        cut.append(any(".piece" in part.list for part in parts))
    assert cut == sorted(cut)
    assert set(cut) == {False, True}


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    (tmp_path / "mail").mkdir()
    return pack_parts(filled(tmp_path / "out", [40_000, 1, 70_000]), tmp_path / "mail/a.tar.gz", 20_000, weights=True)[
        1
    ]


def test_a_file_larger_than_a_part_is_cut(parts: list[Path], tmp_path: Path) -> None:
    """Each part is a tar file that every program reads, and the pieces are the file."""
    (largest,) = (path for path in (tmp_path / "out").glob("*.safetensors") if path.stat().st_size == 70_000)
    found = {}
    for part in parts:
        listed = subprocess.run(["tar", "tzf", str(part)], capture_output=True, text=True, check=True).stdout.split()
        with tarfile.open(part) as tar:
            assert tar.getnames() == listed
            assert listed[0] == "PART.json"
            assert listed[-1] == "SHA256SUMS"
            found |= {name: tar.extractfile(name).read() for name in listed if name.startswith(largest.name)}  # type: ignore[union-attr]
    assert len(found) > 1
    assert (
        b"".join(found[f"{largest.name}.piece{number}"] for number in range(1, len(found) + 1)) == largest.read_bytes()
    )


def test_the_same_cells_give_the_same_parts(parts: list[Path], tmp_path: Path) -> None:
    again = pack_parts(tmp_path / "out", tmp_path / "a.tar.gz", 20_000, weights=True)[1]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in parts]


def test_a_missing_part_is_named(parts: list[Path], tmp_path: Path) -> None:
    count = len(parts)
    parts[2].unlink()
    with pytest.raises(BadInput, match=rf"^part 3 of {count} is missing: no {parts[2].name} beside .*a\.1of{count}"):
        unpack(parts[0], tmp_path / "back")
    parts[1].unlink()
    with pytest.raises(BadInput, match=rf"^parts 2, 3 of {count} are missing"):
        unpack([parts[-1], parts[0]], tmp_path / "back")
    parts[0].rename(tmp_path / "mail/renamed.tgz")
    with pytest.raises(BadInput, match=rf"^parts 2, 3 of {count} are missing; looked beside"):
        unpack(tmp_path / "mail/renamed.tgz", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_damaged_part_is_named_wherever_the_damage_is(parts: list[Path], tmp_path: Path) -> None:
    """It is refused with its number, or the bit was where it says nothing and all is as it was."""
    whole, wrong = parts[1].read_bytes(), f"{parts[1]} (part 2 of {len(parts)}) "
    before = {name: data for name, data in contents(tmp_path / "out").items() if ".sweep" not in name}
    places = [0, 3, 12, 40, 300, 530, 700, 1040, *random.Random(0).sample(range(1047, len(whole)), 20)]
    refused = []
    for number, place in enumerate(places):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << number % 8
        parts[1].write_bytes(flipped)
        try:
            unpack(parts[0], tmp_path / f"back{number}")
        except BadInput as error:
            refused.append(str(error))
        else:
            assert contents(tmp_path / f"back{number}") == before
    assert len(refused) > 20
    assert all(error.startswith(wrong) for error in refused)
    parts[1].write_bytes(whole[:-1000])
    with pytest.raises(BadInput, match=rf"\(part 2 of {len(parts)}\) cannot be read"):
        unpack(parts, tmp_path / "back")
    parts[1].write_bytes(b"")
    with pytest.raises(BadInput, match=rf"\(part 2 of {len(parts)}\) is damaged"):
        unpack(parts, tmp_path / "back")


def test_a_part_of_something_else_is_not_taken(parts: list[Path], tmp_path: Path) -> None:
    other = pack_parts(filled(tmp_path / "other", [30_000, 1, 80_000], seed=1), tmp_path / "a.tar.gz", 20_000, True)[1]
    assert len(other) == len(parts)
    shutil.copy(other[1], parts[1])
    with pytest.raises(BadInput, match=rf"\(part 2 of {len(parts)}\) is damaged, or a part of something else"):
        unpack(parts[0], tmp_path / "back")


def test_several_archives_at_once(parts: list[Path], tmp_path: Path) -> None:
    pack(filled(tmp_path / "other", [5] * 7, seed=1), tmp_path / "other.tar")
    assert unpack([parts[1], tmp_path / "other.tar", parts[0]], tmp_path / "back").taken == 7
    assert len(list(Store(tmp_path / "back").records())) == 7


def test_pieces_belong_in_parts_alone(tmp_path: Path) -> None:
    name = "0" * 20 + ".safetensors"
    for members in ([f"{name}.piece2"], ["PART.json.piece1"], ["../x.json.piece1"]):
        part = write_parts([(each, b"x") for each in members], tmp_path / "a.tar", SMALLEST)[0]
        with pytest.raises(BadInput, match="which does not belong in a packed folder"):
            unpack(part, tmp_path / "back")
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(f"{name}.piece1"))
    with pytest.raises(BadInput, match="which does not belong in a packed folder"):
        unpack(tmp_path / "b.tar", tmp_path / "back")


def test_the_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(filled(tmp_path / "out", [40_000]))
    line = ["pack", "out", "a.tar", "--weights", "--checkpoints", "--part-size", "20k"]
    assert main(line) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"1 cell in {len(said) - 1} parts"
    files = [text.partition(":")[0] for text in said[:-1]]
    assert files == [part_name(Path("a.tar"), number + 1, len(files)) for number in range(len(files))]
    assert main(["unpack", *reversed(files), "back"]) == 0
    assert main(["unpack", files[1], "again"]) == 0
    capsys.readouterr()
    assert main(["unpack", "a.tar", "never"]) == 2
    assert capsys.readouterr().err.endswith(f"; it was packed in parts: name one of them, {files[0]}\n")
    assert contents(tmp_path / "back") == contents(tmp_path / "again") == before
    for size, wrong in (("15X", "size '15X' should be a number of bytes"), ("1k", "parts below 1,000 bytes are too")):
        assert main([*line[:-1], size]) == 2
        assert wrong in capsys.readouterr().err
    monkeypatch.setattr("statetrack.results.parts.MOST_PARTS", 3)
    assert main(line) == 2
    assert "a.tar would take more than 3 parts; take a larger size" in capsys.readouterr().err
    assert len(list(tmp_path.glob("*.tar"))) == len(files)


@pytest.mark.parametrize("text", ["", "M", "-1M", "1e9", "nan", "15 MM", "1_000", "9" * 400])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(BadInput, match="should be a number of bytes"):
        size_in_bytes(text)


def test_a_disk_that_takes_no_more_leaves_no_part(tmp_path: Path) -> None:
    def files() -> Iterator[tuple[str, bytes]]:
        yield "0" * 20 + ".json", b"{}"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BadInput, match=r"a\.tar cannot be written: .*No space left on device"):
        write_parts(files(), tmp_path / "a.tar", SMALLEST)
    assert list(tmp_path.iterdir()) == []
