"""Runs the benchmarks in turn, each in a process of its own, and says what was left out and why.

python -m benchmarks               all that fit this machine
python -m benchmarks data train    these alone

Exit code 1 if one of them failed or did not reach what is asked of it, 2 if there is none of that name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import torch

from tests.reports.test_browser import NAMES as BROWSERS

FOLDER = Path(__file__).parent
BY_HAND = ("peers", "since", "stretch", "tenth")  # they need a folder, or an hour, or measure nothing
ALL = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__") and path.stem not in BY_HAND)
ON_GPU = ("cells", "gpu", "m2rnn", "models")


def obstacle(name: str) -> str | None:
    """Why a benchmark cannot run here; None where it can."""
    if name in ON_GPU and not torch.cuda.is_available():
        return "needs a CUDA device"
    if name == "report" and not any(map(shutil.which, BROWSERS)):
        return f"needs a browser: {', '.join(BROWSERS)}"
    return None


def start(name: str) -> int:
    return subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False).returncode


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in ALL]:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(ALL)}", file=sys.stderr)
        return 2
    left_out = {name: why for name in names or ALL if (why := obstacle(name))}
    failed = []
    for name in names or ALL:
        if name not in left_out:
            print(f"\n== {name}", flush=True)
            if start(name):
                failed.append(name)
    print()
    for name, why in left_out.items():
        print(f"left out: {name}, {why}")
    for name in failed:
        print(f"failed: {name}")
    # What was asked for by name and left out was not done.
    return 1 if failed or (names and left_out) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
