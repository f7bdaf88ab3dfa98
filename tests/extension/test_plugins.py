"""What a package adds goes where it belongs; what is broken in it is named in one line and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import statetrack as st
from statetrack import plugins
from statetrack.diagnosis.examine import MEASUREMENTS
from statetrack.diagnosis.folder import Selection, diagnose_folder
from statetrack.errors import BadInput
from statetrack.models.witnesses import toggle
from statetrack.reports import page_of, report
from statetrack.reports.figures.view import Drawing
from statetrack.results import Store
from statetrack.results.diagnosis import of_cell

Offer = Callable[..., None]
SHORT = {"check_every": 2, "most_checks": 1, "polish": 2, "batch": 4, "validation_rows": 4}
CODE = """
from statetrack.diagnosis.measurement import Measurement
from statetrack.reports.figures.figure import Figure
from statetrack.reports.figures.view import DIAGNOSED, OVERALL, TRAINED, Drawing

def fail(_):
    raise ZeroDivisionError("not today")

def draw(view, mark="point"):
    rows = [{"model": run.model, "seed": run.seed} for run in view.runs]
    spec = {"data": {"name": "rows"}, "mark": mark, "encoding": {"x": {"field": "seed", "type": "quantitative"}}}
    return Figure(f"{view.where}: seeds", "Seeds.", "Seeds.", rows, spec)

