"""How fast the page of the sweep `design` opens in a browser: its size, its first tab, all of its figures.

    python -m benchmarks.report            846 cells, their numbers from formulas; seven openings
    python -m benchmarks.report DIR        the page of a folder of results, whatever it holds

Every opening is a browser that has just been started, a file and no network. `clock` is counted from the beginning of
the navigation; on a machine that is busy with other work it says little, so that `cpu`, the seconds that the page's
main thread ran, stands beside it. Both are medians, with the least and the most.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from statetrack.reports import report
from tests.reports import made_records
from tests.reports.test_browser import FLAGS, NAMES

OPENINGS = 7
MOST_MEGABYTES, MOST_SECONDS = 10, 3
WATCH = """
window.drawnAt = {};
new MutationObserver(() => {
  const open = [...document.querySelectorAll("section[data-open] .chart")];
  if (!drawnAt.first && open.length && open.every((chart) => chart.dataset.drawn)) drawnAt.first = performance.now();
  if (!drawnAt.all && "complete" in document.documentElement.dataset) drawnAt.all = performance.now();
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn", "data-complete"] });
"""


def opening(playwright: Any, program: str, page: Path) -> tuple[float, float, float]:
    """Seconds until the first tab is drawn, until all is, and of the main thread until then."""
    browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    tab = context.new_page()
    tab.add_init_script(WATCH)
    session = context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.goto(page.as_uri())
    tab.wait_for_function("drawnAt.all")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    first, last = tab.evaluate("[drawnAt.first ?? drawnAt.all, drawnAt.all]")
    browser.close()
    return first / 1000, last / 1000, metrics["TaskDuration"]


def line(what: str, values: list[float], limit: float | None, unit: str) -> None:
    middle = median(values)
    asked = "" if limit is None else f"{middle / limit:>6.0%} of {limit} {unit}"
    print(f"{what:24}{middle:8.2f} {unit:3} ({min(values):.2f} to {max(values):.2f}){asked:>20}")


def main() -> None:
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        sys.exit(f"needs a browser: {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made) / "design"
        if len(sys.argv) < 2:
            made_records.fill(folder, made_records.design_cells(), "design")
        done = report(folder, Path(made) / "page.html")
        load = os.getloadavg()[0]
        openings = [opening(playwright, program, done.html) for _ in range(OPENINGS)]
        print(f"{len(done.page.figures)} figures, {len(done.page.tables)} tables; load before: {load:.1f}")
        line("size", [done.html.stat().st_size / 1e6], MOST_MEGABYTES, "MB")
        first, last, cpu = (list(values) for values in zip(*openings))
        line("first tab, clock", first, None, "s")
        line("all figures, clock", last, MOST_SECONDS, "s")
        line("all figures, cpu", cpu, None, "s")


if __name__ == "__main__":
    main()
