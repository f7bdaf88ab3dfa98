"""statetrack: can a sequence model keep track of state, how far, and why does it stop?

    import statetrack as st
    task   = st.task("s5_composition")
    batch  = task.sample(length=64, count=256, seed=0, split="train")
    group  = st.group("psl3_4")
    model  = st.model("e88-gain-1l", inputs=task.inputs, outputs=task.outputs)
    result = st.train(task, model, length=64, seed=0)
    found  = st.diagnose(task, result.model, trained=64)

Importing it needs numpy alone; `model`, `train` and `diagnose` bring torch when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statetrack.errors import BadInput, MissingExtra
from statetrack.tasks import Batch, Task, task
from statetrack.tasks.groups import Group, group
from statetrack.version import __version__ as __version__

if TYPE_CHECKING:
    from statetrack.diagnosis import diagnose
    from statetrack.models import model
    from statetrack.training import train

__all__ = ["BadInput", "Batch", "Group", "MissingExtra", "Task", "diagnose", "group", "model", "task", "train"]

_WITH_TORCH = {"diagnose": "statetrack.diagnosis", "model": "statetrack.models", "train": "statetrack.training"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from statetrack.errors import need

    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'statetrack' has no attribute {name!r}")
    need("torch", "train", f"statetrack.{name}")
    return getattr(import_module(_WITH_TORCH[name]), name)
