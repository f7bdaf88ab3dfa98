"""statetrack: can a sequence model keep track of state, how far, and why does it stop?

    import statetrack as st
    task   = st.task("s5_composition")
    batch  = task.sample(length=64, count=256, seed=0, split="train")
    group  = st.group("psl3_4")
    model  = st.model("e88-gain-1l", inputs=task.inputs, outputs=task.outputs)
    result = st.train(task, model, length=64, seed=0)                 # train_many for several seeds
    found  = st.evaluate(task, result, lengths=[64, 1024], stream=65536)
    diagnosis = st.diagnose(task, result)
    proof  = st.certify(task, result)                                 # for ever, until which word, or open
    asked  = st.ask("track_the_stat.median", "hf:PATH", samples=20)
    folder = st.sweep("demo", "results")                              # st.load("results") reads one that is there
    folder.to_pandas(), folder.figure(), st.report("results")

Each brings what it needs when it is first used: tasks and groups numpy; `model`, `train`, `evaluate`, `diagnose` and
`certify` torch. docs/python.md says more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from statetrack import display
from statetrack.errors import BadInput, MissingExtra, need
from statetrack.version import __version__ as __version__

display.made_by("statetrack.notebook.inline")

if TYPE_CHECKING:
    from statetrack.asking import Asked, ask
    from statetrack.certificates.certify import Certificate
    from statetrack.certificates.network import certify
    from statetrack.diagnosis import diagnose
    from statetrack.models import model
    from statetrack.notebook import ResultsFolder, load, sweep
    from statetrack.reports import report
    from statetrack.tasks import Batch, Task, task
    from statetrack.tasks.groups.build import group
    from statetrack.tasks.groups.group import Group
    from statetrack.training import Result, train, train_many
    from statetrack.training.existing import evaluate

__all__ = [
    "Asked", "BadInput", "Batch", "Certificate", "Group", "MissingExtra", "Result", "ResultsFolder", "Task", "ask",
    "certify", "diagnose", "evaluate", "group", "load", "model", "report", "sweep", "task", "train", "train_many",
]  # fmt: skip

_WITH_TORCH = {
    "Certificate": "statetrack.certificates.certify", "certify": "statetrack.certificates.network",
    "Result": "statetrack.training", "diagnose": "statetrack.diagnosis",
    "evaluate": "statetrack.training.existing", "model": "statetrack.models",
    "train": "statetrack.training", "train_many": "statetrack.training",
}  # fmt: skip
_PLACES = _WITH_TORCH | {
    "Batch": "statetrack.tasks", "Task": "statetrack.tasks", "task": "statetrack.tasks",
    "Group": "statetrack.tasks.groups", "group": "statetrack.tasks.groups",
    "Asked": "statetrack.asking", "ask": "statetrack.asking", "report": "statetrack.reports",
    "ResultsFolder": "statetrack.notebook", "load": "statetrack.notebook", "sweep": "statetrack.notebook",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'statetrack' has no attribute {name!r}")
    if name in _WITH_TORCH:
        need("torch", "train", f"statetrack.{name}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """Everything that can be asked for, also what is not imported yet, and nothing else."""
    return sorted([*__all__, "__version__", "__doc__"])
