"""Nothing is left out in silence: no module that cannot be imported, and with STATETRACK_NO_SKIP=1 no skipped test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MISSING = 'import pytest\npytest.importorskip("no_such_library")\n'
SKIPPED = {
    "test_missing.py": MISSING,
    "test_gpu.py": MISSING + "pytestmark = [\n    pytest.mark.gpu,\n]\n",
    "test_skipped.py": 'import pytest\ndef test_it():\n    pytest.skip("not today")\n',
}
TEST = "def test_it():\n    pass\n"


def pytest_of(folder: Path, modules: dict[str, str], strict: str = "0") -> subprocess.CompletedProcess[str]:
    """What pytest says of modules, with the settings and the conftest of this repository."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name, text in modules.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    environment = {**os.environ, "STATETRACK_NO_SKIP": strict}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.parametrize(("strict", "said"), [("1", "1 failed, 1 skipped, 1 error"), ("0", "3 skipped")])
def test_what_is_skipped_is_a_failure_where_all_should_run(tmp_path: Path, strict: str, said: str) -> None:
    done = pytest_of(tmp_path, {f"tests/{name}": text for name, text in SKIPPED.items()}, strict)
    assert said in done.stdout.splitlines()[-1], done.stdout
    assert done.stdout.count("skipped where every test should run") >= 2 * int(strict)


@pytest.mark.parametrize("broken", ["def broken(:\n", "import no_such_library\n", "from statetrack import no_such\n"])
def test_a_test_module_that_cannot_be_imported_is_an_error_beside_those_that_pass(tmp_path: Path, broken: str) -> None:
    """The test above the line that fails must not run as if it were the whole module."""
    done = pytest_of(tmp_path, {"tests/test_broken.py": TEST + broken, "tests/test_good.py": TEST})
    assert "1 passed, 1 error" in done.stdout.splitlines()[-1], done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("text", "strict", "said"),
    [
        ("import no_such_library\n", "0", "1 passed, 1 skipped"),
        ("import no_such_library\n", "1", "1 passed, 1 error"),
        ("def broken(:\n", "0", "1 passed, 1 error"),
        ("from statetrack import no_such\n", "0", "1 passed, 1 error"),
        ("import statetrack.no_such\n", "0", "1 passed, 1 error"),
    ],
)
def test_a_module_of_src_is_left_out_only_where_a_library_is_missing(
    tmp_path: Path, text: str, strict: str, said: str
) -> None:
    done = pytest_of(tmp_path, {"src/one.py": text, "tests/test_good.py": TEST}, strict)
    assert said in done.stdout.splitlines()[-1], done.stdout
    assert "skipped" not in said or "needs no_such_library" in done.stdout


def test_a_test_says_which_library_it_needs(tmp_path: Path) -> None:
    needing = [f'@pytest.mark.needs("{library}")\ndef test_{library}(): pass\n' for library in ("no_such", "json")]
    done = pytest_of(tmp_path, {"tests/test_needs.py": "import pytest\n" + "".join(needing)})
    assert "1 passed, 1 skipped" in done.stdout.splitlines()[-1], done.stdout
