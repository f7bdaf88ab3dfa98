"""What the tests of the harness share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from lm_eval import evaluator
from lm_eval.tasks import TaskManager

from statetrack.integrations.lm_eval.definitions import files
from tests.integrations.lm_eval import tiny_model


@pytest.fixture(scope="session")
def task_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files as the sources define them now."""
    folder = tmp_path_factory.mktemp("tasks")
    for name, text in files():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def evaluate(task_files: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """The harness's own evaluation, on our tasks alone; `metadata` is what the command line's --metadata gives."""

    def run(
        model: Any,
        tasks: list[Any],
        metadata: dict[str, Any] | None = None,
        include: Path | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        paths = [str(path) for path in (task_files, include) if path]
        manager = TaskManager(include_path=paths, include_defaults=False, metadata=metadata)
        found: dict[str, Any] = evaluator.simple_evaluate(model, tasks=tasks, task_manager=manager, **arguments)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "add_env_info", lambda results: None)  # a second each time, for a list of versions
        yield run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.make(tmp_path_factory.mktemp("tiny"))
