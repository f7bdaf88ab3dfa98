"""What code of one's own is, by its hash: the file, everything of one's own that it imports, and packages by version.

Nothing is run to find it out: imports are read from the source. One whose name is only known when it runs is not seen.
torch and statetrack do not count among the packages: every record names their versions.

A file that imports nothing else has the hash of the file, as in 0.1.0, and texts that hold that of a file still load.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path

from statetrack import trust
from statetrack.errors import BadInput

OURS = "statetrack"
OUR_CLASSES = (f"{OURS}.models.", f"{OURS}.tasks.")
IN_RECORDS = ("torch", OURS)
STDLIB = sys.stdlib_module_names
DIGITS = 8  # of a hash, in the text of a task or a model
MOST_SOURCES = 2000  # files of one's own
MOST_BYTES = 2**26  # of one of them
WANTED = "give file.py:Class or package.module:Class"


@dataclass
class Identity:
    """The sources behind an address: those of one's own with the hash of each, and packages."""

    file: str = ""  # the hash of the file alone, where the address is that of a file
    own: dict[str, str] = field(default_factory=dict)  # hash by the module's name
    packages: set[str] = field(default_factory=set)

    @cached_property
    def sha256(self) -> str:
        """The hash of all of it; empty where there is nothing to hash: what is our own, and what is typed in."""
        lines = [f"{name} {sha256}" for name, sha256 in sorted(self.own.items())]
        lines += [f"{name}=={_version(name)}" for name in sorted(self.packages)]
        if self.file and not lines:
            return self.file
        return _hash("\n".join([self.file, *lines]).encode()) if lines else ""

    @property
    def text(self) -> str:
        """As much of the hash as the text of a task or a model holds."""
        return self.sha256[:DIGITS]

    def is_called(self, text: str) -> bool:
        """Whether a text's hash is this one; 0.1.0 wrote that of the file alone."""
        return text in (self.text, self.file[:DIGITS]) and bool(text)


def trusted(address: str) -> Identity:
    """What stands behind an address, where it may be run (`statetrack.trust`); our own classes may always be."""
    return allowed(address, identity(address))


def allowed(address: str, behind: Identity) -> Identity:
    """The same where it is known already what stands behind the address."""
    if not is_ours(address):
        trust.require(address, behind.sha256)
    return behind


def is_ours(address: str) -> bool:
    """Whether an address is that of a module of our own tasks or models; a file that is called so is not.

    >>> is_ours("statetrack.models.rnn:GRU"), is_ours("statetrack.models.rnn.py:GRU")
    (True, False)
    """
    place = address.rpartition(":")[0]
    return place.startswith(OUR_CLASSES) and not place.endswith(".py")


def identity(address: str) -> Identity:
    """What stands behind `file.py:Class` or `package.module:Class`."""
    place = address.rpartition(":")[0]
    found = Identity()
    if place.endswith(".py"):
        content = _read(Path(place))
        found.file = _hash(content)
        _follow(found, _imports(content, ""))
        found.packages -= set(IN_RECORDS)
        return found
    top = place.partition(".")[0]
    if not all(part.isidentifier() for part in place.split(".")):
        raise BadInput(f"{address!r} is not the address of a class; {WANTED}")
    if top == OURS:
        return found
    _follow(found, [place])
    if place not in found.own and top not in found.packages and place not in sys.modules and top not in STDLIB:
        raise BadInput(f"cannot import {place!r}: there is no such module; {WANTED}")
    found.packages -= set(IN_RECORDS) - {top}
    return found


def _follow(found: Identity, names: Sequence[str]) -> None:
    """Add the modules of these names, and all that they import."""
    left, seen = list(names), set()
    while left:
        name = left.pop()
        if name in seen or name.partition(".")[0] in STDLIB:
            continue
        seen.add(name)
        parent = name.rpartition(".")[0]
        if parent and parent not in seen:
            left += [name, parent]  # a package runs before what is in it
            seen.discard(name)
            continue
        spec = _spec(name)
        if spec is None or not spec.origin or spec.origin in ("built-in", "frozen"):
            continue
        if name.partition(".")[0] == OURS or is_installed(spec.origin):
            found.packages.add(name.partition(".")[0])
            continue
        content = _read(Path(spec.origin))
        found.own[name] = _hash(content)
        if len(found.own) > MOST_SOURCES:
            raise BadInput(f"{name}: more than {MOST_SOURCES} files of its own are imported")
        if spec.origin.endswith(".py"):
            left += _imports(content, name if spec.submodule_search_locations is not None else parent)


def _spec(name: str) -> ModuleSpec | None:
    """Where a module would come from, by the finders that import asks; its packages are looked at and not run."""
    where: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        whole = ".".join(parts[:count])
        finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next((made for finder in finders if (made := finder.find_spec(whole, where, None))), None)
        if spec is None or (count < len(parts) and spec.submodule_search_locations is None):
            return None
        where = spec.submodule_search_locations
    return spec


def _imports(content: bytes, package: str) -> list[str]:
    """The modules that a source may import, by their whole names."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it will not run either, and that is said then
        return []
    return list(_named(tree, package))


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


@cache
def _places() -> tuple[Path, ...]:
    named = [sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib", "platstdlib")]
    return tuple(Path(place).resolve() for place in named if place)


def is_installed(origin: str) -> bool:
    """Whether a file belongs to an installed package or to Python itself, and not to the user."""
    path = Path(origin).resolve()
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or any(
        path.is_relative_to(place) for place in _places()
    )


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package, ())
        return ",".join(f"{name} {importlib.metadata.version(name)}" for name in sorted(set(names))) or "unknown"


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise BadInput(f"no file {path}; {WANTED}")
    if path.stat().st_size > MOST_BYTES:
        raise BadInput(f"{path} has more than {MOST_BYTES:,} bytes; {WANTED}")
    return path.read_bytes()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
