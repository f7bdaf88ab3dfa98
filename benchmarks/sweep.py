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
from pathlib import Path

from statetrack.results import Store, status
from statetrack.sweeps import Options, run
from tests.sweeps.counted_cells import begun, sweep, with_root

CELLS = int(os.environ.get("CELLS", "10000"))
RUNNER = """
import sys
from tests.sweeps.counted_cells import sweep
from statetrack.sweeps import Options, run
run(sweep(40, log=sys.argv[2], seconds=0.3), sys.argv[1], Options(workers=2))
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


def kills(count: int = 50) -> bool:
    """SIGKILL at random moments of a sweep of 40 cells, begun again when it was done; then one clean run."""
    place, moments = folder(), random.Random(1)
    log, out, twice, cut, rounds = place / "log", place / "out", 0, 0, 1
    for _ in range(count):
        done = {path.stem for path in out.glob("*.json")}
        if len(done) == 40:
            shutil.rmtree(out)
            log.unlink()
            done, rounds = set(), rounds + 1
        before = len(begun(log))
        runner = subprocess.Popen([sys.executable, "-c", RUNNER, str(out), str(log)], start_new_session=True)
        while len(begun(log)) == before and runner.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 1.0))
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        time.sleep(0.1)
        twice += len(done & set(begun(log)[before:]))
        cut += len(set(begun(log)) - {path.stem for path in out.glob("*.json")})
    done, before = {path.stem for path in out.glob("*.json")}, len(begun(log))
    tally = run(sweep(40, log=str(log), seconds=0.3), out, Options(workers=2))
    twice += len(done & set(begun(log)[before:]))
    damaged = len(status(Store(out)).damaged)
    print(f"{count} kills over {rounds} sweeps of 40 cells ({cut} cells cut in their middle), then a clean run")
    print(f"  finished {tally.finished} of 40, damaged files {damaged}, finished cells begun again {twice}")
    shutil.rmtree(place)
    return tally.finished == 40 and damaged == 0 and twice == 0


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
