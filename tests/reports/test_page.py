"""What is written: one file that holds everything, of any folder, with nothing in it that a record could misuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import statetrack
from statetrack.cli import main
from statetrack.reports import html_page, page_of, report
from statetrack.reports.table import Table
from statetrack.results import Cell, Store
from statetrack.results.diagnosis import comparison
from statetrack.results.evaluations import OnStream
from statetrack.results.plans import save
from statetrack.results.records import DIVERGED, FAILED, SKIPPED, no_result
from statetrack.sweeps import sweep_of
from tests.reports.made_records import DESIGN, diagnose, fill, small_cells, trained

NASTY = "own.py:</script><img src=x onerror=alert(1)>\"'{{bundle}}|*_Net"


class Reader(HTMLParser):
    """The elements and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


def read(path: Path) -> Reader:
    return Reader(path.read_text())


def embedded(page: Reader) -> dict:
    """What the script draws from."""
    return json.loads(page.scripts[1])


def one(folder: Path, subject: str = "gru", task: str = "txc", length: int = 16, seed: int = 0, **changes) -> Cell:
    cell = Cell(task, subject, length, seed, DESIGN)
    Store(folder).write(trained(cell, lambda t: 0.9, **changes))
    return cell


def test_the_page_holds_all_it_needs_in_the_order_that_was_asked_for(small, tmp_path):
    done = report(small, tmp_path / "page.html")
    page = read(done.html)
    assert not re.findall(r'(?:src|href)\s*=\s*["\'](?!#)', done.html.read_text().split("<script>")[0])
    data = embedded(page)
    assert [figure["key"] for figure in data["figures"]] == [figure.key for figure in done.page.figures]
    assert [s.title for s in done.page.sections] == [
        "Verdicts", "txc", "fsm", "track_the_stat.median", "Diagnostics", "Cost", "About this run",
    ]  # fmt: skip
    for figure in done.page.figures:
        assert figure.caption
        assert figure.alt
        assert figure.rows
    assert (
        page.text.index(done.page.summary[0])
        < page.text.index("Model by model")
        < page.text.index("How to make it again")
    )
    assert f"statetrack sweep made.yaml --out {small}" in page.text
    assert "110 done, 0 diverged, 0 running, 0 failed, 0 skipped, 0 missing, 0 damaged" in page.text


def test_the_design_sweep_stays_small(design, tmp_path):
    done = report(design, tmp_path / "page.html")
    assert done.html.stat().st_size < 10e6
    assert {"reach", "rtc-accuracy", "txc-design-accuracy", "txc-curriculum-heat", "fsm-off"} <= {
        figure.key for figure in done.page.figures
    }
    text = read(done.html).text
    assert "At 512, 1,024, 2,048 some or all points rest on one seed." in text
    heat = next(figure for figure in done.page.figures if figure.key == "rtc-heat")
    assert {row["shown"].endswith("*") for row in heat.rows if row["length"] >= 512} == {True}
    assert {row["shown"].endswith("*") for row in heat.rows if row["length"] < 512} == {False}


def test_figures_travel_as_vega_draws_them_with_their_look_apart(small, tmp_path):
    """Nothing is left to compile in the browser, and what all figures share is there once."""
    done = report(small, tmp_path / "page.html")
    data = embedded(read(done.html))
    assert set(data["themes"]) == {"light", "dark"}
    assert data["themes"]["light"]["axis"]["labelColor"] != data["themes"]["dark"]["axis"]["labelColor"]
    for figure, sent in zip(done.page.figures, data["figures"]):
        assert len(sent["drawings"]) == (figure.spec["columns"] if figure.panel else 1), figure.key
        for number, drawing in enumerate(sent["drawings"], 1):
            assert {"data", "marks", "scales"} <= set(drawing), figure.key
            assert not {"config", "$schema", "encoding", "layer"} & set(drawing), figure.key
            assert "rows" in [each["name"] for each in drawing["data"]]
            assert drawing.get("layout", {}).get("columns", 1) == number


def test_the_summary_is_a_line_for_each_task(small, tmp_path):
    done = report(small, tmp_path / "page.html")
    inside = done.html.read_text().partition('<ul class="summary">')[2].partition("</ul>")[0]
    lines = [Reader(line).text for line in inside.split("<li>")[1:]]
    assert lines == done.page.summary
    for task in ("txc", "fsm", "track_the_stat.median"):
        assert len([line for line in lines if line.startswith(f"On {task}, ")]) == 1
    assert "\n- On fsm, " in done.markdown.read_text()


