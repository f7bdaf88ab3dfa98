"""Data sets: writing rows to files or to the hub, reading published ones back, and auditing what they hold."""

from statetrack.data.audit import Audit, audit
from statetrack.data.publish import publish
from statetrack.data.write import DataRequest, write

__all__ = ["Audit", "DataRequest", "audit", "publish", "write"]
