"""Proofs that lie beside weights, and whether they are those that the records speak of.

    DIR/3f0c...9a.proof                a proof about the weights in 3f0c...9a.safetensors
    DIR/3f0c...9a.pruned.safetensors   the same network with a part of it set to zero or fitted again
    DIR/3f0c...9a.pruned.proof         a proof about those

A record names the SHA-256 of its proof. What it claims counts only where that very file is there, so whoever reads a
folder is told so by a `reason`. Whether the proof holds is for `statetrack verify` to say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from statetrack.files import open_plain, read_bounded, too_many_values, write_whole
from statetrack.results import seal
from statetrack.results.evaluations import MISSING, PRUNED, ForEver
from statetrack.results.networks import HasEvaluations
from statetrack.results.schema import BadRecord

PROOF, PRUNED_PROOF, PRUNED_WEIGHTS = "proof", "pruned.proof", "pruned.safetensors"  # endings
ENDINGS = (PROOF, PRUNED_PROOF, PRUNED_WEIGHTS)
MOST_PROOF = seal.MOST_JSON  # bytes
LONGEST_NAME = 200  # letters of a name that a proof holds and that is repeated

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Proof:
    """What a proof says of itself. None of it is checked here."""

    sha256: str  # of the file
    task: str
    weights: str  # the hash of those that it is about


def ending_of(found: ForEver) -> str:
    """Of the file that an evaluation speaks of."""
    return PRUNED_PROOF if found.outcome == PRUNED else PROOF


def write(path: Path, proof: dict[str, Any]) -> str:
    """Keep a proof with a checksum; the SHA-256 of its file. One that no reader would take is refused."""
    data = seal.seal(proof)
    if len(data) > MOST_PROOF:
        raise BadRecord(f"the proof has {len(data):,} bytes, more than the {MOST_PROOF:,} that are read")
    write_whole(path, data)
    return hashlib.sha256(data).hexdigest()


def forget(record: Path) -> None:
    """Drop what is proved beside a record, whose weights are others now."""
    for ending in ENDINGS:
        record.with_suffix(f".{ending}").unlink(missing_ok=True)


def read(path: Path) -> Proof:
    """What a file of proof says of itself; raises BadRecord or OSError."""
    data = read_bounded(path, MOST_PROOF)
    told = seal.unseal(data)
    if not isinstance(told, dict):
        raise BadRecord("not a proof")
    for name in ("task", "weights"):
        if not isinstance(told.get(name), str) or len(told[name]) > LONGEST_NAME:
            raise BadRecord(f"not a proof: it does not say its {name}")
    return Proof(hashlib.sha256(data).hexdigest(), told["task"], told["weights"])


def vouched(entry: Entry, files: Callable[[str], list[Path]]) -> Entry:
    """A record whose evaluations say which of the proofs that they speak of lie here; `files` gives those of its cell
    by their ending. What is no record of a network is given back as it is.
    """
    if not isinstance(entry, HasEvaluations) or not any(map(_speaks_of_one, entry.evaluations)):
        return entry
    there = {ending: list(map(_sum, files(ending))) for ending in (PROOF, PRUNED_PROOF)}
    held: Any = entry
    told: Entry = replace(held, evaluations=tuple(_vouched(each, there) for each in entry.evaluations))
    return told


def _speaks_of_one(each: object) -> bool:
    return isinstance(each, ForEver) and each.claims_proof


def _vouched(each: Any, there: dict[str, list[str]]) -> Any:
    if not _speaks_of_one(each):
        return each
    sums = there[ending_of(each)]
    fits = each.proof in sums
    return replace(each, reason="" if fits else f"{MISSING}: another one lies there" if sums else MISSING)


def fitting(record: HasEvaluations, ending: str, paths: Iterable[Path]) -> Path | None:
    """Of some files the one that is a proof which this record speaks of."""
    named = {each.proof for each in record.of(ForEver) if each.claims_proof and ending_of(each) == ending}
    return next((path for path in paths if _sum(path) in named), None) if named else None


def _sum(path: Path) -> str:
    """The SHA-256 of a file; nothing of one that no reader would take."""
    try:
        return hashlib.sha256(read_bounded(path, MOST_PROOF)).hexdigest()
    except OSError:
        return ""


def weights_hash(path: Path) -> str:
    """The hash by which a proof names the weights in a safetensors file: of all tensors by name, their shapes and bits.

    The checker works it out by itself (`certificates/checker/`); this is for comparing files. Raises BadRecord where
    the weights are not float32, which no proof is about.
    """
    with open_plain(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= seal.MOST_HEADER:
            raise BadRecord("not a safetensors file")
        try:
            if too_many_values(data := file.read(length)):
                raise BadRecord(seal.MANY)
            header = json.loads(data)
            tensors = sorted((name, each) for name, each in header.items() if name != "__metadata__")
            digest = hashlib.sha256()
            for name, each in tensors:
                if each["dtype"] != "F32":
                    raise BadRecord(f"{name} is {each['dtype']}, not float32")
                digest.update(json.dumps([name, each["shape"]]).encode())
                begin, end = each["data_offsets"]
                for piece in _pieces(file, 8 + length + begin, end - begin):
                    digest.update(piece)
        except BadRecord:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise BadRecord(f"not a safetensors file ({error})") from None
    return digest.hexdigest()


def _pieces(file: Any, begin: int, count: int) -> Iterator[bytes]:
    file.seek(begin)
    while count > 0 and (piece := file.read(min(count, seal.PIECE))):
        count -= len(piece)
        yield piece
