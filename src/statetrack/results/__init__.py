"""What a result is: the cell it belongs to, the record, the folder that keeps it. Everything else writes or reads it.

It needs neither torch nor typer, and imports nothing of statetrack but what every package may.
"""

from statetrack.results.archive import merge, pack, unpack
from statetrack.results.cell import Cell
from statetrack.results.store import Damage, Store

__all__ = ["Cell", "Damage", "Store", "merge", "pack", "unpack"]
