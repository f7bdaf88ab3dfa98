"""Shared by all tests, and by the examples in the docstrings of src.

With STATETRACK_NO_SKIP=1 a skipped test or module is a failure, unless it needs a GPU.
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["STATETRACK_CONFIG"] = tempfile.mkdtemp(prefix="statetrack-settings-")  # the code that a user has run
if shutil.which("nvidia-smi") is None:
    # Triton reads it at its import, which may be any test's: without a GPU its kernels run in its interpreter.
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A shell starts what runs in its background deaf to Ctrl-C, and so would be the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("tests", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

TESTS = Path(__file__).parent / "tests"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        pytest.importorskip(*mark.args)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    if "gpu" not in item.keywords:
        _fail_if_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_collect_file(file_path: Path):
    """Test modules have no docstrings to run. pytest would import each of them twice, and of one whose first import
    fails it would collect at the second what stands above the failure, as if that were all."""
    outcome = yield
    if TESTS in file_path.parents:
        outcome.force_result([node for node in outcome.get_result() if type(node) is pytest.Module])


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """A module can be left out as a whole: a test by importorskip at its top, one of src where a library is missing."""
    outcome = yield
    report = outcome.get_result()
    library = _missing_library(report)
    if library and TESTS not in collector.path.parents:
        # pytest keeps it as far as it got, which would be all of it for the next module that imports it.
        for name in [
            n for n, module in sys.modules.items() if getattr(module, "__file__", None) == str(collector.path)
        ]:
            del sys.modules[name]
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: needs {library}")
    if report.skipped and not _marked_gpu(collector.path):
        _fail_if_skipped(report)


def _missing_library(report: pytest.CollectReport) -> str | None:
    """The library that a module could not be imported for; None where nothing or something else is wrong with it."""
    cause = report.call.excinfo.value.__cause__ if report.failed else None
    missing = isinstance(cause, ModuleNotFoundError) and cause.name and not cause.name.startswith("statetrack")
    return cause.name if missing else None


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get("STATETRACK_NO_SKIP") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped where every test should run: {report.longrepr[-1]}"


def _marked_gpu(module: Path) -> bool:
    """Whether a module's pytestmark names gpu, read from its text: it was skipped before it had one."""
    marks = [node for node in ast.parse(module.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    return any(ast.unparse(node).startswith("pytestmark") and "mark.gpu" in ast.unparse(node) for node in marks)
