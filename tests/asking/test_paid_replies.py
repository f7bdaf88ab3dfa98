"""What was paid for is kept: by the turn, against failures of later runs, and between two runs on one folder."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import statetrack as st
from statetrack import BadInput
from statetrack.asking import Episode, Reply, Request, Rules, Tokens, dialogue, run, solver
from statetrack.asking.journal import Journal
from statetrack.asking.run import ask
from statetrack.asking.run import cell as cell_of
from statetrack.cli import main
from statetrack.results import AskedRecord, Store, claims
from statetrack.results.replies import write_line
from statetrack.sweeps import ray_runner
from statetrack.sweeps.document import from_blocks
from statetrack.sweeps.schedule import Schedule
from statetrack.sweeps.units import LOST, Outcome

MEDIAN = st.task("track_the_stat.median")
IMPLICIT = solver("implicit")
PRICE = Tokens(sent=10, new=1, cached=9, generated=2)


class Died(BaseException):
    """As good as SIGKILL: nothing is tidied up after it."""


class Paid:
    """An engine that answers rightly and counts; it dies, or fails, at a request of its own."""

    name, batch = "paid/model", 2

    def __init__(self, dies_at: int = -1, failure: str = "", fails_at: int = -1) -> None:
        self.dies_at, self.failure, self.fails_at, self.asked = dies_at, failure, fails_at, 0
        self.turns: list[tuple[int, int]] = []

    def replies_as_they_come(self, requests: Sequence[Request], arrived, seconds) -> list[Reply]:  # type: ignore[no-untyped-def]
        given = []
        for place, request in enumerate(requests):
            if self.asked == self.dies_at:
                raise Died
            self.asked += 1
            self.turns.append((request.sample, len(request.turn.seen)))
            given.append(self.reply(request))
            arrived(place, given[-1])
        return given

    def reply(self, request: Request) -> Reply:
        if self.failure and len(request.turn.seen) == self.fails_at:
            return Reply("Well, I", cut=True) if self.failure == "cut" else Reply(failure=self.failure, detail="no")
        return Reply(request.dialogue.reply(request.turn), tokens=PRICE)

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        raise NotImplementedError

    def close(self) -> None:
        pass


def put(engine: Paid, out: Path, samples: int = 3, **options: object) -> list[AskedRecord]:
    return ask(MEDIAN, Rules(), IMPLICIT, range(samples), length=6, model=engine.name, engine=lambda: engine, out=out,
               **options)  # type: ignore[arg-type] # fmt: skip


def killed(engine: Paid, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what an exception leaves behind, as a process that is killed."""
    with monkeypatch.context() as patch:
        patch.setattr(run._Run, "_keep", lambda self, episode, began: None)
        with pytest.raises(Died):
            put(engine, out)


@pytest.mark.parametrize("dies_at", range(12))
def test_no_reply_is_paid_twice_whenever_the_process_dies(tmp_path, dies_at, monkeypatch):
    first, second = Paid(dies_at=dies_at), Paid()
    killed(first, tmp_path / "out", monkeypatch)
    records = put(second, tmp_path / "out")
    assert not set(first.turns) & set(second.turns)
    assert len(first.turns) + len(second.turns) == 18
    assert [record.episode.outcomes for record in records] == ["++++++"] * 3
    assert {record.episode.tokens["sent"] for record in records} == {60}
    assert not list((tmp_path / "out").glob("*.jsonl"))
    fresh = put(Paid(), tmp_path / "fresh")
    assert [record.episode for record in fresh] == [record.episode for record in records]


def test_a_torn_or_changed_line_is_asked_again_and_no_other(tmp_path, monkeypatch):
    for damage in (
        lambda data: data[:-9],
        lambda data: data.replace(b"85", b"86"),
        lambda data: data + b'{"number": 4',
    ):
        out = tmp_path / str(damage(b"85"))[2:6]
        killed(Paid(dies_at=8), out, monkeypatch)
        journal = out / f"{cell_of(MEDIAN, Rules(), IMPLICIT, 'paid/model', 0, 6).key}.replies.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(damage(whole))
        again = Paid()
        assert {record.episode.outcomes for record in put(again, out)} == {"++++++"}
        assert again.asked <= 18 - 8 + 4


def journal_of(sample: int, out: Path) -> Path:
    return out / f"{cell_of(MEDIAN, Rules(), IMPLICIT, 'paid/model', sample, 6).key}.replies.jsonl"


def test_a_damaged_journal_is_kept_aside(tmp_path, monkeypatch):
    """Also the lines behind the damage, which the next reply would be written over."""
    killed(Paid(dies_at=8), tmp_path, monkeypatch)  # four replies of each of two samples
    journal, told = journal_of(0, tmp_path), []
    data = journal.read_bytes()
    journal.write_bytes(damaged := data.replace(b"median: 74", b"median: 75", 1))
    again = Paid()
    assert {record.episode.outcomes for record in put(again, tmp_path, warn=told.append)} == {"++++++"}
    assert again.asked == 18 - 8 + 3
    [kept] = tmp_path.glob("*.damaged")
    assert kept.name.startswith(journal.name)
    assert kept.read_bytes() == damaged
    assert told == [f"{journal.name} is damaged, or of another cell; what it holds is kept as {kept.name}"]


