"""With STATETRACK_NO_SKIP=1 nothing is left out in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = 'import pytest\npytest.importorskip("no_such_library")\n'
MODULES = {
    "test_missing.py": MISSING,
    "test_gpu.py": MISSING + "pytestmark = [\n    pytest.mark.gpu,\n]\n",
    "test_skipped.py": 'import pytest\ndef test_it():\n    pytest.skip("not today")\n',
    "pytest.ini": "[pytest]\nmarkers = gpu: needs a CUDA device\n",
}


@pytest.mark.parametrize(("strict", "said"), [("1", "1 failed, 1 skipped, 1 error"), ("0", "3 skipped")])
def test_what_is_skipped_is_a_failure_where_all_should_run(tmp_path: Path, strict: str, said: str) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    environment = {**os.environ, "STATETRACK_NO_SKIP": strict}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert said in done.stdout.splitlines()[-1], done.stdout
    assert done.stdout.count("skipped where every test should run") >= 2 * int(strict)
