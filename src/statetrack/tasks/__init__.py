"""What is tracked: exact machines, their samplers, the catalogue of their names."""

from statetrack.tasks.base import Batch, Task
from statetrack.tasks.catalogue import check_kept, given_task, names, select, task, trusted_task

__all__ = ["Batch", "Task", "check_kept", "given_task", "names", "select", "task", "trusted_task"]
