"""`statetrack certify` and `statetrack verify`, on weights in a file and on a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statetrack.cli import main
from statetrack.cli.certify import why_open
from statetrack.errors import BadInput
from statetrack.results import Cell, TrainingRecord
from statetrack.results.evaluations import OPEN, ForEver
from tests.reports import made_records

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


def test_what_stays_open_says_why_its_search_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hand-made network that is right, of a kind that nothing can be proved of, and one whose time was over."""
    from statetrack.certificates import certify
    from statetrack.models.witnesses import toggle
    from statetrack.tasks import task

    never = toggle([[0, 1], [1, 0]])
    assert certify(task("txc"), never, seconds=1e-9).sentence.startswith(
        "Open: no cover that was tried holds its images and is read rightly; the time was over, more seconds may help."
    )
    cells = [Cell("txc", model, 16, seed, made_records.DESIGN) for seed, model in enumerate(("mlp", "mlp", "gru"))]
    store, no_help = made_records.fill(tmp_path, cells), "nothing is known, so more seconds will not help"
    for cell, why in zip(cells, (no_help, no_help, "the time was over"), strict=True):
        found = ForEver(seed=0, weights="w", budget=60.0, outcome=OPEN, covered=14, why=why)
        record = store.read(cell)
        assert isinstance(record, TrainingRecord)
        store.write(record.with_evaluations([found]))
    records = [record for record in store.records() if isinstance(record, TrainingRecord)]
    both = f"open: {', '.join(sorted(cell.key[:8] for cell in cells[:2]))}: {no_help}"
    assert sorted(why_open(sorted(records, key=lambda record: record.cell.key))) == sorted(
        [both, f"open: {cells[2].key[:8]}: the time was over"]
    )


def test_a_network_of_another_kind_says_that_more_seconds_will_not_help() -> None:
    from statetrack.certificates.certify import kind_of
    from statetrack.models import model

    with pytest.raises(BadInput, match="so more seconds will not help"):
        kind_of(model("mamba2-4l", inputs=2, outputs=2, seed=0))


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
