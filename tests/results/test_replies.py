"""Replies that were paid for are united by a merge, and where two episodes differ both are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.results import AskedRecord, Cell, Store, merge, pack, replies, unpack
from statetrack.results.conflicts import aside
from statetrack.results.records import EpisodeRecord
from statetrack.results.replies import Episode, write_line
from tests.sweeps.counted_cells import made

CELL = Cell("txc", "m implicit", 9, 0, {"name": "ask"})


def put(folder: Path, recorded: str = "", journal: str = "", status: str = "failed", begin: int | None = None) -> Store:
    """An episode, a letter for each reply: those that its record holds, and those behind them in the journal."""
    store = Store(folder)
    if recorded or status == "done":
        episode = EpisodeRecord(
            ended=status, max_length=0, asked=9, outcomes="+" * len(recorded), positions=list(range(len(recorded))),
            changes="-" * len(recorded), replies=list(recorded), tokens={"sent": 10},
        )  # fmt: skip
        store.write(AskedRecord(cell=CELL, status=status, reason="503" * (status == "failed"), episode=episode))
    if journal:
        number = len(recorded) if begin is None else begin
        lines = [write_line(at, {"text": text, "reasoning": ""}) for at, text in enumerate(journal, start=number)]
        store.path(CELL, replies.ENDING).write_bytes(b"".join(lines))
    return store


def told(folder: Path) -> str:
    """The replies of the episode that counts."""
    return "".join(text for text, _ in Episode.of(Store(folder), CELL.key).replies)


def other(folder: Path) -> list[str]:
    """Those of episodes that were set aside: what their records hold, and their journals."""
    held = {path.name.split(".")[1]: record for path, record in aside(folder)}
    found = {name: "".join(record.episode.replies) for name, record in held.items() if isinstance(record, AskedRecord)}
    for path in replies.aside(folder):
        name = path.name.split(".")[1]
        found[name] = found.get(name, "") + "".join(line.reply["text"] for line in replies.lines(path))
    return sorted(found.values())


A, B = dict, dict  # of `put`: what one folder and the other hold


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(
    ("one", "another", "kept", "set_aside"),
    [
        (A(journal="xy"), B(), "xy", []),
        (A(journal="xy"), B(journal="xyz"), "xyz", []),
        (A(recorded="xyz"), B(journal="xy"), "xyz", []),
        (A(recorded="xy", journal="zu"), B(journal="xyz"), "xyzu", []),
        (A(recorded="xyz"), B(recorded="x", journal="yzu"), "xyzu", []),
        (A(recorded="xy", journal="zu"), B(recorded="xyz"), "xyzu", []),
        (A(recorded="xyz", status="done"), B(journal="xy"), "xyz", []),
        (A(journal="xyzu"), B(journal="abc"), "xyzu", ["abc"]),
        (A(recorded="xyzu"), B(recorded="abc"), "xyzu", ["abc"]),
        (A(recorded="xyzu"), B(journal="xyab"), None, None),
        (A(recorded="ab", journal="cdefg"), B(recorded="wxyz"), "abcdefg", ["wxyz"]),
        (A(recorded="wxyz"), B(recorded="ab", journal="cdefg"), "abcdefg", ["wxyz"]),
        (A(recorded="xyz", status="done"), B(recorded="ab", journal="cdef"), "xyz", ["abcdef"]),
        (A(recorded="wxyz"), B(journal="de", begin=3), "wxyz", ["de"]),  # of which nobody knows what came before
    ],
)
def test_a_merge_unites_episodes(order, one, another, kept, set_aside, tmp_path):
    """Never the beginning of one with the end of the other, and nothing is lost."""
    put(tmp_path / "a", **one)
    put(tmp_path / "b", **another)
    joined = merge([tmp_path / name for name in order], tmp_path / "all")
    if kept is None:  # of two that are as long, the first counts
        assert {told(tmp_path / "all"), *other(tmp_path / "all")} == {"xyzu", "xyab"}
        return
    assert (told(tmp_path / "all"), other(tmp_path / "all")) == (kept, set_aside)
    assert len(joined.conflicts) == len(set_aside)
    merge([tmp_path / name for name in order], tmp_path / "all")  # again, and nothing stands twice
    assert (told(tmp_path / "all"), other(tmp_path / "all")) == (kept, set_aside)


def test_both_episodes_are_named_and_travel(tmp_path, capsys):
    put(tmp_path / "a", journal="xyzu")
    put(tmp_path / "b", recorded="ab", journal="c")
    folders = [str(tmp_path / name) for name in "ab"]
    assert main(["merge", *folders, "--out", str(tmp_path / "all")]) == 1
    assert "txc, m implicit, length 9, seed 0: replies differs" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "all")]) == 1
    assert "0 damaged, 1 in conflict" in capsys.readouterr().out
    pack(tmp_path / "all", tmp_path / "all.tar.gz")
    assert len(unpack(tmp_path / "all.tar.gz", tmp_path / "there").conflicts) == 1
    assert (told(tmp_path / "there"), other(tmp_path / "there")) == ("xyzu", ["abc"])
    assert main(["merge", str(tmp_path / "all"), "--out", str(tmp_path / "third")]) == 1
    assert other(tmp_path / "third") == ["abc"]


def test_a_journal_beside_a_network_takes_nothing_from_it(tmp_path):
    """Nobody writes one there; it may come in a folder from elsewhere."""
    store, cell = Store(tmp_path / "a"), Cell("t", "s", 4, 0, {})
    store.write(made(cell))
    store.path(cell, "safetensors").write_bytes(b"weights")
    store.path(cell, replies.ENDING).write_bytes(write_line(0, {"text": "x"}))
    merge([tmp_path / "a"], tmp_path / "all")
    assert Store(tmp_path / "all").weights(cell) is not None


def test_reasoning_that_differs_is_another_episode(tmp_path):
    for name, thought in (("a", "so"), ("b", "thus")):
        path = Store(tmp_path / name).path(CELL, replies.ENDING)
        path.write_bytes(write_line(0, {"text": "x", "reasoning": thought}))
    assert len(merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all").conflicts) == 1


def test_a_later_run_that_answers_otherwise_keeps_what_was_paid(tmp_path):
    put(tmp_path, recorded="ab")
    put(tmp_path, recorded="xyz", status="done")
    assert (told(tmp_path), other(tmp_path)) == ("xyz", ["ab"])
    put(tmp_path, recorded="xyz", status="done")
    assert other(tmp_path) == ["ab"]


def test_a_damaged_journal_is_named(tmp_path, capsys):
    path = put(tmp_path, journal="xyz").path(CELL, replies.ENDING)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])  # by a kill: nothing to be said
    assert main(["check", str(tmp_path)]) == 0
    path.write_bytes(whole.replace(b'"y"', b'"a"'))
    assert main(["check", str(tmp_path)]) == 1
    assert "its line 2 is not whole" in capsys.readouterr().out
    assert told(tmp_path) == "x"


def test_a_merge_writes_over_no_damaged_journal(tmp_path):
    path = put(tmp_path / "a", journal="xyz").path(CELL, replies.ENDING)
    path.write_bytes(torn := path.read_bytes().replace(b'"x"', b'"a"'))
    put(tmp_path / "b", journal="x")
    merge([tmp_path / "b"], tmp_path / "a")
    assert told(tmp_path / "a") == "x"
    assert [kept.read_bytes() for kept in replies.damaged(tmp_path / "a")] == [torn]
