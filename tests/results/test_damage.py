"""Damaged, hostile and endless files: each is named in one line, in bounded time and memory, and stops nothing."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import select
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.files import ABANDONED, clean
from statetrack.results import AskedRecord, Cell, Store, claims, pack, plans, status, unpack
from statetrack.results import archive as archives
from statetrack.results.diagnosis import SHAPES, Diagnosis
from statetrack.results.diagnosis import write as write_diagnosis
from statetrack.results.plans import PlannedCell, Sweep
from statetrack.results.proofs import weights_hash
from statetrack.results.records import no_result
from statetrack.results.schema import BadRecord
from statetrack.results.seal import MOST_JSON, check_tensors, seal, seal_tensors, unseal
from statetrack.results.table import write_csv
from tests.results.test_kept import asked
from tests.sweeps.counted_cells import made

CELL = Cell("t", "s", 4, 0, {})


@pytest.mark.needs("torch")
def test_no_flipped_bit_is_read_as_if_it_were_right() -> None:
    """A small share of what `python -m benchmarks.bitflips` does."""
    from benchmarks import bitflips

    assert bitflips.main(140)


def test_the_bits_of_a_small_file_one_by_one() -> None:
    whole = seal({"a": 1, "reason": "0" * 64})
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError):  # noqa: PT011 (of JSON, or of the checksum)
            unseal(bytes(flipped))


def spoil(path: Path, how: str) -> None:
    path.unlink(missing_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "loop":
        path.symlink_to(path)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "huge":
        with path.open("wb") as file:
            file.truncate(MOST_JSON + 1)
    else:
        path.write_text(HELD[how])


HELD = {
    "brackets": "[" * 100_000,
    "no reason": json.dumps({"cell": CELL.to_dict(), "status": "failed"}),
    "text in seconds": json.dumps({"cell": CELL.to_dict(), "status": "failed", "reason": "x", "seconds": "two"}),
    "not a number": json.dumps({"cell": CELL.to_dict(), "status": "failed", "reason": "x", "seconds": float("nan")}),
    "infinite": json.dumps({"cell": CELL.to_dict(), "status": "failed", "reason": "x", "seconds": 1}).replace(
        "1}", "1e999}"
    ),
    "short interval": json.dumps(
        {"cell": CELL.to_dict(), "accuracy": 1.0, "interval": [0.5], "learning_rate": 1.0, "steps": 1, "parameters": 1}
    ),
}
WHOLE = ("no reason",)  # what earlier versions may have written


@pytest.mark.parametrize("how", ["folder", "loop", "pipe", "endless", "huge", *HELD])
def test_a_file_that_is_no_record_is_named_and_stops_nothing(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, well = Store(tmp_path / "out"), Cell("t", "well", 4, 0, {})
    store.write(made(well))
    spoil(store.path(CELL), how)
    for verb in ("status", "results", "check", "report"):
        assert main([verb, str(store.folder)]) in (0, 1)
    assert main(["merge", str(store.folder), "--out", str(tmp_path / "all")]) == 0
    assert Store(tmp_path / "all").read(well) == made(well)
    told = [damage.path.name for damage in status(store).damaged]
    assert told == ([] if how in WHOLE else [f"{CELL.key}.json"])
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t[", "t[a", "t[a=1", "[a=1]", "", "a\x1b[2Jb", "a\0b", "half \ud800"])
def test_a_name_that_cannot_be_read_is_left_out_of_the_report(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(made(Cell("t", "well", 4, 0, {})))
    path = store.write(made(Cell("t", name, 4, 0, {})))
    assert main(["report", str(tmp_path), "--figures", str(tmp_path / "figures")]) == 0
    assert path.name in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("text", ["1e999", "-1E+999", "9" * 30, "NaN", "-Infinity", "9" * 5000])
def test_a_number_without_bounds_is_damage(text: str) -> None:
    with pytest.raises(BadRecord):
        unseal(f'{{"a": {text}}}'.encode())
    assert unseal(b'{"a": 1.5e-300, "b": 9223372036854775807}') == {"a": 1.5e-300, "b": 2**63 - 1}


def test_a_record_of_empty_lists_is_damage_at_once(tmp_path: Path) -> None:
    """As large as a record may be, they took 1.9 GB and half a minute of every verb."""
    told = b'{"a": [' + b"{}," * 2**22 + b"{}]}"
    with pytest.raises(BadRecord, match="more than the 4,194,304 values that are read"):
        unseal(told)
    header = struct.pack("<Q", len(told)) + told
    (tmp_path / f"{CELL.key}.safetensors").write_bytes(header)
    for read in (check_tensors, weights_hash):
        with pytest.raises(BadRecord, match="more than the 4,194,304 values"):
            read(tmp_path / f"{CELL.key}.safetensors")


def test_what_is_too_large_to_be_packed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hole on the disk, which takes no room there."""
    store = Store(tmp_path / "out")
    store.write(made(CELL))
    with store.path(CELL, "proof").open("wb") as file:
        file.truncate(2**33)
    assert main(["pack", str(store.folder), str(tmp_path / "a.tar"), "--weights"]) == 0
    assert main(["merge", str(store.folder), "--out", str(tmp_path / "all")]) == 0
    assert [path.name for path in (tmp_path / "all").glob(f"{CELL.key}*")] == [f"{CELL.key}.json"]
    with store.path(CELL, "safetensors").open("wb") as file:
        file.truncate(2**33)
    capsys.readouterr()
    assert main(["pack", str(store.folder), str(tmp_path / "b.tar"), "--weights"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "cannot be packed: it has 8,589,934,592 bytes" in line
    assert not (tmp_path / "b.tar").exists()


@pytest.mark.parametrize("count", [-1, 10**30, 10**16])
def test_a_count_of_tokens_that_cannot_be_is_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no number of tokens"):
        Store(tmp_path).write(asked(3, tokens={"sent": count}))


def test_half_a_character_in_a_reply_is_read_as_a_question_mark(tmp_path: Path) -> None:
    Store(tmp_path).write(asked(1, replies=["a\ud800b\U0001f600"]))
    (record,) = Store(tmp_path).records()
    assert isinstance(record, AskedRecord)
    assert record.episode.replies == ["a?b\U0001f600"]


def test_an_archive_that_grows_without_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_UNPACKED", 2**20)
    bomb = tmp_path / "bomb.tar.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file:
        file.write(bytes(2**23))
    with pytest.raises(BadInput, match="unpacks to more than 1,048,576 bytes; nothing was taken"):
        unpack(bomb, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_sparse_file_in_an_archive_is_refused(tmp_path: Path) -> None:
    """Ten kilobytes there, three gigabytes here."""
    member = tarfile.TarInfo(f"{CELL.key}.safetensors")
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (3 * 2**30)  # its real size
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "sparse.tar").write_bytes(bytes(header).ljust(tarfile.RECORDSIZE, b"\0"))
    with pytest.raises(BadInput, match="which does not belong in a packed folder"):
        unpack(tmp_path / "sparse.tar", tmp_path / "out")


@pytest.mark.parametrize("how", ["folder", "pipe", "endless"])
def test_an_archive_that_is_no_file_is_refused(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(tmp_path / "a.tar.gz", how)
    assert main(["unpack", str(tmp_path / "a.tar.gz"), str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_changed_file_of_an_archive_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    store.write(made(CELL))
    pack(store.folder, tmp_path / "a.tar")
    data = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(data.replace(b'"accuracy": 0.5', b'"accuracy": 0.7', 1))
    with pytest.raises(BadInput, match=rf"a\.tar is damaged: {CELL.key}\.json is not what was packed"):
        unpack(tmp_path / "a.tar", tmp_path / "back")


def test_check_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    path = store.write(made(CELL))
    assert main(["check", str(tmp_path)]) == 0
    assert "1 record and 0 files of weights are whole; 0 damaged, 0 in conflict" in capsys.readouterr().out
    path.write_text(path.read_text().replace('"accuracy": 0.5', '"accuracy": 0.7'))
    store.path(CELL, "safetensors").write_bytes(b"no weights")
    (tmp_path / "package.json").write_text("{}")
    left = tmp_path / f".{path.name}.0123abcd.part"
    left.touch()
    os.utime(left, (0, 0))
    plans.save(store, Sweep("s", "", ()))
    (tmp_path / ".sweep/plans/s.json").write_text("{")
    assert main(["check", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert f"{path.name}: its checksum is wrong" in told["damaged"]
    assert f"{CELL.key}.safetensors: not a safetensors file" in told["damaged"]
    assert any(line.startswith("s.json: a damaged plan") for line in told["damaged"])
    assert told["foreign"] == ["package.json"]
    assert told["stale"] == [f"{left.name}: left by a run that was killed"]


def weights_of(cell: Cell) -> bytes:
    """A file of weights with one number and the note of its cell."""
    note = json.dumps({"sha256": "0" * 64, "cell": cell.to_dict()})
    held = {"__metadata__": {"statetrack": note}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    header = json.dumps(held).encode()
    return seal_tensors(struct.pack("<Q", len(header)) + header + bytes(4))


def test_check_names_weights_and_diagnoses_that_were_swapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, cells = Store(tmp_path), [Cell("t", "s", 4, seed, {}) for seed in (0, 1)]
    for cell in cells:
        store.write(made(cell))
        store.path(cell, "safetensors").write_bytes(weights_of(cell))
        found = Diagnosis(task="t", model="s", trained=4, length=4, seed=cell.seed, conclusion="fades", sentences=[],
                          seconds=0.0, cell=cell, sections={name: {"absent": "-"} for name in SHAPES})  # fmt: skip
        write_diagnosis(store, found)
    assert main(["check", str(tmp_path)]) == 0
    for one, other in (
        [store.path(cell, "safetensors") for cell in cells],
        [tmp_path / "diagnosis" / f"{cell.key}.json" for cell in cells],
    ):
        swapped = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(swapped)
    capsys.readouterr()
    assert main(["check", str(tmp_path), "--json"]) == 1
    first, second = (cell.key for cell in cells)
    assert json.loads(capsys.readouterr().out)["damaged"] == sorted(
        [f"{first}.safetensors: the weights of another cell, {cells[1]}",
         f"{second}.safetensors: the weights of another cell, {cells[0]}"]
    ) + sorted(
        [f"diagnosis/{first}.json: the diagnosis of another cell, {cells[1]}",
         f"diagnosis/{second}.json: the diagnosis of another cell, {cells[0]}"]
    )  # fmt: skip


def test_formulas_are_texts_in_a_csv_file(tmp_path: Path) -> None:
    Store(tmp_path).write(no_result(CELL, "failed", '=HYPERLINK("http://x")'))
    told = io.StringIO()
    write_csv(Store(tmp_path), told, {})
    (row,) = csv.DictReader(io.StringIO(told.getvalue()))
    assert row["reason"] == '\'=HYPERLINK("http://x")'


@pytest.mark.parametrize("line", [["status", ""], ["sweep", "demo", "--out", ""], ["sweep", "demo", "--out="]])
def test_an_empty_path_is_not_the_folder_where_one_is(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == 2
    assert "is empty; write . for the folder where you are" in capsys.readouterr().err


def test_what_a_killed_writer_left_goes_with_the_next(tmp_path: Path) -> None:
    left, fresh, other = (tmp_path / f".{name}.{number:08x}.part" for number, name in enumerate(("a.b", "a.b", "aXb")))
    for path in (left, fresh, other):
        path.touch()
    long_ago = time.time() - 2 * ABANDONED
    for path in (left, other):
        os.utime(path, (long_ago, long_ago))
    clean(tmp_path / "a.b")
    assert [path.exists() for path in (left, fresh, other)] == [False, True, True]


STOPPED = """
import os, signal, sys
from pathlib import Path
from statetrack.results import AskedRecord, Cell, Store, claims
claim = claims.take(Store(Path(sys.argv[1])), Cell("t", "s", 4, 0, {}))
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a process is stopped")
def test_a_holder_that_does_not_move_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "out")
    plans.save(store, Sweep("s", "", (PlannedCell(CELL, "counted"),)))
    holder = subprocess.Popen([sys.executable, "-c", STOPPED, str(store.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        assert main(["status", str(store.folder)]) == 1
        told = capsys.readouterr().out
        assert f"not moving: {CELL}: claimed by process {holder.pid} on " in told
        assert "which is stopped" in told
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with claims.take(store, CELL):
        assert list(claims.still(store, [CELL])) == []
        (late,) = claims.still(store, [CELL], now=time.time() + 2 * claims.STILL)
        assert "which has written nothing for 1.0 h" in str(late)


def test_a_clock_that_jumps_gives_no_cell_away_and_hides_no_holder(tmp_path: Path) -> None:
    store, day = Store(tmp_path), 86_400.0
    now = time.time()
    with claims.take(store, CELL) as claim:
        os.utime(claim.path, (now + day, now + day))  # the clock was set back since, or the holder's is ahead
        assert claims.take(store, CELL) is None
        assert [key for key, _ in claims.running(store)] == [CELL.key]
        (ahead,) = claims.still(store, [CELL], now)
        assert str(ahead).endswith("whose last trace lies 24.0 h ahead: was a clock set?")
        journal = store.path(CELL, "replies.jsonl")
        journal.touch()
        os.utime(journal, (now - 7200, now - 7200))  # of the same holder, by the clock of now
        (late,) = claims.still(store, [CELL], now)
        assert "which has written nothing for 2.0 h" in str(late)
        os.utime(journal, (now, now))
        assert list(claims.still(store, [CELL], now)) == []
        os.utime(claim.path, (0, 0))  # or was set ahead: no claim runs out
        assert claims.take(store, CELL) is None
    with claims.take(store, CELL) as again:
        assert again.path.stat().st_size


def test_the_lock_of_another_user_is_taken_over_when_nobody_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o2775)
    store = Store(tmp_path)
    lock = store.make("claims") / f"{CELL.key}.lock"
    assert lock.parent.stat().st_mode & 0o777 == 0o775
    lock.touch(0o444)
    me = os.geteuid()
    asked_for: list[int] = []
    monkeypatch.setattr("os.geteuid", lambda: asked_for.append(1) or (me + 1 if len(asked_for) == 1 else me))
    claim = claims.take(store, CELL)
    assert claim is not None
    assert len(asked_for) == 2  # once for theirs, once for ours
    claim.release()


CLAIM = """
import os, signal, sys
from pathlib import Path
from statetrack.results import Cell, Store, claims
os.setgid(4321)
os.setuid(int(sys.argv[2]))
claim = claims.take(Store(Path(sys.argv[1])), Cell("t", "s", 4, 0, {}))
print("none" if claim is None else "held", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_two_users_share_a_folder(tmp_path: Path) -> None:
    """The locks of one who was killed stop nobody, whatever his processes give away to others."""
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(0o2770)
    os.chown(folder, 0, 4321)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:  # what pytest made for root alone
            above.chmod(0o755)
    said = []
    for users in (("1001", "1002"), ("1002",)):
        command = [[sys.executable, "-c", CLAIM, str(folder), user] for user in users]
        holders = [_start(line) for line in command]
        said += [holder.stdout.readline().strip() for holder in holders if holder.stdout]
        for holder in holders:
            holder.communicate("")
    assert said == ["held", "none", "held"]  # the second waits for the first, and not when that one is gone


def _start(command: list[str]) -> subprocess.Popen[str]:
    """A holder, once it has said something: the next one comes after it."""
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0o022)
    assert made.stdout is not None
    select.select([made.stdout], [], [])
    return made
