"""Generated inputs for every command: no traceback, no time-out, no more memory than fits, no escapes to the terminal.

    python -m tests.fuzz --count 2000             all of it
    python -m tests.fuzz --count 2000 --seed 1    other inputs
    python -m tests.fuzz --case FILE              a case that was kept, once more, with what it printed

Hypothesis makes the cases (`tests/fuzz_inputs.py`, `tests/fuzz_folders.py`). Each is run in a process of its own,
forked from one that has everything imported. One that fails is made as small as it can be, shown, and kept in a file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch comes: a forked process has none of its threads, and waits for them

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning
from hypothesis.strategies import SearchStrategy

from tests.fuzz_folders import Held, cases
from tests.fuzz_inputs import TINY, Case

MOST_SECONDS = 20.0
MOST_BYTES = 2 * 2**30
CODES = (0, 1, 2)
POLL = 0.002
BATCH = 10
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


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
        last = (self.err.strip().splitlines() or [""])[-1]
        if self.seconds >= MOST_SECONDS:
            return f"no end after {MOST_SECONDS:.0f} s"
        if "Traceback (most recent call last)" in self.err:
            return f"traceback: {last}"
        if self.code not in CODES:
            return f"exit code {self.code}"
        if self.bytes > MOST_BYTES:
            return f"{self.bytes / 2**30:.1f} GiB"
        if self.code == 2 and not last.startswith("statetrack: "):
            return "exit code 2 without a line"
        if found := CONTROL.search(self.out + self.err):
            return f"the control character {found[0]!r} is printed"
        return ""

    @property
    def kind(self) -> str:
        """The same for problems that are one: a traceback by its place."""
        places = re.findall(r'File "[^"]*/(\w+\.py)", line (\d+)', self.err)
        what = re.sub(r":.*|'.*'", "", self.problem, flags=re.DOTALL)
        return f"{what} {places[-1] if places else ''}" if what else ""


def run(case: Case, folder: Path) -> Ended:
    """Run a case in a child process, in this folder."""
    case.put(folder)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(case, folder)
    usage = _wait(child, began + MOST_SECONDS)
    took = time.monotonic() - began
    code, most = usage if usage is not None else (-signal.SIGKILL, 0)
    out, err = ((folder / f".{name}").read_bytes().decode(errors="replace") for name in ("out", "err"))
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


def prepare() -> Held:
    """Import what the commands import, and fill a folder for those that read one: two networks, one of them looked
    into and one with a proof, dialogues that ended and one that was cut off, a plan, and an archive of it all.
    """
    from statetrack.cli import main
    from statetrack.results.archive import pack

    held = Path(tempfile.mkdtemp(prefix="statetrack-fuzz-"))
    out, text = held / "results", [f"--set={name}={value}" for name, value in TINY.items()]
    (held / "x.yaml").write_text(
        f"name: x\ntasks: [txc]\nlengths: [3]\nseeds: 1\n"
        f"blocks:\n  - {{subjects: ['mlp[hidden=2]'], settings: {TINY}}}\n"
        "  - {subjects: ['ask:none random'], protocol: ask}\n"
    )
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        codes = [
            main(["train", "txc", "gru[hidden=2]", "--length", "4", *text, "--out", str(out)]),
            main(["diagnose", str(out), "--stream", "64"]),
            main(["sweep", str(held / "x.yaml"), "--out", str(out), "--workers", "0"]),
        ]
    assert codes == [0, 0, 0], codes
    _cut_off(out)
    _proved(out)
    pack(out, held / "results.tar.gz", weights=True)
    return Held.read(held)


def _proved(out: Path) -> None:
    """A proof beside weights, which a record speaks of; it is the shape of one, and proves nothing."""
    from statetrack.results import Store, TrainingRecord, proofs
    from statetrack.results.evaluations import PROVED, ForEver

    store = Store(out)
    record = next(record for record in store.records() if isinstance(record, TrainingRecord))
    weights = proofs.weights_hash(store.path(record.cell, "safetensors"))
    array = {"shape": [1, 1, 1], "data": "AAAAAAAA8D8="}
    cover = {"centres": array, "radii": array, "next": {"shape": [1, 2], "data": "AAAAAAAAAAA="}}
    proof = {"task": "txc", "model": "m", "network": "tanh-rnn", "weights": weights, "epsilon": 0.01,
             "covers": [cover], "parts": [{"columns": [[0, 0]], "cover": 0, "start": 0}]}  # fmt: skip
    sha256 = proofs.write(store.path(record.cell, proofs.PROOF), proof)
    claim = ForEver(seed=0, outcome=PROVED, weights=weights, budget=60.0, proof=sha256, epsilon=0.01, margin=1.0)
    store.write(record.with_evaluations([claim]))


def _cut_off(out: Path) -> None:
    """A dialogue that a server failed, with a reply in its record and one in its journal."""
    from dataclasses import replace

    from statetrack.asking import Reply
    from statetrack.asking.journal import Journal
    from statetrack.results import AskedRecord, Store

    store = Store(out)
    (record,) = (each for each in store.records() if isinstance(each, AskedRecord))
    episode = replace(record.episode, ended="server", replies=record.episode.replies[:1], outcomes="+", changes="-",
                      positions=[1], max_length=1)  # fmt: skip
    cell = replace(record.cell, subject="x/y implicit")
    store.write(AskedRecord(cell=cell, status="failed", reason="503", episode=episode))
    Journal(store, cell).append(1, Reply("[answer: 1]"))


class Found(Exception):
    """A case with a problem."""


@cache
def _found(kind: str) -> type[Found]:
    """One type for each kind of problem: hypothesis makes a case of each type as small as it can."""
    return type(kind, (Found,), {})


@dataclass
class Findings:
    """What became of the cases so far; of each kind of problem the last case, which is the smallest in the end."""

    codes: Counter[int] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    smallest: dict[str, tuple[Case, Ended]] = field(default_factory=dict)
    well: set[str] = field(default_factory=set)
    slowest: float = 0.0
    largest: int = 0

    def look(self, case: Case) -> None:
        """Run a case that is new; raises Found where something is wrong with it."""
        if (mark := case.mark) in self.well:
            return
        with tempfile.TemporaryDirectory() as place:
            ended = run(case, Path(place))
        if ended.problem:
            self.smallest[ended.kind] = case, ended
            raise _found(ended.kind)(ended.problem)
        self.well.add(mark)
        self.codes[ended.code] += 1
        self.verbs[case.arguments[0] if case.arguments else ""] += 1
        self.slowest, self.largest = max(self.slowest, ended.seconds), max(self.largest, ended.bytes)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} x {code}" for code, count in sorted(self.codes.items()))
        return (
            f"{self.codes.total()} cases, {len(self.smallest)} problems; exit codes: {counts}; "
            f"{len(self.verbs)} verbs; slowest {self.slowest:.1f} s, largest {self.largest / 2**30:.2f} GiB"
        )


def search(made: SearchStrategy[Case], count: int, start: int) -> Findings:
    """Run so many cases that differ, unless problems are found before.

    They come ten at a time: from then on hypothesis tries each example several times over with little changed, which
    finds bugs that need two equal values, and few of those here.
    """
    found, chance = Findings(), random.Random(start)
    chosen = settings(
        max_examples=BATCH, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # that its texts are long
        while found.codes.total() < count and not found.smallest:
            with contextlib.suppress(Found, ExceptionGroup):  # one, or several kinds
                seed(chance.randrange(2**32))(chosen(given(made)(found.look)))()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=Path)
    asked = parser.parse_args()
    os.environ["STATETRACK_CONFIG"] = tempfile.mkdtemp(prefix="statetrack-settings-")
    held = prepare()
    if asked.case:
        with tempfile.TemporaryDirectory() as place:
            ended = run(Case.read(asked.case), Path(place))
        print(
            f"{Case.read(asked.case).shown}\nexit code {ended.code}\n{ended.out}{ended.err}\n{ended.problem or 'well'}"
        )
        return 1 if ended.problem else 0
    found = search(cases(held), asked.count, asked.seed)
    for number, (case, ended) in enumerate(found.smallest.values()):
        kept = Path(tempfile.gettempdir()) / f"fuzz-{asked.seed}-{number}.json"
        case.write(kept)
        print(f"{ended.problem}\n{case.shown}\n    again: python -m tests.fuzz --case {kept}\n")
    print(found)
    return 1 if found.smallest else 0


if __name__ == "__main__":
    sys.exit(main())
