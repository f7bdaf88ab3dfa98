"""A catalogue line says, without torch, what the model that it names is when it is built."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from statetrack import plugins
from statetrack.errors import BadInput
from statetrack.models import SequenceModel, catalogue, find, model, names
from statetrack.models.build import MODULE
from statetrack.models.catalogue import CATALOGUE, UNKNOWN, entry, lookup, variant
from statetrack.models.custom import Adapted
from statetrack.models.transformer import FeedForward
from statetrack.own_code import load

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; "


def python(code: str, path: Path | None = None, said: Sequence[str] = ()) -> str:
    search = [str(path), os.environ.get("PYTHONPATH", "")] if path else [os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == list(said)
    return done.stdout


def depth(made: SequenceModel) -> int:
    """How many layers a built model has, by its modules."""
    if hasattr(made, "mixers"):
        return sum(not isinstance(mixer, FeedForward) for mixer in made.mixers)
    if hasattr(made, "rnn"):
        return made.rnn.num_layers
    return len(made.layers) if hasattr(made, "layers") else 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_line_agrees_with_what_it_builds(name: str) -> None:
    line = CATALOGUE[name]
    made = model(name, inputs=3, outputs=2, seed=0)
    assert made.text == name == line.name
    assert depth(made) == line.layers
    own = made.module if isinstance(made, Adapted) else made
    assert own.head.weight.shape[1] == line.options[line.width]
    mixer = made.mixers[0] if hasattr(made, "mixers") else made
    if line.heads:
        assert mixer.heads == line.heads
    if line.form:
        assert mixer.form == line.form
        assert (mixer.nonlinearity == "tanh") == line.options["tanh"]
        assert line.reflections == (line.form != "document")  # the delta rule reflects once
    else:
        assert getattr(mixer, "reflections", 0) == line.reflections
    assert getattr(made, "cell", "") == line.cell
    assert (line.family == "memoryless") == (made.recurrent and made.state_size == 0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_line_names_options_models_and_families_that_exist(name: str) -> None:
    line = CATALOGUE[name]
    parameters = inspect.signature(load(line.at, *MODULE)).parameters
    assert {line.width, *line.options} <= parameters.keys()
    assert set(catalogue.RECURRENCE) & parameters.keys() <= line.options.keys()  # or `find` could not tell them apart
    assert line.family != UNKNOWN
    if line.ablation_of:
        whole = CATALOGUE[line.ablation_of]
        differing = [key for key in line.options if line.options[key] != whole.options[key]]
        assert (whole.architecture, whole.ablation_of, len(differing)) == (line.architecture, "", 1)


def test_ablations_are_those_that_lack_a_part_or_have_one_more() -> None:
    ablated = {name for name, line in CATALOGUE.items() if line.ablation_of}
    assert ablated == {name for name in CATALOGUE if name.endswith(("-notanh", "-nobias", "-neg"))}
    assert find("Linear-RNN-NoBias[hidden=8]").ablation_of == "linear-rnn[hidden=8]"


def test_another_depth_is_another_line_and_another_model() -> None:
    deep = find("Mamba2-12L-neg")
    assert (deep.name, deep.layers, deep.family, deep.architecture, deep.ablation_of) == (
        "mamba2-12l-neg", 12, "signed-diagonal", "mamba2", "mamba2-12l",
    )  # fmt: skip
    made = model("mamba2-3l", inputs=2, outputs=2, seed=0)
    assert (depth(made), made.text) == (3, "mamba2-3l")
    for name in ("mamba2-0l", "mamba2-4l-notanh", "gru-2l"):
        assert lookup(name) is None


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("E88-1L[layers=3,heads=2]", {"family": "squashed-diagonal", "layers": 3, "heads": 2}),
        ("e88-1l[form=gain]", {"family": "gain", "reflections": 1, "architecture": "e88-gain", "form": "gain"}),
        ("e88-4l[tanh=false,dim=32]", {"family": "diagonal", "layers": 4, "ablation_of": "e88-4l[dim=32]"}),
        ("e88-1l-notanh[tanh=true]", {"family": "squashed-diagonal", "ablation_of": ""}),
        ("e88-gain-2l[tanh=false]", {"family": "gain-linear", "layers": 2, "gated": True}),
        ("mamba2-12l[negative=true]", {"family": "signed-diagonal", "layers": 12}),
        ("linear-rnn[bias=false]", {"family": "fixed-linear", "bias": False, "ablation_of": "linear-rnn"}),
        ("gru[cell=lstm]", {"family": "unrestricted", "cell": "lstm", "architecture": "lstm"}),
        ("transformer[rotary=true]", {"family": "attention", "layers": 4}),
        ("deltanet[gated=true,negative=true]", {"family": "reflections", "gated": True}),
        ("deltaproduct-3[reflections=4]", {"family": "reflections", "reflections": 4}),
        ("gru[learned_start=true]", {"family": "unrestricted"}),
        # no line has such a recurrence
        ("deltaproduct-3[negative=false]", {"family": UNKNOWN, "reflections": 3}),
        ("e88-gain-r2[tanh=false]", {"family": UNKNOWN}),
        ("mlp[bias=false]", {"family": UNKNOWN}),
        ("mine.py:Model[dim=8]", {"family": UNKNOWN, "architecture": "mine.py:Model"}),
    ],
)
def test_options_change_the_line(text: str, facts: dict[str, object]) -> None:
    line = find(text)
    assert line.name == text.lower()
    assert {fact: getattr(line, fact) for fact in facts} == facts


def test_options_that_cannot_be_read() -> None:
    with pytest.raises(BadInput, match="layers=many should be a whole number"):
        find("mlp[layers=many]")
    assert lookup("mlp[layers=many]") is None


def test_a_variant_differs_in_what_it_is_asked_to() -> None:
    assert variant("e88-1l[tanh=false,dim=32]", form="published", tanh=True) == "e88-published-1l[dim=32]"
    assert variant("e88-2l", form="gain") is None  # no such line


def test_the_catalogue_needs_no_torch() -> None:
    code = WITHOUT_TORCH + (
        "from statetrack.models import find, names; print(find('E88-1L[form=gain]').family, len(names()))"
    )
    assert python(code).split() == ["gain", str(len(CATALOGUE))]


PACKAGE = """
from statetrack.models import ModelEntry
LINE = ModelEntry("theirs-2l", "their_network:Network", "their network", {"layers": 2, "dim": 4}, family="diagonal",
                  architecture="theirs", width="dim")
