"""What vl-convert gives: the JavaScript that draws in the page, and PNG, SVG and PDF without a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from statetrack.errors import need, unknown
from statetrack.files import check_parent, write_whole
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
    """Each figure as PNG, SVG and PDF for papers, with its data beside it."""
    converter("--figures")
    folder.mkdir(parents=True, exist_ok=True)
    return [save(figure, folder / f"{figure.key}.{ending}") for figure in figures
            for ending in ("png", "svg", "pdf", "csv")]  # fmt: skip


def save(figure: Figure, path: Path) -> Path:
    """One figure, as the ending of the file's name says."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in WRITERS:
        raise unknown("kind of figure file", ending or path.name, WRITERS)
    check_parent(path)
    write_whole(path, WRITERS[ending](figure))
    return path


WRITERS: dict[str, Callable[[Figure], bytes]] = {
    "png": lambda figure: converter("a PNG file").vegalite_to_png(figure.whole(), scale=SCALE),
    "svg": lambda figure: svg(figure).encode(),
    "pdf": lambda figure: converter("a PDF file").vegalite_to_pdf(figure.whole()),
    "csv": lambda figure: figure.csv().encode(),
    "json": lambda figure: json.dumps(figure.whole(), indent=1).encode(),
}


def svg(figure: Figure) -> str:
    return drawn(figure.whole())


def drawn(spec: dict[str, Any]) -> str:
    text: str = converter("an SVG picture").vegalite_to_svg(spec)
    return text


def pictures(spec: dict[str, Any]) -> dict[str, str]:
    """A figure as a notebook takes it without drawing it; nothing where vl-convert is not installed."""
    return {"image/svg+xml": drawn(spec)} if find_spec("vl_convert") else {}
