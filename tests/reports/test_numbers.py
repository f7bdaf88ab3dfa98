"""The numbers that a page shows, worked out again from the records by another way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack import formatting
from statetrack.reports import figure_data, page_of, predictions, report
from statetrack.reports import folder as folders
from statetrack.reports.figures import charts, curves, diagnosis
from statetrack.reports.figures.figure import Figure
from statetrack.reports.table import text_of
from statetrack.results import Cell, Store
from statetrack.results.curve import kept
from statetrack.results.diagnosis import rounded
from statetrack.results.records import DIVERGED
from statetrack.tasks import task
from statetrack.theory import floors
from statetrack.verdicts.judge import counts
from statetrack.verdicts.tracked_length import reach, separation
from tests.reports import made_records


@pytest.fixture(scope="module")
def held(small: Path) -> folders.Folder:
    return folders.read(small)


@pytest.fixture(scope="module")
def raw(small: Path) -> list[dict]:
    """The numbers of the records by their names in 0.1.0."""
    return [record.flat() for record in Store(small).records()]


@pytest.fixture(scope="module")
def page(small: Path):
    return page_of(small)


def figure(page, key: str) -> Figure:
    return next(each for each in page.figures if each.key == key)


def of(raw: list[dict], task_name: str, model: str, length: int) -> list[dict]:
    cells = [(record["cell"], record) for record in raw]
    return [r for c, r in cells if (c["task"], c["subject"], c["length"]) == (task_name, model, length)]


def test_every_seed_is_a_point_of_the_accuracy_figure(page, raw):
    rows = figure(page, "txc-accuracy").rows
    trained = [record for record in raw if record["cell"]["task"] == "txc"]
    assert len(rows) == len(trained) == 45
    for row in rows:
        (record,) = [r for r in of(raw, "txc", row["model"], row["length"]) if r["cell"]["seed"] == row["seed"]]
        assert row["accuracy"] == pytest.approx(np.mean(record["accuracy_by_position"]))
        assert [row["low"], row["high"]] == record["interval"]
        assert row["floor"] == 0.5


def test_a_heat_map_shows_the_median_and_the_way_from_floor_to_one(page, raw):
    for row in figure(page, "fsm-heat").rows:
        records = of(raw, "fsm", row["model"], row["length"])
        middle = sorted(record["accuracy"] for record in records)[1]
        floor = floors(task("fsm"), row["length"], window=1)["position"].average
        assert row["accuracy"] == middle
        assert row["seeds"] == 3
        rounded = Decimal(middle).quantize(Decimal("0.001"))
        assert row["shown"] == ("1" if middle == 1 else str(min(rounded, Decimal("0.999")))[1:])
        assert row["skill"] == pytest.approx(min(1, max(0, (middle - floor) / (1 - floor))))


def test_length_generalisation_shows_the_end_of_rows_with_its_own_floor(page, raw):
    rows = figure(page, "fsm-generalisation").rows
    row = next(r for r in rows if (r["model"], r["trained"], r["tested"], r["seed"]) == ("mamba2-4l", 16, 64, 1))
    (record,) = [r for r in of(raw, "fsm", "mamba2-4l", 16) if r["cell"]["seed"] == 1]
    assert row["accuracy"] == record["length_generalisation"]["64"]["last_32_accuracy"]
    # By the definition of FSM: 1 from the third one on, p = 1/2; the best constant answer at t = 33..64.
    ones = [sum(math.comb(t, k) for k in range(3)) / 2**t for t in range(33, 65)]
    assert row["floor"] == pytest.approx(np.mean([max(p, 1 - p) for p in ones]))


def test_streams_go_on_where_rows_end(tmp_path):
    cell = Cell("txc", "gru", 64, 0, made_records.DESIGN)
    store = made_records.fill(tmp_path / "s", [])
    store.write(made_records.trained(cell, lambda t: 1 / (1 + t / 1e6), stream=8192))
    rows = figure_data.tested(folders.read(tmp_path / "s").runs)
    assert [(row["tested"], row["of"]) for row in rows] == [
        (64, "rows"), (128, "rows"), (256, "rows"), (512, "rows"), (1024, "rows"), (2048, "stream"), (4096, "stream"),
        (8192, "stream"),
    ]  # fmt: skip
    assert rows[-1]["accuracy"] == 1 / (1 + 8192 / 1e6)
    assert " --stream 8192 --set batch=256 " in dict(page_of(tmp_path / "s").provenance)["results"]


def test_a_file_of_0_1_0_is_shown_as_the_record_that_it_is_read_as(tmp_path):
    """There the stream was part of the cell; here its cell is listed without it."""
    cell = Cell("txc", "gru", 64, 0, made_records.DESIGN)
    made = made_records.trained(cell, lambda t: 1 / (1 + t / 1e6), stream=8192, version="0.1.0")
    record = replace(made, training=replace(made.training, curve=None))
    old = Cell("txc", "gru", 64, 0, made_records.DESIGN | {"stream": 8192})
    made_records.fill(tmp_path / "new", []).write(record)
    made_records.fill(tmp_path / "old", [])
    (tmp_path / "old" / f"{old.key}.json").write_text(json.dumps(record.flat() | {"cell": old.to_dict()}))
    new_page, old_page = page_of(tmp_path / "new", "page"), page_of(tmp_path / "old", "page")
    assert new_page.sections == old_page.sections
    (cells,) = (table for table in old_page.tables if table.key == "cells")
    assert cells.rows[0][0] == cell.key


def test_position_curves_are_medians_of_the_seeds_mean_in_a_bin(page, raw):
    rows = [r for r in figure(page, "txc-positions").rows if (r["model"], r["trained"]) == ("mamba2-4l", 64)]
    edges = figure_data.bins(64)
    curves = [record["accuracy_by_position"] for record in of(raw, "txc", "mamba2-4l", 64)]
    assert len(rows) == len(edges) - 1 <= 48
    for row, begin, end in zip(rows, edges, edges[1:]):
        assert row["accuracy"] == pytest.approx(median(sum(curve[begin:end]) / (end - begin) for curve in curves))


@given(st.integers(1, 5000), st.integers(1, 60))
def test_bins_cover_every_position_once(length, most):
    edges = figure_data.bins(length, most)
    assert edges[0] == 0
    assert edges[-1] == length
    assert all(a < b for a, b in pairwise(edges))
    assert len(edges) - 1 <= max(most, 1)


@given(st.floats(0, 1) | st.floats(0.99, 1))
def test_a_share_is_rounded_and_reads_as_one_only_if_it_is_one(share):
    for text in (formatting.shown(share), formatting.number(share)):
        assert (float(text) == 1) == (share == 1)
        assert abs(share - float(text)) <= 0.0005 + 1e-9 or (share > 0.999 and float(text) == 0.999)
    assert (formatting.short(share) == 1) == (share == 1)
    assert formatting.short(share) == pytest.approx(share, rel=1e-5)


def test_the_table_of_accuracies_shows_the_spread_over_seeds(tmp_path):
    store = made_records.fill(tmp_path / "cells", [])
    for length, changes in ((16, {}), (32, {"status": DIVERGED})):
        for seed, share in enumerate((0.75, 0.5, 0.995)):
            cell = Cell("txc", "gru", length, seed, made_records.DESIGN)
            store.write(made_records.trained(cell, lambda t, share=share: share, **changes if seed else {}))
    done = report(tmp_path / "cells", tmp_path / "page.html")
    table = next(each for each in done.page.tables if each.key == "txc-accuracy")
    assert table.rows[0] == ["gru", ".750 (.500–.995, 1/3)", ".750 (.500–.995, 1/3, 2 diverged)"]


def test_the_summary_counts_what_the_design_documents_say_of_the_models_that_were_run(tmp_path):
    store = made_records.fill(tmp_path / "cells", [])
    for seed in range(5):
        cell = Cell("txc", "e88-1l", 64, seed, made_records.DESIGN)
        store.write(made_records.trained(cell, lambda t: 0.5))
    made = report(tmp_path / "cells", tmp_path / "page.html").page
    told = next(table for table in made.tables if table.key == "documents")
    outcomes = [str(row[2]) for row in told.rows]
    refuted, undecided = outcomes.count("refuted"), outcomes.count("undecided")
    assert refuted > 1
    said = f"Of {len(outcomes)} predictions of the design documents 0 are confirmed, {refuted} refuted and {undecided} "
    assert f"{said}undecided." in made.summary


def test_one_rule_of_rounding_in_page_tables_markdown_latex_and_data(tmp_path):
    folder = tmp_path / "cells"
    store = made_records.fill(folder, [])
    for seed in range(3):
        cell = Cell("txc", "gru", 16, seed, made_records.DESIGN)
        store.write(made_records.trained(cell, lambda t: 0.99999999))
    done = report(folder, tmp_path / "page.html", latex=tmp_path / "tex")
    table = next(each for each in done.page.tables if each.key == "txc-accuracy")
    assert table.rows[0] == ["gru", ".999 (3/3)"]
    assert formatting.RULE in table.caption
    assert r"gru & .999 (3/3) \\" in (tmp_path / "tex" / "txc-accuracy.tex").read_text()
    assert "| gru | .999 (3/3) |" in done.markdown.read_text()
    cells = next(each for each in done.page.tables if each.key == "cells")
    at = list(cells.headers).index("accuracy")
    assert {text_of(row[at]) for row in cells.rows} == {"0.999"}
    heat = figure(done.page, "txc-heat")
    assert {row["shown"] for row in heat.rows} == {".999"}
    assert formatting.RULE in heat.caption
    assert {row["accuracy"] for row in heat.to_dicts()} == {0.999999}
    assert "0.999999" in heat.csv()


@given(st.floats(1e-12, 1e6), st.floats(1, 1e9))
def test_a_logarithmic_axis_has_marks_enough_to_be_read(low, times):
    axis = charts.log_axis([low, low * times], "norm", "norm")
    (begin, end), marks = axis["scale"]["domain"], axis["axis"]["values"]
    assert end / begin >= 10 - 1e-6
    assert begin <= low * (1 + 1e-9)
    assert end >= low * times * (1 - 1e-9)
    assert 3 <= len(marks) <= 8
    assert all(begin * (1 - 1e-6) <= mark <= end * (1 + 1e-6) for mark in marks)


def test_reach_is_the_longest_length_that_most_seeds_end_rightly(held, raw):
    runs = [run for run in held.runs if (run.task, run.model) == ("txc", "e88-published-1l-small")]
    best = 0
    for length in (16, 32, 64):
        records = of(raw, "txc", "e88-published-1l-small", length)
        for n in (length, *(times * length for times in (2, 4, 8, 16))):
            ends = [
                record["last_32_accuracy"]
                if n == length
                else record["length_generalisation"][str(n)]["last_32_accuracy"]
                for record in records
            ]
            if sum(end >= 0.99 for end in ends) >= 2:
                best = max(best, n)
    assert reach(run.record for run in runs).reach == best > 0


def test_reaching_where_a_guess_is_right_is_easy_far_out_too(tmp_path):
    """At the end of rows of 4,096 everybody who says 1 is right on FSM; on TXC nobody is by guessing."""
    made_records.fill(
        tmp_path, [Cell(name, "e88-gain-1l-small", 256, 0, made_records.DESIGN) for name in ("fsm", "txc")]
    )
    runs = {run.task: run for run in folders.read(tmp_path).runs}
    for name, easy in (("fsm", True), ("txc", False)):
        found = reach([runs[name].record])
        assert (found.reach, found.easy) == (4096, easy)


def test_the_worst_case_off_the_data_is_the_median_of_the_seeds_worst(page, raw):
    for row in figure(page, "txc-off").rows:
        if row["case"] == "worst":
            records = of(raw, "txc", row["model"], row["trained"])
            assert row["accuracy"] == median(min(r["off_distribution"]["accuracy"].values()) for r in records)


def test_curves_are_those_of_the_records_thinned_to_few_seeds_and_points(held, page):
    rows = figure(page, "txc-curves").rows
    for run in held.of("txc", "design"):
        curve = run.record.training.curve
        drawn = [
            row for row in rows if (row["model"], row["trained"], row["seed"]) == (run.model, run.trained, run.seed)
        ]
        for column, name in (("update", "updates"), ("length", "lengths"), ("loss", "loss"), ("accuracy", "accuracy")):
            assert [row[column] for row in drawn] == getattr(curve, name)
        assert [row["gradient_norm"] for row in drawn] == curve.gradient_norm
    first = held.of("txc", "design")[0]
    long = made_records.training_curve(64, True, 1.0)
    long = replace(long, **{each: [*getattr(long, each)] * 5 for each in vars(long)})
    many = [replace(first, seed=seed, record=replace(first.record, training=replace(first.record.training, curve=long)))
            for seed in range(5)]  # fmt: skip
    thinned = list(curves.rows_of(many))
    assert {row["seed"] for row in thinned} == set(range(curves.MOST_SEEDS))
    assert len(thinned) == curves.MOST_SEEDS * len(kept(long.lengths, long.accuracy, curves.POINTS))


def test_without_curves_there_is_no_such_figure(tmp_path):
    record = made_records.trained(Cell("txc", "gru", 64, 0, made_records.DESIGN), lambda t: 1.0)
    Store(tmp_path).write(replace(record, training=replace(record.training, curve=None)))
    assert not [each for each in page_of(tmp_path).figures if each.key.endswith("-curves")]


def test_cost_is_one_seeds_share(held, raw):
    rows = figure_data.cost([run for run in held.runs if run.task == "txc"])
    row = next(r for r in rows if (r["model"], r["trained"], r["seed"]) == ("mlp", 32, 2))
    (record,) = [r for r in of(raw, "txc", "mlp", 32) if r["cell"]["seed"] == 2]
    assert row["tokens"] == pytest.approx(record["train_seconds"] * record["tokens_per_second"])
    assert row["seconds"] == record["train_seconds"]
    assert row["tested"] == 512


def test_survival_is_the_share_of_episodes_without_an_error(page, raw):
    rows = [row for row in figure(page, "track-the-stat-median-survival").rows if row["model"] == "random"]
    episodes = [record for record in raw if record["cell"]["subject"] == "random"]
    assert len(episodes) == 12
    for row in rows:  # no episode was cut off, so the share is a plain count
        alive = sum(record["max_length"] >= row["time"] for record in episodes)
        assert row["share"] == pytest.approx(alive / 12)


def test_verdicts_are_those_of_the_theory_on_the_same_records(held, raw):
    lines = predictions.lines(held)
    by_name = {(line.task, line.model): line.judged for line in lines}
    gain = by_name["txc", "e88-gain-1l-small"]
    assert gain.predictions["training"].outcome == "every length"
    said = gain.verdicts["training"].text()
    assert said.startswith(
        "undecided: right far out: 0 of 3 seeds, 3 wrong on rows of another kind (alternating: 0.800)"
    )
    mamba = by_name["txc", "mamba2-4l"]
    assert (mamba.predictions["training"].outcome, mamba.verdicts["training"].outcome) == ("cannot", "undecided")
    said = [p.outcome for line in lines for p in line.judged.predictions.values() if p.outcome != "unknown"]
    assert sum(counts(line.judged for line in lines).values()) == len(said)


def test_words_say_what_the_numbers_say(held, page):
    found = separation(run.record for run in held.of("txc", "design"))
    ends = {}
    for record in (run.record for run in held.of("txc", "design") if run.trained == 64 and run.model != "mlp"):
        ends.setdefault(record.cell.subject, []).append(record.rows[1024].last_32_accuracy)
    middles = [sorted(values)[1] for values in ends.values()]
    assert (found.tested, found.best, found.worst) == (1024, max(middles), min(middles))
    assert found.apart
    text = " ".join(page.summary)
    # trained at 64 the gain form is right at all it was tested on; no other model is
    assert "On txc, e88-gain-1l-small is right to 1,024, the longest tested;" in text
    assert "5 models trained on 2 tasks at length 16 to 64, 90 cells in all" in text
    given = counts(line.judged for line in predictions.lines(held))
    assert f"{given['confirmed']} are confirmed, {given['refuted']} refuted and {given['undecided']} undecided" in text


def test_a_model_that_fails_where_a_guess_does_not_is_told_apart(tmp_path):
    cells = [Cell("fsm", name, 64, 0, made_records.DESIGN) for name in ("gru", "linear-rnn")]
    store = made_records.fill(tmp_path, cells, stream=8192)  # the linear RNN's reach is 600 here
    # where a guess never errs, .999 is not right
    store.write(made_records.trained(cells[0], lambda t: 1.0, stream=8192))
    page = page_of(tmp_path)
    assert (
        "On fsm, gru is right to 8,192, the longest tested, but a guess scores 99 % there as well; linear-rnn loses it "
        "by 128." in " ".join(page.summary)
    )
    rows = figure(page, "reach").rows
    assert max(row["times"] for row in rows) == 128
    assert max(row["level"] for row in rows) == 1  # the darkest colour is for the furthest


def test_csv_holds_the_rows_of_the_figure(page):
    one = figure(page, "txc-accuracy")
    lines = one.csv().splitlines()
    assert lines[0].split(",") == one.columns
    assert len(lines) == len(one.rows) + 1
    at = one.columns.index("accuracy")
    assert [float(line.split(",")[at]) for line in lines[1:]] == pytest.approx([row["accuracy"] for row in one.rows])


def test_what_was_diagnosed_is_shown_as_it_was_said(page):
    rows = figure(page, "txc-separation").rows
    first = [row for row in rows if row["model"] == "e88-gain-1l-small"]
    assert [row["separation"] for row in first] == rounded([10 * 0.97**t for t in (1, 2, 4, 8, 16, 32, 64, 128)])
    found = next(each for each in page.tables if each.key == "txc-findings")
    assert ["e88-gain-1l-small", 64, 0, "fades", "It fades at about 80 steps."] in found.rows
    table = next(each for each in page.tables if each.key == "txc-failures")
    assert table.rows[0][3:6] == ["80 (90 to 120)", "100 (90 to 120)", 1.25]


def test_many_diagnoses_are_thinned_to_the_longest_length_and_few_seeds():
    cells = [Cell("txc", f"m{model}", trained, seed, {}) for model in range(9) for trained in (16, 64)
             for seed in range(3)]  # fmt: skip
    found = [folders.DiagnosedCell(cell.subject, made_records.diagnosis(cell, 0.99, "fades"), False) for cell in cells]
    kept = [each.found for each in diagnosis.chosen(found)]
    assert [(each.model, each.trained, each.seed) for each in kept] == [(f"m{n}", 64, 0) for n in range(9)]
    assert len(diagnosis.chosen(found[:12])) == 6
