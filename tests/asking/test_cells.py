"""Language models and baselines in sweeps: the cells are those of `statetrack ask`, and runs go on where they were."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import statetrack as st
from statetrack.asking import Reply, Request, Rules, Tokens, cells, solver
from statetrack.asking.metrics import overview
from statetrack.asking.run import ask
from statetrack.asking.solvers import Explicit, Human, split_subject
from statetrack.cli import main
from statetrack.errors import BadInput
from statetrack.results import AskedRecord, Store
from statetrack.results.kinds import CellRequest, SeedGroup
from statetrack.results.records import EpisodeRecord
from statetrack.sweeps import Options, from_blocks, read, run
from tests.asking.tiny_models import saved

HERE = Options(workers=0, device="cpu")


def block(subjects: list[str], **more: Any) -> dict[str, Any]:
    return {"tasks": ["track_the_stat.median"], "subjects": subjects, "lengths": [6], "protocol": "ask", **more}


class Server:
    """An engine that answers rightly, or fails at a turn; it counts the requests."""

    name, batch = "some/model", 2

    def __init__(self) -> None:
        self.fail_at: int | None = None
        self.dead = False
        self.asked = 0
        self.options: list[dict[str, Any]] = []

    def made(self, model: str, **options: Any) -> Server:
        self.options.append({"model": model, **options})
        return self

    def replies(self, requests: Sequence[Request]) -> list[Reply]:
        self.asked += len(requests)
        return [self.reply(request) for request in requests]

    def reply(self, request: Request) -> Reply:
        if self.dead or len(request.turn.seen) == self.fail_at:
            return Reply(failure="server", detail="503")
        return Reply(request.dialogue.reply(request.turn), tokens=Tokens(sent=100, new=10, cached=90, generated=7))

    def close(self) -> None: ...


def episodes(folder: Path) -> list[EpisodeRecord]:
    return [record.episode for record in Store(folder).records() if isinstance(record, AskedRecord)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(cells, "engine", made.made)
    monkeypatch.setattr(cells, "_failing", set())
    monkeypatch.setenv(cells.REACHED, "{}")  # and it is gone after the test
    return made


def test_a_cell_of_a_sweep_is_the_cell_that_asking_writes(tmp_path: Path) -> None:
    blocks = [block(["ask:none oracle"], settings={"history": "own", "every": 2})]
    (cell,) = from_blocks("one", blocks).cells
    ask(st.task("track_the_stat.median"), Rules(history="own", every=2), solver("oracle"), [0], length=6, out=tmp_path)
    assert [path.stem for path in tmp_path.glob("*.json")] == [cell.key]
    assert run(from_blocks("one", blocks), tmp_path, HERE).found == 1


@pytest.mark.parametrize(("name", "count"), [("track-the-stat", 2 * 3 * 250 + 2), ("permutations", 6 * 8 * 7 * 20)])
def test_shipped_sweeps_of_language_models(name: str, count: int) -> None:
    one, two = read(name, ["hf:a"]), read(name, ["hf:a", "openai/gpt-4o"])
    assert len(one.cells) == count
    without = sum(not split_subject(cell.subject)[0] for cell in one.cells)  # baselines are the same for every model
    assert len(two.cells) == 2 * count - without
    assert {cell.protocol["regime"] for cell in read("permutations", ["hf:a"]).cells} == {"instant", "thinking"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"subjects": ["ask:hf:x implict"]}, "unknown solver 'implict'; did you mean implicit"),
        ({"subjects": ["ask:gpt-4"]}, "PROVIDER/MODEL"),
        ({"subjects": ["ask:hf:./nowhere"]}, "no such file or folder"),
        ({"subjects": ["ask:none implicit"]}, "solver implicit needs a model"),
        ({"subjects": ["ask:hf:x random"]}, "solver random needs no model: write ask:none random"),
        ({"subjects": ["ask:hf:x table ids"]}, "ids is a style, and so is a word before it"),
        ({"subjects": ["ask:hf:x table"]}, "style and relabel belong to permutation groups"),
        ({"protocol": "design"}, "protocol 'design' should be 'ask'"),
        ({"settings": {"histroy": "own"}}, "unknown setting 'histroy'; did you mean history"),
        ({"settings": {"every": "two"}}, "every='two' should be a whole number"),
        ({"settings": {"teacher_forced": True}}, "teacher_forced=True should be true or false, and is for hf: models"),
        ({"tasks": ["stream.echo[k=9]"]}, "asks nothing in 6 turns"),
        ({"tasks": ["s5"], "subjects": ["ask:hf:x generators"]}, r"write s5\[over=generators\]"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        from_blocks("bad", [block(["ask:none oracle"]) | change])


def test_a_sweep_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A local model, baselines and a person, then the table of tokens; a second run asks nothing."""
    model, file, out = saved(tmp_path / "tiny"), tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(
        "protocol: ask\nblocks:\n"
        "  - {tasks: [track_the_stat.median, track_the_stat.mode], lengths: [8], seeds: 2, settings: {room: 6},\n"
        "     subjects: ['ask:{model} implicit', 'ask:{model} explicit', 'ask:none random', 'ask:none oracle']}\n"
        "  - {tasks: [track_the_stat.median], lengths: [8], subjects: ['ask:none human']}\n"
        "  - {tasks: [s3], lengths: [5], seeds: 2, settings: {way: whole}, subjects: ['ask:none oracle table']}\n"
    )
    command = ["sweep", str(file), "--model", f"hf:{model}", "--out", str(out), "--workers", "0", "--device", "cpu"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "19 cells: 18 done, 0 failed, 1 skipped, 0 left; 0 were there before" in shown
    table = {tuple(line.split()[:2]): line.split() for line in shown.splitlines()[2:]}
    assert table["track_the_stat.median", "oracle"][-7] == "0.0000"  # violations; 1.0000, none truncated, no tokens
    assert table["track_the_stat.median", "oracle"][-6:] == ["1.0000", "0", "0", "0", "0", "0"]
    lines = [line for line in shown.splitlines() if line.startswith("track_the_stat.mode") and "explicit" in line]
    sent, new, generated, total = (int(number.replace(",", "")) for number in lines[0].split()[-4:])
    assert sent >= new > 0
    assert 0 < generated <= 2 * 6
    assert total == sent + generated
    assert main(["status", str(out)]) == 0
    assert "skipped 1: a person has to answer: statetrack play track_the_stat.median" in capsys.readouterr().out
    assert main(command) == 0
    assert "18 were there before" in capsys.readouterr().out
    assert main(["results", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == shown.splitlines()[1:]
    assert main(["results", str(out), "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 19
    assert "replies" not in rows[0]
    assert sum(int(row["tokens.generated"] or 0) for row in rows if "explicit" in row["subject"]) > 0


def test_a_game_that_a_person_played_fills_the_cell(tmp_path: Path) -> None:
    sweep = from_blocks("people", [block(["ask:none human"])])
    assert run(sweep, tmp_path, HERE).counts == {"skipped": 1}
    human = Human(lambda request: request.dialogue.wording.answer(request.turn.target))  # type: ignore[arg-type]
    ask(st.task("track_the_stat.median"), Rules(), human, [0], length=6, out=tmp_path)
    assert run(sweep, tmp_path, HERE).counts == {"done": 1}


def test_a_server_that_fails_is_tried_once_more_and_the_next_run_goes_on(tmp_path: Path, server: Server) -> None:
    sweep = from_blocks("served", [block(["ask:some/model"], seeds=3)])
    server.fail_at = 4
    tally = run(sweep, tmp_path, HERE)
    assert tally.counts == {"failed": 3}
    assert "503" in tally.failures[0].reason
    assert [given.get("max_retries") for given in server.options] == [None, 0, 0]  # patience for the first alone
    assert [record.max_length for record in episodes(tmp_path)] == [3, 3, 3]
    server.fail_at, server.asked = None, 0
    assert run(sweep, tmp_path, HERE).counts == {"done": 3}
    assert server.asked == 3 * 3  # three turns each are not asked again
    assert (episodes(tmp_path)[0].max_length, episodes(tmp_path)[0].tokens["sent"]) == (6, 600)


def test_what_a_server_failed_is_no_number_in_tables(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of three is answered to its end; the others are censored after turn 3, and have no length in the CSV."""
    run(from_blocks("whole", [block(["ask:some/model"])]), tmp_path, HERE)
    server.fail_at = 4
    run(from_blocks("served", [block(["ask:some/model"], seeds=3)]), tmp_path, HERE)
    assert main(["results", str(tmp_path), "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    told = sorted((row["status"], row["max_length"], row["answers"], row["ended"]) for row in rows)
    assert told == [("done", "6", "6", "done"), ("failed", "", "3", "server"), ("failed", "", "3", "server")]
    (row,) = overview(Store(tmp_path).records())
    assert (row["episodes"], row["failed"], row["avg_max_length"]) == (1, 2, 6)
    told = (row["half failed by turn"], row["95 %"])
    assert told == ("not within 6 turns", "1 to 6, or not within 6 turns")  # one episode alone, and two in part


def test_samples_go_side_by_side_and_what_was_not_asked_has_failed(tmp_path: Path, server: Server) -> None:
    sweep = from_blocks("served", [block(["ask:some/model"], seeds=9)])
    server.fail_at = 1
    assert run(sweep, tmp_path, Options(workers=0, together=9)).counts == {"failed": 9}
    assert server.options[0]["batch"] == 9
    reasons = {record.reason for record in Store(tmp_path).records()}
    assert reasons == {"503", "not asked: 503"}  # batches of two: four episodes, then no more
    server.fail_at = None
    assert run(sweep, tmp_path, Options(workers=0, together=9)).counts == {"done": 9}


def test_the_way_to_a_server_is_no_part_of_a_cell_but_workers_know_it(tmp_path: Path, server: Server) -> None:
    text = "openai-api/local/tiny[base_url=http://127.0.0.1:9/v1,temperature=0]"
    sweep = from_blocks("served", [block([f"ask:{text}"])])
    assert [cell.subject for cell in sweep.cells] == ["openai-api/local/tiny[temperature=0] implicit"]
    assert text in os.environ[cells.REACHED]
    run(sweep, tmp_path, HERE)
    assert server.options[0]["model"] == text
    assert "127.0.0.1" not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))


def described(subject: str, seed: int = 0, **settings: Any) -> CellRequest:
    return cells.describe("track_the_stat.median", subject, 6, seed, "ask", settings)


def test_the_solver_and_no_name_says_what_a_cell_costs() -> None:
    plain, shown, guess = (cells.cost(described(f"ask:{words}")) for words in
                           ("a/explicit", "a/b explicit", "none random"))  # fmt: skip
    assert shown == plain + 6**2
    assert guess == pytest.approx(plain / 1000)


def test_records_are_kept_before_they_are_yielded(tmp_path: Path, server: Server) -> None:
    store = Store(tmp_path / "out")
    work = SeedGroup(tuple(described("ask:some/model", seed).cell for seed in range(3)))
    for record, cell in zip(cells.run(work, store, tmp_path / "scratch"), work.cells, strict=True):
        assert (record.cell, record.status, store.read(cell)) == (cell, "done", record)
    assert not (tmp_path / "scratch").exists()
    assert server.asked == 18


def test_a_dead_server_takes_nothing_from_dialogues_that_were_cut_off(tmp_path: Path, server: Server) -> None:
    store, scratch = Store(tmp_path / "out"), tmp_path / "scratch"
    work = SeedGroup(tuple(described("ask:some/model", seed).cell for seed in range(6)))
    server.fail_at = 4
    for cell in (work.cells[0], work.cells[5]):
        list(cells.run(SeedGroup((cell,)), store, scratch))
    server.dead = True
    found = list(cells.run(work, store, scratch))  # batches of two: four episodes, then no more
    assert [record.reason for record in found] == ["503"] * 4 + ["not asked: 503"] * 2
    assert {record.status for record in found} == {"failed"}
    assert [len(episode.replies) for episode in episodes(tmp_path / "out")].count(3) == 2
    assert {record.cell: record for record in store.records()} == {record.cell: record for record in found}
    server.dead, server.fail_at, server.asked = False, None, 0
    assert {record.status for record in cells.run(work, store, scratch)} == {"done"}
    assert server.asked == 6 * 6 - 2 * 3


@pytest.mark.parametrize("name", ["human", "explicit:human"])
def test_a_game_that_a_person_left_waits_for_the_person(tmp_path: Path, name: str) -> None:
    store, task, who = Store(tmp_path / "out"), st.task("track_the_stat.median"), solver(name)
    answers = iter(["85", "74"])

    def play(read: Callable[[Request], str]) -> list[AskedRecord]:
        human = Human(read)
        return ask(task, Rules(), Explicit(human) if who.shows_state else human, [0], length=6, store=store)

    with pytest.raises(StopIteration):
        play(lambda request: next(answers))
    (record,) = cells.run(SeedGroup((described(f"ask:none {name}").cell,)), store, tmp_path / "scratch")
    assert record.status == "skipped"
    assert record.reason.startswith("a person has to answer: statetrack play track_the_stat.median")
    turns: list[int] = []

    def read(request: Request) -> str:
        turns.append(len(request.turn.seen))
        return request.dialogue.wording.answer(request.turn.target)  # type: ignore[arg-type]

    assert [game.status for game in play(read)] == ["done"]
    assert turns == [3, 4, 5, 6]
