"""Models of one's own, named and unnamed: which cell they are, what of them is trained, and what is refused."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import statetrack as st
from statetrack.errors import BadInput
from statetrack.models import Replicas
from statetrack.training import loop, train, train_many
from statetrack.training.optimizer import AdamW, FlatParameters

SHORT = {"check_every": 5, "most_checks": 1, "polish": 5, "batch": 4, "warmup": 0, "validation_rows": 16}


class Own(nn.Module):
    """One that answers from the present input, over tied weights and a table that is kept as it is."""

    def __init__(self, inputs: int = 2, outputs: int = 2, longest: int = 10**9) -> None:
        super().__init__()
        self.longest = longest
        self.fixed = nn.Embedding(inputs, 4).requires_grad_(False)
        self.inner = nn.Linear(4, 4, bias=False)
        self.again = nn.Linear(4, 4, bias=False)
        self.again.weight = self.inner.weight
        self.head = nn.Linear(4, outputs)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] > self.longest:
            raise ValueError(f"only {self.longest}\npositions")
        return self.head(torch.tanh(self.again(torch.tanh(self.inner(self.fixed(ids))))))


FILE = """
import torch
from statetrack.models import SequenceModel

class Plain(torch.nn.Module):
    def __init__(self, inputs, outputs, width=4):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(inputs, width), torch.nn.Linear(width, outputs)

    def forward(self, ids):
        return self.head(self.table(ids))

class Ours(SequenceModel):
    recurrent = False

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.table = torch.nn.Embedding(inputs, outputs)

    def state_shapes(self):
        return []

    def forward(self, ids):
        return self.table(ids)
