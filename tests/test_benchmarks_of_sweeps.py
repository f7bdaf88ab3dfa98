"""`benchmarks.tenth`, a part of `design` that stands for all of it, and `benchmarks.stretch`, which times a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import stretch, tenth
from statetrack.sweeps import read


def test_the_tenth_of_design_is_what_its_rule_gives() -> None:
    everything = tenth.units()
    some = tenth.chosen(everything)
    assert tenth.FILE.read_text() == tenth.text_of(some)
    of_design = {entry.cell for entry in read("design").entries}
    assert {entry.cell for entry in read(str(tenth.FILE)).entries} == {cell for unit in some for cell in unit.cells}
    assert {cell for unit in some for cell in unit.cells} <= of_design
    assert sum(unit.cost for unit in some) == pytest.approx(sum(unit.cost for unit in everything) / 10, rel=0.05)


TINY = """
name: tiny
tasks: [txc]
subjects: [mlp]
lengths: [8]
seeds: 2
protocol: curriculum
settings: {most_checks: 1, polish: 0, batch: 16}
"""


def test_a_stretch_says_where_the_time_of_a_sweep_went_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    asked = [str(tmp_path / "out"), str(tmp_path / "tiny.yaml"), "--device", "cpu"]
    assert stretch.main(asked) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].startswith("tiny: 2 cells in ")
    shares = [float(line.split()[-1].rstrip("%")) for line in first[2:6]]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert "longest: mlp on txc at 8" in first[-1]
    assert stretch.main(asked) == 0
    assert capsys.readouterr().out.startswith("tiny: 0 cells in ")
    assert len((tmp_path / "out" / stretch.LINES).read_text().splitlines()) == 2
