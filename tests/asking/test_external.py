"""Logs of other programs that are damaged, hostile or of others: named, left out, and read in bounded memory."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statetrack.asking.external import archive, read, runs
from statetrack.cli import main
from statetrack.reports import html_page, page_of, report

HTML = "<script>alert(1)</script>"
KEY = "sk-0123456789abcdefghij"


def results(**changed: Any) -> dict[str, Any]:
    """Of lm-evaluation-harness 0.4.13, shortened: s3 at two lengths with two rows each."""
    told = {
        "name": "s3_composition", "alias": "s3_composition", "sample_len": 4, "acc,none": 0.75, "acc_stderr,none": 0.25,
        "5,none": 1.0, "5_stderr,none": 0.0, "10,none": 0.5, "10_stderr,none": 0.5, "15,none": -1,
        "15_stderr,none": "N/A", "chance,none": 1 / 6, "n_per_length,none": 2, "falls_below_half,none": -1,
        "too_long,none": 0,
    }  # fmt: skip
    options = {"per_length": 20, "seed": 0, "style": "ids", "regime": "instant", "parser": "strict", "room": 0}
    return {
        "results": {"s3_composition": told | changed},
        "configs": {"s3_composition": {"metadata": {"version": 2.0, "options": options}}},
        "n-shot": {"s3_composition": 0}, "config": {"model": "hf", "model_args": {"pretrained": "net"}},
        "date": 1.8e9, "lm_eval_version": "0.4.13", "model_source": "hf", "model_name": "net",
    }  # fmt: skip


def put(folder: Path, data: Any, name: str = "results_now.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=2))
    return path


def sample(number: int, **changed: Any) -> dict[str, Any]:
    """One of Inspect's: a prompt for s3, answered right."""
    record = {
        "ended": "done", "max_length": 1, "asked": 1, "outcomes": "+", "positions": [5], "changes": "-",
        "replies": [f"[product: 1] {KEY}"], "tokens": {"sent": 10, "new": 10, "generated": 2},
    } | changed  # fmt: skip
    told = {"task": "s3_composition", "rules": {"way": "whole"}, "sample": number, "length": 5, "chance": 1 / 6}
    scores = {"answer": {"value": 1.0, "metadata": {"record": record, "length": 5, "chance": 1 / 6}}}
    return {"id": number + 1, "epoch": 1, "messages": [{"content": '"store": {'}], "scores": scores, "metadata": told,
            "store": {}, "events": ["much"]}  # fmt: skip


def header(**changed: Any) -> dict[str, Any]:
    of = {"task": "statetrack/permutation_composition", "model": "some/net", "created": "2026-11-18T21:24:35+00:00",
          "packages": {"inspect_ai": "0.3.285"}} | changed  # fmt: skip
    return {"version": 2, "status": "success", "eval": of, "plan": {"steps": [{"solver": "statetrack/implicit"}]}}


def log(path: Path, samples: list[Any], head: Any = None, packed: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packed) as file:
        for number, each in enumerate(samples):
            file.writestr(f"samples/{number}_epoch_1.json", each if isinstance(each, bytes | str) else json.dumps(each))
        file.writestr("header.json", json.dumps(head or header()))
    return path


def left_out(folder: Path) -> str:
    found = read(folder)
    assert not found
    [one] = found.left_out
    return str(one)


