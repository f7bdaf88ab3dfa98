"""Tables as LaTeX: no wider than the line, no longer than the page, whatever stands in them."""

from __future__ import annotations

import re

import pytest

from statetrack.reports.latex import LINE, SIZES, latex_table, width
from statetrack.reports.table import Table

SENTENCE = "right to 128, lost at 256 (3 seeds, trained at 64); on other rows 2 of 3 below 99 %"
COLUMN = re.compile(r"p\{(0\.\d+)\\linewidth\}")


def needed(latex: str) -> str:
    return latex.partition("\n")[0]


def widths(latex: str) -> list[float]:
    """Of the columns that break their lines, in pt."""
    return [float(share) * LINE for share in COLUMN.findall(latex.partition("toprule")[0])]


def gap(latex: str) -> float:
    found = re.search(r"\\tabcolsep\}\{([\d.]+)pt\}", latex)
    return 2 * float(found[1]) if found else SIZES[0].gap


def test_what_fits_the_line_stays_as_it_was() -> None:
    table = Table("t", "", "caption", ["model", "accuracy"], [["gru", 0.98764], ["mlp", 0.5]])
    assert table.latex().splitlines() == [
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", r"\begin{tabular}{lr}", r"\toprule",
        r"model & accuracy \\", r"\midrule", r"gru & 0.988 \\", r"mlp & 0.500 \\", r"\bottomrule", r"\end{tabular}",
        r"\caption{caption}", r"\label{tab:t}", r"\end{table}",
    ]  # fmt: skip


def test_a_little_too_wide_is_set_in_smaller_letters() -> None:
    row = ["x" * 11] * 5
    made = latex_table("t", "", ["a"] * 5, [row], "lllll")
    assert r"\centering\small\setlength{\tabcolsep}{5pt}" in made
    assert r"\begin{tabular}{lllll}" in made
    assert 5 * width("x" * 11) + 5 * SIZES[0].gap > LINE >= 5 * width("x" * 11) * SIZES[1].scale + 5 * gap(made)


@pytest.mark.parametrize("sentences", [1, 2, 4])
def test_sentences_break_their_lines_within_the_line(sentences: int) -> None:
    headers = ["model", "seeds", *["what was seen"] * sentences]
    rows = [["e88-published-1l-small", "3", *[SENTENCE] * sentences]] * 4
    made = latex_table("t", "", headers, rows, "lr" + "l" * sentences)
    assert needed(made) == r"% needs \usepackage{booktabs,array}"
    wide = widths(made)
    assert len(wide) == len(headers)
    assert LINE - 40 < sum(wide) + gap(made) * len(wide) <= LINE
    assert min(wide[2:]) > wide[1]
    assert made.count(r"\raggedleft") == 1  # the numbers


def test_names_may_be_broken_and_numbers_may_not() -> None:
    row = ["runs/own_models.py:Counter", "fsm[k=5,p=0.05]", "1,048,576", "0123456789abcdef0123", SENTENCE, SENTENCE]
    made = latex_table("t", "", ["a", "b", "c", "d", "e", "f"], [row], "llrlll")
    cells = next(line for line in made.splitlines() if line.startswith("runs")).split(" & ")
    free = r"\allowbreak{}"
    assert cells[0] == rf"runs/{free}own\_{free}models.py:{free}Counter"
    assert cells[1] == rf"fsm[k={free}5,{free}p={free}0.05]"
    assert cells[2] == "1,048,576"
    assert cells[3] == f"0123456789{free}abcdef0123"
    assert free not in cells[4]
    assert widths(made)[2] >= width("1,048,576") * min(size.scale for size in SIZES)


def test_what_is_longer_than_a_page_goes_on_with_its_head() -> None:
    made = latex_table("t", "50 %", ["model", "n"], [["gru", "1"]] * 60, "lr")
    assert needed(made) == r"% needs \usepackage{booktabs,longtable}"
    assert made.count(r"model & n \\") == 2
    assert made.index(r"\caption{50 \%}\label{tab:t} \\") < made.index(r"\toprule")
    assert made.count(r"gru & 1 \\") == 60
    assert r"\begin{table}" not in made
    assert r"\begin{table}" in latex_table("t", "", ["model", "n"], [["gru", "1"]] * 30, "lr")


def test_a_column_may_be_empty() -> None:
    made = latex_table("t", "", ["", "what was seen"], [["", SENTENCE * 3]], "ll")
    assert len(widths(made)) == 2
    assert sum(widths(made)) <= LINE


def test_a_table_without_rows_has_its_head() -> None:
    assert r"model & n \\" in Table("t", "", "", ["model", "n"], []).latex()
