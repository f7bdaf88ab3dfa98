"""The page in a real browser, from a file, with no network. Needs chromium; without one it is left out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetrack.reports import Written, report
from statetrack.reports.figures.vega import bundle
from statetrack.results import Cell, Store
from tests.reports import made_records

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
MARKS = "path[aria-roledescription], g.mark-symbol path, g.mark-rect path, g.mark-line path, g.mark-rule line"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("left out: the report is looked at in chromium, and there is none here (apt install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="left out: needs playwright (pip install playwright)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return report(small, tmp_path_factory.mktemp("page") / "page.html")


class Opened:
    """A page that is open, and what it complained about."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda line: self.wrong.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.complete !== undefined")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert not self.wrong
        beyond = [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]
        assert not beyond


def open_tab(page: Any, title: str) -> None:
    page.get_by_role("tab", name=title, exact=True).click()


def test_every_figure_is_drawn_and_nothing_is_fetched(browser, written):
    with Opened(browser, written.html) as opened:
        drawn: dict[str, list[float]] = {}
        for section in written.page.sections:
            open_tab(opened.page, section.title)
            found = opened.page.evaluate(
                """marks => [...document.querySelectorAll("section[data-open] .chart")].map(chart => {
                    const box = chart.querySelector("svg").getBoundingClientRect();
                    return [chart.dataset.figure, box.width, box.height, chart.querySelectorAll(marks).length];
                })""",
                MARKS,
            )
            drawn |= {key: sizes for key, *sizes in found}
        assert set(drawn) == {figure.key for figure in written.page.figures}
        for key, (width, height, marks) in drawn.items():
            assert width > 200, key
            assert height > 80, key
            assert marks >= 3, key


def test_what_is_drawn_is_what_the_rows_say(browser, written):
    """Texts of the heat map, read from the drawing."""
    with Opened(browser, written.html) as opened:
        open_tab(opened.page, "txc")
        texts = opened.page.locator('[data-figure="txc-heat"] svg g.mark-text text').all_text_contents()
        heat = next(figure for figure in written.page.figures if figure.key == "txc-heat")
        for row in heat.rows:
            assert row["shown"] in texts
        assert len([text for text in texts if text.startswith((".", "1")) and "," not in text]) >= len(heat.rows)


def test_a_heat_map_leaves_no_cell_out_where_a_guess_is_right_already(browser, tmp_path):
    from tests.reports.test_page import fill, one

    fill(tmp_path / "cells", [])
    for name in ("gru", "lstm"):
        one(tmp_path / "cells", name, task="fsm")
    done = report(tmp_path / "cells")
    heat = next(figure for figure in done.page.figures if figure.key == "fsm-heat")
    assert any(row["skill"] is None for row in heat.rows)
    with Opened(browser, done.html) as opened:
        assert opened.page.locator('[data-figure="fsm-heat"] g.mark-rect.role-mark path').count() == len(heat.rows)


def test_a_tab_opens_its_section_and_no_other(browser, written):
    with Opened(browser, written.html) as opened:
        page = opened.page
        assert page.locator("section:visible").count() == 1
        assert page.locator("#verdicts").is_visible()
        open_tab(page, "fsm")
        assert page.locator("#task-fsm").is_visible()
        assert not page.locator("#verdicts").is_visible()
        assert page.evaluate("location.hash") == "#task-fsm"
        page.keyboard.press("ArrowLeft")
        assert page.locator("#task-txc").is_visible()


def opacities(page: Any, figure: str) -> dict[str, float]:
    """The opacity of each line of a figure, by its colour."""
    found = page.evaluate(
        """key => [...document.querySelectorAll(`[data-figure="${key}"] g.mark-line path`)].map(
            path => [path.getAttribute("stroke"), Number(path.getAttribute("opacity") ?? 1)])""",
        figure,
    )
    return dict(found)


def test_a_click_on_a_legend_leaves_that_model_and_fades_the_others(browser, written):
    with Opened(browser, written.html) as opened:
        page = opened.page
        open_tab(page, "txc")
        before = opacities(page, "txc-accuracy")
        chart = page.locator('[data-figure="txc-accuracy"]')
        chart.locator("text", has_text="mamba2-4l").first.click()
        page.wait_for_timeout(100)
        after = opacities(page, "txc-accuracy")
        assert after["#3fb08c"] == before["#3fb08c"] == 1
        assert after["#2f6fd0"] < 0.2 < before["#2f6fd0"]
        chart.locator("text", has_text="mamba2-4l").first.click()
        page.wait_for_timeout(100)
        assert opacities(page, "txc-accuracy") == before


