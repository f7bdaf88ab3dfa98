"""`statetrack certify` and `statetrack verify`, on weights in a file and on a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statetrack.cli import main

pytestmark = pytest.mark.needs("torch")
SHORT = ["--set=batch=4", "--set=check_every=2", "--set=most_checks=1", "--set=polish=1", "--words=0"]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Parity set by hand."""
    from safetensors.torch import save_file

    from statetrack.models.witnesses import toggle

    save_file({name: each.contiguous() for name, each in toggle([[0, 1], [1, 0]]).state_dict().items()},
              path := tmp_path / "parity.safetensors")  # fmt: skip
    return path


def test_a_proof_is_written_and_verified(weights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "txc", str(weights), "--model", "e88-gain-1l-small"]) == 0
    said = capsys.readouterr().out
    assert "Proved as trained: right after every word" in said
    proof = weights.with_suffix(".proof")
    assert main(["verify", str(proof)]) == 0
    assert (
        "these weights, run as e88-gain (the proof calls them e88-gain-1l-small), answer txc rightly"
        in capsys.readouterr().out
    )


def test_a_proof_about_other_weights_is_refused(weights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "txc", str(weights), "--model", "e88-gain-1l-small"]) == 0
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)
    assert main(["verify", str(weights.with_suffix(".proof"))]) == 1
    assert "refused: the weights are not those" in capsys.readouterr().out


def test_the_cells_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Networks that learned nothing are broken, whatever they are; nothing is written for them."""
    out = str(tmp_path / "results")
    for model in ("gru[hidden=2]", "mlp[hidden=2]"):
        assert main(["train", "txc", model, "--length", "4", *SHORT, "--out", out]) == 0
    capsys.readouterr()
    assert main(["certify", out, "--seconds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["outcome"] for each in told] == ["broken by a word"] * 2
    assert not list(Path(out).glob("*.proof"))
    assert main(["certify", out]) == 0
    assert "broken by a word" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "why"), [
    (["certify", "txc"], "not a folder of results"),
    (["certify", "txc", "none.safetensors", "--model", "gru"], "no file"),
    (["certify", "txc", "none.safetensors", "--seconds", "0"], "--seconds"),
    (["verify", "none.proof"], "no file none.proof"),
    (["certify", "txc", "."], "it is a folder"),
    (["verify", "."], "no file ."),
])  # fmt: skip
def test_what_cannot_be_done_is_one_line(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
