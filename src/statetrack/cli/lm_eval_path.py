"""`statetrack lm-eval-path`: the folder that lm_eval's --include_path takes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def command() -> None:
    """Print the folder with our tasks for lm-evaluation-harness.

    It is needed where lm_eval runs from elsewhere than pip put statetrack, such as from a checkout. Otherwise lm_eval
    finds the tasks by itself.

    Example: statetrack lm-eval-path
    """
    from statetrack.integrations.lm_eval.definitions import FOLDER, installed_folder

    folder = installed_folder()
    print(folder)
    harness = importlib.util.find_spec("lm_eval")
    if harness and harness.origin and Path(harness.origin).parents[1].resolve() / FOLDER == folder:
        print("lm_eval has these tasks already: --include_path is not needed", file=sys.stderr)
