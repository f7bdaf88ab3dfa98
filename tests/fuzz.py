"""Generated inputs for every command: no traceback, no time-out, no more memory than fits.

    python -m tests.fuzz --count 2000                       all of it
    python -m tests.fuzz --count 200 --without-folders      command lines, sweep files and automaton files
    python -m tests.fuzz --case 17                          one of them again, with what it printed

Each case is made from its number alone and run in a process of its own, forked from one that has everything imported.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch comes: a forked process has none of its threads, and waits for them

from tests.fuzz_inputs import Case, Folder, make

MOST_SECONDS = 20.0
MOST_BYTES = 2 * 2**30
CODES = (0, 1, 2)
POLL = 0.002


@dataclass(frozen=True)
class Ended:
    """How a case ended."""

    code: int
    seconds: float
    bytes: int
    out: str
    err: str

    @property
    def problem(self) -> str:
        """What is wrong with that; nothing is an empty text."""
        if self.seconds >= MOST_SECONDS:
            return f"no end after {MOST_SECONDS:.0f} s"
        if "Traceback (most recent call last)" in self.err:
            return "traceback: " + self.err.strip().splitlines()[-1]
        if self.code not in CODES:
            return f"exit code {self.code}"
        if self.bytes > MOST_BYTES:
            return f"{self.bytes / 2**30:.1f} GiB"
        if self.code == 2 and not self.err.strip().splitlines()[-1:]:
            return "exit code 2 without a line"
        return ""


def run(case: Case, folder: Path) -> Ended:
    """Run a case in a child process, in this folder."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    case.prepare(folder)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(case, folder)
    usage = _wait(child, began + MOST_SECONDS)
    took = time.monotonic() - began
    code, most = usage if usage is not None else (-signal.SIGKILL, 0)
    out, err = ((folder / f".{name}").read_text(errors="replace") for name in ("out", "err"))
    return Ended(code, MOST_SECONDS if usage is None else took, most, out, err)


def _wait(child: int, until: float) -> tuple[int, int] | None:
    """The exit code and the most memory of a child; None where it had to be killed."""
    while time.monotonic() < until:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024
        time.sleep(POLL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_child(case: Case, folder: Path) -> None:
    """Become the command, and never return."""
    code = 99
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (2 * MOST_BYTES, 2 * MOST_BYTES))
        os.chdir(folder)
        for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, ".out", 0), (2, ".err", 0)):
            os.dup2(os.open(name, flags or os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
        from statetrack.cli import main

        code = main(case.arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def prepare() -> Folder:
    """Import what the commands import, and train one small model for the commands that read a folder."""
    from statetrack.results.archive import pack
    from statetrack.training import train

    held = Path(tempfile.mkdtemp(prefix="statetrack-fuzz-"))
    settings = {"check_every": 2, "most_checks": 1, "polish": 1, "batch": 2, "warmup": 0, "validation_rows": 16}
    train("txc", "mlp[hidden=4]", length=4, settings=settings, out=held / "results")
    pack(held / "results", held / "results.tar.gz", weights=True)
    return Folder.read(held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--without-folders", action="store_true")
    given = parser.parse_args()
    os.environ["STATETRACK_CONFIG"] = tempfile.mkdtemp(prefix="statetrack-settings-")
    held = prepare()
    numbers = range(given.first, given.first + given.count) if given.case is None else [given.case]
    codes: Counter[int] = Counter()
    problems, slowest, largest = 0, 0.0, 0
    for number in numbers:
        case = make(random.Random(number), held, folders=not given.without_folders)
        with tempfile.TemporaryDirectory() as place:
            ended = run(case, Path(place))
        codes[ended.code] += 1
        slowest, largest = max(slowest, ended.seconds), max(largest, ended.bytes)
        if ended.problem:
            problems += 1
            print(f"{number}: {ended.problem}\n    {case.shown}", flush=True)
        if given.case is not None:
            print(f"{case.shown}\nexit code {ended.code}\n{ended.out}{ended.err}")
    counts = ", ".join(f"{count} x {code}" for code, count in sorted(codes.items()))
    print(f"{len(numbers)} cases, {problems} problems; exit codes: {counts}; slowest {slowest:.1f} s, "
          f"largest {largest / 2**30:.2f} GiB")  # fmt: skip
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
