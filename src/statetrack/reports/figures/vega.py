"""What vl-convert gives: the JavaScript that draws in the page, and PNG, SVG and PDF without a browser."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from statetrack.errors import need
from statetrack.files import write_whole
from statetrack.reports.figures.figure import SCHEMA, Figure, config

SCALE = 2.0  # of PNG: 1,280 points for the width of a figure


def converter(purpose: str) -> Any:
    return need("vl_convert", "report", purpose)


def bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script. Making it takes seconds, so that it is kept for the next time."""
    made_by = converter("the report")
    kept = _cache() / f"vega-{made_by.__version__}.js"
    if kept.is_file():
        return kept.read_text(encoding="utf-8")
    text: str = made_by.javascript_bundle()
    with suppress(OSError, ValueError):  # a home that cannot be written to costs the seconds again, no more
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, text.encode())
    return text


def drawings(figure: Figure) -> list[dict[str, Any]]:
    """Each layout as Vega reads it: compiled here, so that no browser has to. What all share is left to `themes`."""
    compile_ = converter("the report").vegalite_to_vega
    made = [compile_(layout) for layout in figure.layouts()]
    return [{key: value for key, value in each.items() if key not in ("$schema", "config")} for each in made]


def themes() -> dict[str, dict[str, Any]]:
    """The look of all figures in each theme, as Vega reads it."""
    compile_ = converter("the report").vegalite_to_vega
    point = {"$schema": SCHEMA, "data": {"values": []}, "mark": "point"}
    return {theme: compile_(point | {"config": config(theme)})["config"] for theme in ("light", "dark")}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "statetrack"


def export(figures: list[Figure], folder: Path) -> list[Path]:
    """Each figure as PNG, SVG and PDF for papers, with its data and its specification beside it."""
    made_by = converter("--figures")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        spec = figure.whole()
        parts = {
            "png": made_by.vegalite_to_png(spec, scale=SCALE), "svg": made_by.vegalite_to_svg(spec).encode(),
            "pdf": made_by.vegalite_to_pdf(spec), "csv": figure.csv().encode(),
        }  # fmt: skip
        for ending, content in parts.items():
            written.append(folder / f"{figure.key}.{ending}")
            write_whole(written[-1], content)
    return written
