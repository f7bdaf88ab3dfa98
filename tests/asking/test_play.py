"""`statetrack play` in a terminal: a pty, with somebody who types."""

from __future__ import annotations

import os
import pty
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from statetrack.cli.play import CLEAR


def session(arguments: list[str], answer: Callable[[list[int]], str]) -> tuple[str, int]:
    """Play in a pseudo-terminal; `answer` sees the numbers so far. Gives the screen's text and the exit code."""
    code = "import sys; from statetrack.cli import main; sys.exit(main(sys.argv[1:]))"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", code, "play", *arguments])
    screen, answered, numbers = "", 0, []
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        screen += data.decode(errors="replace")
        if screen.endswith("Press Enter to begin. "):
            os.write(terminal, b"\n")
        asked = re.findall(r"(\d+)\. (\d+)   \w+: ", screen)
        if len(asked) > answered and screen.endswith(": "):
            answered = len(asked)
            numbers.append(int(asked[-1][1]))
            os.write(terminal, f"{answer(numbers)}\n".encode())
    os.close(terminal)
    return screen, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def median(numbers: list[int]) -> str:
    return f"{statistics.median(numbers):g}"


@pytest.mark.parametrize("history", ["hidden", "shown"])
def test_a_whole_game(history: str, tmp_path: Path) -> None:
    arguments = ["track_the_stat.median", "--history", history, "--length", "25", "--out", str(tmp_path / "out")]
    screen, code = session(arguments, median)
    assert code == 0, screen
    assert "All 25 right. max_length 25" in screen
    assert (CLEAR in screen) == (history == "hidden")
    assert len(list((tmp_path / "out").glob("*.json"))) == 1


def test_a_mistake_ends_it() -> None:
    screen, code = session(["track_the_stat.median"], lambda numbers: median(numbers) if len(numbers) < 3 else "0")
    assert code == 0
    assert "The answer was [median: 63]. max_length 2 of 300" in screen


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_a_key_ends_it_politely_and_the_same_command_goes_on(key: str, tmp_path: Path) -> None:
    arguments = ["track_the_stat.median", "--length", "6", "--out", str(tmp_path / "out")]
    screen, code = session(arguments, lambda numbers: median(numbers) if len(numbers) < 3 else key)
    assert code == 130
    assert "ended by you after 2 answers; the same command goes on from there" in screen
    assert "Traceback" not in screen
    seen = [85, 63]  # sample 0 begins so
    screen, code = session(arguments, lambda numbers: median(seen + numbers))
    assert code == 0, screen
    assert re.findall(r"(\d+)\. (\d+)   median: ", screen)[0] == ("3", "51")
    assert "All 6 right. max_length 6" in screen