def test_a_journal_under_another_name_is_not_of_that_cell(tmp_path, monkeypatch, capsys):
    killed(Paid(dies_at=8), tmp_path, monkeypatch)
    one, other = (journal_of(sample, tmp_path) for sample in (0, 1))
    paid = other.read_bytes()
    one.write_bytes(paid)
    assert main(["check", str(tmp_path)]) == 1
    assert f"{one.name}: its line 1 is of another cell: '{other.name[:20]}'" in capsys.readouterr().out
    again = Paid()
    assert {record.episode.outcomes for record in put(again, tmp_path)} == {"++++++"}
    assert sorted(again.turns)[:6] == [(0, turn) for turn in range(1, 7)]
    assert [path.read_bytes() for path in tmp_path.glob("*.damaged")] == [paid]


def test_a_journal_of_an_earlier_version_is_read_as_before(tmp_path):
    cell = cell_of(MEDIAN, Rules(), IMPLICIT, "paid/model", 0, 6)
    path = Store(tmp_path).path(cell, "replies.jsonl")
    old = [write_line(number, asdict(Reply(text, tokens=PRICE))) for number, text in enumerate("ab")]
    assert b"cell" not in old[0]
    path.write_bytes(b"".join(old))
    assert [reply.text for reply in Journal(Store(tmp_path), cell).replies(0)] == ["a", "b"]
    path.write_bytes(b"".join([*old, write_line(2, asdict(Reply("c")), "0" * 20)]))
    assert not Journal(Store(tmp_path), cell).replies(0)


def test_the_journal_of_another_try_at_a_turn_goes(tmp_path):
    cell = cell_of(MEDIAN, Rules(), IMPLICIT, "paid/model", 0, 6)
    journal = Journal(Store(tmp_path), cell)
    for number, text in enumerate("abc"):
        journal.append(number, Reply(text, reasoning="\ud800", tokens=PRICE))
    Journal(Store(tmp_path), cell).append(1, Reply("B", refused=True))
    assert [reply.text for reply in journal.replies(0)] == ["a", "B"]
    assert (journal.replies(0)[0].tokens, journal.replies(1)[0].refused, journal.replies(2)) == (PRICE, True, [])


@pytest.mark.parametrize("failure", ["server", "context", "truncated", "time", "cut"])
def test_a_fault_is_no_score_and_is_asked_again(tmp_path, failure):
    records = put(Paid(failure=failure, fails_at=1), tmp_path / "out")
    assert {record.status for record in records} == {"failed"}
    assert {record.episode.replies == [] for record in records} == {True}
    again = Paid()
    assert {record.status for record in put(again, tmp_path / "out")} == {"done"}
    assert again.asked == 18


def test_a_score_that_an_earlier_version_made_of_a_full_context_is_asked_again(tmp_path):
    record, *_ = put(Paid(failure="context", fails_at=4), tmp_path / "out", samples=1)
    Store(tmp_path / "out").write(replace(record, status="done", reason=""))
    again = Paid()
    assert put(again, tmp_path / "out", samples=1)[0].episode.max_length == 6
    assert again.asked == 3


def test_a_failure_takes_no_reply_that_was_paid_for(tmp_path):
    """Neither a run that gets nothing, nor a sweep whose workers die."""
    put(Paid(failure="server", fails_at=4), tmp_path / "out", samples=1)
    (record,) = put(Paid(failure="server", fails_at=4), tmp_path / "out", samples=1)
    assert len(record.episode.replies) == 3

    def no_key() -> Paid:
        raise BadInput("no key")

    with pytest.raises(BadInput):
        ask(MEDIAN, Rules(), IMPLICIT, [0], length=6, model="paid/model", engine=no_key, out=tmp_path / "out")
    store = Store(tmp_path / "out")
    sweep = from_blocks("s", [{"tasks": ["track_the_stat.median"], "subjects": ["ask:paid/model"], "lengths": [6],
                               "seeds": 1, "protocol": "ask"}])  # fmt: skip
    schedule = Schedule(sweep, store, 1, False)
    assert sweep.cells[0] == record.cell
    while (unit := schedule.next()) is not None:
        schedule.settle(unit, {record.cell.key: Outcome(LOST, 0.0, "its worker died")})
    there = store.record(record.cell)
    assert isinstance(there, AskedRecord)
    assert there.reason.startswith("its worker died")
    assert there.episode.replies == record.episode.replies