def test_what_is_well_is_read(tmp_path: Path) -> None:
    put(tmp_path, results())
    for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        log(tmp_path / f"{packed}.eval", [sample(packed), sample(packed + 1)], packed=packed)
    found = read(tmp_path)
    [scores] = found.scores
    assert [(each.length, each.accuracy, each.rows) for each in scores.lengths] == [(5, 1.0, 2), (10, 0.5, 2)]
    assert [len(each.records) for each in found.episodes] == [2, 2]
    assert found.left_out == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"acc,none": float("nan")}, "accuracy is None, not a number"),
        ({"acc,none": float("inf")}, "accuracy is None"),
        ({"acc,none": 1.5}, "an accuracy that is no share"),
        ({"5,none": 10**400}, "it does not say how many rows"),
        ({"5,none": 7.0}, "an accuracy that is no share"),
        ({"5,none": "all"}, "lengths[0].accuracy is 'all', not a number"),
        ({"sample_len": 10**12}, "a number of rows that cannot be"),
        ({"sample_len": 10**40}, "it does not say how many rows"),
        ({"n_per_length,none": 3}, "it does not say how many rows"),
        ({"n_per_length,none": -1}, "it does not say how many rows"),
        ({"too_long,none": -4}, "a number of rows left out that cannot be"),
        ({"violations,none": 2}, "an accuracy that is no share"),
        ({"sample_len": 4, "unanswered,none": 4}, "no reply came"),
    ],
)
def test_numbers_that_cannot_be_are_left_out(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    put(tmp_path, results(**changed))
    if changed.get("5,none") == 10**400:  # read as missing: one length less than there are rows for
        assert [each.length for each in read(tmp_path).scores[0].lengths] == [10]
        return
    assert said in left_out(tmp_path)


def test_a_bad_task_takes_none_of_the_others_with_it(tmp_path: Path) -> None:
    data = results()
    for task, accuracy in (("a5_composition", float("nan")), ("hellaswag", 0.3), ("x_composition", 0.2)):
        data["results"][task] = data["results"]["s3_composition"] | {"acc,none": accuracy}
        data["configs"][task] = data["configs"]["s3_composition"]
    put(tmp_path, data)
    found = read(tmp_path)
    assert [each.task for each in found.scores] == ["s3_composition"]
    assert [str(each) for each in found.left_out] == [
        "results_now.json: a5_composition: accuracy is None, not a number"
    ]


@pytest.mark.parametrize("cut", [30, 400, -3])
def test_cut_off_files_are_not_whole(tmp_path: Path, cut: int) -> None:
    path = put(tmp_path, results())
    path.write_bytes(path.read_bytes()[:cut])
    assert left_out(tmp_path) == "results_now.json: it is not whole JSON"
    path.unlink()
    path = log(tmp_path / "a.eval", [sample(0)])
    path.write_bytes(path.read_bytes()[:cut])
    assert left_out(tmp_path) == "a.eval: it is not whole, or not a log of Inspect's"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: b"", "it is not whole, or not a log"),
        (lambda data: b"PK\x05\x06" + bytes(18), "it is not whole, or not a log"),
        (lambda data: b"not a zip" * 100, "it is not whole, or not a log"),
        (lambda data: data[:90] + bytes(9) + data[99:], "it is not whole"),
        (lambda data: data[:-10] + struct.pack("<L", 2**31) + data[-6:], "list of entries has 2,147,483,648 bytes"),
    ],
)
def test_damaged_archives(tmp_path: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    path = log(tmp_path / "a.eval", [sample(0)])
    path.write_bytes(damage(path.read_bytes()))
    assert said in left_out(tmp_path)


def test_a_flipped_bit_is_seen(tmp_path: Path) -> None:
    path = log(tmp_path / "a.eval", [sample(0)], packed=zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"outcomes": "+"', b'"outcomes": "x"'))
    assert "its checksum is wrong" in left_out(tmp_path)


def test_an_entry_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PIECES", (2**10, 2**16))
    monkeypatch.setattr(archive, "MOST_ENTRY", 2**16)
    log(tmp_path / "a.eval", ['{"id": "' + "0" * 2**24 + '"}'])
    assert "unpacks to more than the 65,536 bytes" in left_out(tmp_path)
    monkeypatch.setattr(archive, "MOST_ALL", 2**15)
    log(tmp_path / "a.eval", [{"input": "0" * 2**14, **sample(0)}] * 9)
    assert "it unpacks to more than the 32,768 bytes" in left_out(tmp_path)


def test_names_of_entries_are_no_paths(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.eval", "w") as file:
        file.writestr("samples/../../../evil.json", json.dumps(sample(0)))
        file.writestr("/samples/1_epoch_1.json", json.dumps(sample(1)))
        file.writestr("header.json", json.dumps(header()))
    assert "it holds no sample" in left_out(folder)
    assert sorted(tmp_path.rglob("*")) == [folder, folder / "a.eval"]


@pytest.mark.parametrize(
    "changed",
    [
        {"outcomes": "++"},
        {"outcomes": "?"},
        {"max_length": 9},
        {"positions": [10**9]},
        {"tokens": {"sent": -1}},
        {"tokens": {"sent": 10**30}},
        {"tokens": {"gold": 1}},
        {"ended": "well"},
        {"asked": 10**9},
        {"more": 1},
    ],
)
def test_episodes_that_cannot_be_are_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    log(tmp_path / "a.eval", [sample(0, **changed)])
    assert "a sample of it is not one of this version" in left_out(tmp_path)


@pytest.mark.parametrize("changed", [{"length": 10**9}, {"sample": "1"}, {"rules": {"mood": 1}}, {"task": "a\nb"}])
def test_samples_that_cannot_be_are_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    one = sample(0)
    one["metadata"] |= changed
    log(tmp_path / "a.eval", [one])
    assert "a sample of it is not one of this version" in left_out(tmp_path) or changed.get("rules")


def test_links_pipes_and_deep_folders(tmp_path: Path) -> None:
    (tmp_path / "around").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "a.eval")
    deep = tmp_path / "1" / "2" / "3" / "4" / "5"
    deep.mkdir(parents=True)
    put(deep, results())
    put(deep.parent, results(), "results_here.json")
    found = read(tmp_path)
    assert found.files == ["1/2/3/4/results_here.json"]
    assert [each.file for each in found.left_out] == ["a.eval"]


def test_keys_and_html_do_not_reach_the_page_or_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "loop-back-key-0123456789")
    data = results()
    data["model_name"] = f"{HTML} loop-back-key-0123456789 \x1b[31m {KEY}"
    data["config"]["model_args"] = {"api_key": KEY}
    folder = tmp_path / "logs"
    folder.mkdir()
    put(folder, data, f"results_{HTML.replace('/', '')}.json")
    put(folder, results() | {"lm_eval_version": HTML, "model_name": "net"}, "results_2.json")
    log(folder / "a.eval", [sample(0)], header(model=f"{HTML}/{KEY}", model_args={"api_key": KEY}))
    done = report(folder, tmp_path / "page.html")
    assert main(["results", str(folder)]) == 0
    text = done.html.read_text() + done.markdown.read_text() + capsys.readouterr().out
    assert "***" in text
    for secret in (KEY, "loop-back-key-0123456789", "\x1b"):
        assert secret not in text
    assert HTML not in done.html.read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in done.html.read_text()


def test_a_folder_of_cells_is_reported_with_the_logs_beside(tmp_path: Path) -> None:
    from statetrack.asking import Rules, solver
    from statetrack.asking.run import ask
    from statetrack.tasks import task

    ask(task("s3_composition"), Rules(way="whole"), solver("oracle"), range(4), length=5, out=tmp_path)
    put(tmp_path, results())
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    page = report(tmp_path).page
    assert all(path.read_bytes() == data for path, data in before.items())
    assert not any("results_now.json" in notice for notice in page.notices)
    [lengths] = [table for table in page.tables if table.key == "s3-composition-lengths"]
    assert [row[0] for row in lengths.rows] == ["oracle · whole", "hf/net · lm-eval", "hf/net · lm-eval"]


ODD = [None, True, -1, 0, 10**15, 1e308, 0.5, "", "x" * 300, "\ud800", "a\nb", [], {}, [1], {"b": None}, "txc", [[]]]


def changed_somewhere(data: Any, draw: random.Random) -> Any:
    """A copy in which one value is another, or is missing."""
    data = copy.deepcopy(data)
    where: list[tuple[Any, Any]] = []
    left = [data]
    for each in left:
        inside = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, value in inside:
            where.append((each, key))
            left.append(value)
    holder, key = draw.choice(where)
    if isinstance(holder, dict) and draw.random() < 0.3:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(draw.choice(ODD))
    return data


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_changed_is_read_or_named(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    put(tmp_path, changed_somewhere(results(), draw))
    head = header() if seed % 2 else changed_somewhere(header(), draw)
    log(tmp_path / "a.eval", [sample(1), changed_somewhere(sample(0), draw) if seed % 2 else sample(0)], head)
    found = read(tmp_path)
    told = {*found.files, *(each.file for each in found.left_out)}
    assert "a.eval" in told <= {"results_now.json", "a.eval"}  # the other may no longer look like results at all
    if found:
        html_page.write(page_of(tmp_path), "")


def test_the_hash_of_how_a_model_was_loaded_shows_nothing_of_it() -> None:
    assert KEY not in runs.loaded({"api_key": KEY})
    assert len(runs.loaded({"api_key": KEY})) == 8


def test_logs_of_inspect_with_another_system_message_are_of_two_subjects(tmp_path: Path) -> None:
    log(tmp_path / "a.eval", [sample(0)])
    told = header()
    told["plan"]["config"] = {"system_message": "Be brief."}
    log(tmp_path / "b.eval", [sample(0)], told)
    found = read(tmp_path)
    assert [len(each.records) for each in found.episodes] == [1, 1]
    assert found.left_out == []
    log(tmp_path / "c.eval", [sample(0)], told)
    [again] = read(tmp_path).notices
    assert "and not b.eval: 1 sample (asked again in another log)" in again


def test_without_zstandard_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "a.eval", [sample(0)])
    path = tmp_path / "a.eval"
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        [entry] = [each for each in file.infolist() if each.filename == "header.json"]
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 10, archive.ZSTANDARD)
    path.write_bytes(data)
    assert entry.filename.encode() in data[at:]
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    assert "reading it takes zstandard: pip install zstandard" in left_out(tmp_path)