"""
NETWORK = """
import torch
class Network(torch.nn.Module):
    def __init__(self, inputs, outputs, layers=1, dim=8):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(inputs, dim), *[torch.nn.Linear(dim, dim)] * layers,
                                       torch.nn.Linear(dim, outputs))
    def forward(self, ids):
        return self.net(ids)
"""
POINTS = """
[statetrack.models]
Theirs-2L = their_lines:LINE
network = their_network:Network
broken = their_lines:Nothing
gru = their_network:Network
"""
SAID = [
    "statetrack: gru of theirs 1.0 (statetrack.models) is left out: statetrack has that name already",
    "statetrack: broken of theirs 1.0 (statetrack.models) is left out: their_lines:Nothing cannot be loaded: "
    "AttributeError: module 'their_lines' has no attribute 'Nothing'",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with an installed package: a line, a class, one that is not there, and one whose name is taken."""
    (tmp_path / "their_lines.py").write_text(PACKAGE)
    (tmp_path / "their_network.py").write_text(NETWORK)
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    return tmp_path


def listed(package: Path, before: str) -> dict[str, dict[str, object]]:
    out = python(before + "from statetrack.cli import main; main(['list', 'models', '--json'])", package, SAID)
    return {line["model"]: line for line in json.loads(out)}


@pytest.mark.parametrize("before", ["", WITHOUT_TORCH])
def test_list_shows_what_packages_offer(package: Path, before: str) -> None:
    lines = listed(package, before)
    assert list(lines) == [*CATALOGUE, "theirs-2l", "network"]
    assert lines["mamba2-8l"] == {
        "model": "mamba2-8l", "family": "diagonal", "layers": 8, "width": "d_model",
        "what": "Mamba-2, 8 layers of 64, state 16",
    }  # fmt: skip
    assert lines["theirs-2l"] == {
        "model": "theirs-2l", "family": "diagonal", "layers": 2, "width": "dim", "what": "their network",
    }  # fmt: skip
    network = lines["network"]
    assert (network["family"], network["layers"], network["width"]) == (UNKNOWN, None, None)
    assert network["what"] == "installed, their_network:Network"


def test_what_packages_offer_is_found_and_built(package: Path) -> None:
    code = """
from statetrack.errors import BadInput
from statetrack.models import find, model
line = find("Theirs-2L[dim=6]")
print(line.name, line.architecture, line.layers, line.options["dim"])
print(find("theirs-2l").family, find("network").family)
print(model("theirs-2l", inputs=2, outputs=3, dim=6).text, len(model("theirs-2l", inputs=2, outputs=3).module.net))
print(len(model("network", inputs=2, outputs=3).module.net), type(model("gru", inputs=2, outputs=3)).__name__)
try:
    model("broken", inputs=2, outputs=3)
except BadInput as error:
    print(error)
"""
    assert python(code, package, SAID[:1]).splitlines() == [
        "theirs-2l[dim=6] theirs 2 6",
        "diagonal unknown",
        "theirs-2l[dim=6] 4",
        "3 ClassicRNN",
        "their_lines:Nothing cannot be loaded: AttributeError: module 'their_lines' has no attribute 'Nothing'",
    ]


def test_a_catalogued_name_is_not_taken_by_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("GRU", "statetrack.models.mlp:MLP", plugins.MODELS)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    assert entry("gru").at == CATALOGUE["gru"].at
    assert names()["gru"] == CATALOGUE["gru"].about