def test_what_an_argument_refutes_is_shown_where_it_concerns_the_folder(small, tmp_path):
    """A model that the documents do not name: nothing of them. Mamba-2 on FSM: what they say, and what they are."""
    folder = tmp_path / "cells"
    fill(folder, [Cell("txc", "gru", 16, seed, DESIGN) for seed in range(3)])
    assert not {table.key for table in page_of(folder).tables} & {"documents", "arguments"}
    found = {table.key: table for table in page_of(small).tables}
    told = [row[1] for row in found["arguments"].rows]
    judged = [row[1] for row in found["documents"].rows]
    assert "mamba2-4l 90 % on fsm at 64" in judged
    assert "mamba2-4l 70 % on fsm at 1024" not in told + judged  # a number, for which nothing was trained at 1,024
    assert "a linear state decays, so it cannot remember a crossing" in told
    assert not [line for line in told if "linear baseline" in line or "mamba2-32l" in line]
    assert found["arguments"].title.startswith(f"{len(told)} predictions")
    for key in ("documents", "arguments"):
        assert "proposed the tasks RTC, TXC and FSM" in found[key].caption


def test_no_name_breaks_out_of_the_page(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [])
    for seed in range(3):
        one(folder, NASTY, seed=seed)
    Store(folder).write(no_result(Cell("txc", NASTY, 32, 0, DESIGN), FAILED, "</script><b>|boom `x`"))
    done = report(folder, tmp_path / "page.html", title="<title> & {{script}}", latex=tmp_path / "tex")
    page = read(done.html)
    assert page.tags.count("script") == 4
    assert "img" not in page.tags
    assert page.tags.count("b") == len(done.page.facts)
    assert NASTY in page.text
    assert "<title> & {{script}}" in page.text
    rows = embedded(page)["figures"][0]
    assert rows["rows"][0][rows["columns"].index("model")] == NASTY
    markdown = done.markdown.read_text().partition("## How to make it again")[0]  # what follows is code
    assert not re.search(r"<(img|script|/script|b)", markdown)
    assert r"{{bundle}}\|\*\_Net" in markdown
    (verdicts,) = [path.read_text().replace(r"\allowbreak{}", "") for path in done.tables
                   if path.name == "verdicts.tex"]  # fmt: skip
    assert r"own.py:\textless{}/script\textgreater{}" in verdicts
    assert r"\{\{bundle\}\}\textbar{}*\_Net" in verdicts


