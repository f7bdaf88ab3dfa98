"""Why a trained model stops tracking state.

import statetrack as st
found = st.diagnose("txc", model, trained=64)       # on any trained model: plain data, see record.py
print(*found["sentences"], sep="\\n")

from statetrack.diagnosis import load                # the trained model of a cell of a folder of results
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statetrack.diagnosis.examine import diagnose
    from statetrack.diagnosis.folder import diagnose_folder
    from statetrack.diagnosis.weights import load

__all__ = ["diagnose", "diagnose_folder", "load"]

_PLACES = {"diagnose": "examine", "diagnose_folder": "folder", "load": "weights"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'statetrack.diagnosis' has no attribute {name!r}")
    from statetrack.errors import need

    need("torch", "train", f"statetrack.diagnosis.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


class _Callable(ModuleType):
    """`statetrack.diagnosis` is this package and, as `st.diagnose(task, model)`, also its main function."""

    def __call__(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.diagnose(*arguments, **options)
        return found


sys.modules[__name__].__class__ = _Callable
