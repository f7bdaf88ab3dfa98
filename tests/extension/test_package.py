"""A package of one's own adds a task, a model, a diagnostic and a figure, and each is seen where it belongs.

The package is tests/extension/package, and docs/extend.md shows it file by file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "package"
PAGE = (ROOT / "docs" / "extend.md").read_text()
QUICK = ("--length", "8", "--device", "cpu", "--set", "most_checks=3", "--set", "polish=50")


def install(folder: Path) -> None:
    """What pip leaves of the package: its modules and a dist-info with its entry points."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    shutil.copytree(PACKAGE / "lamps", folder / "lamps")
    about = folder / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in points.items()) for group, points in groups]
    (about / "entry_points.txt").write_text("\n".join(lines))


def python(first: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join(filter(None, [str(first), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": search}
    )


def statetrack(first: Path, *arguments: str) -> str:
    """What a command prints, when this folder is the first to be searched for packages."""
    done = python(first, "-m", "statetrack", *arguments)
    assert done.returncode == 0, done.stderr
    assert "left out" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    return folder


def test_the_task_is_listed_shown_and_asked(site: Path) -> None:
    listed = {each["task"]: each for each in json.loads(statetrack(site, "list", "tasks", "--json"))}
    about = "Whether a lamp is lit: button 0 toggles it, button 1 breaks it, button 2 mends it, and then it is off."
    assert listed["lamp"] == {"task": "lamp", "title": "the lamp", "inputs": 3, "classes": 2, "what": about}
    shown = statetrack(site, "show", "lamp")
    assert shown.startswith(f"lamp: the lamp\n\n{about}")
    assert "states      3, minimal automaton" in shown
    assert re.search(r"^1 +0 +press +1 +lit *$", shown, re.MULTILINE)
    asked = statetrack(site, "ask", "lamp", "--model", "openai/gpt-4o", "--samples", "3", "--length", "8", "--dry-run")
    assert "A lamp is dark. Press switches it, cut breaks it, mend repairs it if it is broken. Is it lit?" in asked
    assert "Input: press\nReply: [answer: lit]" in asked
    assert "lamp: 3 samples of 8 answers" in asked


def test_the_model_is_listed_and_predicted(site: Path) -> None:
    listed = {each["model"]: each for each in json.loads(statetrack(site, "list", "models", "--json"))}
    assert listed["glow"]["what"] == "a tanh RNN"
    assert listed["glow"]["family"] == "unrestricted"
    assert statetrack(site, "predict", "glow", "lamp").startswith("every length: any finite automaton")


def test_all_four_meet_in_a_folder_of_results(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained = statetrack(site, "train", "lamp", "glow", *QUICK, "--out", str(out))
    assert trained.startswith("lamp, glow: 2,274 parameters, state of 32 numbers")
    (record,) = out.glob("*.json")
    key = record.stem
    said = statetrack(site, "diagnose", str(out), "--stream", "256", "--key", key)
    section = json.loads((out / "diagnosis" / f"{key}.json").read_text())["brightness"]
    assert len(section["norm"]) == len(section["position"]) > 4
    assert section["says"] in said
    statetrack(site, "report", str(out), "--figures", str(tmp_path / "figures"))
    page = (out / "report.html").read_text()
    assert 'id="figure-lamp-brightness"' in page
    assert "lamp: how large the state is" in page
    assert section["says"] in page
    rows = (tmp_path / "figures" / "lamp-brightness.csv").read_text().splitlines()
    assert rows[0] == "model,trained,seed,position,norm"
    assert [float(row.split(",")[-1]) for row in rows[1:]] == pytest.approx(section["norm"])
    assert (tmp_path / "figures" / "lamp-brightness.svg").read_text().startswith("<svg")


def test_the_page_shows_the_files_as_they_are() -> None:
    for path in [PACKAGE / "pyproject.toml", *sorted(PACKAGE.glob("lamps/*.py"))]:
        kind = "toml" if path.suffix == ".toml" else "python"
        assert f"`{path.relative_to(PACKAGE)}`\n\n```{kind}\n{path.read_text()}```" in PAGE, path.name


MOVED = {  # as the page says: each file of the package, and where it would be in statetrack
    "task.py": "tasks/machines/lamp.py",
    "network.py": "models/glow.py",
    "diagnostic.py": "diagnosis/brightness.py",
    "figure.py": "reports/figures/brightness.py",
}


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the files of the package, and the lines of the page's diffs."""
    copy = tmp_path_factory.mktemp("inside")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    for name, place in MOVED.items():
        assert f"`lamps/{name}` as `src/statetrack/{place}`" in PAGE
        shutil.copy(PACKAGE / "lamps" / name, copy / "src" / "statetrack" / place)
    diffs = re.findall(r"```diff\n--- a/(\S+)\n\+\+\+ b/\1\n(.+?)```", PAGE, re.DOTALL)
    assert len(diffs) == len(MOVED)
    for path, diff in diffs:
        text = (copy / path).read_text()
        for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            assert text.count(before) == 1, f"{path}:\n{before}"
            text = text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
        (copy / path).write_text(text)
    return copy


def test_inside_the_project_each_is_a_file_and_the_lines_of_its_diff(inside: Path) -> None:
    """They do what the package does."""
    code = """
import statetrack
from statetrack.diagnosis.examine import MEASUREMENTS
from statetrack.models import find
from statetrack.reports.figures.catalogue import CATALOGUE
print(statetrack.task("lamp").targets([0, 0, 0, 1, 0, 2, 0]).tolist(), find("glow").family)
print(sum(p.numel() for p in statetrack.model("glow", inputs=3, outputs=2).parameters()))
print(list(MEASUREMENTS)[-1], list(CATALOGUE)[-1])
"""
    done = python(inside / "src", "-c", code)
    assert done.stdout.splitlines() == ["[1, 0, 1, 0, 0, 0, 1] unrestricted", "2274", "brightness brightness"], (
        done.stderr
    )


def test_inside_the_project_the_tests_of_every_task_and_model_take_them_in(inside: Path) -> None:
    modules = ("tasks/test_every_task.py", "models/test_every_model.py", "models/test_catalogue.py")
    paths = [str(inside / "tests" / name) for name in modules]
    wanted = ("-p", "no:cacheprovider", "-rA", "-k", "[lamp or [glow", "-c", str(inside / "pyproject.toml"))
    done = python(inside / "src", "-m", "pytest", *wanted, *paths)
    assert done.returncode == 0, done.stdout
    for name, added in zip(modules, ("lamp", "glow", "glow")):
        assert re.search(rf"^PASSED .*tests/{name}::\w+\[{added}", done.stdout, re.MULTILINE), done.stdout
