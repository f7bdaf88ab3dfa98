"""Run a sweep on a Ray cluster. The caller's process holds the claims and writes the folder, so that no node needs to
see it; nodes send records and weights home. Ray retries what it loses with a node; what it gives up is tried again.

A unit that does not notice that its time is over, as in a loop outside Python, takes its process with it. Ray retries
that too, so whoever runs it next must know: `OverdueUnits` is where nodes leave the names of such units.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from statetrack import trust
from statetrack.errors import BadInput, need, one_line
from statetrack.results import AskedRecord, Cell, Store, TrainingRecord, replies
from statetrack.sweeps.local import GRACE, TICK, Tick
from statetrack.sweeps.schedule import Schedule
from statetrack.sweeps.units import LOST, Outcome, Unit
from statetrack.sweeps.work import claimed, give_up, late, perform

MOST_CLAIMED = 400  # cells in flight: each claim is an open file
ANSWER = 5.0  # seconds that a cluster has to answer in
RETRIES = 3  # by Ray, of a task whose node or worker died

Files = dict[str, bytes]  # by name
Home = list[tuple[str, Outcome, Files]]  # of each cell, by key


def with_ray(schedule: Schedule, address: str, per_gpu: int, weights: bool, tick: Tick) -> None:
    """Keep the cluster busy until all units are settled or it is time to stop."""
    ray = need("ray", "ray", "a sweep on Ray")
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    try:
        _feed(ray, schedule, per_gpu, weights, tick)
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    from ray.job_config import JobConfig

    _look_for(address)
    job = JobConfig()
    job._py_driver_sys_path = OwnPath()
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", job_config=job)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(f"no Ray cluster at {address}: {' '.join(str(error).split())}") from None


def _look_for(address: str) -> None:
    """Refuse an address where nobody answers. Ray itself would try for most of a minute; a name that cannot be found
    may take as long, so a thread looks, and is not waited for.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal() and int(port) < 2**16):  # auto, local, or a word that Ray refuses at once
        return
    answered: list[str] = []

    def knock() -> None:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
            answered.append("")
        except (OSError, UnicodeError) as error:
            answered.append(one_line(error))

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(ANSWER)
    if answered != [""]:
        why = answered[0] if answered else f"no answer within {ANSWER:g} seconds"
        raise BadInput(f"no Ray cluster at {address}: {why}")


class OwnPath(list[str]):
    """Where workers import from, besides what is installed at their node. Ray adds the folder that one is in, in front
    of all else, and there anything may lie; it stays out unless this process imports from there itself.
    """

    def extend(self, more: Iterable[str]) -> None:
        own = {os.path.abspath(part) for part in sys.path}
        super().extend(path for path in more if path in own)


def _feed(ray: Any, schedule: Schedule, per_gpu: int, weights: bool, tick: Tick) -> None:
    remote = ray.remote(at_node)
    overdue = ray.remote(num_cpus=0)(OverdueUnits).remote() if schedule.cell_seconds else None
    flying: dict[Any, UnitInFlight] = {}
    try:
        while not schedule.over and not tick():
            _launch(ray, remote, schedule, flying, per_gpu, weights, overdue)
            if not flying:
                time.sleep(TICK)
                continue
            ray.wait(list(flying), num_returns=1, timeout=TICK)
            ready, _ = ray.wait(list(flying), num_returns=len(flying), timeout=0)
            for reference in ready:
                flying.pop(reference).land(ray, reference, schedule)
    finally:
        for reference, flight in flying.items():
            ray.cancel(reference, force=True)
            flight.claims.close()


class UnitInFlight:
    """A unit that is under way: its claims, and the cells that are ours."""

    def __init__(self, unit: Unit, schedule: Schedule) -> None:
        self.unit = unit
        self.claims = ExitStack()
        self.mine, self.outcomes = self.claims.enter_context(claimed(unit, schedule.store))

    def land(self, ray: Any, reference: Any, schedule: Schedule) -> None:
        """Write down what came home."""
        with self.claims:
            try:
                home: Home = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = f"lost by Ray ({type(error).__name__})"
                self.outcomes |= {cell.key: Outcome(LOST, 0.0, reason) for cell in self.mine}
            else:
                self._keep(home, schedule)
        schedule.settle(self.unit, self.outcomes)

    def _keep(self, home: Home, schedule: Schedule) -> None:
        for key, outcome, files in home:
            for name in sorted(files, reverse=True):  # weights, then the record: where it is, its files are
                schedule.store.put(name, files[name], outcome.seconds)
            if (journal := f"{key}.{replies.ENDING}") not in files:  # the record holds its replies now
                (schedule.store.folder / journal).unlink(missing_ok=True)
            self.outcomes[key] = outcome