"""


@pytest.mark.parametrize("same", ["MLP", "mlp", "mlp[hidden=8]", "Mlp[layers=4,hidden=8]"])
def test_one_model_has_one_key(same):
    options = "" if "hidden" in same else "[hidden=8]"
    result = train("txc", same + options, length=4, settings=SHORT)
    assert result.cell.subject == "mlp[hidden=8]"
    assert st.model("mlp", inputs=2, outputs=2, hidden=128).text == "mlp"
    assert st.model("E88-gain-r2", inputs=2, outputs=2, learned_start=True).text == "e88-gain-r2[learned_start=true]"


def test_two_models_that_are_there_already_are_two_cells(tmp_path):
    results = [
        train("txc", st.model("mlp", inputs=2, outputs=2, hidden=h), length=4, settings=SHORT, out=tmp_path)
        for h in (3, 5)
    ]
    assert [r.cell.subject for r in results] == ["mlp[hidden=3]", "mlp[hidden=5]"]
    assert results[0].record["parameters"] != results[1].record["parameters"]


def test_a_module_without_a_name_is_trained_but_not_kept(tmp_path):
    assert train("txc", Own(), length=4, settings=SHORT).cell.subject == "own"
    with pytest.raises(BadInput, match=r"give its name, such as file\.py:Class"):
        train("txc", Own(), length=4, settings=SHORT, out=tmp_path)
    with pytest.raises(BadInput, match="not a type"):
        train("txc", Own, length=4, settings=SHORT)


def test_an_edited_file_is_another_model(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(FILE)
    first = train("txc", f"{file}:Plain[width=3]", length=4, settings=SHORT, out=tmp_path)
    assert first.cell.subject.startswith(f"{file}:Plain[width=3,sha256=")
    again = train("txc", first.cell.subject, length=4, settings=SHORT, out=tmp_path)
    assert again.found
    file.write_text(FILE.replace("self.head(self.table(ids))", "-self.head(self.table(ids))"))
    edited = train("txc", f"{file}:Plain[width=3]", length=4, settings=SHORT, out=tmp_path)
    assert not edited.found
    assert edited.cell.key != first.cell.key
    with pytest.raises(BadInput, match="has changed"):
        train("txc", first.cell.subject, length=4, settings=SHORT, out=tmp_path)


def test_the_checkpoint_knows_the_file(tmp_path):
    file, told = tmp_path / "own.py", []
    for text in (FILE, FILE + "\n"):
        file.write_text(text)
        train("txc", f"{file}:Plain", length=4, settings=SHORT, report=lambda run: told.append(loop.describe(run, 4)))
    assert told[0]["model"] != told[-1]["model"]


def test_seeds_of_a_class_in_a_file_are_of_one_class(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    assert len(train_many("txc", f"{tmp_path}/own.py:Ours", length=4, seeds=[0, 1], settings=SHORT)) == 2


def test_frozen_weights_stay_and_tied_weights_are_saved(tmp_path):
    own = Own()
    before = own.fixed.weight.clone()
    result = train("txc", own, length=4, settings=SHORT)
    trained = result.model.module
    assert torch.equal(trained.fixed.weight, before)
    assert not torch.equal(trained.head.weight, own.head.weight)
    assert trained.inner.weight is trained.again.weight
    loop.checkpoint.save_weights(tmp_path / "own.safetensors", result.model, {})
    held = load_file(tmp_path / "own.safetensors")
    assert torch.equal(held["module.inner.weight"], held["module.again.weight"])


def test_frozen_weights_of_folded_replicas_stay():
    models = [st.model("mlp", inputs=2, outputs=2, seed=seed, hidden=4) for seed in (0, 1)]
    for single in models:
        single.embedding.requires_grad_(False)
    replicas = Replicas(models)
    loop.freeze(replicas, models[0])
    flat = FlatParameters(replicas)
    replicas(torch.ones(2, 3, 4, dtype=torch.long)).square().sum().backward()
    AdamW(flat, weight_decay=0.1, clip=1.0).step(torch.tensor([0.1, 0.1]), torch.tensor([1, 1]))
    for row, single in enumerate(models):
        after = replicas.one(row)
        assert torch.equal(after.embedding.weight, single.embedding.weight)
        assert not torch.equal(after.head.weight, single.head.weight)


def test_a_model_that_fails_beyond_a_length_says_so_in_the_record():
    result = train("txc", Own(longest=20), length=7, settings=SHORT)
    beyond = result.record["length_generalisation"]
    assert beyond["14"]["accuracy"] is not None
    assert beyond["28"]["accuracy"] is None
    assert beyond["28"]["reason"] == "ValueError: only 20 positions"


class Mixed(Own):
    def __init__(self):
        super().__init__()
        self.more = nn.Parameter(torch.zeros(1, dtype=torch.float64))


class Empty(nn.Module):
    def forward(self, ids):
        return torch.zeros(*ids.shape, 2)


class Forgetful(nn.Module):
    """In one piece it counts, in pieces it begins anew."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def initial_state(self, batch, device=None):
        return (torch.zeros(batch, 1, device=device),)

    def forward_from(self, ids, state):
        return ids.cumsum(1).unsqueeze(-1) * self.weight, state

    def forward(self, ids):
        return self.forward_from(ids, ())[0]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Mixed, "Mixed has parameters of float32 and float64"),
        (Empty, "Empty has no parameters to train"),
        (Forgetful, r"Forgetful answers differently in two pieces \(forward_from\)"),
    ],
)
def test_what_would_give_no_honest_result_is_refused(kind, message):
    with pytest.raises(BadInput, match=message) as caught:
        train("txc", kind(), length=4, settings=SHORT)
    assert "\n" not in str(caught.value)


def test_a_constructor_that_fails_is_one_line(tmp_path):
    body = "import torch\nclass Bad(torch.nn.Module):\n    def __init__(self, inputs, outputs):\n        {}['a\\nb']\n"
    (tmp_path / "bad.py").write_text(body)
    with pytest.raises(BadInput, match=r"cannot build .*bad.py:Bad.*KeyError") as caught:
        train("txc", f"{tmp_path}/bad.py:Bad", length=4, settings=SHORT)
    assert "\n" not in str(caught.value)


class Counting(nn.Module):
    """Its state is one tensor, not a tuple."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([-1.0, 1.0]))

    def initial_state(self, batch, device=None):
        return torch.zeros(batch, 1, device=device)

    def step(self, token, state):
        state = (state + token[:, None]) % 2
        return (2 * state - 1) * self.weight, state

    def forward(self, ids):
        state, answers = self.initial_state(len(ids), ids.device), []
        for token in ids.unbind(1):
            answer, state = self.step(token, state)
            answers.append(answer)
        return torch.stack(answers, dim=1)


def test_a_state_of_one_tensor_is_handed_on_as_it_was_made():
    result = train("txc", Counting(), length=4, settings=SHORT, stream=2048)
    assert result.record["stream"]["accuracy"]["2048"] == 1
