"""A figure: rows, a Vega-Lite specification that draws them, and the words around it. Page, paper and slides use one.

The specification names its data "rows"; the page and the exporter put them in, with the colours of a theme.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack.formatting import plural, short

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA_LITE = "application/vnd.vegalite.v6+json"
PAGE_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PAPER_FONT = "'Liberation Sans', Arial, Helvetica, sans-serif"
PAPER_WIDTH = 640
FIT = {"type": "fit-x", "contains": "padding"}

INK = {"light": ("#1c2128", "#5b6472", "#d7dbe0"), "dark": ("#e6e9ee", "#9aa4b2", "#353b45")}


@dataclass(frozen=True, repr=False)
class Figure:
    """`panel` is the width of one panel where there are several; a figure of one panel takes the width it is given.

    `key` comes from its name in the catalogue.
    """

    title: str
    caption: str
    alt: str
    rows: list[dict[str, Any]]
    spec: dict[str, Any]
    panel: int | None = None
    square: bool = False  # each panel as high as it is wide
    lengths: list[int] = field(default_factory=list)  # that the control "trained on" chooses from, if it has one
    key: str = ""

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def to_page(self, drawings: list[dict[str, Any]]) -> dict[str, Any]:
        """What the page's script draws it from. Rows travel as lists: names once, numbers short.

        `drawings` are its layouts as Vega reads them.
        """
        names = self.columns
        return {
            "key": self.key, "columns": names, "rows": [[short(row.get(name)) for name in names] for row in self.rows],
            "drawings": drawings, "panel": self.panel, "square": self.square, "lengths": self.lengths,
        }  # fmt: skip

    def layouts(self) -> list[dict[str, Any]]:
        """For the page: one specification, or with panels one for each number of columns from 1 on.

        Its rows, its width and the colours of its theme are put in when it is drawn.
        """
        if self.panel is None:
            return [self._bare() | {"width": PAPER_WIDTH, "autosize": FIT}]
        made = []
        for columns in range(1, self.spec["columns"] + 1):
            made.append(self._bare() | {"columns": columns})
            made[-1]["spec"] |= {"width": self.panel} | ({"height": self.panel} if self.square else {})
        return made

    def _bare(self) -> dict[str, Any]:
        copy: dict[str, Any] = json.loads(json.dumps(self.spec))
        return copy | {"$schema": SCHEMA, "description": self.alt, "config": config("light")}

    def csv(self) -> str:
        file = io.StringIO()
        writer = csv.DictWriter(file, self.columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: short(value) for key, value in row.items()} for row in self.rows)
        return file.getvalue()

    def whole(self, theme: str = "light", width: int = PAPER_WIDTH) -> dict[str, Any]:
        """A specification that stands alone, for a paper."""
        made = self._bare() | {
            "datasets": {"rows": self.to_dicts()}, "config": config(theme, PAPER_FONT),
            "background": "white" if theme == "light" else "#14171c",
        }  # fmt: skip
        if self.panel is None:
            made |= {"width": width, "autosize": FIT}
        else:
            made["spec"]["width"] = self.panel
            made["spec"] |= {"height": self.panel} if self.square else {}
            made["columns"] = max(1, width // (self.panel + 48))
        return made

    def save(self, path: Path | str) -> Path:
        """Write it as the name ends: .svg, .pdf or .png for papers and slides, .csv for its rows, .json for Vega-Lite.

        Gives the path.
        """
        from statetrack.reports.figures import vega

        return vega.save(self, Path(path))

    def __repr__(self) -> str:
        return f"{self.title}\n{self.caption}\n({plural(len(self.rows), 'row')}; .save('figure.pdf') writes it)"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """For a notebook: one that knows Vega-Lite draws it, any other shows the picture. The title, which a paper
        has in its caption, says there what it is of.
        """
        from statetrack.reports.figures import vega

        titled = self.whole() | {"title": {"text": self.title, "anchor": "start", "offset": 12}}
        return {"text/plain": repr(self), VEGA_LITE: titled, **vega.pictures(titled)}

    def to_dicts(self) -> list[dict[str, Any]]:
        return [{name: short(row.get(name)) for name in self.columns} for row in self.rows]


def config(theme: str, font: str = PAGE_FONT) -> dict[str, Any]:
    """Restrained: thin axes, light grid, no frame, in the ink of the theme."""
    ink, soft, line = INK[theme]
    return {
        "background": "transparent",
        "font": font,
        "aria": False,  # a figure is read by its caption, not mark by mark
        "view": {"stroke": None},
        "axis": {
            "labelColor": soft, "titleColor": soft, "gridColor": line, "domainColor": line, "tickColor": line,
            "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
            "gridOpacity": 0.6, "labelLimit": 170, "tickSize": 4,
        },
        "axisBand": {"grid": False, "domain": False, "ticks": False},
        "legend": {
            "labelColor": ink, "titleColor": soft, "labelFontSize": 12, "titleFontSize": 11,
            "titleFontWeight": "normal", "symbolSize": 90, "symbolStrokeWidth": 0, "symbolOpacity": 1,
            "rowPadding": 5, "labelLimit": 190, "gradientLength": 120, "gradientThickness": 10,
        },
        "header": {"labelFontSize": 12, "labelLimit": 240},
        "style": {"guide-label": {"fill": ink}, "guide-title": {"fill": soft}},  # of panels, too
        "title": {"color": ink},
        "text": {"color": ink},
        "rule": {"color": soft},
        "line": {"strokeWidth": 2, "strokeCap": "round", "strokeJoin": "round"},
    }  # fmt: skip
