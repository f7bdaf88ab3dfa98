"""A worker process: `python -m statetrack.sweeps.worker PIPE LIFELINE FOLDER DEVICE WEIGHTS`, started by `local`.

It does the units that come through the pipe, one after the other, and dies with the process that started it: the
lifeline is a pipe that ends at that moment, however that process ended. Asked to end (SIGTERM), it leaves its work
where it is and lets go of the GPU.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from statetrack import trust
from statetrack.errors import BadInput
from statetrack.results.store import Store
from statetrack.sweeps.units import Outcome, Unit
from statetrack.sweeps.work import do


class Ended(SystemExit):
    """It was asked to end. A model that calls sys.exit is another matter, and has failed."""


def main(pipe: int, lifeline: int, folder: str, device: str, weights: bool) -> None:
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    with suppress(EOFError, ConnectionError):  # whoever started it was killed, and the lifeline has not told yet
        _serve(Connection(pipe), Store(Path(folder)), device, weights)


def _serve(starter: Connection, store: Store, device: str, weights: bool) -> None:
    while True:
        unit: Unit | None = starter.recv()
        if unit is None:
            return
        began = time.monotonic()
        answer: tuple[float, dict[str, Outcome]] | str
        try:
            with trust.trusting(*unit.code):
                outcomes = do(unit, store, device, weights)
            answer = time.monotonic() - began, outcomes
        except (BadInput, OSError) as error:  # the folder takes no more
            answer = str(error)
        starter.send(answer)


def _end(number: int, frame: object) -> None:
    raise Ended(128 + number)


def _die_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5] == "weights")
