"""Code of one's own, named as `file.py:Class` or `package.module:Class`: found, imported, and blamed in one line.

To import is to run, so `own_class` asks `statetrack.trust` first. What an address stands for is its hash
(`statetrack.identity`), which a text holds as `sha256`:

>>> is_address("mine.py:Mine"), is_address("txc")
(True, False)
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import operator
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from statetrack import sources, spec, trust
from statetrack.errors import BadInput, one_line
from statetrack.identity import WANTED, Identity, allowed, identity, is_installed, is_ours

HASH = "sha256"  # the parameter of a text that holds the hash of its code
HERE = Path(__file__).parent
BEGAN = time.time()

Kind = TypeVar("Kind")


def is_address(name: str) -> bool:
    """Whether a name is `file.py:Class` or `package.module:Class`."""
    return ":" in name


def addresses(texts: Iterable[Any]) -> list[str]:
    """Where texts of tasks or models name code, each once.

    >>> addresses(["mlp", "counter.py:Counter[width=8]", "counter.py:Counter"])
    ['counter.py:Counter']
    """
    named = (spec.parse(text)[0] for text in texts if isinstance(text, str) and is_address(text))
    return list(dict.fromkeys(name for name in named if is_address(name)))


def pinned(text: str) -> str:
    """The text with the hash that its code has now, so that a changed file has another text; nothing is run for it.

    >>> pinned("fsm[k=5]")
    'fsm[k=5]'
    """
    name, given = spec.parse(text)
    if not is_address(name) or HASH in given:
        return text
    sha256 = identity(name).text
    held = given | ({HASH: sha256} if sha256 else {})
    return f"{name}[{','.join(f'{key}={value}' for key, value in held.items())}]" if held else name


def own_class(address: str, sha256: str | None, wanted: type[Kind], called: str) -> tuple[type[Kind], str]:
    """The class at an address, where it may be run, and its hash as a text holds it. `sha256` is what the hash should
    be, where a text gives one; the class should be one of `wanted`, which an error calls so.
    """
    behind = identity(address)
    if sha256 is not None and not behind.is_called(sha256):  # said before trust is asked for, which could not help
        raise BadInput(f"the code of {address} has changed: its sha256 begins with {behind.text}, not with {sha256}")
    found = load(address, wanted, called, allowed(address, behind))
    if is_ours(address) and not is_ours(f"{found.__module__}:"):  # one that a module of ours has merely imported
        raise BadInput(f"{address} is not of statetrack; give {found.__module__}:{found.__qualname__}")
    trust.remember(address, behind.sha256)
    return found, behind.text


def load(address: str, wanted: type[Kind], called: str, known: Identity | None = None) -> type[Kind]:
    """The class of this kind at an address. It is imported: `own_class` asks first whether that may be."""
    place, _, attribute = address.rpartition(":")
    behind = known or identity(address)
    import_anew(behind)
    with sources.hashed(behind.own):
        if place.endswith(".py"):
            module = run_file(Path(place).resolve(), behind.file, behind.sha256)
        else:
            module = from_package(place)
    _note_imported(behind)
    try:
        target = operator.attrgetter(attribute)(module)
    except AttributeError:
        raise BadInput(f"{place} has no {attribute!r}; {WANTED}") from None
    if not isinstance(target, type) or not issubclass(target, wanted):
        what = f"the class {target.__name__}" if isinstance(target, type) else f"a {type(target).__name__}"
        raise BadInput(f"{address} is {what}, and not a class of {called}; {WANTED}")
    return target


_imported: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()  # of one's own, with the hash of the file then


def import_anew(behind: Identity) -> None:
    """Forget the modules behind an address, and all that may build on them, if one has changed since its import."""
    if any(_is_old(sys.modules.get(name), sha256) for name, sha256 in behind.own.items()):
        for name in behind.own.keys() | {module.__name__ for module in _imported}:
            sys.modules.pop(name, None)
        _imported.clear()
        importlib.invalidate_caches()


def _is_old(module: ModuleType | None, sha256: str) -> bool:
    """Whether a module is another than its file: by its hash where it was imported here, else by its time."""
    if module is None or module in _imported:
        return module is not None and _imported[module] != sha256
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_file() and Path(file).stat().st_mtime > BEGAN


def _note_imported(behind: Identity) -> None:
    _imported.update({sys.modules[name]: sha256 for name, sha256 in behind.own.items() if name in sys.modules})


@functools.cache
def run_file(path: Path, sha256: str, whole: str) -> ModuleType:
    """The module that a file of this hash makes. As long as it and all that it imports (`whole`) are unchanged it is
    run once, so that all seeds get one and the same class.

    The module's name is made from the path, so that two files of one name do not meet.
    """
    name = "statetrack_file_" + "_".join(path.with_suffix("").parts[1:])
    spec = importlib.util.spec_from_file_location(name, path, loader=sources.SourceLoader(name, str(path), sha256))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up there
    with blaming(f"{path} does not run"):
        spec.loader.exec_module(module)
    return module


def from_package(name: str) -> ModuleType:
    """Import a module by its dotted name."""
    with blaming(f"cannot import {name!r}"):
        return importlib.import_module(name)


@contextmanager
def blaming(what: str, but: Callable[[Exception], bool] = lambda error: False) -> Iterator[None]:
    """Whatever somebody's code raises becomes one line that begins so, but for some; its traceback is the cause, which
    `statetrack -v` shows.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, BadInput) or but(error):
            raise
        raise blamed(what, error) from error
    except SystemExit as error:
        if type(error) is not SystemExit:  # of our own, which ends a worker
            raise
        raise blamed(what, error) from error


def blamed(what: str, error: BaseException) -> BadInput:
    """What somebody's code raised, in one line that begins so and ends with the place in their files."""
    if isinstance(error, SystemExit):
        said = f"it calls sys.exit({error.code if error.code is not None else ''})"
    else:
        said = one_line(error)
    place = place_of(error)
    return BadInput(f"{what}: {said} ({place})" if place else f"{what}: {said}")


def place_of(error: BaseException) -> str:
    """The last line of one's own that an error came through, as `mine.py, line 7`; a syntax error says that itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return ""
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [f"{Path(name).name}, line {line}" for name, line in lines if _is_own(name)]
    return own[-1] if own else ""


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_file() and not path.is_relative_to(HERE) and not is_installed(file)
