"""Shared by all tests. With STATETRACK_NO_SKIP=1 a skipped test is a failure, unless it needs a GPU."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("tests", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("STATETRACK_NO_SKIP") == "1" and "gpu" not in item.keywords:
        report.outcome = "failed"
        report.longrepr = f"skipped where every test should run: {report.longrepr[-1]}"