NUMBER = 7
GOOD = Measurement(lambda examined: {"count": examined.walk.numbers, "says": "All is well."}, of_state=False)
FAILS = Measurement(fail)
NO_DICT = Measurement(lambda _: 7)
NO_JSON = Measurement(lambda _: {"what": object()})
SEEDS = Drawing(TRAINED, draw)
FAILING = Drawing(OVERALL, fail)
NO_FIGURE = Drawing(TRAINED, lambda view: "a picture")
NO_SPEC = Drawing(TRAINED, lambda view: draw(view, mark="nonsense"))
"""


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offer attributes of CODE, or whatever `module:attribute` is given, in one group."""
    (tmp_path / "additions.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.say.cache_clear()

    def offered(group: str, *pairs: tuple[str, str]) -> None:
        points = [EntryPoint(name, at if ":" in at else f"additions:{at}", group) for name, at in pairs]
        monkeypatch.setattr(plugins, "entry_points", lambda group: [each for each in points if each.group == group])

    return offered


def test_what_is_broken_is_named_in_one_line_and_the_others_are_there(
    offer: Offer, capsys: pytest.CaptureFixture[str]
) -> None:
    offer("g", ("fine", "NUMBER"), ("gone", "no.such.module:X"), ("void", "NOTHING"), ("text", "__name__"))
    for _ in range(2):  # and each is said once
        assert plugins.loaded("g", (), lambda point: plugins.load(point, int)) == {"fine": 7}
    gone, void, text = capsys.readouterr().err.splitlines()
    missing = "no.such.module:X cannot be loaded: ModuleNotFoundError: No module named 'no'"
    assert gone == f"statetrack: gone (g) is left out: {missing}"
    assert void.startswith("statetrack: void (g) is left out: additions:NOTHING cannot be loaded: AttributeError: ")
    assert text == "statetrack: text (g) is left out: additions:__name__ is of the type str, not int"


def test_a_package_that_exits_or_shows_escapes_stops_nothing(
    offer: Offer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    (tmp_path / "colours.py").write_text("raise ValueError('\\x1b[31mred')")
    offer("g", ("fine", "NUMBER"), ("leaves", "leaves:X"), ("colours", "colours:X"))
    assert plugins.loaded("g", (), lambda point: plugins.load(point, int)) == {"fine": 7}
    leaves, colours = capsys.readouterr().err.splitlines()
    assert leaves == "statetrack: leaves (g) is left out: leaves:X cannot be loaded: SystemExit: 3"
    assert colours.endswith("ValueError: \\x1b[31mred")


def test_a_name_that_is_taken_stays_with_its_owner(offer: Offer, capsys: pytest.CaptureFixture[str]) -> None:
    offer("g", ("Ours", "NUMBER"), ("theirs", "NUMBER"), ("Theirs", "CODE"))
    assert {name: point.value for name, point in plugins.offered("g", {"ours"}).items()} == {
        "theirs": "additions:NUMBER"
    }
    assert capsys.readouterr().err.splitlines() == [
        "statetrack: Ours (g) is left out: statetrack has that name already",
        "statetrack: Theirs (g) is left out: theirs (g) has that name already",
    ]


def test_a_measurement_of_ones_own_is_a_section_and_says_its_sentence(offer: Offer) -> None:
    model = toggle([[0, 1], [1, 0]])
    before = st.diagnose("txc", model, trained=16, length=32, stream=64)
    offer(plugins.DIAGNOSTICS, ("Good", "GOOD"))
    after = st.diagnose("txc", model, trained=16, length=32, stream=64)
    assert after["good"]["count"] > 0
    assert after["sentences"] == [*before["sentences"], "All is well."]
    assert {name: after[name] for name in MEASUREMENTS} == {name: before[name] for name in MEASUREMENTS}


def test_a_measurement_that_fails_is_absent_and_the_others_are_there(
    offer: Offer, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(
        plugins.DIAGNOSTICS, ("fails", "FAILS"), ("bare", "NO_DICT"), ("object", "NO_JSON"), ("good", "GOOD"),
        ("sentences", "GOOD"), ("probe", "GOOD"),
    )  # fmt: skip
    found = st.diagnose("txc", toggle([[0, 1], [1, 0]]), trained=16, length=32, stream=64)
    assert found["fails"] == {"absent": "its measurement failed: ZeroDivisionError: not today"}
    assert "TypeError" in found["bare"]["absent"]
    assert "TypeError" in found["object"]["absent"]
    assert "score" in found["probe"]["state"]
    assert found["sentences"][-1] == "All is well."
    said = capsys.readouterr().err.splitlines()
    assert "statetrack: sentences (statetrack.diagnostics) is left out: statetrack has that name already" in said
    assert "statetrack: probe (statetrack.diagnostics) is left out: statetrack has that name already" in said
    assert "statetrack: the diagnostic fails failed on txc: ZeroDivisionError: not today" in said
    assert len(said) == 5


def test_a_diagnosis_from_before_the_package_is_made_again(offer: Offer, tmp_path: Path) -> None:
    few = Selection(stream=64)
    cell = st.train("txc", "gru[hidden=8,dim=4]", length=8, settings=SHORT, out=tmp_path / "out", device="cpu").cell
    assert diagnose_folder(tmp_path / "out", few).found == 0
    assert diagnose_folder(tmp_path / "out", few).found == 1
    offer(plugins.DIAGNOSTICS, ("good", "GOOD"))
    assert diagnose_folder(tmp_path / "out", few).found == 0
    held = of_cell(Store(tmp_path / "out"), cell)
    assert held is not None
    assert held["good"]["says"] == "All is well."
    assert diagnose_folder(tmp_path / "out", few).found == 1


def test_a_figure_of_ones_own_stands_with_those_of_its_place(
    offer: Offer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        st.train("txc", "mlp[hidden=8]", length=8, seed=seed, settings=SHORT, out=tmp_path / "out", device="cpu")
    before = [(section.key, block.key) for section in page_of(tmp_path / "out").sections for block in section.blocks]
    offer(
        plugins.FIGURES, ("seeds", "SEEDS"), ("heat", "SEEDS"), ("fails", "FAILING"), ("picture", "NO_FIGURE"),
        ("unreadable", "NO_SPEC"), ("number", "NUMBER"),
    )  # fmt: skip
    done = report(tmp_path / "out")
    after = [(section.key, block.key) for section in done.page.sections for block in section.blocks]
    assert [each for each in after if each not in before] == [("task-txc", "txc-seeds")]
    assert [each for each in after if each != ("task-txc", "txc-seeds")] == before
    (mine,) = (figure for figure in done.page.figures if figure.key == "txc-seeds")
    assert mine.rows == [{"model": "mlp[hidden=8]", "seed": 0}, {"model": "mlp[hidden=8]", "seed": 1}]
    assert 'id="figure-txc-seeds"' in done.html.read_text()
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in said] == [
        "heat (statetrack.figures) is left out", "number (statetrack.figures) is left out",
        "the figure fails is left out", "the figure txc-picture is left out", "the figure txc-unreadable is left out",
    ]  # fmt: skip


def test_a_figure_without_a_place_is_refused() -> None:
    with pytest.raises(
        BadInput, match="no place 'somewhere'; there are overall, trained, brought, asked, diagnosed, cost"
    ):
        Drawing("somewhere", lambda view: None)
