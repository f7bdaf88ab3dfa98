"""`statetrack report`: a folder of results as a page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from statetrack import trust
from statetrack.cli.options import TrustCode, TrustedCode
from statetrack.cli.output import open_page, say
from statetrack.formatting import plural


def command(
    folder: Annotated[Path, typer.Argument(help="A folder of cells.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; default: report.html in the folder.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for PNG, SVG, PDF and CSV of each figure and LaTeX of the tables.")
    ] = None,
    latex: Annotated[Path | None, typer.Option(help="A folder for LaTeX of the tables.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    trusted: TrustedCode = None,
    trust_code: TrustCode = False,
) -> None:
    """Write a folder of results as one HTML page that works offline, with a Markdown summary beside it.

    Example: statetrack report demo-results --open
    """
    from statetrack.reports import report

    typed = shlex.join(["statetrack", *sys.argv[1:]])
    with trust.trusting(*(trusted or ()), everything=trust_code):  # tasks of somebody's own, for theory and floors
        done = report(folder, out, figures=figures, latex=latex, title=title, command=typed)
    figured = plural(len(done.page.figures), "figure")
    size = done.html.stat().st_size / 1e6
    say(f"{done.html}: {figured}, {plural(len(done.page.tables), 'table')}, {size:.1f} MB")
    say(f"{done.markdown}: the summary")
    if figures:
        say(f"{figures}: {plural(len(done.figures), 'file')} of figures (PNG, SVG, PDF, CSV)")
    if done.tables:
        say(f"{latex or figures}: {plural(len(done.tables), 'table')} as LaTeX")
    for notice in done.page.notices:
        say(f"note: {notice}")
    if open_browser:
        open_page(done.html)
