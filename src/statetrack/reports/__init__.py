"""A folder of results as a page that a researcher would put into a talk: figures, tables, verdicts.

It reads results and nothing else, and needs no torch.

from statetrack.reports import report
report("results")           # writes results/report.html and results/report.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from statetrack.errors import BadInput, refusing_unknown
from statetrack.files import check_parent, write_whole
from statetrack.formatting import not_ours, plural
from statetrack.reports import folder as folders
from statetrack.reports import html_page, markdown_summary
from statetrack.reports.figures import vega
from statetrack.reports.page import Page, page

__all__ = ["Page", "Written", "page_of", "report"]


@dataclass(frozen=True, repr=False)
class Written:
    """The files that were made, and the page as data."""

    html: Path
    markdown: Path
    page: Page
    figures: list[Path] = field(default_factory=list)
    tables: list[Path] = field(default_factory=list)

    def __repr__(self) -> str:
        """The files, and the first sentence of the page."""
        held = f"{plural(len(self.page.figures), 'figure')}, {plural(len(self.page.tables), 'table')}"
        return "\n".join([f"{self.html}: {held}", f"{self.markdown}: the summary", *self.page.summary[:1]])


def page_of(folder: Path | str, title: str | None = None, command: str = "") -> Page:
    """The report as data, before it is written as anything. A folder in which nothing is ours gets none."""
    return _page(_read(Path(folder)), title, command)


def _read(path: Path) -> folders.Folder:
    held = folders.read(path)
    if not (_is_ours(held) or held.external):
        others = [not_ours(held.status.foreign)] if held.status.foreign else []
        told = "".join(f"; {each}" for each in [*others, *held.external.notices])
        raise BadInput(f"{path} holds no cell of statetrack, so there is nothing to report{told}")
    return held


def _is_ours(held: folders.Folder) -> bool:
    return bool(held.cells or held.status.damaged or held.status.sweeps)


def _page(held: folders.Folder, title: str | None, command: str) -> Page:
    return page(held, title or _title(held), command or f"statetrack report {held.path}")


@refusing_unknown
def report(
    folder: Path | str, out: Path | str | None = None, *, figures: Path | str | None = None,
    latex: Path | str | None = None, title: str | None = None, command: str = "",
) -> Written:  # fmt: skip
    """Write the page of a folder of results, its summary beside it, and figures and tables where they are asked for.

    folder   a folder of results, as `train`, `sweep` and `ask` leave it; what lm-evaluation-harness and Inspect left
             in it of our tasks is read as well
    out      the HTML file; None: report.html in the folder, unless that holds logs alone. The summary beside it ends in
             .md
    figures  a folder for PNG, SVG, PDF and CSV of each figure, and for the tables as LaTeX
    latex    another folder for those tables
    title    of the page
    command  what the page says that it was made by

    Gives the paths, and the page as data: `.html`, `.markdown`, `.figures`, `.tables`, `.page`. `st.load(folder)` has
    single figures and rows.

        st.report("results", figures="paper").html

    >>> from tempfile import mkdtemp
    >>> from statetrack.asking import ask
    >>> asked = ask("s3", solver="window-4", samples=2, length=10, out=(folder := mkdtemp()))
    >>> written = report(folder, title="An example")
    >>> written.html.name, written.page.title, written.page.summary[0]
    ('report.html', 'An example', '1 baseline asked in 2 episodes.')
    """
    html = Path(out) if out is not None else Path(folder) / "report.html"
    if html.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{html} should end in .html")
    held = _read(Path(folder))
    if out is None and not _is_ours(held):
        raise BadInput(
            f"{folder} holds logs of other programs and no cell of statetrack, so nothing is written into it unasked: "
            f"--out {html}, or another place"
        )
    made = _page(held, title, command)
    check_parent(html)
    write_whole(html, html_page.write(made, vega.bundle()).encode())
    markdown = html.with_suffix(".md")
    write_whole(markdown, markdown_summary.write(made).encode())
    exported = vega.export(made.figures, Path(figures)) if figures is not None else []
    place = latex if latex is not None else figures
    tables = _write_latex(made, Path(place)) if place is not None else []
    return Written(html, markdown, made, exported, tables)


def _write_latex(made: Page, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in made.tables:
        written.append(folder / f"{table.key}.tex")
        write_whole(written[-1], table.latex().encode())
    return written


def _title(held: folders.Folder) -> str:
    """The question, with what the folder is about."""
    names = list(held.status.sweeps)
    if len(names) == 1:
        return f"{names[0]}: who keeps track of state, and how far?"
    return f"{held.path.resolve().name}: who keeps track of state, and how far?"
