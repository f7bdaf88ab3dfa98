"""The page: one HTML file with everything inside, its data as JSON, drawn by the script in assets/."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

from statetrack.reports.figures import vega
from statetrack.reports.figures.figure import Figure
from statetrack.reports.page import Page, Section
from statetrack.reports.table import Table
from statetrack.version import __version__

# Nothing is fetched from anywhere, whatever a record holds. Vega compiles its expressions, so 'unsafe-eval'.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def write(page: Page, bundle: str) -> str:
    """The text of the file. `bundle` is the JavaScript of Vega, Vega-Lite and vega-embed."""
    data = {"figures": [figure.to_page(vega.drawings(figure)) for figure in page.figures], "themes": vega.themes()}
    parts = {
        "policy": POLICY,
        "title": html.escape(page.title),
        "version": html.escape(__version__),
        "style": _asset("page.css"),
        "summary": "".join(f"<li>{_sentence(sentence)}</li>" for sentence in page.summary),
        "facts": "".join(
            f'<div class="{html.escape(name)}"><b>{html.escape(number)}</b><span>{html.escape(name)}</span></div>'
            for number, name in page.facts
        ),
        "notices": "".join(f"<p>{html.escape(notice)}</p>" for notice in page.notices),
        "tabs": "".join(_tab(section, number == 0) for number, section in enumerate(page.sections)),
        "sections": "".join(_section(section, number, page) for number, section in enumerate(page.sections)),
        "data": embedded(data),
        "bundle": _safe_script(bundle),
        "script": _safe_script(_asset("page.js")),
    }
    # One pass, so that what a record says is never read as a place in the template.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("statetrack.reports").joinpath("assets", name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _safe_script(text: str) -> str:
    """The same program with no text in it that HTML reads as the end of a script or as a comment."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.IGNORECASE)


def _sentence(text: str) -> str:
    """Escaped, and names such as e88-gain-1l not broken at their hyphens."""
    return re.sub(r"[\w.]+(?:-[\w.]+)+", r'<span class="name">\g<0></span>', html.escape(text))


def _tab(section: Section, first: bool) -> str:
    return (
        f'<button role="tab" id="tab-{section.key}" aria-controls="{section.key}" '
        f'aria-selected="{"true" if first else "false"}">{html.escape(section.title)}</button>'
    )


def _section(section: Section, number: int, page: Page) -> str:
    lead = "".join(f'<p class="lead">{_sentence(sentence)}</p>' for sentence in section.lead)
    choices = [block.lengths for block in section.blocks if isinstance(block, Figure) and len(block.lengths) > 1]
    chooser = _chooser(sorted(set().union(*choices))) if choices else ""
    blocks = "".join(_figure(block) if isinstance(block, Figure) else _table(block) for block in section.blocks)
    end = _provenance(page) if section.key == "about" else ""
    opened = ' data-open=""' if number == 0 else ""
    return (
        f'<section role="tabpanel" id="{section.key}" aria-labelledby="tab-{section.key}"{opened}>'
        f"<h2>{html.escape(section.title)}</h2>{lead}{chooser}{blocks}{end}</section>"
    )


def _chooser(lengths: list[int]) -> str:
    """Which of the lengths trained on the figures of this tab show."""
    buttons = "".join(f'<button type="button" data-length="{length}">{length:,}</button>' for length in lengths)
    name = "<span>trained on length</span>"
    return f'<div class="chooser" role="group" aria-label="length trained on">{name}{buttons}</div>'


def _figure(figure: Figure) -> str:
    key = html.escape(figure.key)
    least = f' style="min-height: {figure.spec["height"] + 40}px"' if "height" in figure.spec else ""
    return (
        f'<figure id="figure-{key}"><h3>{html.escape(figure.title)}</h3>'
        f'<div class="chart" data-figure="{key}" role="img" aria-label="{html.escape(figure.alt)}"{least}></div>'
        f"<figcaption>{html.escape(figure.caption)}"
        f'<span class="save" data-figure="{key}"><button type="button" data-save="csv">data (CSV)</button>'
        '<button type="button" data-save="svg">SVG</button><button type="button" data-save="png">PNG</button></span>'
        "</figcaption></figure>"
    )


def _table(table: Table) -> str:
    button = '<span class="save"><button type="button" data-save="table">data (CSV)</button></span>'
    save = button if table.download else ""
    caption = f'<p class="caption">{html.escape(table.caption)}{save}</p>'
    inner = f"{caption}{table.html()}"
    key, title = html.escape(table.key), html.escape(table.title)
    if table.folded:
        return f'<details id="table-{key}" class="table"><summary>{title}</summary>{inner}</details>'
    return f'<div id="table-{key}" class="table"><h3>{title}</h3>{inner}</div>'


def _provenance(page: Page) -> str:
    rows = "".join(
        f"<dt>{html.escape(name)}</dt><dd><code>{html.escape(text)}</code></dd>" for name, text in page.provenance
    )
    return f'<div class="provenance"><h3>How to make it again</h3><dl>{rows}</dl></div>'
