"""Models by name, by address, from other packages; and what is wrong with a wrong one, in one line."""

from __future__ import annotations

import copy
import importlib.metadata
from pathlib import Path

import pytest
import torch

from statetrack.errors import BadInput
from statetrack.models import SequenceModel, check, model, names
from statetrack.tasks import task
from statetrack.training.weights import built

MINE = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self, inputs, outputs, width=8):
        super().__init__()
        self.embed = nn.Embedding(inputs, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, outputs)
    def initial_state(self, batch, device=None):
        return (torch.zeros(batch, self.cell.hidden_size, device=device),)
    def step(self, ids, state):
        h = self.cell(self.embed(ids), state[0])
        return self.head(h), (h,)
    def forward(self, ids):
        state, out = self.initial_state(len(ids), ids.device), []
        for token in ids.unbind(1):
            logits, state = self.step(token, state)
            out.append(logits)
        return torch.stack(out, 1)
"""


def written(folder: Path, body: str, name: str = "mine.py") -> str:
    (folder / name).write_text(body)
    return str(folder / name)


def broken(folder: Path, forward: str) -> SequenceModel:
    """A model whose forward is this line; E is (B, T, 3) logits."""
    body = (
        "import torch\n"
        "class Broken(torch.nn.Module):\n"
        "    def __init__(self, inputs, outputs):\n"
        "        super().__init__()\n"
        "        self.table = torch.nn.Embedding(inputs, outputs)\n"
        "    def forward(self, ids):\n"
        "        E = self.table(ids)\n"
        f"        return {forward}\n"
    )
    return model(written(folder, body) + ":Broken", inputs=4, outputs=3)


def test_a_model_from_a_file(tmp_path: Path) -> None:
    mine = model(written(tmp_path, MINE) + ":Mine", inputs=4, outputs=3, seed=1)
    check(mine, 4, 3)
    assert isinstance(mine, SequenceModel)
    assert mine.recurrent
    assert mine.state_size == 8
    assert mine.parameter_count == sum(p.numel() for p in mine.parameters())
    again = model(str(tmp_path / "mine.py") + ":Mine", inputs=4, outputs=3, seed=1)
    ids = torch.randint(4, (2, 9))
    assert torch.equal(mine(ids), again(ids))
    logits, state = mine.forward_from(ids[:, :5], mine.initial_state(2))
    last, state = mine.step(ids[:, 5], state)
    assert torch.allclose(torch.cat([logits, last[:, None]], 1), mine(ids)[:, :6], atol=1e-6)


def test_options_reach_a_model_from_a_file(tmp_path: Path) -> None:
    address = written(tmp_path, MINE) + ":Mine"
    assert model(address, inputs=4, outputs=3, width=16).state_size == 16
    with pytest.raises(BadInput, match="no option 'wide'; it has width"):
        model(address, inputs=4, outputs=3, wide=16)


def test_a_plain_module_can_be_trained_but_not_streamed(tmp_path: Path) -> None:
    plain = broken(tmp_path, "E")
    check(plain, 4, 3)
    assert not plain.recurrent
    with pytest.raises(BadInput, match="cannot be streamed"):
        plain.initial_state(2)


def test_a_model_from_a_package() -> None:
    made = model("statetrack.models.rnn:ClassicRNN", inputs=3, outputs=2, hidden=5)
    check(made, 3, 2)
    assert made.state_size == 5


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    for width, folder in ((4, "a"), (6, "b")):
        (tmp_path / folder).mkdir()
        address = written(tmp_path / folder, MINE.replace("width=8", f"width={width}")) + ":Mine"
        assert model(address, inputs=2, outputs=2).state_size == width


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("E[:, -1]", r"Broken returns shape \(3, 3\) for ids \(3, 7\); expected \(B, T, outputs\) = \(3, 7, 3\)"),
        ("E.transpose(0, 1)", r"returns shape \(7, 3, 3\)"),
        ("E[..., :2]", r"returns shape \(3, 7, 2\)"),
        ("(E, None)", "returns a tuple"),
        ("E.long()", "returns torch.int64; expected floating-point"),
        ("E / 0", "not finite"),
        ("E.flip(1)", "not causal"),
        ("E + E.mean(1, keepdim=True)", "not causal"),
        ("E @ torch.ones(4, 4)", "fails on ids of shape .*RuntimeError"),
    ],
)
def test_wrong_models_say_what_is_wrong(tmp_path: Path, forward: str, message: str) -> None:
    subject = broken(tmp_path, forward)
    with pytest.raises(BadInput, match=message) as caught:
        check(subject, 4, 3)
    assert "\n" not in str(caught.value)


def test_an_alphabet_the_model_was_not_built_for() -> None:
    subject = model("gru", inputs=2, outputs=2)
    with pytest.raises(BadInput, match="built for 2 inputs, here there are 5"):
        check(subject, 5, 2)
    with pytest.raises(BadInput, match="built for 2 outputs, here there are 60"):
        check(subject, 2, 60)


def test_check_tries_the_largest_token(tmp_path: Path) -> None:
    body = MINE.replace("nn.Embedding(inputs", "nn.Embedding(inputs - 1")
    for inputs in (3, 40, 1000):
        with pytest.raises(BadInput, match="IndexError"):
            check(model(written(tmp_path, body) + ":Mine", inputs=inputs, outputs=2), inputs, 2)


@pytest.mark.parametrize("name", [name for name in names() if "16l" not in name and "32l" not in name])
def test_every_named_model_passes_the_check(name: str) -> None:
    check(model(name, inputs=3, outputs=5), 3, 5)


def test_check_leaves_the_mode_as_it_was() -> None:
    subject = model("mlp", inputs=3, outputs=2).train()
    check(subject, 3, 2)
    assert subject.training
    subject.eval()
    check(subject, 3, 2)
    assert not subject.training


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere.py:Mine", "no file nowhere.py"),
        ("no.such.package:Mine", "cannot import 'no.such.package'"),
        ("statetrack.models.rnn:Nothing", "has no 'Nothing'"),
        ("e88-gian-1l", "unknown model 'e88-gian-1l'; did you mean .*e88-gain-1l"),
        ("GRUU", "did you mean gru"),
    ],
)
def test_names_that_nobody_knows(address: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model(address, inputs=2, outputs=2)


def test_a_file_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not run: ZeroDivisionError"):
        model(written(tmp_path, "1 / 0") + ":Mine", inputs=2, outputs=2)


def test_classes_that_cannot_be_built(tmp_path: Path) -> None:
    body = "import torch\nclass NoModel:\n    pass\nclass Other(torch.nn.Module):\n    pass\ndef made(**_):\n    pass\n"
    file = written(tmp_path, body)
    with pytest.raises(BadInput, match=r"is the class NoModel, and not a class of torch.nn.Module"):
        model(file + ":NoModel", inputs=2, outputs=2)
    with pytest.raises(BadInput, match=r"is a function, and not a class of torch.nn.Module"):
        model(file + ":made", inputs=2, outputs=2)
    with pytest.raises(BadInput, match=r"as Class\(inputs=..., outputs=...\)"):
        model(file + ":Other", inputs=2, outputs=2)


def test_installed_packages_add_models(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("Borrowed", "statetrack.models.mlp:MLP", "statetrack.models")
    monkeypatch.setattr("statetrack.models.catalogue._offered", lambda: {"borrowed": point})
    monkeypatch.setattr("statetrack.plugins.entry_points", lambda group: [point])
    assert "statetrack.models.mlp:MLP" in names()["borrowed"]
    assert model("borrowed", inputs=2, outputs=2, hidden=3).embedding.weight.shape == (2, 3)


def test_upper_case_names_are_the_same_models() -> None:
    for upper in ("E88-1L", "Mamba2-32L", "Linear-RNN", "MLP", "E88-Gain-R2"):
        made = [model(name, inputs=2, outputs=2, seed=0) for name in (upper, upper.lower())]
        assert torch.equal(made[0].head.weight, made[1].head.weight)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("e88-1l", {"dims": 3}, "no option 'dims'; it has layers, heads, n_state, dim"),
        ("e88-1l", {"heads": 0}, "heads must be a whole number above 0; got 0"),
        ("e88-1l", {"dim": 2.5}, "dim must be a whole number"),
        ("e88-1l", {"form": "gian"}, "unknown form of E88 'gian'; did you mean gain"),
        ("mlp", {"learned_start": True}, "no option 'learned_start'"),
        ("mamba2-4l", {"head_dim": 24}, "head_dim 24 does not divide"),
        ("transformer", {"heads": 3}, "dim 64 cannot be shared among 3 heads"),
        ("transformer-rope", {"heads": 64}, "even width"),
        ("lstm", {"cell": "gruu"}, "unknown cell 'gruu'; did you mean gru"),
    ],
)
def test_bad_options(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model(name, inputs=2, outputs=2, **options)


def test_a_text_with_options_is_what_training_takes_it_for(tmp_path: Path) -> None:
    own = f"{written(tmp_path, MINE)}:Mine"
    for text in ("gru[hidden=8]", "e88-1l[learned_start=true,dim=64]", f"{own}[width=4]"):
        made, trained = model(text, inputs=2, outputs=2, seed=0), built(text, task("txc"), seed=0)
        assert made.text == trained.text
        assert torch.equal(next(made.parameters()), next(trained.parameters()))
    assert model(f"{own}[width=4]", inputs=2, outputs=2).text == model(own, inputs=2, outputs=2, width=4).text
    with pytest.raises(BadInput, match="option 'hidden' of gru is given twice, in its text and by name"):
        model("gru[hidden=8]", inputs=2, outputs=2, hidden=8)
    with pytest.raises(BadInput, match="unknown model 'gruu'; did you mean gru"):
        model("gruu[hidden=8]", inputs=2, outputs=2)


def test_what_a_class_of_ones_own_holds_is_found_in_its_module(tmp_path: Path) -> None:
    made = copy.deepcopy(model(f"{written(tmp_path, MINE)}:Mine", inputs=2, outputs=2))
    assert isinstance(made.module.embed, torch.nn.Embedding)
    with pytest.raises(AttributeError, match=r"Mine is wrapped here: 'embed' is found as \.module\.embed"):
        _ = made.embed
    with pytest.raises(AttributeError, match="'Adapted' object has no attribute 'emptied'"):
        _ = made.emptied


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (-1, 2)])
@pytest.mark.parametrize("name", ["e88-1l", "linear-rnn", "linear-rnn-nobias", "mlp", "gru", "transformer", "m2rnn"])
def test_empty_alphabets(name: str, sizes: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="must be a whole number above 0"):
        model(name, inputs=sizes[0], outputs=sizes[1])


@pytest.mark.parametrize("name", [f"mamba2-{'9' * 400}l", "mamba2-1000l", "mlp[layers=100000000]"])
def test_depths_that_nobody_builds(name: str) -> None:
    with pytest.raises(BadInput, match=r"unknown model|layers must be at most 1000|has no option"):
        built(name, task("txc"), seed=0)