def test_a_folder_that_is_planned_and_empty_is_a_page_that_says_so(tmp_path):
    save(Store(tmp_path), sweep_of("made", small_cells()))
    assert main(["report", str(tmp_path)]) == 0
    page = read(tmp_path / "report.html")
    assert "This folder holds no results yet. 90 cells are planned." in page.text
    assert "There is nothing to judge yet." in page.text
    assert "no results yet" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["nowhere"], "is not there; a folder of results is needed"),
        (["file"], "is a file; a folder of results is needed"),
        (["cells", "--out", "nowhere/page.html"], "nowhere does not exist"),
        (["empty", "--out", "page.pdf"], "should end in .html"),
        (["empty"], "empty holds no cell of statetrack, so there is nothing to report"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path, monkeypatch, capsys, arguments, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    one(tmp_path / "cells")
    (tmp_path / "file").write_text("")
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr().err
    assert part in said
    assert said.count("\n") == 1


def test_failed_diverged_skipped_and_missing_cells_are_counted_with_reasons(tmp_path):
    folder = tmp_path / "cells"
    cells = [Cell("txc", "gru", 16, seed, DESIGN) for seed in range(6)]
    store = fill(folder, [cells[0], *cells[4:]])
    store.write(no_result(cells[1], FAILED, "out of memory"))
    store.write(no_result(cells[2], SKIPPED, "at length 8 no seed was above the floor"))
    store.write(trained(cells[3], lambda t: 0.6, status=DIVERGED))
    store.path(cells[4]).unlink()
    store.path(cells[5]).write_text('{"cell": ')
    (folder / "diagnosis").mkdir()
    (folder / "diagnosis" / f"{cells[0].key}.json").write_text("[]")
    made = page_of(folder)
    text = html_page.write(made, "")
    assert dict(made.provenance)["cells"] == "1 done, 1 diverged, 0 running, 1 failed, 1 skipped, 2 missing, 1 damaged"
    for part in (
        "txc, gru, length 16, seed 1", "out of memory", "at length 8 no seed was above the floor", "not whole JSON",
        "1 cell diverged in training", "1 cell is failed", "2 cells are missing", "cannot be read",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("where", ["at the length", "beyond it", "in a stream", "nowhere"])
def test_networks_that_overflow_are_counted(where, tmp_path):
    cell = Cell("txc", "gru", 16, 0, DESIGN)
    share = 0.0 if where == "nowhere" else 0.25
    record = trained(cell, lambda t: 0.6)
    here, beyond, *others = record.evaluations
    if where == "beyond it":
        beyond = replace(beyond, unanswered=share)
    elif where == "in a stream":
        along = {"accuracy": {"1024": 0.5}, "unanswered": {"1024": share}}
        others.append(OnStream(steps=1024, seed=0, rows=64, positions=1024, **along))
    else:
        here = replace(here, unanswered=share)
    fill(tmp_path / "cells", []).write(replace(record, evaluations=(here, beyond, *others)))
    said = "1 network gives logits that are not numbers" in html_page.write(page_of(tmp_path / "cells"), "")
    assert said == bool(share)


def test_a_folder_with_failures_alone_is_a_page(tmp_path):
    folder = tmp_path / "cells"
    cell = Cell("txc", "gru", 16, 0, DESIGN)
    fill(folder, []).write(no_result(cell, FAILED, "boom"))
    made = page_of(folder)
    assert made.summary == ["No cell of this folder has a result: 1 failed."]
    assert [section.title for section in made.sections] == ["Verdicts", "txc", "About this run"]


def test_parts_of_a_sweep_are_counted_together_and_named_until_all_are_there(tmp_path):
    sweep = sweep_of("made", small_cells()[:18])
    store = fill(tmp_path, sweep.part(1, 2).cells, "other")
    save(store, sweep.part(1, 2))
    assert ("results", f"statetrack sweep made.yaml --out {tmp_path} --part 1/2") in page_of(tmp_path).provenance
    save(store, sweep.part(2, 2))
    page = page_of(tmp_path)
    assert not [line for key, line in page.provenance if "--part" in line]
    standing = next(table for table in page.tables if table.key == "standing")
    assert ["made", 9, 0, 0, 0, 0, 9] in standing.rows


def test_results_of_another_version_are_named(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [])
    one(folder, version="0.0.1")
    one(folder, seed=1)
    notices = " ".join(page_of(folder).notices)
    assert "1 of 2 cells was made by another version (1 by version 0.0.1)" in notices
    assert statetrack.__version__ in notices


def test_a_record_that_this_version_cannot_read_is_left_out_and_counted(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [])
    one(folder)
    record = trained(Cell("txc", "lstm", 16, 0, DESIGN), lambda t: 0.9)
    here, *others = record.evaluations
    Store(folder).write(replace(record, evaluations=(replace(here, interval=None), *others)))
    made = page_of(folder)
    assert any("1 finished cell holds no accuracy" in notice for notice in made.notices)
    assert "1 model trained on 1 task at length 16, 1 cell in all." in made.summary[0]


def test_a_damaged_plan_is_named_and_the_rest_is_shown(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [Cell("txc", "gru", 16, 0, DESIGN)])
    next((folder / ".sweep" / "plans").glob("*.json")).write_text("{")
    made = page_of(folder)
    assert any("What is missing is not known" in notice for notice in made.notices)
    assert any(figure.key == "txc-accuracy" for figure in made.figures)


def test_a_single_cell_of_ones_own_model_on_ones_own_task(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [])
    cell = Cell("automaton[file=gone.yaml]", "mine.py:Net[dim=8,sha256=0123456789ab]", 16, 0, DESIGN)
    Store(folder).write(trained(cell, lambda t: 0.9, like="txc"))
    made = page_of(folder)
    text = html_page.write(made, "")
    assert "mine.py:Net[dim=8]" in text
    assert "nothing is known of it" in text
    assert "This task is not at hand here" in text
    assert "These points rest on one seed." in text
    line = dict(made.provenance)["results"]
    assert line.startswith("statetrack train 'automaton[file=gone.yaml]' 'mine.py:Net[dim=8,sha256=0123456789ab]'")
    assert "--seed 0 --seeds 1" in line
    assert "--set batch=256" in line


def test_figures_and_tables_for_papers(tmp_path):
    folder = tmp_path / "cells"
    fill(folder, [Cell("txc", name, 16, seed, DESIGN) for name in ("gru", "mlp") for seed in range(3)])
    done = report(folder, figures=tmp_path / "figures")
    names = {figure.key for figure in done.page.figures}
    beginnings = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "csv": b""}
    assert {path.name for path in done.figures} == {f"{name}.{ending}" for name in names for ending in beginnings}
    for path in done.figures:
        assert path.read_bytes().startswith(beginnings[path.suffix[1:]])
        assert path.stat().st_size > 100
    table = (tmp_path / "figures" / "txc-accuracy.tex").read_text()
    assert r"\begin{tabular}{ll}" in table
    assert r"gru & 1 (3/3) \\" in table or r"gru & .9" in table


def test_latex_and_markdown_say_the_same_as_the_rows():
    table = Table("key", "Title", "50 % of it_all", ["model", "n"], [["a_b|c", 3], ["d", 12345.0]])
    assert r"a\_b\textbar{}c & 3 \\" in table.latex()
    assert r"\caption{50 \% of it\_all}" in table.latex()
    assert table.markdown().splitlines()[2:] == [r"| a\_b\|c | 3 |", "| d | 12,345 |"]


def test_two_protocols_of_a_task_are_told_apart(tmp_path):
    folder = tmp_path / "cells"
    cells = [Cell("txc", "gru", 16, seed, DESIGN | {"batch": batch}) for seed in range(3) for batch in (64, 256)]
    fill(folder, cells)
    keys = [figure.key for figure in page_of(folder).figures]
    assert {"txc-design-batch-64-accuracy", "txc-design-batch-256-accuracy"} <= set(keys)
    assert len(keys) == len(set(keys))


def test_a_length_is_chosen_only_where_a_figure_has_several(small, tmp_path):
    folder = tmp_path / "cells"
    fill(
        folder, [Cell("txc", "gru", 16 * batch, seed, DESIGN | {"batch": batch}) for seed in (0, 1) for batch in (1, 2)]
    )
    assert 'class="chooser"' not in html_page.write(page_of(folder), "")
    assert html_page.write(page_of(small), "").count('class="chooser"') == 2


def test_the_report_needs_no_torch(small, tmp_path):
    code = (
        "import sys; from statetrack.cli import main;"
        f"code = main(['report', {str(small)!r}, '--out', {str(tmp_path / 'page.html')!r}]);"
        "print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"


def test_what_is_made_twice_is_the_same(small):
    first, second = (html_page.write(page_of(small), "") for _ in range(2))
    assert first == second


def test_forms_and_patterns_are_those_of_the_diagnoses_that_lie_there(small, tmp_path):
    """Worked out from the cells, so that nothing that was written before can be out of date; what was left out is told
    as it was written.
    """
    found = {table.key: table for table in page_of(small).tables}
    held = comparison(Store(small))
    forms = [table for key, table in found.items() if key.startswith("ablation-")]
    assert len(forms) == 6
    assert all(table.caption.startswith(each["says"]) for table, each in zip(forms, held.ablations, strict=True))
    assert [str(row[5]) for row in found["patterns"].rows] == [e["outcome"] for e in held.patterns if e["task"]]
    assert [[each.what, each.why] for each in held.left_out] == found["left-out"].rows
    bare = tmp_path / "bare"
    fill(bare, small_cells())
    assert "Diagnostics" not in [section.title for section in page_of(bare).sections]
    diagnose(bare, [cell for cell in small_cells() if cell.seed == 0][:3])
    (bare / "diagnosis" / "folder.json").unlink()
    again = {table.key: table for table in page_of(bare).tables}
    assert again.keys() >= {key for key in found if key.startswith("ablation-")} | {"patterns"}
    assert "left-out" not in again
