"""Inspect as the tests use it: no display, no real-time log, nothing outside the test's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One task through the real eval(); gives its log as it was written."""
    monkeypatch.chdir(tmp_path)

    def once(task: Task, model: Any = "none", **options: Any) -> EvalLog:
        options = {"log_dir": str(tmp_path / "logs"), "display": "none", "log_realtime": False, **options}
        [log] = eval(task, model=model, **options)
        return log

    return once
