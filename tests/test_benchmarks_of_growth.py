"""`benchmarks.growth`: what it marks, and what it draws."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import growth


@pytest.fixture
def square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something whose cost is in proportion up to 16 and grows as a square from there."""
    made = growth.Growth("things", "things", (4, 16, 64), (4, 16, 32), lambda size, _: (size * max(1, size / 16), size))
    monkeypatch.setattr(growth, "GROWTHS", {"square": made})


@pytest.mark.usefixtures("square")
def test_what_grows_faster_than_its_size_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert growth.main(["--small", "--pictures", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert [line.split()[3:] for line in lines] == [[], ["2.00"], ["4.00", "above", "2.2"]]
    drawn = ElementTree.fromstring((tmp_path / "growth_square.svg").read_text())
    dots = drawn.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 3
    heights = [float(dot.attrib["cy"]) for dot in dots]
    assert heights[0] == heights[1] < heights[2]  # level, then lower, which is further down


def test_a_step_and_a_sweep_are_measured() -> None:
    took, tokens = growth.step(batch=2, length=8, replicas=2, heads=1)
    assert (took > 0, tokens) == (True, 32)
    took, count = growth.cells(3, True)
    assert (took > 0, count) == (True, 3)


def test_what_does_not_grow_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        growth.main(["hair"])
    assert (ended.value.code, len(capsys.readouterr().err.splitlines())) == (2, 1)
