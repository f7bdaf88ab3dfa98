"""What a result is: the cell it belongs to, the record, the folder that keeps it. Everything else writes or reads it.

It needs neither torch nor typer, and imports nothing of statetrack but what every package may.
"""

from statetrack.results.archive import merge, pack, pack_parts, unpack
from statetrack.results.cell import Cell
from statetrack.results.folder_status import Status, status
from statetrack.results.plans import Sweep
from statetrack.results.records import AskedRecord, EvaluatedRecord, Record, TrainingRecord
from statetrack.results.store import Damage, Store

__all__ = [
    "AskedRecord", "Cell", "Damage", "EvaluatedRecord", "Record", "Status", "Store", "Sweep", "TrainingRecord", "merge",
    "pack", "pack_parts", "status", "unpack",
]  # fmt: skip
