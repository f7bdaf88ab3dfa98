"""At build time: write the task files, and put them beside lm-evaluation-harness's own, where it looks for tasks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TaskFiles(BuildHookInterface):
    """Adds lm_eval/tasks/state_tracking/*.yaml to the wheel, an editable one included."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root).parent / "src"))
        from statetrack.integrations.lm_eval.definitions import FOLDER, files

        self.folder = tempfile.TemporaryDirectory()
        for name, text in files():
            path = Path(self.folder.name, name)
            path.write_text(text, encoding="utf-8")
            for kind in ("force_include", "force_include_editable"):
                build_data[kind][str(path)] = f"{FOLDER}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.folder.cleanup()
