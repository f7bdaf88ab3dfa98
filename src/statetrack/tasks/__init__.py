"""What is tracked: exact machines, their samplers, the catalogue of their names."""

from statetrack.tasks.base import Batch, Task
from statetrack.tasks.catalogue import names, select, task

__all__ = ["Batch", "Task", "names", "select", "task"]
