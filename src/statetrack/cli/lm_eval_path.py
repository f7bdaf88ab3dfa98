"""`statetrack lm-eval-path`: the folder that lm_eval's --include_path takes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from statetrack.cli.output import say


def command() -> None:
    """Print the folder with our tasks for lm-evaluation-harness.

    It is needed where lm_eval runs from elsewhere than pip put the tasks, such as from a checkout. With statetrack's
    extra lm-eval, lm_eval finds them by itself.

    Example: lm_eval --include_path $(statetrack lm-eval-path) --tasks s5_composition ...
    """
    from statetrack.integrations.lm_eval.definitions import FOLDER, folder

    place = folder()
    say(place)
    harness = importlib.util.find_spec("lm_eval")
    if harness and harness.origin and Path(harness.origin).parents[1].resolve() / FOLDER == place:
        say("lm_eval has these tasks already: --include_path is not needed", file=sys.stderr)