def test_a_node_of_a_cluster_goes_on_behind_the_journal(tmp_path, monkeypatch):
    """Which then goes: the record that comes home holds its replies."""
    out = tmp_path / "out"
    killed(Paid(dies_at=7), out, monkeypatch)
    store, engine = Store(out), Paid()
    monkeypatch.setattr("statetrack.asking.cells.engine", lambda *_, **__: engine)
    sweep = from_blocks("s", [{"tasks": ["track_the_stat.median"], "subjects": ["ask:paid/model"], "lengths": [6],
                               "seeds": 1, "protocol": "ask"}])  # fmt: skip
    schedule = Schedule(sweep, store, 1, False)
    unit = schedule.next()
    assert unit is not None
    flight = ray_runner.UnitInFlight(unit, schedule)
    home = ray_runner.at_node(unit, ray_runner._unfinished_files(store, flight.mine), True)
    assert len(list(out.glob(f"{sweep.cells[0].key}.replies.jsonl"))) == 1
    flight._keep(home, schedule)
    assert engine.turns == [(0, turn) for turn in (5, 6)]
    record = store.read(sweep.cells[0])
    assert isinstance(record, AskedRecord)
    assert record.episode.outcomes == "++++++"
    assert not list(out.glob(f"{sweep.cells[0].key}.replies.jsonl"))


def test_a_journal_of_somebody_else_is_read_like_any_file(tmp_path):
    """Its checksums may be right and its fields nonsense: then it ends there."""
    cell = cell_of(MEDIAN, Rules(), IMPLICIT, "paid/model", 0, 6)
    good = asdict(Reply("[median: 85]", tokens=PRICE))
    for wrong in ({"text": 5}, {"tokens": {"sent": -1}}, {"tokens": {"sent": 10**30}}, {"failure": "x"}, {"more": 1}):
        lines = [write_line(0, good), write_line(1, good | wrong), write_line(2, good)]
        Store(tmp_path).path(cell, "replies.jsonl").write_bytes(b"".join(lines))
        assert len(Journal(Store(tmp_path), cell).replies(0)) == 1


def test_two_runs_on_one_folder_share_the_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LOOK", 0.01)
    engines, results = [Paid(), Paid()], [[], []]
    meet = threading.Barrier(2)

    def one(place: int) -> None:
        meet.wait()
        results[place] += put(engines[place], tmp_path / "out", samples=12)

    (tmp_path / "out").mkdir()
    threads = [threading.Thread(target=one, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(records) for records in results] == [12, 12]
    turns = engines[0].turns + engines[1].turns
    assert len(turns) == len(set(turns)) == 72


def test_a_holder_that_does_not_move_is_named_and_left(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LOOK", 0.01)
    monkeypatch.setattr(run, "QUIET", 0.05)
    store, told = Store(tmp_path), []
    with claims.take(store, cell_of(MEDIAN, Rules(), IMPLICIT, "paid/model", 1, 6)) as claim:
        claim.path.write_text(f"{os.getpid()} a-machine")
        records = put(Paid(), tmp_path, warn=told.append)
    assert [record.cell.seed for record in records] == [0, 2]
    assert told == [
        f"1 sample held by process {os.getpid()} on a-machine: waiting for what comes of it",
        f"process {os.getpid()} on a-machine has not moved for 0.05 seconds; 1 sample left to it",
    ]


def test_an_episode_has_its_seconds(tmp_path):
    clock = iter(range(1000))

    class Slow(Paid):
        def reply(self, request: Request) -> Reply:
            next(clock)
            return super().reply(request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run.time, "monotonic", lambda: float(next(clock)))
        (record,) = put(Slow(), tmp_path, samples=1, seconds=10.0)
    assert (record.status, record.episode.ended) == ("failed", "time")
    assert record.reason == "not over within 10 seconds"
    assert 0 < len(record.episode.replies) < 6
    assert put(Paid(), tmp_path, samples=1)[0].episode.max_length == 6
    with pytest.raises(BadInput, match="seconds"):
        put(Paid(), tmp_path / "out", seconds=0)


@pytest.mark.parametrize("verb", ["ask", "train"])
def test_a_folder_that_takes_nothing_is_refused_before_anything_is_spent(tmp_path, verb, monkeypatch, capsys):
    spent: list[str] = []

    def refuse(self: Path, data: bytes) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", refuse)  # root may write where the mode says no
    monkeypatch.setattr("statetrack.asking.engines.engine", lambda *_, **__: spent.append("asked"))
    monkeypatch.setattr("statetrack.training.run.run_job", lambda *_, **__: spent.append("trained"))
    words = {"ask": ["txc", "--model", "paid/model"], "train": ["txc", "gru", "--length", "8"]}[verb]
    assert main([verb, *words, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"statetrack: {tmp_path} cannot be written to: Read-only file system\n"
    assert spent == []


def test_half_a_character_and_escapes_are_kept_harmless():
    episode = Episode(dialogue(MEDIAN, Rules(), 0, 6))
    episode.receive(Reply("[median: 85] \ud83d"))
    request = episode.request()
    assert request is not None
    json.dumps(request.messages, ensure_ascii=False).encode()
    episode.interrupt("server", "\x1b[31mred\x9b")
    assert episode.detail == "\\x1b[31mred\\x9b"
