"""Who imports whom: only packages on lines above one's own, as docs/architecture.md has them. Lazy imports count."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "statetrack"
LINE = re.compile(r"^(\d)  ([a-z_, ]+)$", re.MULTILINE)


def layers() -> dict[str, int]:
    found = LINE.findall((ROOT / "docs" / "architecture.md").read_text())
    return {name.strip(): int(number) for number, names in found for name in names.split(",")}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every name of statetrack that a file imports, wherever it does, with the line; modules named in strings, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports by dots"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            yield node.value, node.lineno


def is_module(text: str) -> bool:
    parts = text.split(".")
    place = SOURCE.joinpath(*parts[1:])
    return parts[0] == "statetrack" and len(parts) > 2 and (place.is_dir() or place.with_suffix(".py").exists())


def graph() -> dict[tuple[str, str], list[str]]:
    """From package to package, with the places."""
    edges: dict[tuple[str, str], list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name, line in imported(path):
            parts = name.split(".")
            if parts[0] != "statetrack" or here in ("__init__", "__main__"):
                continue
            there = parts[1] if len(parts) > 1 else "__init__"
            if there != here:
                edges.setdefault((here, there), []).append(f"{path.relative_to(ROOT)}:{line}")
    return edges


def test_a_package_imports_only_what_is_above_it() -> None:
    known, edges = layers(), graph()
    for name in sorted(known, key=lambda name: (known[name], name)):
        print(f"{known[name]}  {name:13}-> {', '.join(sorted(there for here, there in edges if here == name)) or '-'}")
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert packages - {"__init__", "__main__"} == known.keys()
    wrong = [
        f"{here} -> {there}: {', '.join(places)}"
        for (here, there), places in edges.items()
        if there not in known or known[here] < known[there] or (known[here] == known[there] and known[here] > 0)
    ]
    assert wrong == []


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_results_need_neither_torch_nor_typer() -> None:
    code = "import sys, statetrack.results; print(sorted({'torch', 'typer', 'rich', 'yaml'} & set(sys.modules)))"
    assert run(code) == "[]"


def test_a_report_can_be_made_without_typer_and_torch(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["typer"] = sys.modules["torch"] = None
from pathlib import Path
from statetrack.reports import report
from statetrack.results import unpack
folder = Path({str(tmp_path)!r}) / "out"
unpack(Path({str(ROOT)!r}) / "docs/results/length-generalisation.tar.gz", folder)
print(report(folder).html.name)
"""
    assert run(code) == "report.html"


PATH = re.compile(r"`([a-z_]+/[\w./-]*\w\.(?:py|md|yaml|png|json|tar\.gz))`|\]\(([^)#:]+)\)")
MADE = (
    "results/diagnosis/",
    "results/report",
    "diagnosis/folder.json",
)  # files that a command makes in a folder of results
TO_WRITE = ("my_task.py", "my_model.py", "/lamp.py", "/glow.py", "/brightness.py")  # by a contributor
EXAMPLE = ROOT / "tests" / "extension" / "package"  # of docs/extend.md


def test_the_documents_name_files_that_exist() -> None:
    missing = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")):
        for named, linked in PATH.findall(page.read_text()):
            name = named or linked
            roots = [page.parent] if linked else [ROOT, SOURCE, EXAMPLE, page.parent]
            if (
                not name.startswith(MADE)
                and not name.endswith(TO_WRITE)
                and not any((root / name).exists() for root in roots)
            ):
                missing.append(f"{page.relative_to(ROOT)}: {name}")
    assert missing == []


NAMED = re.compile(r"`([\w.]+)` in `([\w/]+\.py)`")


def defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """The functions, classes and assigned names of a module, and the members of its classes as Class.member."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from defined(node.body, f"{prefix}{node.name}.")
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            yield from (prefix + name.id for name in names)


def test_the_map_names_what_is_there() -> None:
    """Every `name` in `file` of the table "Where is ...?", which has one in each of its lines."""
    section = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Where is ...?\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert lines
    assert [line for line in lines if not NAMED.search(line)] == []
    pairs = NAMED.findall(section)
    held = {file: set(defined(ast.parse((SOURCE / file).read_text()).body)) for _, file in pairs}
    assert [f"{name} in {file}" for name, file in pairs if name not in held[file]] == []


def test_the_list_of_pages_names_every_page() -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\((\w+\.md)[)#]", (docs / "README.md").read_text()))
    assert linked - {"README.md"} == {page.name for page in docs.glob("*.md")} - {"README.md"}


def test_no_other_package_knows_a_task_by_its_class() -> None:
    """What theory, prompts and files need of a task is a member of it; groups are a kind of machine."""
    single = tuple(f"statetrack.tasks.{room}." for room in ("machines", "streams", "stories"))
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "tasks"
        for name, line in imported(path)
        if name.startswith(single)
    ]
    assert found == []


NAMED_BY_A_CALLER = {  # what these resolve comes from whoever calls them, and may be run
    "statetrack.tasks.task": ("cli", "integrations/inspect/tasks.py"),
    "statetrack.tasks.catalogue.task": ("cli",),
    "statetrack.tasks.given_task": (
        "asking/asked.py",
        "certificates/network.py",
        "diagnosis/examine.py",
        "training/existing.py",
        "training/seeds.py",
    ),
}


def test_a_task_that_a_file_names_is_resolved_by_trusted_task() -> None:
    """`task` runs code that its caller names. What stands in a record, an archive or a sweep file is for
    `trusted_task`, which asks `statetrack.trust`. A function whose caller gives the text may be added above.
    """
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, line in imported(path)
        if (place := path.relative_to(SOURCE).as_posix()) != "__init__.py" and not place.startswith("tasks/")
        if name in NAMED_BY_A_CALLER and not place.startswith(NAMED_BY_A_CALLER[name])
    ]
    assert found == []
