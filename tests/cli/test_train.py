"""The verbs that train, as a person would call them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from statetrack.cli import main
from statetrack.results import Cell
from tests.reports.made_records import DESIGN, trained

pytestmark = pytest.mark.needs("torch")

SHORT = ["--set", "check_every=10", "--set", "most_checks=2", "--set", "polish=10", "--set", "batch=16"]

OWN = """
import torch

class Counter(torch.nn.Module):
    def __init__(self, inputs, outputs, width=16):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, width)
        self.cell = torch.nn.GRU(width, width, batch_first=True)
        self.head = torch.nn.Linear(width, outputs)

    def forward(self, ids):
        return self.head(self.cell(self.table(ids))[0])

class LastOnly(Counter):
    def forward(self, ids):
        return super().forward(ids)[:, -1]
"""


NEXT = "Next: statetrack diagnose {0}, statetrack report {0} --open"


def test_a_table_for_people_and_json_for_programs(capsys, tmp_path):
    arguments = ["train", "txc", "mlp", "--length", "8", "--seeds", "2", "--out", str(tmp_path / "out"), *SHORT]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "txc, mlp:" in shown
    assert "solved at 8: 0 of 2 seeds" in shown
    assert "off data (worst)" in shown
    assert shown.endswith(f"2 results in {tmp_path / 'out'}\n{NEXT.format(tmp_path / 'out')}\n")
    assert [line for line in shown.splitlines() if line.endswith(" ")] == []
    assert main([*arguments, "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["cell"]["seed"] for record in records] == [0, 1]
    kept = sorted(path.name for path in (tmp_path / "out").glob("*.json"))
    assert len(kept) == 2


def test_what_a_task_is_not_tested_on_has_no_column(capsys):
    assert main(["train", "s3", "mlp", "--length", "4", "--words", "0", *SHORT]) == 0
    shown = capsys.readouterr().out
    assert "last quarter  solved\n" in shown
    assert "off data" not in shown


def test_a_model_of_ones_own_from_a_file(tmp_path, capsys):
    (tmp_path / "own.py").write_text(OWN)
    own = str(tmp_path / "own.py")
    assert main(["train", "txc", f"{own}:Counter", "--length", "8", *SHORT]) == 0
    assert main(["train", "txc", f"{own}:Counter[width=8]", "--length", "8", *SHORT]) == 0
    capsys.readouterr()
    assert main(["train", "txc", f"{own}:LastOnly", "--length", "8", *SHORT]) == 2
    said = capsys.readouterr().err
    assert said == ("statetrack: LastOnly returns shape (3, 2) for ids (3, 7); expected (B, T, outputs) = (3, 7, 2)\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["txc", "e88-gain-1l-smal"], "did you mean e88-gain-1l-small"),
        (["tcx", "mlp"], "did you mean txc"),
        (["txc", "mlp", "--length", "0"], "length 0 should lie in 1.."),
        (["txc", "mlp", "--seeds", "0"], "--seeds 0"),
        (["txc", "mlp", "--lr", "fast"], "--lr fast"),
        (["txc", "mlp", "--set", "batch"], "name=value"),
        (["txc", "mlp", "--set", "batches=3"], "did you mean batch"),
        (["txc", "mlp", "--protocol", "desing"], "did you mean design"),
        (["txc", "mlp", "--device", "tpu9"], "should be auto, cpu or cuda"),
        (["txc", "mlp", "--out", "no/such/place"], "is not a folder"),
        (["txc", "transformer[positions=32]", "--length", "64"], "has 32 positions; length 64 does not fit"),
        (["txc", "mlp[wdith=3]"], "no option 'wdith'"),
        (["txc", "nowhere.py:Model"], "no file nowhere.py"),
        (["txc", "own.py"], "a model from a file needs its class: own.py:Class"),
        (["txc", "e88-gain"], "did you mean e88-gain-1l, e88-gain-4l, "),
        (["txc", "notanh"], "did you mean e88-1l-notanh, "),
        (["txc", "mlp", "--lr", ""], "--lr should be a number"),
        (["modular_arithmetic[ask=end]", "mlp", "--length", "8"], "asks nothing"),
        (["txc", "mlp", "--set", "batch=abc"], "batch=abc should be a whole number"),
        (["txc", "mlp", "--set", "batch=1.5"], "batch=1.5 should be a whole number"),
        (["txc", "mlp", "--set", "batch=["], "--set batch=[ cannot be read"),
        (["txc", "mlp", "--set", "rates=slow"], "rates=slow should be a list"),
        (["txc", "mlp", "--set", "rates=[fast]"], "should be positive numbers"),
        (["txc", "mlp", "--set", "first_length=-4"], "first_length=-4 should be a whole number in 0.."),
        (["txc", "mlp", "--set", "warmup=-1"], "warmup=-1 should be a whole number in 0.."),
        (["txc", "mlp", "--set", "validation_rows=0"], "validation_rows=0 should be a whole number in 1.."),
        (["txc", "mlp", "--set", "check_every=true"], "check_every=True should be a whole number"),
        (["txc", "mlp", "--set", "clip=.nan"], "clip=nan should be a number in 0..1000"),
        (["txc", "mlp", "--set", "precision=float8"], "should be float32 or bfloat16"),
        (["txc", "mlp", "--set", "name=foo"], "unknown protocol setting 'name'"),
        (["txc", "mlp", "--device", "meta"], "should be auto, cpu or cuda"),
        (["txc", "mlp", "--device", "mps"], "should be auto, cpu or cuda"),
        (["txc", "mlp", "--device", "cuda:99"], "torch sees"),
        (["txc", "mlp", "--seed", str(2**63)], f"seed {2**63} should be a whole number in 0..{2**63 - 1}"),
        (["txc", "mlp", "--stream", "-1"], "stream -1 should lie in 0.."),
        (["txc", "os:path"], "os:path is a module, and not a class of torch.nn.Module"),
        (["txc", "math:sqrt"], "math:sqrt"),
        (["txc", ".a:B"], "'.a:B' is not the address of a class"),
        (["txc", "mlp[hidden=[}]"], "option hidden=[} cannot be read"),
        (["txc", "mlp[hidden=1000000000000]"], "cannot build mlp"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, part, capsys):
    assert main(["train", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("statetrack: ")
    assert part in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["txc", "transformer[positions=32]", "--length", "64"], "64 does not fit"),
        (["modular_arithmetic[ask=end]", "mlp", "--length", "8"], "asks nothing"),
        (["txc", "LastOnly", "--length", "8"], "LastOnly returns shape"),
    ],
)
def test_what_is_refused_leaves_no_folder_but_one_that_was_there(arguments, part, capsys, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "there").mkdir()
    arguments = [text.replace("LastOnly", f"{tmp_path / 'own.py'}:LastOnly") for text in arguments]
    for folder in ("new", "there"):
        assert main(["train", *arguments, "--out", str(tmp_path / folder)]) == 2
        assert part in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "there").is_dir()


def test_a_number_with_an_exponent_is_a_number(capsys):
    assert main(["train", "txc", "mlp[hidden=4]", "--length", "4", *SHORT, "--set", "weight_decay=1e-2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["cell"]["protocol"]["weight_decay"] == 0.01


def test_a_damaged_result_is_named_and_made_again(capsys, tmp_path):
    arguments = ["train", "txc", "mlp[hidden=4]", "--length", "4", "--out", str(tmp_path), "--json", *SHORT]
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    file = next(tmp_path.glob("*.json"))
    file.write_text(file.read_text()[:100])
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == f"statetrack: {file} is damaged (not whole JSON); its cell is run again\n"
    assert json.loads(captured.out)[0]["accuracy"] == first[0]["accuracy"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


def test_importing_statetrack_brings_neither_torch_nor_a_command_line():
    code = "import sys, statetrack; print(sorted({'torch', 'typer', 'rich', 'yaml', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_testing_is_timed_beside_training() -> None:
    from statetrack.cli.train import how_long
    from statetrack.training import Result

    result = Result(trained(Cell("txc", "e88-published-1l", 16, 0, DESIGN), lambda t: 1.0 + 0 * t))
    assert how_long([result]) == "trained in 21 s, tested in 1 s"
