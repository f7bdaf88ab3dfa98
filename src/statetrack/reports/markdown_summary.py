"""The summary of a report as Markdown, for a README, an issue or a terminal."""

from __future__ import annotations

import re

from statetrack.reports.page import Page
from statetrack.reports.table import Table, markdown

MOST_ROWS = 200  # of a table; the whole of it is in the page


def write(page: Page) -> str:
    """Title, summary, notices, the tables that are shown open, and how to make it again."""
    lines = [f"# {markdown(page.title)}", "", *(f"- {markdown(sentence)}" for sentence in page.summary), ""]
    lines += [f"> {markdown(notice)}" for notice in page.notices] + [""]
    lines += [f"- {markdown(number)} {markdown(name)}" for number, name in page.facts] + [""]
    for section in page.sections:
        tables = [block for block in section.blocks if isinstance(block, Table) and _is_shown(block)]
        lines += [f"## {markdown(section.title)}", "", *(markdown(sentence) + "\n" for sentence in section.lead)]
        for table in tables:
            lines += [f"### {markdown(table.title)}", "", markdown(table.caption), "", table.markdown(), ""]
    lines += ["## How to make it again", ""]
    lines += [f"- {markdown(name)}: {_code(text)}" for name, text in page.provenance]
    return "\n".join(lines) + "\n"


def _is_shown(table: Table) -> bool:
    return len(table.rows) <= MOST_ROWS and (not table.folded or table.key.endswith("-accuracy"))


def _code(text: str) -> str:
    """Code between more backticks than it holds itself.

    >>> _code("a`b")
    '`` a`b ``'
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence}{text}{fence}" if not longest else f"{fence} {text} {fence}"