class OverdueUnits:
    """An actor: the units that were ended because they took too long, by name."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def add(self, name: str) -> None:
        self.names.add(name)

    def has(self, name: str) -> bool:
        return name in self.names


def _launch(
    ray: Any, remote: Any, schedule: Schedule, flying: dict[Any, UnitInFlight], per_gpu: int, weights: bool,
    overdue: Any,
) -> None:  # fmt: skip
    slots, gpus = _slots(ray)
    while len(flying) < 2 * slots and sum(len(flight.mine) for flight in flying.values()) < MOST_CLAIMED:
        unit = schedule.next()
        if unit is None:
            return
        flight = UnitInFlight(unit, schedule)
        if not flight.mine:
            flight.claims.close()
            schedule.settle(unit, flight.outcomes)
            continue
        asked = options(unit, 1 / per_gpu if gpus else 0.0)
        mine, files = unit.of(flight.mine), _unfinished_files(schedule.store, flight.mine)
        limit = None if mine.seconds is None else mine.seconds + GRACE
        flying[remote.options(**asked).remote(mine, files, weights, overdue, limit)] = flight


def _slots(ray: Any) -> tuple[int, int]:
    resources = ray.cluster_resources()
    return max(4, int(resources.get("CPU", 0))), int(resources.get("GPU", 0))


def options(unit: Unit, gpus: float) -> dict[str, Any]:
    """What Ray is asked for: one core and a share of a GPU, unless the block says otherwise.

    >>> options(Unit("", (), 1.0, {"cpus": 2, "tpu_host": 1}), 0.25)["resources"]
    {'tpu_host': 1}
    """
    own = dict(unit.resources)
    asked: dict[str, Any] = {"num_cpus": own.pop("cpus", 1), "num_gpus": own.pop("gpus", gpus), "max_retries": RETRIES}
    if unit.alone and asked["num_gpus"]:
        asked["num_gpus"] = max(1, asked["num_gpus"])
    if "memory_gb" in own:
        asked["memory"] = int(own.pop("memory_gb") * 2**30)
    return asked | {"resources": own}


def _unfinished_files(store: Store, cells: Iterable[Cell]) -> Files:
    """What the folder holds of cells that are not finished yet, for the node to go on from."""
    kept = [path for cell in cells for path in store.files(cell, replies.ENDING)]
    kept += [
        path
        for cell in cells
        if isinstance(store.record(cell), TrainingRecord | AskedRecord)
        for ending in ("json", "safetensors")
        for path in store.files(cell, ending)
    ]
    return {path.name: path.read_bytes() for path in kept}


def at_node(unit: Unit, files: Files, weights: bool, overdue: Any = None, limit: float | None = None) -> Home:
    """Run a unit on the node where this is, and send all of it home. After `limit` seconds the process is ended."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "results")
        for name, data in files.items():
            store.put(name, data)
        if overdue is not None and _get(overdue.has.remote(unit.name)):
            outcomes = give_up(unit, store, late(unit))
        else:
            with trust.trusting(*unit.code), _ended_after(limit, unit, overdue):
                outcomes = perform(unit, store, Path(folder) / "work", "auto", weights)
        if any(outcome.status == LOST for outcome in outcomes.values()):
            os._exit(1)  # nothing more runs on the GPU in this process: Ray tries in another
        return [(cell.key, outcomes[cell.key], _files(store, cell)) for cell in unit.cells]


@contextmanager
def _ended_after(seconds: float | None, unit: Unit, overdue: Any) -> Iterator[None]:
    """End this process if what is inside takes longer, and leave word of it."""
    if seconds is None:
        yield
        return

    def end() -> None:
        _get(overdue.add.remote(unit.name))
        os._exit(1)

    watch = threading.Timer(seconds, end)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _get(reference: Any) -> Any:
    import ray

    return ray.get(reference)


def _files(store: Store, cell: Cell) -> Files:
    return {path.name: path.read_bytes() for path in store.folder.glob(f"{cell.key}.*")}