def test_a_file_of_empty_lists_is_not_read(tmp_path: Path) -> None:
    """12 MB of them take 300 MB; as many as a file may have, 2 GB and half a minute."""
    put(tmp_path, '{"results":{"s3_composition":{}},"configs":{},"x":[' + "[]," * 2**22 + "[]]}")
    assert "more than the 4,194,304 values that are read" in left_out(tmp_path)
    log(tmp_path / "a.eval", [b'{"x":[' + b"{}," * 2**21 + b"[]," * 2**20 + b"[]]}"])
    (tmp_path / "results_now.json").unlink()
    assert "more than the 4,194,304 values" in left_out(tmp_path)


def test_a_sample_is_gone_through_once(tmp_path: Path) -> None:
    """The name of what is not needed, a hundred thousand times inside: each had all before it read once more."""
    many = {"messages": [{"x": 1, "store": 1}] * 100_000}
    log(tmp_path / "a.eval", [many | sample(0)])
    [found] = read(tmp_path).episodes
    assert len(found.records) == 1


def test_of_an_entry_of_gigabytes_no_more_is_read_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may have a hole of 2 GiB and take no room on the disk."""
    read_at_once: list[int] = []
    path = log(tmp_path / "a.eval", [], packed=zipfile.ZIP_STORED)
    whole = archive._Packed.read

    def watched(self: Any, size: int = -1) -> bytes:
        data = whole(self, size)
        read_at_once.append(len(data))
        return data

    monkeypatch.setattr(archive._Packed, "read", watched)
    size = 2**28
    name = b"header.json"
    local = struct.pack("<4sHHHHHLLLHH", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, size, size, len(name), 0) + name
    entry = struct.pack("<4sHHHHHHLLLHHHHHLL", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, size, size, len(name),
                        0, 0, 0, 0, 0, 0) + name  # fmt: skip
    with path.open("wb") as file:
        file.write(local)
        file.seek(len(local) + size)
        file.write(entry + struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), len(local) + size, 0))
    assert "a.eval" in left_out(tmp_path)
    assert max(read_at_once) <= archive.MOST_ENTRY + 1


def test_fields_before_one(tmp_path: Path) -> None:
    from statetrack.asking.external.plain import fields_before

    assert fields_before("z", b' { "a" : 1 , "b" : [ 2 ] } ') == {"a": 1, "b": [2]}
    for text in (b"", b"[1]", b'{"a": 1', b'{"a" 1}', b'{"a": 1 "b": 2}', b"{1: 2}", b"[" * 10**5, b'{"a": 1,'):
        assert fields_before("z", text) is None
