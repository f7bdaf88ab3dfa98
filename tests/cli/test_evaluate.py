"""`statetrack evaluate` on the command line: what it prints, and what it refuses in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from safetensors.torch import save_file

import statetrack as st
from statetrack import progress
from statetrack.cli import main
from statetrack.results import EvaluatedRecord, Store, TrainingRecord
from statetrack.results.evaluations import BreakingWord, OnRows, OnWords, Power
from statetrack.training import folder, train_many
from tests.strangers import SHORT

MODEL = "gru[dim=4,hidden=8]"
OWN = """
import torch
class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)
    def forward(self, ids):
        return self.table(ids)
"""


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    tensors = st.model("gru", inputs=2, outputs=2, seed=0, dim=4, hidden=8).state_dict()
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_a_file_of_weights_gets_a_table_and_with_out_a_record(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["evaluate", "txc", str(weights), "--model", MODEL, "--lengths", "8,16", "--words", "5000"]
    assert main([*arguments, "--device", "cpu"]) == 0
    first, headers, *rows, last = capsys.readouterr().out.splitlines()
    assert first.endswith("parameters): evaluated, nothing was trained")
    assert headers.split("  ")[0] == "of"
    assert [row.split()[:2] for row in rows] == [["rows", "8"], ["rows", "16"]]
    assert last.startswith("hard words: broken by the word")
    assert main([*arguments, "--out", str(tmp_path / "out"), "--stream", "1024", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (record,) = Store(tmp_path / "out").records()
    assert isinstance(record, EvaluatedRecord)
    assert told["weights"]["sha256"] == record.weights.sha256
    assert told["weights"]["file"] == "w.safetensors"
    assert told["key"] == record.cell.key
    lengths = [(row["of"], row["tested"]) for row in told["rows"]]
    assert lengths == [("rows", 8), ("rows", 16), ("stream", 1024), ("words", record.words and record.words.longest)]
    assert told["rows"][1]["accuracy"] == record.rows[16].accuracy
    for more in ([], ["--long"]):
        assert main(["results", str(tmp_path / "out"), *more]) == 0
        (stream,) = (line.split() for line in capsys.readouterr().out.splitlines() if "stream" in line)
        assert stream[stream.index("1024") + 4] == "0.5000"  # the floor, after the accuracy and its interval


def test_a_folder_gets_a_row_for_each_cell_and_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_many("txc", MODEL, length=4, seeds=[0, 1], settings=SHORT, out=tmp_path, words=0, device="cpu")
    arguments = ["evaluate", str(tmp_path), "--lengths", "6", "--stream", "1024", "--device", "cpu"]
    for grown, held in ((2, 0), (0, 2)):
        assert main(arguments) == 0
        _, *rows, _, last = capsys.readouterr().out.splitlines()
        tested = [row.split()[3:7] for row in rows]
        assert [" ".join(each) for each in tested] == [
            "0 rows of 6", "0 stream of 1,024", "1 rows of 6", "1 stream of 1,024",
        ]  # fmt: skip
        assert last == f"{grown} records of {tmp_path} have grown; {held} held it already; 0 left out"
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [cell["seed"] for cell in told["cells"]] == [0, 1]
    assert told["left_out"] == []


def test_a_word_that_breaks_a_network_is_told_whatever_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is known already; the stream alone is asked for, and finds the network right."""
    (result,) = train_many("txc", MODEL, length=4, seeds=[0], settings=SHORT, out=tmp_path, words=0, device="cpu")
    word = BreakingWord(parts=(Power([1]), Power([0], 10)), family="u v^k", expected=1, given=0)
    told = result.record.with_evaluations([OnWords(seed=0, budget=9, words=3, wrong=1, breaking=word)])
    right = [replace(each, accuracy=1.0, last_32_accuracy=1.0, tail_accuracy=1.0) if isinstance(each, OnRows) else each
             for each in told.evaluations]  # fmt: skip
    store = Store(tmp_path)
    store.write(replace(told, evaluations=tuple(right)))
    assert main(["evaluate", str(tmp_path), "--lengths", "8", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    headers, row, *_ = out.splitlines()
    assert headers.endswith("broken by")
    assert row.endswith("  1 0^10")
    assert "seed 0: right on random rows to at least 64; broken by the word 1 0^10 (11 tokens): it answers 0" in out


def test_parts_of_a_folder_are_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_many("txc", MODEL, length=4, seeds=[0, 1, 2], settings=SHORT, out=tmp_path, words=0, device="cpu")
    arguments = ["evaluate", str(tmp_path), "--lengths", "6", "--device", "cpu"]
    for part, grown in (("1/2", "2 records"), ("1/2", "0 records"), ("2/2", "1 record")):
        assert main([*arguments, "--part", part]) == 0
        assert capsys.readouterr().out.splitlines()[-1].startswith(f"{grown} of ")
    assert all(6 in record.rows for record in Store(tmp_path).records() if isinstance(record, TrainingRecord))
    key = next(record.cell.key for record in Store(tmp_path).records())
    for wrong, said in (
        (["--part", "3/2"], "--part 3/2 should lie in 1/2 to 2/2"),
        (["--part", "4/4"], f"part 4/4 holds none of 3 cells of {tmp_path}"),
        (["--part", "2/2", "--key", key], f"part 2/2 holds none of 1 cell of {tmp_path}"),
        (["--part", "half"], "--part half should be of the form 2/4"),
    ):
        assert main([*arguments, *wrong]) == 2
        assert capsys.readouterr().err == f"statetrack: {said}\n"


def test_cells_that_look_alike_are_told_apart_by_their_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for polish in (1, 2):
        st.train("txc", MODEL, length=4, settings={**SHORT, "polish": polish}, out=tmp_path, words=0, device="cpu")
    st.train("txc", "mlp", length=4, settings=SHORT, out=tmp_path, words=0, device="cpu")
    for line in (["results"], ["evaluate", "--lengths", "6", "--device", "cpu"]):
        assert main([line[0], str(tmp_path), *line[1:]]) == 0
        rows = [row for row in capsys.readouterr().out.splitlines() if row.startswith("txc")]
        told = [[cell for cell in row.split("  ") if cell][2].strip() for row in rows]
        assert sorted(told) == ["curriculum", "curriculum, polish 1", "curriculum, polish 2"]


def test_one_line_says_why_many_cells_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    (tmp_path / "own.py").write_text(OWN)
    st.train("txc", f"{tmp_path}/own.py:Own", length=4, settings=SHORT, out=tmp_path, words=0, device="cpu")
    assert main(["ask", "s5", "--solver", "random", "--samples", "20", "--length", "4", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    for verb in (["evaluate", "--lengths", "6", "--device", "cpu"], ["diagnose", "--length", "8", "--stream", "64"]):
        assert main([verb[0], str(tmp_path), *verb[1:]]) == 0
        said = capsys.readouterr()
        (line,) = (line for line in said.err.splitlines() if line.startswith("left out"))
        assert line.startswith("left out: 20 cells, the first of them s5_composition, random, length 4, seed ")
        assert "20 left out" in said.out
        assert f"{verb[0]}: 0 of 1, txc, {tmp_path}/own.py:Own, length 4, seed 0: " in said.err


def test_interrupted_it_says_what_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train_many("txc", MODEL, length=4, seeds=[0, 1], settings=SHORT, out=tmp_path, words=0, device="cpu")
    honest, calls = folder.measured, []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return honest(*given)

    monkeypatch.setattr(folder, "measured", interrupted)
    assert main(["evaluate", str(tmp_path), "--lengths", "6", "--device", "cpu"]) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert "interrupted; 1 record has grown and is kept, 1 of 2 cells looked at; go on with: " in said
    assert said.endswith(f"evaluate {tmp_path} --lengths 6 --device cpu")


def test_interrupted_in_the_first_cell_it_says_that_nothing_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train_many("txc", MODEL, length=4, seeds=[0, 1], settings=SHORT, out=tmp_path, words=0, device="cpu")

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "measured", interrupted)
    assert main(["evaluate", str(tmp_path), "--lengths", "6", "--device", "cpu"]) == 130
    assert "interrupted; no cell was measured yet; start again with: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["txc"], "txc is no folder of results; of a task, the weights are needed too: statetrack evaluate txc "
                  "FILE.safetensors --model NAME"),
        (["txc", "w.safetensors"], "w.safetensors does not say which model its weights are of: statetrack evaluate txc "
                                   "w.safetensors --model NAME"),
        (["txc", "w.safetensors", "--model", "gru"], "w.safetensors does not fit gru for txc: embedding.weight is "
                                                     "(2, 4) there, (2, 128) in the model"),
        (["txc", "w.safetensors", "--model", "grru"], "unknown model 'grru'; did you mean gru?"),
        (["txcc", "w.safetensors", "--model", MODEL], "unknown task 'txcc'; did you mean txc?"),
        (["txc", "w.safetensors", "--model", MODEL, "--key", "ab"], "--key chooses cells of a folder; here the weights "
                                                                    "are those of a file"),
        (["txc", "w.safetensors", "--model", MODEL, "--lengths", "8,x"], "--lengths 8,x should be a whole number, or "
                                                                         "several with commas between"),
        (["txc", "none.safetensors"], "there is no file none.safetensors; weights are a safetensors file"),
        (["txc", "empty"], "empty is a folder: name one file of weights in it, or leave out the task"),
        (["empty", "--stream", "8"], "empty holds no cells"),
        (["empty"], "there is nothing to measure: ask for lengths, a stream or hard words (--lengths, --stream, "
                    "--words)"),
        (["empty", "--model", "gru", "--stream", "8"], "--model is for weights in a file; the cells of empty say it "
                                                       "themselves"),
        (["empty", "--stream", "8", "--key", "ab"], "no cell of empty has a key that begins with 'ab'"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], line: str, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["evaluate", *arguments]) == 2
    assert capsys.readouterr().err == f"statetrack: {line}\n"
