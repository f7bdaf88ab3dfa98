"""Ways round `statetrack.trust` that need no leave: names, caches, folders that one happens to be in."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib import _bootstrap_external  # type: ignore[attr-defined]
from pathlib import Path

import pytest

from statetrack import trust
from statetrack.errors import BadInput
from statetrack.identity import identity

pytest.importorskip("torch")

from statetrack import own_code
from statetrack.asking.engines import engine
from statetrack.models import model
from statetrack.sweeps import from_blocks, read
from statetrack.tasks import trusted_task
from tests.strangers import SHORT

MINE = """
import torch

class Mine(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)

    def forward(self, ids):
        return self.table(ids)
"""


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has run nothing yet, in a folder of somebody else."""
    monkeypatch.setenv(trust.SETTINGS, str(tmp_path / "settings"))
    monkeypatch.setattr(trust, "_remembered", set())
    (tmp_path / "theirs").mkdir()
    monkeypatch.chdir(tmp_path / "theirs")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it ran"


def leaves(marker: Path) -> str:
    return f"open({str(marker)!r}, 'w').close()\n"


def sweep_of(subject: str, task: str = "txc") -> Path:
    Path("theirs.yaml").write_text(f"tasks: ['{task}']\nsubjects: ['{subject}']\nlengths: [4]\nsettings: {SHORT}\n")
    return Path("theirs.yaml")


def cached(source: Path, other: str) -> None:
    """What Python takes for the compiled source, and compares with nothing."""
    path = Path(importlib.util.cache_from_source(str(source)))
    path.parent.mkdir(exist_ok=True)
    code = compile(other, str(source), "exec")
    path.write_bytes(_bootstrap_external._code_to_hash_pyc(code, b"\0" * 8, False))


@pytest.mark.parametrize("package", ["models", "tasks"])
def test_a_file_that_is_called_like_a_module_of_ours(package: str, marker: Path) -> None:
    Path(f"statetrack.{package}.evil.py").write_text(leaves(marker) + MINE)
    address = f"statetrack.{package}.evil.py:Mine"
    with pytest.raises(BadInput, match="is not run"):
        read(sweep_of(address)) if package == "models" else trusted_task(address)
    assert not marker.exists()


def test_a_module_of_ours_gives_no_class_of_another() -> None:
    with pytest.raises(BadInput, match="is not of statetrack"):
        read(sweep_of("statetrack.models.custom:torch.nn.LSTM"))


def test_what_lies_in_a_cache_is_not_run(marker: Path) -> None:
    Path("mine.py").write_text(MINE)
    model("mine.py:Mine", inputs=2, outputs=2)  # an honest file, which is trusted from now on
    own_code.run_file.cache_clear()
    cached(Path("mine.py").absolute(), leaves(marker) + MINE)
    assert len(read(sweep_of("mine.py:Mine")).cells) == 1
    assert not marker.exists()


def test_nor_is_that_of_a_module_that_it_imports(marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(".")
    Path("side_helper.py").write_text("WIDTH = 2\n")
    Path("side_late.py").write_text("WIDTH = 2\n")
    later = MINE.replace("        return", "        import side_late\n        return")
    Path("with_helper.py").write_text("import side_helper\n" + later)
    for helper in ("side_helper.py", "side_late.py"):
        cached(Path(helper).absolute(), leaves(marker) + "WIDTH = 2\n")
    made = model("with_helper.py:Mine", inputs=2, outputs=2)
    made(importlib.import_module("torch").zeros(1, 3, dtype=int))
    assert {"side_helper", "side_late"} <= sys.modules.keys()
    assert not marker.exists()


def test_a_file_that_changes_after_its_hash_was_taken(marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text(MINE)

    def hashed_and_changed(address: str) -> object:
        found = identity(address)
        Path("mine.py").write_text(leaves(marker) + MINE)
        return found

    monkeypatch.setattr(own_code, "identity", hashed_and_changed)
    with pytest.raises(BadInput, match="has changed since its hash was taken"):
        model("mine.py:Mine", inputs=2, outputs=2)
    assert not marker.exists()


def test_workers_import_nothing_from_the_folder_that_one_is_in(marker: Path, tmp_path: Path) -> None:
    for name in ("yaml", "safetensors", "sitecustomize"):
        Path(f"{name}.py").write_text(leaves(marker) + "raise ImportError('of a stranger')\n")
    program = "import sys; from statetrack.cli import main; sys.exit(main())"  # as an installed command: -P
    line = [sys.executable, "-P", "-c", program, "sweep", str(sweep_of("mlp")), "--out", "out", "--workers", "1"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 done" in done.stdout) == (0, True), done.stderr
    assert not marker.exists()


PROVIDERS = {
    "openai/gpt-4o[base_url=http://127.0.0.1:9/v1]": "base_url",
    "hf/x[model_path=.,trust_remote_code=true]": "model_path, trust_remote_code",
    "vllm/x[temperature=0,served_by=me]": "served_by",
}


@pytest.mark.parametrize(("named", "risky"), PROVIDERS.items())
def test_a_sweep_file_sends_no_key_elsewhere_and_makes_no_provider_run_code(
    named: str, risky: str, tmp_path: Path
) -> None:
    assert Path.cwd().parent == tmp_path  # a parameter of a fixture's name would take its place
    asked = sweep_of(f"ask:{named}").read_text().replace(f"settings: {SHORT}", "protocol: ask")
    Path("theirs.yaml").write_text(asked)
    with pytest.raises(BadInput, match=rf"line 2: .* has settings \({risky}\) that may send your key elsewhere"):
        read("theirs.yaml")
    with trust.trusting(named):
        assert len(read("theirs.yaml").cells) == 1
    assert len(read("theirs.yaml").cells) == 1  # it was named before
    Path("theirs.yaml").write_text(asked.replace("127.0.0.1:9", "127.0.0.1:8").replace("model_path=.", "model_path=/"))
    if named[0] != "v":
        with pytest.raises(BadInput, match="that may send your key elsewhere"):
            read("theirs.yaml")
    Path("theirs.yaml").write_text(asked.replace(named, "openai/gpt-4o[temperature=0,max_retries=1]"))
    assert len(read("theirs.yaml").cells) == 1


def test_who_names_a_model_may_set_what_they_like() -> None:
    named = "openai/gpt-4o[base_url=http://127.0.0.1:9/v1]"
    blocks = [{"tasks": ["txc"], "subjects": [f"ask:{named} implicit"], "lengths": [4], "protocol": "ask"}]
    assert len(from_blocks("mine", blocks).cells) == 1
    Path("theirs.yaml").write_text("tasks: [txc]\nsubjects: ['ask:{model} implicit']\nlengths: [4]\nprotocol: ask\n")
    assert len(read("theirs.yaml", models=[named]).cells) == 1


def test_code_that_comes_with_a_model_is_neither_run_nor_asked_about(
    marker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    Path("config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}'
    )
    Path("evil.py").write_text(leaves(marker))
    with pytest.raises(BadInput, match="cannot be loaded"):
        engine("hf:.")
    assert capfd.readouterr().out == ""
    assert not marker.exists()
