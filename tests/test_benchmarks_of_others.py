"""`benchmarks.peers` and `benchmarks.since`: what they compare, with stand-ins for a peer and for an older tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import peers, since
from statetrack.sweeps import read

# A peer with E88's own equations, in a package that cannot be imported as a whole.
PEER = """
import torch

def e88_triton(S0, k, v, q, decay):
    S, out = S0, []
    for t in range(len(k)):
        e = v[t] - torch.einsum("bhnv,bhn->bhv", S, k[t])
        S = torch.tanh(decay[t][..., None, None] * S + k[t][..., None] * e[..., None, :])
        out.append(torch.einsum("bhnv,bhn->bhv", S, q[t]))
    return torch.stack(out), S
"""


@pytest.fixture
def elman(tmp_path: Path) -> Path:
    place = tmp_path / "clone" / "elman" / "triton"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").write_text("import an_extension_that_is_not_built")
    (place / "__init__.py").touch()
    (place / "e88_triton_backward.py").write_text(PEER)
    return tmp_path


def test_a_peer_is_compared_where_its_package_is_not_built_and_one_that_is_missing_is_named(
    elman: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert peers.main([str(elman), "elman", "xma", "--device", "cpu"]) == 0
    lines = capfd.readouterr().out.splitlines()
    why = "No module named 'an_extension_that_is_not_built'"
    assert any(line.startswith("  elman itself cannot be imported") and why in line for line in lines)
    rows = [line.split() for line in lines if line.startswith("  e88 ")]
    assert [row[1:3] for row in rows] == [["4x32x2x16", "fp32"], ["4x32x2x16", "bf16"], ["4x32x2x16", "fp32"]]
    ours, theirs, apart = map(float, rows[0][-3:])
    assert max(ours, theirs, apart) < 1e-5
    refused = [line for line in lines if "xma refuses: ModuleNotFoundError: No module named 'xma'" in line]
    assert len(refused) == len(peers.CASES["xma"])


def test_a_peer_that_ends_its_process_is_named_and_nothing_is_compared(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clone" / "elman").mkdir(parents=True)
    (tmp_path / "clone" / "elman" / "__init__.py").write_text("import os; os._exit(9)")
    assert peers.main([str(tmp_path), "elman", "--device", "cpu"]) == 1
    assert "  elman: its process ended with code 9" in capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("peer", peers.CASES)
def test_our_side_of_every_case_is_its_own_reference(peer: str) -> None:
    for case in peers.CASES[peer]:
        leaves = {name: x.requires_grad_() for name, x in case.inputs(peers.SMALL, "cpu", torch.float32).items()}
        exact = case.ours("reference")({name: x.double() for name, x in leaves.items()})
        assert peers.apart(case.ours(None)(leaves).detach(), exact.detach()) < 1e-5, case.what


@pytest.mark.parametrize("given", [["nowhere"], [".", "nobody"], ["."]])
def test_what_cannot_be_timed_is_said_in_one_line(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        peers.main(given)
    said = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert len(said) == 1


def tree(folder: Path, **files: str) -> since.Tree:
    for name, text in files.items():
        path = folder / "tests" / f"test_{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = folder.parent / f"made-{folder.name}"
    made.mkdir()
    (folder.parent / "clock_of_tests.py").write_text(since.CLOCK)
    return since.Tree(folder, made)


BUSY = """
import time
def {name}():
    until = time.process_time() + {seconds}
    while time.process_time() < until:
        pass
"""


def test_tests_are_timed_where_both_trees_have_them_whatever_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = tree(tmp_path / "older", one=BUSY.format(name="test_slow", seconds=0.4) + "def test_gone(): pass\n")
    here = tree(tmp_path / "here", two=BUSY.format(name="test_slow", seconds=0.1) + "def test_new(): assert False\n")
    then, now = since.time_tests(older, here, [])
    assert 0.4 <= then.cpu < 2 * 0.4
    assert 0.1 <= now.cpu < 0.4
    assert "tests/test_two.py::test_slow" in capsys.readouterr().out


def test_a_command_is_timed_with_the_processes_that_it_starts(tmp_path: Path) -> None:
    inner = "import time\nwhile time.process_time() < 0.3: pass"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    assert tree(tmp_path / "one", none="").run("-c", outer).cpu >= 0.3


def test_the_demo_of_this_tree_can_be_run_without_hard_words(tmp_path: Path) -> None:
    here = since.Tree(since.ROOT, tmp_path)
    assert here.has_words
    whole, shared = read(str(here.sweep())), read(str(here.sweep(words="0")))
    assert {entry.words for entry in whole.entries} == {None}
    assert {entry.words for entry in shared.entries} == {0}
    assert shared.cells == whole.cells
