"""`st.load`: the records of a folder, some of them, their models, their rows and figures."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import statetrack as st
from statetrack.cli import main
from statetrack.errors import BadInput, pip_line
from statetrack.own_code import pinned
from statetrack.results import Cell, Store, TrainingRecord
from statetrack.results.evaluations import BROKEN, BreakingWord, ForEver, OnWords, Power
from statetrack.results.records import no_result
from tests.reports.made_records import CURRICULUM, DESIGN, fading, trained

QUICK: dict[str, Any] = {"batch": 4, "check_every": 2, "most_checks": 1, "polish": 2, "validation_rows": 4, "words": 0}
OWN = "runs/own.py:Counter[width=8,sha256=4f46d472]"
FILE = """
import torch

class Own(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.table = torch.nn.Embedding(inputs, outputs)

    def forward(self, ids):
        return self.table(ids)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks, three models, two seeds; one cell failed, one file is damaged."""
    folder = tmp_path_factory.mktemp("made") / "out"
    store = Store(folder)
    for task in ("txc", "rtc"):
        for model in ("e88-gain-1l", "mlp", OWN):
            for seed in (0, 1):
                cell = Cell(task, model, 16, seed, CURRICULUM)
                store.write(trained(cell, fading(model, task, seed), stream=2048))
    store.write(trained(Cell("txc", "mlp", 32, 0, DESIGN), fading("mlp", "txc", 0)))
    store.write(no_result(Cell("txc", "mlp", 64, 0, DESIGN), "failed", "out of memory"))
    (folder / f"{'0' * 20}.json").write_text("{")
    return folder


def test_it_holds_every_record_and_names_what_is_damaged(path: Path) -> None:
    folder = st.load(path)
    assert (len(folder), len(folder.cells), len(folder.damaged)) == (14, 14, 1)
    assert [record.cell for record in folder] == folder.cells
    assert folder.cells[0] == Cell("rtc", "e88-gain-1l", 16, 0, CURRICULUM)
    assert folder.status.counts["failed"] == 1
    text = repr(folder)
    assert text.startswith(f"{path}: 14 cells (13 done, 1 failed) of 2 tasks and 3 models\n")
    assert "failed: txc, mlp, length 64, seed 0: out of memory" in text
    assert f"damaged, left out: {'0' * 20}.json" in text
    assert "own.py:Counter[width=8] " in text
    assert "sha256" not in text


def test_what_a_word_breaks_is_nowhere_right_without_it(tmp_path: Path) -> None:
    """A network that random rows find right to the end, and that a word of eleven tokens breaks."""
    store, word = Store(tmp_path), BreakingWord(parts=(Power([1]), Power([0], 10)), family="u v^k", expected=1, given=0)
    for task, seed in (("txc", 0), ("txc", 1), ("rtc", 0)):
        cell = Cell(task, "e88-gain-1l", 16, seed, DESIGN)
        found = OnWords(seed=0, budget=9, words=3, wrong=int(task == "txc" and not seed), breaking=None)
        found = replace(found, breaking=word) if found.wrong else found
        made = trained(cell, lambda t: 1.0 + 0 * t, stream=2048)
        store.write(made.with_evaluations([found]))
    text = repr(st.load(tmp_path))
    table = text.splitlines()[2:5]
    assert all(map(str.endswith, table, ("  broken by", "  -", "  1 0^10 (1 of 2)")))
    assert ("txc, e88-gain-1l, trained at 16: right on random rows to at least 2,048; broken by the word 1 0^10 "
            "(11 tokens) (1 of 2 seeds are broken by one)") in text  # fmt: skip
    drawn = st.load(tmp_path).figure("reach")
    assert {row["task"]: row["shown"] for row in drawn.rows} == {"rtc": "≥ 2,048", "txc": "≥ 2,048, broken by 1 0^10"}
    assert "Some or all seeds are broken by a word: e88-gain-1l on txc by 1 0^10." in drawn.caption
    assert '"broken by"' in str(drawn.whole()).replace("'", '"')
    cell = Cell("txc", "e88-gain-1l", 16, 0, DESIGN)
    record = store.read(cell)
    assert isinstance(record, TrainingRecord)
    store.write(record.with_evaluations([ForEver(seed=0, weights="w", budget=9.0, outcome=BROKEN, word=word)]))
    (line,) = [
        line for line in repr(st.load(tmp_path).where(task="txc", seed=0)).splitlines() if line.startswith("txc  ")
    ]
    assert line.endswith("broken by a word")
    assert "1 0^10" in line


def test_in_a_wide_map_a_mark_stands_for_the_word(tmp_path: Path) -> None:
    store, word = Store(tmp_path), BreakingWord(parts=(Power([1]), Power([0], 10)), family="u v^k", expected=1, given=0)
    for task in ("txc", "rtc", "s3_composition"):
        made = trained(Cell(task, "e88-gain-1l", 16, 0, DESIGN), lambda t: 1.0 + 0 * t)
        store.write(made.with_evaluations([OnWords(seed=0, budget=9, words=3, wrong=1, breaking=word)]))
    drawn = st.load(tmp_path).figure("reach")
    assert {row["shown"] for row in drawn.rows} == {"≥ 256 †"}
    assert "†: Some or all seeds are broken by a word" in drawn.caption


def test_some_of_it(path: Path) -> None:
    folder = st.load(str(path))
    some = folder.where(task="TXC", model=["mlp", "own.py:Counter[width=8]"], length=16)
    assert {(cell.task, cell.subject) for cell in some.cells} == {("txc", "mlp"), ("txc", OWN)}
    assert len(folder.where(seed=[0, 1])) == 14
    assert len(folder.where(seed=np.int64(1))) == 6  # as it comes out of a data frame
    assert [cell.length for cell in folder.where(protocol="design", status="done").cells] == [32]
    assert len(folder.where(task="rtc", length=32)) == 0  # each of the two is there


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": "tcx"}, "unknown task in .*out 'tcx'; did you mean txc"),
        ({"model": "gru"}, "unknown model in .*out 'gru'; known: e88-gain-1l, mlp, runs/own.py"),
        ({"length": 17}, "holds no cell of length 17; there are 16, 32, 64"),
        ({"seed": 5}, "holds no cell of seed 5; there are 0, 1"),
        ({"status": "dne"}, "unknown status 'dne'; did you mean done"),
        ({"lenght": 16}, "unknown argument of where 'lenght'; did you mean length"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        st.load(path).where(**wrong)


def test_one_record_is_found_by_its_cell_its_key_or_as_the_only_one(path: Path) -> None:
    folder = st.load(path)
    cell = folder.cells[3]
    assert folder.record(cell).cell == folder.record(cell.key[:12]).cell == cell
    assert folder.where(protocol="design", status="done").record().cell.length == 32
    for which, count in ((None, "14 cells"), ("zz", "no cell")):
        with pytest.raises(BadInput, match=f"{count} would fit"):
            folder.record(which)


def test_what_would_fit_says_in_what_it_differs(path: Path) -> None:
    with pytest.raises(BadInput, match=r"2 cells would fit, which differ in seed \(0, 1\); narrow it"):
        st.load(path).where(task="txc", model="mlp", length=16).record()


def test_a_task_is_found_by_every_name_that_train_takes(tmp_path: Path) -> None:
    cell = Cell("s3_composition", "gru[dim=4,hidden=8]", 16, 0, DESIGN)
    Store(tmp_path).write(no_result(cell, "failed", "out of memory"))
    folder = st.load(tmp_path)
    for name in ("s3", "S3", "s3_composition"):
        assert folder.where(task=name, model="gru[hidden=8,dim=4]").cells == [cell]
    with pytest.raises(BadInput, match=r"unknown task in .* 's4'"):
        folder.where(task="s4")


def test_code_that_has_changed_since_is_named_with_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(FILE)
    before, after = pinned("own.py:Own"), None
    store = Store(tmp_path / "out")
    store.write(trained(Cell("txc", before, 16, 0, DESIGN), fading("mlp", "txc", 0)))

    def told() -> str:
        assert main(["results", "out"]) == 0
        return capsys.readouterr().out

    assert "sha256" not in told() + repr(st.load("out"))
    Path("own.py").write_text(FILE + "# changed\n")
    after = pinned("own.py:Own")
    old, new = before[-9:-1], after[-9:-1]
    for text in (told(), repr(st.load("out"))):
        assert before in text
        assert f"own.py:Own has changed: these cells are of {old}, the code as it is now is {new}" in text
    store.write(trained(Cell("txc", after, 16, 0, DESIGN), fading("mlp", "txc", 0)))
    assert f"own.py:Own: {new} is the code as it is now, {old} that of before a change" in told()
    Path("own.py").unlink()
    assert "none lies there now" in told()


def test_its_rows_are_those_of_the_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = st.load(path)
    assert main(["results", str(path), "--long", "--csv", str(tmp_path / "command.csv")]) == 0
    capsys.readouterr()
    assert folder.to_csv(tmp_path / "python.csv") == len(folder.rows)
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "command.csv").read_bytes()
    some = folder.where(task="txc", model="e88-gain-1l", seed=0)
    assert [row["tested"] for row in some.rows if row["of"] == "rows"] == [16, 32, 64, 128, 256]


@pytest.mark.needs("pandas")
@pytest.mark.needs("pyarrow")
def test_pandas_and_parquet(path: Path, tmp_path: Path) -> None:
    import pandas

    folder = st.load(path).where(task="txc", model="mlp", length=16)
    frame = folder.to_pandas()
    assert set(frame.seed) == {0, 1}
    assert folder.to_parquet(tmp_path / "a.parquet") == len(frame)
    assert list(pandas.read_parquet(tmp_path / "a.parquet").tested) == list(frame.tested)


@pytest.mark.needs("vl_convert")
def test_figures_by_name(path: Path, tmp_path: Path) -> None:
    folder = st.load(path)
    names = list(folder.figures())
    assert names[0] == "reach"
    assert {"rtc-heat", "rtc-generalisation", "rtc-cost"} <= set(names)
    assert folder.figure().key == "reach"
    some = folder.where(task="rtc")
    drawn = some.figure("generalisation")
    assert drawn.key == "rtc-generalisation"
    assert {row["model"] for row in drawn.rows} == {"e88-gain-1l", "mlp", "runs/own.py:Counter[width=8]"}
    assert drawn.save(tmp_path / "it.svg").read_text().startswith("<svg")
    assert drawn.save(tmp_path / "it.csv").read_text().startswith("model,trained,")
    assert drawn.save(str(tmp_path / "it.pdf")).read_bytes().startswith(b"%PDF")
    with pytest.raises(BadInput, match="unknown kind of figure file 'gif'"):
        drawn.save(tmp_path / "it.gif")
    with pytest.raises(BadInput, match=r"there are several figures 'accuracy': txc-.*rtc-accuracy"):
        folder.figure("accuracy")
    with pytest.raises(BadInput, match="unknown figure 'rtc-heats'; did you mean rtc-heat"):
        some.figure("rtc-heats")


@pytest.mark.needs("vl_convert")
def test_several_figures_of_one_name_say_what_to_narrow_by(tmp_path: Path) -> None:
    for length, rates in ((16, [1e-3]), (32, [2e-3])):
        cell = Cell("txc", "mlp", length, 0, CURRICULUM | {"rates": rates})
        Store(tmp_path).write(trained(cell, fading("mlp", "txc", 0)))
    folder = st.load(tmp_path)
    with pytest.raises(BadInput, match=r"several figures 'generalisation': txc-.* by where\(length=16\)"):
        folder.figure("generalisation")
    assert folder.where(length=16).figure("generalisation").key == "txc-generalisation"


def test_titles_of_columns_are_whole_and_the_longest_length_has_its_label(tmp_path: Path) -> None:
    """What tells columns apart comes last in their titles, which were cut there."""
    word = BreakingWord(parts=(Power([1]), Power([0], 10)), family="u v^k", expected=1, given=0)
    for rate in (0.001, 0.002):
        cell = Cell("txc", "mlp", 16, 0, CURRICULUM | {"rates": [rate]})
        record = trained(cell, lambda t: 1.0 + 0 * t, stream=2**20)
        Store(tmp_path).write(record.with_evaluations([OnWords(seed=0, budget=9, words=3, wrong=1, breaking=word)]))
    folder = st.load(tmp_path)
    lines = repr(folder).splitlines()[-2:]
    assert [line.partition(", trained")[0] for line in lines] == [
        f"txc, mlp, curriculum, rates {rate}" for rate in ("0.001", "0.002")
    ]
    drawn = folder.figure("reach").spec["layer"][0]["encoding"]["x"]
    assert drawn["sort"] == ["txc, curriculum, rates 0.001", "txc, curriculum, rates 0.002"]
    assert drawn["axis"]["labelExpr"] == "split(datum.label, ', ')"  # a line for each part
    assert drawn["axis"]["labelPadding"] >= 2 * drawn["axis"]["labelLineHeight"]
    (axis,) = {
        str(layer["encoding"]["x"]["axis"]["values"])
        for layer in folder.figures()["txc-curriculum-rates-0-001-generalisation"].spec["layer"]
        if "axis" in layer["encoding"]["x"]
    }
    assert axis.endswith(", 1048576]")


def test_a_report_is_of_the_whole_folder(path: Path, tmp_path: Path) -> None:
    folder = st.load(path)
    assert folder.report(tmp_path / "page.html").html == tmp_path / "page.html"
    assert "who keeps track" in (tmp_path / "page.html").read_text()
    with pytest.raises(BadInput, match=r"a report is of a whole folder: st\.report\("):
        folder.where(task="txc").report(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


@pytest.mark.needs("vl_convert")
def test_a_notebook_gets_the_table_and_the_figure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = st.load(path)
    html = folder._repr_html_()
    assert ">right to</th>" in html
    assert "How far each model keeps track" in html
    assert html.count('<img src="data:image/svg+xml;base64,') == 1
    figure = folder.figure()
    bundle = figure._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v6+json"]["title"]["text"] == figure.title
    assert figure.title in bundle["image/svg+xml"]
    assert "title" not in figure.whole()  # a paper has it in its caption
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["application/vnd.vegalite.v6+json"]["datasets"]["rows"]
    assert bundle["text/plain"].startswith("How far each model keeps track\n")
    monkeypatch.setattr("statetrack.notebook.inline.find_spec", lambda name: None)
    monkeypatch.setattr("statetrack.reports.figures.vega.find_spec", lambda name: None)
    assert f"A figure would be here: {escape(pip_line('notebook'))}<" in folder._repr_html_()
    assert "image/svg+xml" not in folder.figure()._repr_mimebundle_()


def test_what_is_no_name_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "out").write(no_result(Cell("txc", "mlp", 8, 0, DESIGN), "failed", "no"))
    folder = st.load(tmp_path / "out")
    with pytest.raises(BadInput, match="task 5 should be a name"):
        folder.where(task=[5])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="5 should be a cell, or the beginning of its key"):
        folder.record(5)  # type: ignore[arg-type]


def test_names_from_elsewhere_are_text(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    store.write(no_result(Cell("txc", "mlp", 8, 0, DESIGN), "failed", "<script>alert(1)</script> \x1b[31m"))
    folder = st.load(tmp_path / "out")
    assert "<script>" not in folder._repr_html_()
    assert "\x1b" not in repr(folder)


@pytest.mark.needs("torch")
def test_models_by_cell(tmp_path: Path) -> None:
    import torch

    results = st.train_many("txc", "gru[hidden=4]", length=4, seeds=[0, 1], out=tmp_path, **QUICK)
    folder = st.load(tmp_path)
    ids = torch.tensor([[1, 0, 1, 1, 0]])
    for result in results:
        assert torch.equal(folder.model(result.cell)(ids), result.model(ids))
        assert folder.result(result.cell.key).record == result.record
    assert torch.equal(folder.where(seed=1).model()(ids), results[1].model(ids))
    assert [each.found for each in folder.results] == [True, True]
    cell = results[0].cell
    assert (folder.diagnoses, folder.diagnosis(cell)) == ({}, None)
    assert main(["diagnose", str(tmp_path), "--key", cell.key, "--length", "8", "--stream", "16"]) == 0
    assert list(folder.diagnoses) == [cell]
    assert folder.diagnoses[cell] == folder.diagnosis(cell)
    assert "txc-diagnosed-positions" in folder.figures()


@pytest.mark.needs("torch")
def test_code_that_a_record_names_is_run_where_it_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.py"
    own.write_text(FILE)
    monkeypatch.setenv("STATETRACK_CONFIG", str(tmp_path / "mine"))
    st.train("txc", f"{own}:Own", length=4, out=tmp_path / "out", **QUICK)
    assert st.load(tmp_path / "out").model().parameter_count == 4  # it was run with this hash
    monkeypatch.setenv("STATETRACK_CONFIG", str(tmp_path / "another"))
    monkeypatch.setattr("statetrack.trust._remembered", set())
    with pytest.raises(BadInput, match="is not run: name it with"):
        st.load(tmp_path / "out").model()
    assert st.load(tmp_path / "out", trust_code=True).model().parameter_count == 4
    monkeypatch.setenv("STATETRACK_CONFIG", str(tmp_path / "third"))
    monkeypatch.setattr("statetrack.trust._remembered", set())
    assert st.load(tmp_path / "out", trust=f"{own}:Own").model().parameter_count == 4
    own.write_text(FILE + "\n")
    with pytest.raises(BadInput, match=r"has changed: its sha256 begins with .*, not with"):
        st.load(tmp_path / "out", trust_code=True).model()


def test_reading_needs_no_torch(path: Path) -> None:
    code = f"""
import sys
sys.modules["torch"] = None
import statetrack as st
folder = st.load({str(path)!r})
folder.where(task="txc").rows, repr(folder)
try:
    folder.model(folder.cells[0])
except st.MissingExtra as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"a trained model needs torch: {pip_line('train')}\n"
