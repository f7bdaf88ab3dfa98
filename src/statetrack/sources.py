"""Code of one's own is run from the very bytes that were hashed.

Python takes what lies in `__pycache__` for the source beside it, and such a file can say that nobody need compare the
two. Whoever sends a folder sends that as well, so it is not looked at. And a file that changes between its hash and its
import is not run.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType


class SourceLoader(SourceFileLoader):
    """Compiles a source as it stands there; where a hash is given, only one that has it."""

    def __init__(self, name: str, path: str, sha256: str | None = None) -> None:
        super().__init__(name, path)
        self.sha256 = sha256

    def get_code(self, fullname: str) -> CodeType:
        content = self.get_data(self.path)
        if self.sha256 is not None and hashlib.sha256(content).hexdigest() != self.sha256:
            raise ImportError(f"{self.path} has changed since its hash was taken", name=fullname, path=self.path)
        code: CodeType = self.source_to_code(content, self.path)
        return code


class SourceFinder:
    """Stands before all other finders, for the modules of one's own that something trusted imports."""

    def __init__(self) -> None:
        self.hashes: Mapping[str, str] = {}  # of the modules that are being imported now
        self.names: set[str] = set()  # of these and of earlier ones: a function may import one later

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.names:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        found = next((spec for finder in others if (spec := finder.find_spec(name, path, target))), None)
        if found is not None and found.origin and isinstance(found.loader, SourceFileLoader):
            found.loader, found.cached = SourceLoader(name, found.origin, self.hashes.get(name)), None
        return found


_finder = SourceFinder()


@contextmanager
def hashed(hashes: Mapping[str, str]) -> Iterator[None]:
    """Within this, modules of these names are made from sources of these hashes; later on, from their sources still."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.names |= hashes.keys()
    before, _finder.hashes = _finder.hashes, {**_finder.hashes, **hashes}
    try:
        yield
    finally:
        _finder.hashes = before
