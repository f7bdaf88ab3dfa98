"""The verbs that train, as a person would call them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from statetrack.cli import demo, main

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


def test_a_table_for_people_and_json_for_programs(capsys, tmp_path):
    arguments = ["train", "txc", "mlp", "--length", "8", "--seeds", "2", "--out", str(tmp_path / "out"), *SHORT]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "txc, mlp:" in shown
    assert "solved at 8: 0 of 2 seeds" in shown
    assert main([*arguments, "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["cell"]["seed"] for record in records] == [0, 1]
    kept = sorted(path.name for path in (tmp_path / "out").glob("*.json"))
    assert len(kept) == 2


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
        (["txc", "mlp", "--out", "no/such/place"], "is no folder"),
        (["txc", "transformer[positions=32]", "--length", "64"], "has 32 positions; length 64 does not fit"),
        (["txc", "mlp[wdith=3]"], "no option 'wdith'"),
        (["txc", "nowhere.py:Model"], "no file nowhere.py"),
        (["modular_arithmetic[ask=end]", "mlp", "--length", "8"], "asks nothing"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, part, capsys):
    assert main(["train", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("statetrack: ")
    assert part in said
    assert said.count("\n") == 1


def test_the_demo_shows_rows_and_a_table(capsys, monkeypatch):
    monkeypatch.setattr(demo, "LENGTH", 8)
    monkeypatch.setattr(demo, "SETTINGS", {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 8})
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for name in ("txc", "s5_composition", "track_the_stat.median", *demo.MODELS):
        assert name in shown


def test_importing_statetrack_brings_neither_torch_nor_a_command_line():
    code = "import sys, statetrack; print(sorted({'torch', 'typer', 'rich', 'yaml', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
