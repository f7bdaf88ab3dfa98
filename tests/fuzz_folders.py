"""Folders of results and archives for `tests.fuzz`: damaged, hostile, or with what nobody put there."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as some
from hypothesis.strategies import SearchStrategy

from statetrack.results.seal import SUM, seal
from tests.fuzz_inputs import (
    LINES,
    MACHINE,
    PLACE,
    ROWS,
    SWEEP,
    VALUES,
    WEIGHTS,
    Case,
    Node,
    Special,
    Tree,
    command_lines,
    machine_cases,
    row_cases,
    seldom,
    sweep_cases,
    texts,
)

BOMB = 300 * 2**20  # bytes: more than an archive may unpack to


@dataclass(frozen=True)
class Held:
    """A folder of results as statetrack writes it, by the names of its files, and its archive."""

    files: dict[str, bytes]
    archive: bytes

    @classmethod
    def read(cls, place: Path) -> Held:
        found = place / "results"
        files = {str(path.relative_to(found)): path.read_bytes() for path in sorted(found.rglob("*")) if path.is_file()}
        return cls(files, (place / "results.tar.gz").read_bytes())

    @property
    def weights(self) -> bytes:
        return next(content for name, content in self.files.items() if name.endswith(".safetensors"))

    def tree(self) -> Tree:
        return {f"{place}/{name}": content for place in ("results", "other") for name, content in self.files.items()}


def cases(held: Held) -> SearchStrategy[Case]:
    """Any case: of every verb, with more weight on what is read from files."""
    verbs = [_of_verb(verb, held) for verb in LINES]
    return some.one_of(*verbs, *[sweep_cases()] * 3, *[machine_cases()] * 2, row_cases(), *[archive_cases(held)] * 2)


def _of_verb(verb: str, held: Held) -> SearchStrategy[Case]:
    files = some.fixed_dictionaries(
        {"x.yaml": some.one_of(texts(SWEEP), texts(MACHINE), some.just(SWEEP.encode())), "x.jsonl": texts(ROWS),
         WEIGHTS: some.just(held.weights) | damaged(held.weights, WEIGHTS)}
    )  # fmt: skip
    plain: Tree = {"x.yaml": SWEEP.encode(), "x.jsonl": ROWS.encode(), WEIGHTS: held.weights}
    if "results" not in LINES[verb]:
        return some.builds(lambda line, tree: Case(line, _there(tree), plain), command_lines(verb), files)
    return some.builds(
        lambda line, tree, folder: Case(line, _there(tree | folder), plain | held.tree()),
        command_lines(verb), files, folders(held),
    )  # fmt: skip


def _there(tree: dict[str, Node | None]) -> Tree:
    return {name: node for name, node in tree.items() if node is not None}


def folders(held: Held) -> SearchStrategy[dict[str, Node | None]]:
    """The folder with some of its files damaged and some files more; a second one that is whole."""
    names = sorted(held.files)
    one = some.sampled_from(names).flatmap(
        lambda name: some.tuples(some.just(f"results/{name}"), damaged(held.files[name], name))
    )
    keys = sorted({name[:20] for name in names if name.endswith(".json") and "/" not in name})
    strange = some.sampled_from(
        ["x.json", f"{'0' * 20}.json", ".x.json.0a0b0c0d.part", "x.eval", "diagnosis/x.json",
         "diagnosis/comparison.json", ".sweep/plans/x.json", ".sweep/work/x/y.safetensors", "logs/x.json",
         *(f"{key}{end}" for key in keys for end in
           (".replies.jsonl", ".0a0b0c0d.conflict.json", ".0a0b0c0d.conflict.replies.jsonl", ".safetensors",
            ".proof", ".pruned.proof", ".pruned.safetensors", ".0a0b0c0d.conflict.proof"))]
    ).map(lambda name: f"results/{name}")  # fmt: skip
    special = some.sampled_from([Special("pipe"), Special("link", "/dev/zero"), Special("folder")])
    others = some.sampled_from(sorted(held.files.values()))
    content = some.one_of(texts("{}"), others, some.binary(max_size=40), special)
    more = some.tuples(strange, content)
    return some.builds(
        lambda changes, others: {**held.tree(), **dict(changes), **dict(others)},
        some.lists(one, min_size=1, max_size=3), seldom(some.lists(more, min_size=1, max_size=2), []),
    )  # fmt: skip


def damaged(content: bytes, name: str) -> SearchStrategy[Node | None]:
    """What may have become of a file; None: it is gone."""
    bits = some.integers(0, 8 * len(content) - 1).map(lambda at: flipped(content, at))
    cuts = some.integers(0, len(content)).map(lambda at: content[:at])
    special = some.sampled_from(
        [Special("pipe"), Special("folder"), Special("link", "/dev/zero"), Special("link", Path(name).name),
         Special("link", ".")]
    )  # fmt: skip
    odd = some.one_of(some.sampled_from([None, b"", b"[" * 100_000]), texts("{}"), some.binary(max_size=40))
    ways: list[SearchStrategy[Any]] = [odd, special, bits, cuts]
    if name.endswith(".json"):
        ways += [other_values(content)] * 2
    return some.one_of(*ways)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@some.composite
def other_values(draw: some.DrawFn, content: bytes) -> bytes:
    """JSON in which a value is another one or gone, with a checksum that is right or not."""
    document = json.loads(content)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = keys[draw(PLACE) % len(keys)]
        inside = place[key]
        if isinstance(inside, dict | list) and inside and not draw(some.booleans()):
            place = inside
            continue
        if draw(some.booleans()):
            place[key] = draw(VALUES)
        else:
            del place[key]
        break
    if not draw(some.booleans()):
        return json.dumps(document).encode()
    document.pop(SUM, None)
    try:
        return seal(document, indent=1)
    except ValueError:  # not a number: nothing that is sealed holds one
        return json.dumps(document).encode()


def archive_cases(held: Held) -> SearchStrategy[Case]:
    """Archives with a bit flipped, cut off, or made by somebody who means ill."""
    made = some.one_of(
        some.integers(0, 8 * len(held.archive) - 1).map(lambda at: flipped(held.archive, at)),
        some.integers(0, len(held.archive)).map(lambda at: held.archive[:at]),
        some.binary(max_size=600),
        hostile_archives(held),
        some.builds(lambda: bomb()),
    )
    name = some.sampled_from(["results.tar.gz", "results.tar"])
    return some.builds(
        lambda name, data: Case(["unpack", name, "o"], {name: data}, {"results.tar.gz": held.archive}), name, made
    )


@some.composite
def hostile_archives(draw: some.DrawFn, held: Held) -> bytes:
    """Members of all sorts of names and kinds, with a list of checksums that fits, does not fit, or is missing."""
    key = "0" * 20
    names = [*held.files, "../x.json", "/tmp/x.json", f"{key}.json", f"{key}.replies.jsonl", "SHA256SUMS", "x" * 300,
             f"diagnosis/{key}.json", ".sweep/plans/x.json", f"{key}.0a0b0c0d.conflict.json", "a/../b.json",
             "\x1b[2J"]  # fmt: skip
    kinds = [tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE,
                                     tarfile.GNUTYPE_SPARSE]  # fmt: skip
    content = some.one_of(texts("{}"), some.sampled_from(sorted(held.files.values())), some.binary(max_size=40))
    members = draw(some.lists(some.tuples(some.sampled_from(names), some.sampled_from(kinds), content), max_size=4))
    sums = draw(some.sampled_from(["right", "wrong", "none"]))
    if sums != "none":
        listed = [
            f"{hashlib.sha256(data + b'x' * (sums == 'wrong')).hexdigest()}  {name}\n" for name, _, data in members
        ]
        members.append(("SHA256SUMS", tarfile.REGTYPE, "".join(listed).encode()))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(data), "/etc/passwd"
            tar.addfile(member, io.BytesIO(data) if kind in (tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE) else None)
    return gzip.compress(file.getvalue(), mtime=0) if draw(some.booleans()) else file.getvalue()


@cache
def bomb() -> bytes:
    """A small file that unpacks to a large one."""
    member = tarfile.TarInfo(f"{'0' * 20}.safetensors")
    member.size = BOMB
    return gzip.compress(member.tobuf(), mtime=0) + gzip.compress(bytes(BOMB), compresslevel=1, mtime=0)