def test_the_theme_button_restyles_page_and_charts(browser, written):
    label = '[data-figure="reach"] svg g.role-axis-label text'
    with Opened(browser, written.html) as opened:
        page = opened.page
        ground = "getComputedStyle(document.body).backgroundColor"
        light, ink = page.evaluate(ground), page.locator(label).first.get_attribute("fill")
        page.locator("#theme").click()
        page.wait_for_selector('[data-figure="reach"][data-drawn="dark"]')
        assert page.evaluate(ground) != light
        assert page.locator(label).first.get_attribute("fill") != ink
        open_tab(page, "txc")
        page.wait_for_selector('[data-figure="txc-accuracy"][data-drawn="dark"]')
    with Opened(browser, written.html, scheme="dark") as opened:
        assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_phone_needs_no_sideways_scrolling(browser, written):
    with Opened(browser, written.html, width=390) as opened:
        for section in written.page.sections:
            open_tab(opened.page, section.title)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390, section.title
            charts = "[...document.querySelectorAll('section[data-open] .chart svg')]"
            widths = opened.page.evaluate(f"{charts}.map(svg => svg.getBoundingClientRect().right)")
            assert all(right <= 390 for right in widths), section.title


def below_the_bar(page: Any, key: str) -> bool:
    """Whether the top of an element stands just below the bar of tabs, which stays on top."""
    top, bar = page.evaluate(
        """key => [document.getElementById(key).getBoundingClientRect().top,
                   document.querySelector("nav").getBoundingClientRect().bottom]""",
        key,
    )
    return bar <= top < bar + 100


def test_an_address_may_end_in_a_figure_and_its_heading_is_not_hidden(browser, written):
    with Opened(browser, written.html) as opened:
        page = opened.page
        page.emulate_media(reduced_motion="reduce")  # at once, without a ride
        page.goto(f"{written.html.as_uri()}#figure-txc-generalisation")
        assert page.locator("#task-txc").is_visible()
        page.wait_for_function("'complete' in document.documentElement.dataset")
        assert below_the_bar(page, "figure-txc-generalisation")
        for key in ("figure-txc-heat", "figure-fsm-generalisation", "task-fsm", "figure-fsm-heat"):
            page.evaluate("key => { location.hash = key; }", key)
            page.wait_for_timeout(100)
            assert below_the_bar(page, key), key


