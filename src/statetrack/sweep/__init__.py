"""Many cells: what a cell is, and the folder that keeps their results."""

from statetrack.sweep.cell import Cell
from statetrack.sweep.store import Store

__all__ = ["Cell", "Store"]
