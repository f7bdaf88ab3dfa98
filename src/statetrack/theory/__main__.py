"""What theory says, on the command line.

python -m statetrack.theory floors                    the floors of RTC, TXC and FSM at lengths 16 to 2048
python -m statetrack.theory floors TASK --length 64
python -m statetrack.theory passport TASK ... | all
python -m statetrack.theory predict MODEL TASK
python -m statetrack.theory reflections GROUP ...
python -m statetrack.theory documents
"""

from __future__ import annotations

import argparse
import sys
import time

from statetrack.errors import BadInput
from statetrack.tasks import names, task
from statetrack.tasks.groups import group
from statetrack.theory import documents, floors, passport, predict
from statetrack.theory.reflections import least_reflections

LENGTHS = (16, 64, 256, 1024, 2048)
COLUMNS = (
    ("rtc", "position"),
    ("rtc", "input"),
    ("txc", "linear logit"),
    ("txc", "position"),
    ("fsm", "constant"),
    ("fsm", "position"),
)


def main(arguments: list[str] | None = None) -> int:
    """Print what was asked for; 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m statetrack.theory")
    parser.add_argument("what", choices=["floors", "passport", "predict", "reflections", "documents"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--length", type=int, default=64)
    given = parser.parse_args(arguments)
    try:
        if given.what == "floors":
            _floors(given.names, given.length)
        elif given.what == "passport":
            _passports(given.names)
        elif given.what == "predict":
            _predict(given.names)
        elif given.what == "reflections":
            _reflections(given.names)
        else:
            _documents()
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _floors(texts: list[str], length: int) -> None:
    for text in texts:
        print(f"{text}, length {length}")
        print(floors(task(text), length).text())
    if texts:
        return
    print(" ".join([f"{'T':>5}", *(f"{f'{name} {floor}':>16}" for name, floor in COLUMNS)]))
    for T in LENGTHS:
        known = {name: floors(task(name), T) for name in ("rtc", "txc", "fsm")}
        print(" ".join([f"{T:5}", *(f"{known[name][floor].average:16.4f}" for name, floor in COLUMNS)]))


def _passports(texts: list[str]) -> None:
    begin = time.perf_counter()
    chosen = list(names()) if texts == ["all"] else texts
    for text in chosen:
        print(f"== {text}")
        print(passport(task(text)).text())
    if texts == ["all"]:
        print(f"{len(chosen)} passports in {time.perf_counter() - begin:.1f} s")


def _predict(texts: list[str]) -> None:
    if len(texts) != 2:
        raise BadInput("predict needs a model and a task")
    for about in ("weights", "training"):
        print(predict(texts[0], task(texts[1]), about).text())


def _reflections(texts: list[str]) -> None:
    for text in texts:
        known = least_reflections(group(text))
        bound = "" if known.exact else " at most"
        print(f"{text:10}{bound} {known.least} reflections a token in one head, {known.each} each in {known.heads}")


def _documents() -> None:
    for known in documents.predictions():
        print(f"{'FALSE ' if known.false else ''}{known.key}: section {known.section}: {known.says}")
        for line in known.argument:
            print(f"    {line}")


if __name__ == "__main__":
    sys.exit(main())
