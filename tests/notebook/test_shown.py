"""What is shown at a prompt and in a notebook: short tables with the numbers of the records, and a figure."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import statetrack as st
from statetrack.display import MOST_ROWS, Card, Table
from statetrack.results import AskedRecord, Cell, TrainingRecord
from statetrack.results.evaluations import BreakingWord, OnRows, OnStream, OnWords, Power
from statetrack.results.records import EpisodeRecord, no_result
from tests.reports.made_records import CURRICULUM, fading, trained

OWN = "runs/own.py:Counter[width=8,sha256=4f46d472]"


def record(seed: int = 0, model: str = "e88-published-1l") -> TrainingRecord:
    cell = Cell("txc", model, 16, seed, CURRICULUM)
    return trained(cell, fading(model, "txc", seed), stream=2048)


def test_a_long_table_is_cut_and_says_so() -> None:
    table = Table(["n"], [[str(n)] for n in range(MOST_ROWS + 7)])
    assert table.text().splitlines()[-2:] == [str(MOST_ROWS - 1), "... and 7 more"]
    assert table.html().count("<tr>") == MOST_ROWS + 1
    assert "and 7 more" in table.html()
    assert Card("a <b>", [Table(["<i>"], [["\x1b"]])], ["&"]).html().count("<b>") == 1
    assert "<i>" not in Table(["<i>"], [["<i>"]]).html()
    assert Card("title", below=["end"]).text() == "title\n\nend"


def test_a_task_says_what_it_is_and_works_an_example() -> None:
    class Printer:
        told = ""

        def text(self, told: str) -> None:
            self.told += told

    printer = Printer()
    task = st.task("track_the_stat.median[ask=end]")
    task._repr_pretty_(printer, cycle=False)
    title, what, sizes, _, _, inputs, answer = printer.told.splitlines()
    batch = task.sample(8, 1, split="test")
    assert title == "track_the_stat.median[ask=end]: running median"
    assert what.startswith("The median of the numbers so far")
    assert sizes == "inputs: 100; classes of answers: 199"
    assert inputs.split()[1:] == [str(symbol) for symbol in batch.inputs[0]]
    assert answer.split()[1:] == [f"{task.answers(batch.inputs)[0, -1]:g}"]
    assert "<b>txc: parity</b>" in st.task("txc")._repr_html_()
    assert repr(st.task("txc")).startswith("TXC(")


def test_a_record_is_one_line() -> None:
    whole = record()
    assert repr(whole) == (
        "<TrainingRecord txc, e88-published-1l, length 16, seed 0: done, accuracy 0.9999, floor 0.5000, solved>"
    )
    assert repr(no_result(whole.cell, "failed", "no room")) == (
        "<Record txc, e88-published-1l, length 16, seed 0: failed, no room>"
    )
    episode = EpisodeRecord(ended="wrong", max_length=3, asked=20, outcomes="+++x", positions=[], changes="",
                            replies=[], tokens={})  # fmt: skip
    asked = AskedRecord(cell=Cell("txc", "hf:m", 20, 5, {"name": "ask"}), episode=episode)
    assert repr(asked).endswith("seed 5: done, 3 right before the first error, ended: wrong>")


@pytest.mark.needs("torch")
def test_a_result_is_a_short_table() -> None:
    from statetrack.training import Results

    word = BreakingWord(parts=(Power([1]), Power([0], 22)), family="u v^k", expected=1, given=0)
    told = record()
    more = (OnWords(seed=0, budget=9, words=3, wrong=1, breaking=word), OnStream(seed=0, steps=9, reason="it cannot"))
    result = st.Result(replace(told, evaluations=(*told.evaluations, *more)))
    lines = repr(result).splitlines()
    assert lines[0] == (
        "txc, e88-published-1l, length 16, seed 0: solved on random rows, accuracy 0.9999 (a guess: 0.5000); "
        "broken by the word 1 0^22 (23 tokens)"
    )
    assert lines[1] == "16,000 parameters, state of 256 numbers; trained in 21 s on cpu"
    assert lines[3].split() == ["of", "length", "rows", "accuracy", "95", "%", "floor", "last", "32", "floor", "there",
                                "solved"]  # fmt: skip
    assert [line.split()[:2] for line in lines[4:11]] == [
        ["rows", "16"], ["rows", "32"], ["rows", "64"], ["rows", "128"], ["rows", "256"], ["stream", "1,024"],
        ["stream", "2,048"],
    ]  # fmt: skip
    assert lines[9].split() == ["stream", "1,024", "64", "0.5588", "0.4373", "to", "0.6737", "0.5000", "no"]
    assert 'white-space: nowrap">0.4373 to 0.6737</td>' in result.card().html()
    assert lines[-2] == "no stream of 9: it cannot"
    said = "broken by the word 1 0^22 (23 tokens): it answers 0, right is 1"
    assert lines[-1] == f"right on random rows to 64; {said}"
    assert max(map(len, lines)) < 140
    assert (
        repr(Results([result]))
        .splitlines()[0]
        .endswith("solved by 1 of 1 seed on random rows; 1 of them broken by a word")
    )


@pytest.mark.needs("torch")
def test_results_are_a_list_and_one_table() -> None:
    from statetrack.training import Results

    results = Results(st.Result(record(seed)) for seed in (0, 1))
    assert isinstance(results, list)
    lines = repr(results).splitlines()
    assert lines[0] == "txc, e88-published-1l, length 16: solved by 2 of 2 seeds"
    assert [line.split()[0] for line in lines[2:]] == ["seed", "0", "1"]
    mixed = repr(Results([*results, st.Result(record(0, OWN))])).splitlines()
    assert mixed[0] == "3 results"
    assert mixed[-1].startswith("txc, own.py:Counter[width=8], length 16  0 ")
    assert repr(Results()) == "0 results"
    bare = replace(record(), evaluations=(OnRows(length=16, seed=0),))  # finished, and nothing was asked
    assert repr(Results([st.Result(bare)])).splitlines()[-1].split()[:5] == ["0", "-", "-", "-", "no"]
    assert repr(st.Result(bare)).startswith("txc, e88-published-1l, length 16, seed 0: not solved, accuracy -")


@pytest.mark.needs("torch")
@pytest.mark.needs("vl_convert")
@pytest.mark.needs("pandas")
def test_a_result_has_its_figures_and_rows_wherever_it_came_from() -> None:
    from statetrack.training import Results

    result = st.Result(record())
    assert result.figure().key == "txc-generalisation"
    assert {row["tested"] for row in result.figure().rows} >= {16, 256, 2048}
    assert "txc-positions" in result.figures()
    listed = repr(result.figures()).splitlines()  # names and titles, not the caption of each
    assert [line.split()[0] for line in listed] == list(result.figures())
    assert "txc: accuracy by position" in repr(result.figures())
    html = result._repr_html_()
    assert ">last 32</th>" in html
    assert "txc: length generalisation" in html
    assert 'src="data:image/svg+xml;base64,' in html
    frame = Results([result, st.Result(record(1))]).to_pandas()
    assert set(frame.seed) == {0, 1}
    assert list(frame[(frame.seed == 0) & (frame.of == "rows")].tested) == [16, 32, 64, 128, 256]


@pytest.mark.needs("torch")
def test_a_diagnosis_is_plain_data_and_shown_in_short() -> None:
    from statetrack.models.witnesses import toggle

    found = st.diagnose("txc", toggle([[0, 1], [1, 0]]), trained=16, length=32, stream=64)
    assert json.loads(json.dumps(found))["conclusion"] == found["conclusion"] == "stays apart"
    lines = repr(found).splitlines()
    assert lines[0] == "txc, e88-gain-1l-small, trained at 16, seed 0: stays apart"
    assert lines[1] == found["sentences"][0]
    assert lines[-2:] == ["below 90 %, from           beyond 64", "half way to a guess, from  beyond 64"]
    assert repr(found.diagnosis) == repr(found)


@pytest.mark.needs("torch")
@pytest.mark.needs("vl_convert")
def test_a_result_is_diagnosed_as_it_was_trained() -> None:
    quick = {"batch": 4, "check_every": 2, "most_checks": 1, "polish": 2, "validation_rows": 4}
    result = st.train("txc", "gru[hidden=4]", length=8, seed=3, words=1024, **quick)
    found = st.diagnose("txc", result, length=16, stream=32)
    assert (found["trained"], found["seed"], found["model"]) == (8, 3, "gru[hidden=4]")
    assert result.record.broken is not None
    again = st.diagnose("txc", result.model, trained=8, seed=3, length=16, stream=32, word=result.record.broken.word)
    assert {**found, "seconds": 0} == {**again, "seconds": 0}
    assert st.diagnose("txc", result, trained=4, length=16, stream=32)["trained"] == 4
    assert found.figure().key == "txc-failure"
    assert "txc-failure" in found.figures()
    assert 'src="data:image/svg+xml' in found._repr_html_()
    with pytest.raises(st.BadInput, match="the result is of txc, not of rtc"):
        st.diagnose("rtc", result)
    with pytest.raises(st.BadInput, match="unknown argument of diagnose 'lenght'; did you mean length"):
        st.diagnose("txc", result, lenght=8)


@pytest.mark.needs("torch")
def test_what_there_is_can_be_listed_and_is_imported_when_it_is_used() -> None:
    code = """
import json, sys
import statetrack as st
names = dir(st)
heavy = sorted({"torch", "typer", "rich", "yaml", "pandas", "vl_convert", "IPython"} & set(sys.modules))
print(json.dumps([names, heavy, sorted(st.__all__)]))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names, heavy, public = json.loads(said)
    assert heavy == []
    assert set(names) == {*public, "__doc__", "__version__"}  # and nothing that statetrack itself imports
    assert {"train", "train_many", "model", "diagnose", "report", "load", "task", "group"} <= set(names)
    for name in public:
        assert getattr(st, name).__doc__, name


@pytest.mark.parametrize("name", ["pandas", "vl_convert"])
def test_extras_stay_unimported_until_they_are_needed(name: str, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules[{name!r}] = None
import statetrack as st
st.load({str(tmp_path)!r})
print(repr(st.load({str(tmp_path)!r})))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{tmp_path}: no cells\n"