def test_a_tab_begins_at_its_beginning(browser, written):
    with Opened(browser, written.html) as opened:
        page = opened.page
        open_tab(page, "txc")
        page.evaluate("window.scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
        open_tab(page, "fsm")
        assert below_the_bar(page, "task-fsm")


def seeds_of_one_model(folder: Path) -> Path:
    """Three diagnosed seeds of one model."""
    cells = [Cell("txc", "e88-published-1l-small", 64, seed, made_records.DESIGN) for seed in range(3)]
    made_records.fill(folder, cells)
    made_records.diagnose(folder, cells)
    return folder


def test_seeds_are_told_apart_and_a_prediction_has_the_mark_of_its_curve(browser, tmp_path):
    done = report(seeds_of_one_model(tmp_path / "cells"))
    failure = next(figure for figure in done.page.figures if figure.key == "txc-failure")
    shape = "path => path.getAttribute('d').replace(/[-\\d.,\\s]+/g, '#')"
    with Opened(browser, done.html) as opened:
        page = opened.page
        open_tab(page, "Diagnostics")
        for key in ("txc-failure", "txc-separation", "txc-gradient", "txc-diagnosed-positions"):
            chart = page.locator(f'[data-figure="{key}"]')
            words = chart.locator("g.role-legend text").all_text_contents()
            assert {"seed", "0", "1", "2"} <= set(words), key
        marks = page.evaluate(
            f"""[...document.querySelectorAll('[data-figure="txc-failure"] g.mark-symbol.role-mark')].map(
                group => [...group.querySelectorAll("path")].map({shape}))"""
        )
        curves, predicted = marks[0], marks[-1]
        assert len(set(curves)) == 3
        assert len(curves) == len(failure.rows)
        assert sorted(predicted) == sorted(set(curves))  # one for each seed, each with the mark of its curve


def test_the_gradient_has_an_axis_to_be_read(browser, tmp_path):
    done = report(seeds_of_one_model(tmp_path / "cells"))
    with Opened(browser, done.html) as opened:
        open_tab(opened.page, "Diagnostics")
        axis = opened.page.locator('[data-figure="txc-gradient"] g.role-axis').filter(has_text="norm of the gradient")
        assert axis.locator("g.role-axis-label text").count() >= 3


def test_what_is_hovered_over_is_not_rounded_up_to_one(browser, tmp_path):
    from tests.reports.test_page import fill

    cell = Cell("txc", "gru", 16, 0, made_records.DESIGN)
    fill(tmp_path / "cells", []).write(made_records.trained(cell, lambda t: 0.99999))
    done = report(tmp_path / "cells")
    with Opened(browser, done.html) as opened:
        open_tab(opened.page, "txc")
        opened.page.locator('[data-figure="txc-accuracy"] g.mark-symbol.role-mark path').first.hover(force=True)
        opened.page.wait_for_selector("#vg-tooltip-element.visible")
        assert "0.99999" in opened.page.locator("#vg-tooltip-element").text_content()


def test_print_shows_every_tab_drawn_and_every_table_open(browser, written):
    with Opened(browser, written.html, scheme="dark") as opened:
        page = opened.page
        page.emulate_media(media="print")
        assert page.locator("section:visible").count() == len(written.page.sections)
        page.wait_for_function("document.querySelectorAll('.chart:not([data-drawn=\"light\"])').length === 0")
        assert page.locator("details:not([open])").count() == 0
        assert page.locator(".chart svg:visible").count() == len(written.page.figures)
        assert not page.locator("nav").is_visible()
        page.emulate_media(media="screen")
        assert page.locator("section:visible").count() == 1


def test_the_length_trained_on_can_be_chosen(browser, written):
    with Opened(browser, written.html) as opened:
        page = opened.page
        open_tab(page, "txc")
        rule = '[data-figure="txc-generalisation"] g.mark-rule line'
        chooser = page.locator("#task-txc .chooser")
        assert chooser.locator('[aria-pressed="true"]').text_content() == "64"
        before = page.locator(rule).first.get_attribute("transform")
        chooser.get_by_text("16", exact=True).click()
        page.wait_for_timeout(200)
        assert page.locator(rule).first.get_attribute("transform") != before
        assert chooser.locator('[aria-pressed="true"]').text_content() == "16"


def test_data_is_downloaded_as_it_is_embedded(browser, written):
    with Opened(browser, written.html) as opened:
        with opened.page.expect_download() as saved:
            opened.page.locator('.save[data-figure="reach"] [data-save="csv"]').click()
        reach = next(figure for figure in written.page.figures if figure.key == "reach")
        lines = Path(saved.value.path()).read_text().splitlines()
        assert saved.value.suggested_filename == "reach.csv"
        assert lines[0].split(",") == reach.columns
        assert len(lines) == len(reach.rows) + 1
        with opened.page.expect_download() as saved:
            opened.page.locator('.save[data-figure="reach"] [data-save="svg"]').click()
        assert Path(saved.value.path()).read_text().startswith("<svg")


def test_a_table_is_sorted_by_the_column_that_is_clicked(browser, written):
    with Opened(browser, written.html) as opened:
        open_tab(opened.page, "Cost")
        head = opened.page.locator("#table-cost th", has_text="parameters")
        column = "#table-cost tbody td:nth-child(4)"
        head.click()
        values = [int(each.replace(",", "")) for each in opened.page.locator(column).all_text_contents()]
        assert values == sorted(values)
        head.click()
        values = [int(each.replace(",", "")) for each in opened.page.locator(column).all_text_contents()]
        assert values == sorted(values, reverse=True)


def test_numbers_that_are_written_out_are_sorted_as_numbers(browser, tmp_path):
    speeds = {"gru": (1024.0, 50_000.0), "lstm": (342.0, 342.0), "mlp": (20_000.0, 20_000.0)}
    for name, both in speeds.items():
        for seed, speed in enumerate(both):
            record = made_records.trained(Cell("rtc", name, 16, seed, made_records.DESIGN), lambda t: 0.9)
            training = replace(record.training, tokens_per_second=speed)
            Store(tmp_path).write(replace(record, training=training))
    with Opened(browser, report(tmp_path).html) as opened:
        open_tab(opened.page, "rtc")
        opened.page.locator("#table-rtc-measures th", has_text="tokens a second").click()
        shown = opened.page.locator("#table-rtc-measures tbody td:nth-child(9)").all_text_contents()
        assert shown == ["342", "20,000", "25,512 (1,024–50,000)"]


def test_a_name_is_text_in_the_browser_too(browser, tmp_path):
    from tests.reports.test_page import NASTY, fill, one

    folder = tmp_path / "cells"
    fill(folder, [])
    for length in (16, 32):
        one(folder, NASTY, length=length)
        one(folder, "gru", length=length)
    done = report(folder, tmp_path / "page.html")
    with Opened(browser, done.html) as opened:
        page = opened.page
        page.on("dialog", lambda dialog: opened.wrong.append(dialog.message))
        open_tab(page, "txc")
        page.locator('[data-figure="txc-accuracy"] g.mark-symbol path').first.hover(force=True)
        page.wait_for_timeout(200)
        assert page.locator("img").count() == 0
        assert page.evaluate("[...document.querySelectorAll('.chart text')].some(t => t.textContent.includes('<img'))")


def test_an_empty_folder_in_the_browser(browser, tmp_path):
    made_records.fill(tmp_path / "cells", [])
    done = report(tmp_path / "cells")
    with Opened(browser, done.html) as opened:
        assert "no results yet" in opened.page.locator(".summary").text_content()


def test_the_design_sweep_is_drawn_whole(browser, design, tmp_path):
    done = report(design, tmp_path / "page.html")
    with Opened(browser, done.html) as opened:
        assert opened.page.locator(".chart svg").count() == len(done.page.figures)
        assert done.html.stat().st_size < 10e6


def test_the_bundle_is_kept_for_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = bundle()
    (kept,) = (tmp_path / "statetrack").iterdir()
    assert kept.read_text() == text
    kept.write_text("kept")
    assert bundle() == "kept"
