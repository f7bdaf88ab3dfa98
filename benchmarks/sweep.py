"""What a sweep costs beside its cells, and what it survives.

python -m benchmarks.sweep             all four tables
python -m benchmarks.sweep overhead    one of: overhead, ray, kills, disk
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from statetrack.results import Store, status
from statetrack.sweeps import Options, run
from tests.sweeps.counted_cells import begun, sweep, with_root

CELLS = int(os.environ.get("CELLS", "10000"))
RUNNER = """
import sys
from tests.sweeps.counted_cells import sweep
from statetrack.sweeps import Options, run
run(sweep(40, log=sys.argv[2], seconds=0.3, weights=True), sys.argv[1], Options(workers=2))
"""


def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="sweep-"))


def timed(place: Path, options: Options) -> float:
    """The milliseconds that a cell which does nothing costs."""
    cells, began = sweep(CELLS), time.perf_counter()
    assert run(cells, place, options).finished == CELLS
    return 1000 * (time.perf_counter() - began) / CELLS


def overhead() -> bool:
    """Cells that do nothing, on two local workers and in this process; then the status of the folder."""
    print(f"{CELLS:,} cells that do nothing")
    place = folder()
    workers = timed(place / "workers", Options(workers=2))
    print(f"  two workers     {workers:.2f} ms per cell (asked: under 5)")
    alone = timed(place / "alone", Options(workers=0))
    print(f"  in this process {alone:.2f} ms per cell (asked: under 5)")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "statetrack", "status", str(place / "workers")], check=True)
    seconds = time.perf_counter() - began
    print(f"  statetrack status: {seconds:.2f} s with the start of Python (asked: under 2)")
    shutil.rmtree(place)
    return workers < 5 and alone < 5 and seconds < 2


def through_ray() -> bool:
    """The same through a Ray cluster on this machine."""
    import ray

    place = folder()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    each = timed(place / "ray", Options(ray="auto"))
    ray.shutdown()
    shutil.rmtree(place)
    print(f"  Ray             {each:.2f} ms per cell (asked: under 20)")
    return each < 20


def kills(count: int = 100) -> bool:
    """SIGKILL at random moments of two runners on one folder: of a runner, of a worker, or of a runner with its two.

    A sweep of 40 cells is begun again in a fresh folder when it is done. The last is ended by a clean run.
    """
    chance, found, rounds, cells = random.Random(1), Counter[str](), 0, sweep(40, seconds=0.3, weights=True).cells
    while found["kills"] < count:
        place = folder()
        round_ = Round(place, chance)
        round_.kill_until(count, found)
        run(sweep(40, log=str(round_.log), seconds=0.3, weights=True), round_.out, Options(workers=2))
        round_.look()
        store = Store(round_.out)
        found["finished"] += sum(store.read(cell) is not None for cell in round_.cells)
        found["damaged"] += len(status(store).damaged)
        found["weights"] += sum(
            store.path(cell, "safetensors").read_bytes() == b"weights of " + cell.key.encode() for cell in round_.cells
        )
        found["begun"] += len(begun(round_.log))
        found["twice"] += round_.twice
        rounds += 1
        shutil.rmtree(place)
    wanted = rounds * len(cells)
    print(
        f"{found['kills']} kills (a runner {found['runner']}, a worker {found['worker']}, both {found['both']}) "
        f"with two runners on one folder, over {rounds} sweeps of {len(cells)} cells"
    )
    print(
        f"  finished {found['finished']} of {wanted}, with whole weights {found['weights']}, damaged files "
        f"{found['damaged']}, cells begun {found['begun']} times (cut in their middle: {found['begun'] - wanted}), "
        f"finished cells begun again {found['twice']}"
    )
    return found["finished"] == found["weights"] == wanted and not found["damaged"] and not found["twice"]


class Round:
    """Two runners on one folder, and what they did."""

    def __init__(self, place: Path, chance: random.Random) -> None:
        self.log, self.out, self.chance = place / "log", place / "out", chance
        self.cells = sweep(40, log=str(self.log), seconds=0.3, weights=True).cells
        self.runners: list[subprocess.Popen[bytes]] = []
        self.known: dict[str, int] = {}  # how often a cell had been begun when its record was first seen
        self.twice = 0

    def kill_until(self, count: int, found: Counter[str]) -> None:
        """Kill until so many kills are found, or all cells are done."""
        while found["kills"] < count and len(self.known) < len(self.cells):
            while len(self.runners) < 2:
                command = [sys.executable, "-c", RUNNER, str(self.out), str(self.log)]
                self.runners.append(subprocess.Popen(command, start_new_session=True))
            before, until = len(begun(self.log)), time.monotonic() + 10
            while len(begun(self.log)) == before and self._all_run() and time.monotonic() < until:
                self._wait(0.005)
            self._wait(self.chance.uniform(0, 0.5))
            if self._all_run():
                what = self._kill(self.chance.choice(self.runners))
                found.update(["kills", what] if what else [])
            self.runners = [runner for runner in self.runners if runner.poll() is None]
        for runner in self.runners:
            os.killpg(runner.pid, signal.SIGKILL)
            runner.wait()
        self._wait(0.1)

    def _all_run(self) -> bool:
        return all(runner.poll() is None for runner in self.runners)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self.look()
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))
            self.look()

    def look(self) -> None:
        """Which cells are finished by now, and which of them were begun again since."""
        there = {path.stem for path in self.out.glob("*.json")}
        counts = Counter(begun(self.log))
        for key in there:
            self.twice += counts[key] - self.known.setdefault(key, counts[key])
            self.known[key] = counts[key]

    def _kill(self, runner: subprocess.Popen[bytes]) -> str:
        """What was killed; nothing where a runner has no worker yet."""
        what = self.chance.choice(["runner", "worker", "both"])
        if what == "worker":
            found = Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split()
            if not found:
                return ""
            os.kill(int(self.chance.choice(found)), signal.SIGKILL)
            return what
        (os.killpg if what == "both" else os.kill)(runner.pid, signal.SIGKILL)
        runner.wait()
        return what


def disk() -> bool:
    """A disk of 256 kB, as root on Linux: what was finished before it was full is whole."""
    place = folder()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        print("a full disk: not tried, mounting a small one was refused")
        return True
    try:
        cells = sweep(1000)
        try:
            run(cells, place / "out", Options(workers=2))
            said = "nothing"
        except ValueError as error:
            said = str(error)
        standing = status(Store(place / "out"))
        print(f"a full disk: {standing.counts['done']} cells are whole, {len(standing.damaged)} damaged; it said:")
        print(f"  {said.replace(str(place), 'DIR')}")
        return said != "nothing" and "\n" not in said and not standing.damaged and standing.counts["done"] > 0
    finally:
        subprocess.run(["umount", str(place)], check=True)


if __name__ == "__main__":
    os.environ |= {"PYTHONPATH": with_root(), "RAY_AUTH_MODE": "disabled"}  # for the processes that these start
    tables = {"overhead": overhead, "ray": through_ray, "kills": kills, "disk": disk}
    chosen = sys.argv[1:] or list(tables)
    sys.exit(0 if all([tables[name]() for name in chosen]) else "not all of what is asked was reached")
