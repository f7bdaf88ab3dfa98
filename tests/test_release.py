"""What `make dist` builds: archives that an index takes, and that work where nothing else of this clone is."""

from __future__ import annotations

import doctest
import email
import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from statetrack import __version__, errors
from statetrack.integrations.lm_eval.definitions import FOLDER, files

pytest.importorskip("build")
pytest.importorskip("hatchling")
from packaging.requirements import Requirement  # which comes with them

import hatch_build

ROOT = Path(__file__).parents[1]
NAME = f"statetrack-{__version__}"


def python(*arguments: str | Path, **more: object) -> str:
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make dist` does it, with the builder that is installed: a source archive, and a wheel out of that."""
    place = tmp_path_factory.mktemp("dist")
    python("-m", "build", "--no-isolation", "--outdir", place, ROOT)
    python("-m", "build", "--no-isolation", "--wheel", "--outdir", place, ROOT / "lm_eval_tasks")
    return place


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return dist / f"{NAME}-py3-none-any.whl"


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_an_index_would_take_them(dist: Path) -> None:
    assert sorted(path.name for path in dist.iterdir()) == [
        f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz", f"statetrack_lm_eval-{__version__}-py3-none-any.whl",
    ]  # fmt: skip
    python("-m", "twine", "check", "--strict", *dist.iterdir())


def targets(page: str) -> Iterator[str]:
    """Where the links and pictures of a page in Markdown lead."""
    for block in MarkdownIt("commonmark").enable("table").parse(page):
        for token in block.children or []:
            yield from (str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        yield from re.findall(r"(?:href|src)=\"([^\"]*)", block.content if block.type == "html_block" else "")


def test_the_examples_of_the_build_script() -> None:
    assert doctest.testmod(hatch_build) == (0, 1)


def test_the_page_of_an_index_has_no_relative_link(wheel: Path) -> None:
    written, built = (
        list(targets(page)) for page in ((ROOT / "README.md").read_text(), str(metadata(wheel).get_payload()))
    )
    assert sum("://" not in target for target in written) > 5
    assert [target for target in built if not target.startswith("https://")] == []
    assert f"https://github.com/statetrack/statetrack/raw/v{__version__}/docs/pictures/report.png" in built
    for target in written:
        assert any(there.endswith(target) for there in built)
        assert "://" in target or (ROOT / target.partition("#")[0]).exists()


def test_nothing_of_this_machine_is_asked_for(dist: Path, wheel: Path) -> None:
    """The task files for lm-evaluation-harness are asked for by name, and in a clone by its own folder."""
    needed = [Requirement(line) for line in metadata(wheel).get_all("Requires-Dist", [])]
    assert [str(each) for each in needed if each.url] == []
    assert {str(each.specifier) for each in needed if each.name == "statetrack-lm-eval"} == {f"=={__version__}"}
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        names = archive.getnames()
        told = archive.extractfile(f"{NAME}/PKG-INFO")
        assert told is not None
        assert b"file:///" not in told.read()
    assert not [name for name in names if name.startswith(f"{NAME}/lm_eval_tasks")]
    assert {f"{NAME}/README.md", f"{NAME}/tests/test_release.py", f"{NAME}/docs/README.md"} <= set(names)
    code = "from hatchling.build import prepare_metadata_for_build_wheel as made; import sys; print(made(sys.argv[1]))"
    clean = {name: value for name, value in os.environ.items() if name != "PIP_BUILD_TRACKER"}
    made = python("-c", code, dist.parent, cwd=ROOT, env=clean).strip()
    asked = email.message_from_string((dist.parent / made / "METADATA").read_text()).get_all("Requires-Dist", [])
    here = (ROOT / "lm_eval_tasks").as_uri()
    assert {Requirement(line).url for line in asked if "statetrack-lm-eval" in line} == {here}


def test_each_wheel_stays_in_its_own_folder(dist: Path, wheel: Path) -> None:
    (tasks,) = dist.glob("statetrack_lm_eval-*.whl")
    held = {}
    for path in (wheel, tasks):
        with zipfile.ZipFile(path) as archive:
            held[path] = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in held[wheel]} == {"statetrack"}
    assert sorted(held[tasks]) == sorted(f"{FOLDER}/{name}" for name, _ in files())
    assert metadata(tasks).get_all("Requires-Dist") == ["lm-eval<0.5,>=0.4.13"]


def bring(wheel: Path, extra: str, place: Path) -> None:
    """Link what the wheel says that it needs, and all that this needs, from where the tests run."""
    (site,) = place.glob("lib/python*/site-packages")
    wanted = [(Requirement(line), extra) for line in metadata(wheel).get_all("Requires-Dist", [])]
    seen: set[str] = set()
    while wanted:
        each, extra = wanted.pop()
        if each.name in seen or not (each.marker is None or each.marker.evaluate({"extra": extra})):
            continue
        seen.add(each.name)
        needed = distribution(each.name)
        wanted += [(Requirement(line), "") for line in needed.requires or []]
        for top in {file.parts[0] for file in needed.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(needed.locate_file(top))))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and with what the wheel says that it needs, and nothing else."""
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=False, symlinks=True)
    inside = place / "bin/python"
    python("-m", "pip", "--python", inside, "install", "--quiet", "--no-index", "--no-deps", wheel)
    bring(wheel, "", place)
    return place


def test_the_wheel_works_in_a_clean_environment(wheel: Path, clean: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def run(*command: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [clean / "bin" / command[0], *map(str, command[1:])],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert run("statetrack", "--version") == f"statetrack {__version__}\n"
    assert "s5_composition" in run("statetrack", "list")
    run("statetrack", "data", "s5", "--length", "5", "--count", "10", "--out", "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 10
    run("statetrack", "unpack", ROOT / "docs/results/length-generalisation.tar.gz", "cells")
    said = run("statetrack", "report", "cells", code=2)
    assert said == f"statetrack: the report needs vl_convert: pip install '{wheel}[report]'\n"
    bring(wheel, "report", clean)
    run("statetrack", "report", "cells")
    assert "</html>" in (tmp_path / "cells/report.html").read_text()
    assert "No module named 'lm_eval'" in run("python", "-c", "import lm_eval", code=1)
    assert "No module named 'torch'" in run("python", "-c", "import torch", code=1)


def test_the_pip_line_leads_to_where_statetrack_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted:
        text: str | None = None

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self.text

    noted = Noted()
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: noted)
    assert errors.pip_line("hf") == "pip install 'statetrack[hf]'"  # from an index
    for origin, line in (
        ({"url": "file:///my%20clone", "dir_info": {}}, "pip install '/my clone[hf]'"),
        ({"url": "file:///a.whl", "archive_info": {}}, "pip install '/a.whl[hf]'"),
        ({"url": "https://host/a.whl", "archive_info": {}}, "pip install 'statetrack[hf] @ https://host/a.whl'"),
    ):
        noted.text = json.dumps(origin)
        assert errors.pip_line("hf") == line
