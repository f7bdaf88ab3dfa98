"""What an older commit takes on a CPU beside this tree, in one run: the demo, diagnose of its folder, shared tests.

python -m benchmarks.since                         cd22af2, all three, two rounds
python -m benchmarks.since cd22af2 demo diagnose   these alone
python -m benchmarks.since cd22af2 tests tests/ops tests under these folders of this tree alone

The older commit is checked out beside this tree (`git worktree`, in a temporary folder) and both are run in turn by the
same Python, one thread each. First each runs the demo's smallest part once, so that what numba compiles is there.
`cpu` are the seconds that a command and all its processes worked, which other work on the machine lengthens little;
`clock` is what a person waits. Ratios are of the least of all rounds; they can be quoted from an idle machine alone.

What the older commit did not do (hard words, a network that is proved) is left out of the demo's row, and the whole
demo stands in a row of its own. Tests are those whose name is in both trees, in whatever file, each once in either; one
that was split or renamed is in neither sum. Exit code 1 where a ratio is above its bar.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BARS = {"demo": 0.75, "diagnose": 0.5, "tests": 0.75}
ROUNDS = 2

# `statetrack demo` as both trees know it: no hard words, and no network that is proved.
SHARED_DEMO = """
import sys
from pathlib import Path
from statetrack.cli import demo
if hasattr(demo, "prove"):
    demo.prove = lambda out: None
demo.SWEEP = sys.argv[1]
demo.command(Path(sys.argv[2]), False)
"""

# A pytest plugin: seconds of each test, its fixtures and its processes included.
CLOCK = """
import json, os, resource, time
import pytest

TAKEN = {}

def now():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used), time.monotonic()

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    began = now()
    yield
    TAKEN[item.nodeid] = [after - before for before, after in zip(began, now())]

def pytest_sessionfinish(session):
    with open(os.environ["SINCE_TIMES"], "w") as file:
        json.dump(TAKEN, file)
"""


@dataclass(frozen=True)
class Took:
    """Seconds of the processor and of the clock."""

    cpu: float
    clock: float

    def __add__(self, other: Took) -> Took:
        return Took(self.cpu + other.cpu, self.clock + other.clock)

    @classmethod
    def least(cls, some: list[Took]) -> Took:
        return cls(min(each.cpu for each in some), min(each.clock for each in some))


@dataclass(frozen=True)
class Tree:
    """A checked out commit, and where what it makes is put."""

    path: Path
    made: Path

    def run(self, *arguments: str | Path, may_fail: bool = False, **environment: str) -> Took:
        """Run Python in it; seconds of it and of everything that it started."""
        paths = os.pathsep.join(map(str, (self.made.parent, self.path / "src", self.path)))
        known = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **environment}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.path, env=known, capture_output=True, text=True, check=False)
        clock, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode and not may_fail:
            sys.exit(f"{self.path.name}: {' '.join(map(str, arguments[:3]))} failed:\n{done.stderr[-2000:]}")
        return Took(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, clock)

    def sweep(self, **changes: str) -> Path:
        """The demo's sweep file, with other settings."""
        (shipped,) = self.path.glob("src/statetrack/sweep*/shipped/demo.yaml")
        file, text = self.made / f"{'-'.join(changes) or 'demo'}.yaml", shipped.read_text()
        for name, value in changes.items():
            text, count = re.subn(rf"({name}: ?)[^,}}\n]*", rf"\g<1>{value}", text)
            if not count:
                text = text.replace("settings: {", f"settings: {{{name}: {value}, ")
        file.write_text(text)
        return file

    @property
    def has_words(self) -> bool:
        return (self.path / "src/statetrack/training/words.py").exists()

    def shared_demo(self, out: Path) -> Took:
        shutil.rmtree(out, ignore_errors=True)
        return self.run("-c", SHARED_DEMO, self.sweep(**{"words": "0"} if self.has_words else {}), out)

    def whole_demo(self, out: Path) -> Took:
        shutil.rmtree(out, ignore_errors=True)
        return self.run("-m", "statetrack", "demo", "--out", out)

    def diagnose(self, folder: Path) -> Took:
        shutil.rmtree(folder / "diagnosis", ignore_errors=True)
        return self.run("-m", "statetrack", "diagnose", folder)

    def tests(self, files: list[str]) -> dict[str, Took]:
        """Seconds of each test of these files."""
        times = self.made / "times.json"
        chosen = ["-m", "pytest", "-q", "-p", "clock_of_tests", "-p", "no:cacheprovider", "-p", "no:xdist"]
        self.run(*chosen, *files, may_fail=True, SINCE_TIMES=str(times))
        return {test: Took(*taken) for test, taken in json.loads(times.read_text()).items()}

    def tests_by_name(self) -> dict[str, str]:
        """The file of each test function; names that several files have are left out."""
        found: dict[str, list[str]] = {}
        for path in sorted((self.path / "tests").rglob("test_*.py")):
            for name in set(re.findall(r"^ *def (test_\w+)\(", path.read_text(), re.MULTILINE)):
                found.setdefault(name, []).append(str(path.relative_to(self.path)))
        return {name: files[0] for name, files in found.items() if len(files) == 1}


