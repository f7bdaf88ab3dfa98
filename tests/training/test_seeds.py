"""`st.train` and `st.train_many` as they are called from Python: names, settings, and the model that comes back."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.errors import BadInput
from statetrack.training import Protocol, loop, train, train_many

QUICK = {"batch": 4, "check_every": 2, "most_checks": 1, "polish": 2, "validation_rows": 4, "words": 0}
OWN = """
import torch

class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)

    def forward(self, ids):
        return self.table(ids)
"""


@pytest.mark.parametrize("call", [st.train, train_many])
def test_every_number_of_a_protocol_is_named_in_the_signature_and_explained(call):
    parameters = inspect.signature(call).parameters
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    for each in fields(Protocol):
        if each.name != "name":
            assert parameters[each.name].default is None
            assert each.name in (st.train.__doc__ or "")
    assert ">>>" in (call.__doc__ or "")


def test_settings_by_name_are_those_of_a_mapping():
    by_name = train("txc", "mlp[hidden=4]", length=4, protocol="design", rates=3e-3, **QUICK)
    changes = {name: value for name, value in QUICK.items() if name != "words"}
    mapped = train("txc", "mlp[hidden=4]", length=4, protocol="design", settings=changes | {"rates": [3e-3]}, words=0)
    assert by_name.cell == mapped.cell
    assert by_name.cell.protocol["name"] == "design"
    assert (by_name.cell.protocol["batch"], by_name.cell.protocol["rates"]) == (4, [3e-3])
    both = train("txc", "mlp[hidden=4]", length=4, settings={"batch": 7}, **QUICK)
    assert both.cell.protocol["batch"] == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bach": 64}, "unknown argument of train 'bach'; did you mean batch"),
        ({"protocol_name": "design"}, "unknown argument of train 'protocol_name'; did you mean protocol"),
        ({"settings": {"bach": 64}}, "unknown protocol setting 'bach'; did you mean batch"),
        ({"settings": ["batch"]}, "settings=.* should be a mapping"),
        ({"batch": 0}, "batch=0 should be a whole number in 1"),
        ({"protocol": "desing"}, "unknown protocol 'desing'; did you mean design"),
    ],
)
def test_what_it_does_not_know_is_refused_with_what_is_near(wrong, said):
    with pytest.raises(BadInput, match=said):
        train("txc", "mlp", length=4, **wrong)


def test_a_finished_cell_gives_its_model_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train("txc", "gru[hidden=4]", length=4, out=tmp_path, **QUICK)
    monkeypatch.setattr(loop.Stepper, "__call__", None)  # nothing is trained any more
    again = train("txc", "gru[hidden=4]", length=4, out=tmp_path, **QUICK)
    assert (first.found, again.found, again.trained) == (False, True, None)
    ids = torch.tensor([[1, 0, 1, 1, 0, 0]])
    assert torch.equal(again.model(ids), first.model(ids))
    assert again.model is again.model


def test_weights_that_are_gone_are_named_when_the_model_is_asked_for(tmp_path: Path) -> None:
    first = train("txc", "mlp[hidden=4]", length=4, out=tmp_path, **QUICK)
    (tmp_path / f"{first.cell.key}.safetensors").unlink()
    again = train("txc", "mlp[hidden=4]", length=4, out=tmp_path, **QUICK)
    assert again.record == first.record
    with pytest.raises(BadInput, match=f"no weights are kept: {first.cell.key}.safetensors is not there"):
        _ = again.model


def test_a_model_whose_file_changed_is_refused_with_both_hashes(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    first = train("txc", f"{file}:Own", length=4, out=tmp_path / "out", **QUICK)
    again = train("txc", f"{file}:Own", length=4, out=tmp_path / "out", **QUICK)
    assert again.found
    before = first.cell.subject.partition("sha256=")[2].rstrip("]")
    file.write_text(OWN + "# edited\n")
    now = train("txc", f"{file}:Own", length=4, **QUICK).cell.subject.partition("sha256=")[2].rstrip("]")
    assert before != now
    with pytest.raises(BadInput, match=f"has changed: its sha256 begins with {now}, not with {before}"):
        _ = again.model
    assert first.model is not None  # at hand since it was trained
