"""Data sets: writing a task's rows to files, reading published ones back, and auditing what they hold."""

from statetrack.data.audit import Audit, audit
from statetrack.data.write import DataRequest, write

__all__ = ["Audit", "DataRequest", "audit", "write"]