@contextmanager
def trees(commit: str) -> Iterator[tuple[Tree, Tree]]:
    """The older one and this one, as it lies here."""
    with tempfile.TemporaryDirectory() as made:
        older = Path(made) / "older"
        added = subprocess.run(
            ["git", "worktree", "add", "--detach", older, commit], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if added.returncode:
            sys.exit(f"{commit}: {added.stderr.strip().splitlines()[-1]}")
        (Path(made) / "clock_of_tests.py").write_text(CLOCK)
        try:
            both = Tree(older, Path(made) / "made-older"), Tree(ROOT, Path(made) / "made-here")
            for tree in both:
                tree.made.mkdir()
            yield both
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", older], cwd=ROOT, check=True)


def shared_tests(older: Tree, here: Tree, folders: list[str]) -> dict[str, tuple[str, str]]:
    """Each test function that both have, with its file there and here."""
    then, now = older.tests_by_name(), here.tests_by_name()
    chosen = tuple(folder.rstrip("/") + "/" for folder in folders)
    names = sorted(name for name in then.keys() & now.keys() if not chosen or now[name].startswith(chosen))
    return {name: (then[name], now[name]) for name in names}


def function_of(test: str) -> str:
    """
    >>> function_of("tests/ops/test_e88.py::test_kernels[cpu-1]")
    'test_kernels'
    """
    return test.split("::")[-1].split("[")[0]


def time_tests(older: Tree, here: Tree, folders: list[str]) -> tuple[Took, Took]:
    """All shared tests of either tree; those that take most more time than they did are named."""
    shared = shared_tests(older, here, folders)
    print(f"tests: {len(shared)} functions of both trees", flush=True)
    sums: list[dict[str, Took]] = []
    for tree, at in ((older, 0), (here, 1)):
        taken: dict[str, Took] = {}
        for test, seconds in tree.tests(sorted({files[at] for files in shared.values()})).items():
            if (name := function_of(test)) in shared:
                taken[name] = taken.get(name, Took(0, 0)) + seconds
        sums.append(taken)
    then, now = sums
    both = sorted(then.keys() & now.keys(), key=lambda name: then[name].cpu - now[name].cpu)
    for name in both[:10]:
        print(f"  {then[name].cpu:8.1f} s -> {now[name].cpu:6.1f} s  {shared[name][1]}::{name}")
    return sum((then[name] for name in both), Took(0, 0)), sum((now[name] for name in both), Took(0, 0))


def row(what: str, then: Took | None, now: Took) -> bool:
    """One line of the table; whether its bar is met."""
    if then is None:
        print(f"{what:<34}{'':>10}{now.cpu:>10.1f}{'':>8}{'':>10}{now.clock:>10.1f}", flush=True)
        return True
    ratio, bar = now.cpu / then.cpu, BARS.get(what)
    said = "" if bar is None else f"   at most {bar}: {'yes' if ratio <= bar else 'NO'}"
    clocks = f"{then.clock:>10.1f}{now.clock:>10.1f}{now.clock / then.clock:>8.2f}"
    print(f"{what:<34}{then.cpu:>10.1f}{now.cpu:>10.1f}{ratio:>8.2f}{clocks}{said}", flush=True)
    return bar is None or ratio <= bar


def main(commit: str, chosen: list[str], folders: list[str]) -> int:
    met = True
    with trees(commit) as (older, here):
        outs = [tree.made / "demo" for tree in (older, here)]
        print(f"{'seconds':<34}{commit:>10}{'here':>10}{'ratio':>8}{commit:>10}{'here':>10}{'ratio':>8}")
        print(f"{'':<34}{'cpu':>10}{'cpu':>10}{'':>8}{'clock':>10}{'clock':>10}", flush=True)
        if {"demo", "diagnose"} & set(chosen):
            for tree, out in zip((older, here), outs):  # compiles what numba compiles, and leaves a folder
                tree.shared_demo(out)
        for what, work in (("demo", Tree.shared_demo), ("diagnose", Tree.diagnose)):
            if what in chosen:
                took = [[work(tree, out) for tree, out in zip((older, here), outs)] for _ in range(ROUNDS)]
                met &= row(what, *(Took.least(list(each)) for each in zip(*took)))
        if "demo" in chosen:
            row("  with hard words and a proof", None, here.whole_demo(here.made / "whole"))
        if "tests" in chosen:
            met &= row("tests", *time_tests(older, here, folders))
    return 0 if met else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    named = [each for each in given if each in BARS]
    places = [each for each in given if each.startswith("tests/")]
    commits = [each for each in given if each not in named and each not in places]
    if len(commits) > 1:
        print(f"one commit at most, not {', '.join(commits)}; parts are {', '.join(BARS)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(commits[0] if commits else "cd22af2", named or list(BARS), places))
