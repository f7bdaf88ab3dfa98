"""Proofs and weights that were changed: the checker refuses each, or what it accepts is true all the same.

python -m benchmarks.mutants [COUNT [NAME ...]]     so many (else 1,000) of these proofs, or of all; of large ones 20

A change may leave a proof true: a region that was moved by less than its slack still holds all images. So each that is
accepted is tried by means that share nothing with the checker: the network itself is run in float64 from the edges of
the regions, and answers words.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import statetrack as st
from statetrack.certificates.checker import Refused, check, hash_of, read_tensors
from statetrack.certificates.checker.cover import unpacked
from statetrack.certificates.cover import packed
from statetrack.models import SequenceModel
from statetrack.training.existing import named_model, with_weights
from statetrack.training.weight_file import look_at

FOLDER = Path(__file__).parent.parent / "tests" / "certificates" / "proved"
KINDS = {"centres": "<f8", "radii": "<f8", "next": "<i4"}
LARGE, FEW = 150_000, 20  # bytes of a proof from which on so few mutants are tried
EDGES, IMAGES = 8, 4800  # points of a region that are run, and of each column regions times tokens, at most
ROWS, STEPS = 32, 64  # of the words that are answered
ROUNDING = 1e-9  # of float64
Arrays = dict[str, NDArray[Any]]
Random = np.random.Generator


@dataclass
class Claim:
    """A proof and its weights, to be changed."""

    proof: dict[str, Any]
    tensors: dict[str, NDArray[np.float64]]
    network: SequenceModel  # of these weights before they were changed

    @classmethod
    def read(cls, path: Path) -> Claim:
        proof = json.loads(path.read_bytes())
        weights = path.with_suffix(".safetensors")
        file = look_at(weights)
        network = with_weights(named_model(None, file), st.task(proof["task"]), file, "cpu")
        return cls(proof, read_tensors(weights), network)

    def copied(self) -> Claim:
        return Claim(
            copy.deepcopy(self.proof), {name: each.copy() for name, each in self.tensors.items()}, self.network
        )

    @property
    def cover(self) -> Arrays:
        """The first cover's arrays, which may be written to."""
        return {name: unpacked(self.proof["covers"][0][name], kind).copy() for name, kind in KINDS.items()}

    def put(self, arrays: Arrays) -> None:
        self.proof["covers"][0] = {name: packed(each, KINDS[name]) for name, each in arrays.items()}

    def model(self) -> SequenceModel:
        """The network of the weights as they are now, in float64."""
        network = copy.deepcopy(self.network).double()
        network.load_state_dict({name: torch.from_numpy(each) for name, each in self.tensors.items()})
        return network


def moved(claim: Claim, rng: Random) -> None:
    """A region moved, by as little as a part of a millionth or as much as across the state."""
    arrays = claim.cover
    region = int(rng.integers(len(arrays["next"])))
    arrays["centres"][region] += 10.0 ** rng.uniform(-7, 0.3) * rng.choice((-1, 1), arrays["centres"][region].shape)
    claim.put(arrays)


def shrunk(claim: Claim, rng: Random) -> None:
    arrays = claim.cover
    arrays["radii"][int(rng.integers(len(arrays["next"])))] *= 1 - 10.0 ** rng.uniform(-7, 0)
    claim.put(arrays)


def dropped(claim: Claim, rng: Random) -> None:
    """A region left out; what led there leads to the one that lies nearest now."""
    arrays = claim.cover
    count = len(arrays["next"])
    region = int(rng.integers(count))
    apart = np.abs(arrays["centres"] - arrays["centres"][region]).reshape(count, -1).max(axis=1)
    apart[region] = np.inf
    place = np.arange(count) - (np.arange(count) > region)
    place[region] = place[int(apart.argmin())]
    arrays["next"] = place[np.delete(arrays["next"], region, axis=0)]
    for name in ("centres", "radii"):
        arrays[name] = np.delete(arrays[name], region, axis=0)
    for part in claim.proof["parts"]:
        if part["cover"] == 0:
            part["start"] = int(place[part["start"]])
    claim.put(arrays)


def led_astray(claim: Claim, rng: Random) -> None:
    arrays = claim.cover
    count, tokens = arrays["next"].shape
    arrays["next"][int(rng.integers(count)), int(rng.integers(tokens))] = rng.integers(count)
    claim.put(arrays)


def flipped(claim: Claim, rng: Random) -> None:
    """A bit of a weight, with a hash that fits."""
    while True:
        name = str(rng.choice(sorted(claim.tensors)))
        bits = claim.tensors[name].astype("<f4").reshape(-1).view("<u4")
        bit = rng.integers(20 if rng.random() < 0.8 else 0, 32)  # lower ones hardly change anything
        bits[int(rng.integers(len(bits)))] ^= np.uint32(1) << np.uint32(bit)
        values = bits.view("<f4")
        if np.isfinite(values).all() and np.abs(values).max() < 1e6:
            break
    claim.tensors[name] = values.astype(np.float64).reshape(claim.tensors[name].shape)
    claim.proof["weights"] = hash_of(claim.tensors)


def of_another_automaton(claim: Claim, rng: Random) -> None:
    """Another task over the same symbols, or two of the classes read in place of one another."""
    others = {"txc": ("fsm", "rtc", "xor_lag"), "mod_counter": ("mod_counter[m=4]", "mod_counter[m=6]"),
              "s3_composition": ("z6_composition",)}  # fmt: skip
    own = others.get(claim.proof["task"], ())
    if own and rng.random() < 0.5:
        claim.proof["task"] = str(rng.choice(own))
        return
    classes = len(claim.tensors["head.bias"])
    one, other = rng.choice(classes, 2, replace=False)
    order = np.arange(classes)
    order[[one, other]] = other, one
    for name in ("head.weight", "head.bias"):
        claim.tensors[name] = claim.tensors[name][order]
    claim.proof["weights"] = hash_of(claim.tensors)


def with_more_error(claim: Claim, rng: Random) -> None:
    """More epsilon than was proved."""
    claim.proof["epsilon"] = min(0.99, claim.proof["epsilon"] * (1 + 10.0 ** rng.uniform(-6, 1)))


CHANGES: tuple[Callable[[Claim, Random], None], ...] = (
    moved, shrunk, dropped, led_astray, flipped, of_another_automaton, with_more_error,
)  # fmt: skip


def mutants(claim: Claim, count: int, seed: int = 0) -> Iterator[tuple[str, Claim]]:
    """So many changed claims, each kind of change in turn, with its name."""
    for number in range(count):
        change, own = CHANGES[number % len(CHANGES)], claim.copied()
        change(own, np.random.default_rng([seed, number]))
        yield change.__name__.replace("_", " "), own


def is_accepted(claim: Claim) -> bool:
    try:
        check(claim.proof, claim.tensors)
    except (Refused, LookupError, ValueError):  # as `verify` does: it need not even be a claim
        return False
    return True


def what_is_false(claim: Claim, seed: int = 0) -> str:
    """What a claim says that is not so, as far as the network itself shows; nothing where none was found."""
    rng, model, task = np.random.default_rng(seed), claim.model(), st.task(claim.proof["task"])
    for told in claim.proof["parts"]:
        cover = claim.proof["covers"][told["cover"]]
        arrays = {name: unpacked(cover[name], kind) for name, kind in KINDS.items()}
        for place, (head, column) in enumerate(told["columns"]):
            if found := _false_of(model, arrays, place, head, column, told["start"], claim.proof["epsilon"], rng):
                return found
    return "an answer" if wrong_answers(model, task, seed) else ""


def _false_of(
    model: SequenceModel, arrays: Arrays, place: int, head: int, column: int, start: int, epsilon: float, rng: Random
) -> str:
    """Of one column: its start, and the images of the edges of its regions under every token."""
    centres, radii, following = (arrays[name] for name in KINDS)
    centres, radii = centres[:, place], radii[:, place]
    balls = radii.ndim == 1
    first = tuple(each.double() for each in model.initial_state(1))

    def out(values: NDArray[np.float64], into: NDArray[np.int64], error: float) -> bool:
        apart = values - centres[into]
        if balls:
            return bool(
                (np.linalg.norm(apart, axis=-1) + error * np.sqrt(apart.shape[-1]) > radii[into] + ROUNDING).any()
            )
        return bool((np.abs(apart) + error > radii[into] + ROUNDING).any())

    def own(state: tuple[torch.Tensor, ...]) -> NDArray[np.float64]:
        whole = [each.detach().numpy() for each in state]
        if whole[0].ndim == 4:
            return np.asarray(whole[0][:, head, :, column])
        return np.concatenate([each.reshape(len(each), -1) for each in whole], axis=1)  # h, and c of an LSTM

    if out(own(first), np.array([start]), 0.0):
        return "the start"
    chosen = rng.permutation(len(centres))[: IMAGES // following.shape[1]]
    edges = rng.normal(size=(EDGES, len(chosen), centres.shape[1]))
    edges = edges / np.linalg.norm(edges, axis=-1, keepdims=True) if balls else np.sign(edges)
    edges[0] = 0.0
    points = (centres[chosen] + edges * (radii[chosen][:, None] if balls else radii[chosen])).reshape(
        -1, centres.shape[1]
    )
    state = tuple(torch.zeros(len(points), *each.shape[1:], dtype=torch.float64) for each in first)
    if state[0].ndim == 4:
        state[0][:, head, :, column] = torch.from_numpy(points)
    else:
        parts = torch.from_numpy(points).split(points.shape[1] // len(state), dim=1)
        state = tuple(part.reshape(each.shape) for part, each in zip(parts, state))
    for token in range(following.shape[1]):
        with torch.no_grad():
            _, after = model.step(torch.full((len(points),), token), state)
        if out(own(after), np.tile(following[chosen, token], EDGES), epsilon):
            return "an image"
    return ""


@torch.no_grad()
def wrong_answers(model: SequenceModel, task: st.Task, seed: int = 0) -> int:
    """How many answers on random rows, and on a symbol held after random ones, are wrong."""
    rng, wrong = np.random.default_rng(seed), 0
    free = rng.integers(0, task.inputs, (ROWS, STEPS))
    held = np.concatenate([free[:, : STEPS // 8], np.repeat(free[:, -1:], STEPS, axis=1)], axis=1)
    for rows in (free, held):
        run = task.run(rows.astype(np.int32))
        said = model(torch.from_numpy(rows).long()).argmax(-1).numpy()
        wrong += int(((said != run.targets) & run.defined).sum())
    return wrong


def main(arguments: list[str]) -> int:
    count, bad = int(arguments[0]) if arguments else 1000, 0
    paths = [FOLDER / f"{name}.proof" for name in arguments[1:]] or sorted(FOLDER.glob("*.proof"))
    for path in paths:
        began, claim = time.monotonic(), Claim.read(path)
        tried = FEW if path.stat().st_size > LARGE else count
        accepted: Counter[str] = Counter()
        for name, mutant in mutants(claim, tried):
            if is_accepted(mutant):
                accepted[name] += 1
                if false := what_is_false(mutant):
                    bad += 1
                    print(f"ACCEPTED AND FALSE: {path.name}, {name}: {false}")
        kinds = ", ".join(f"{number} {name}" for name, number in sorted(accepted.items())) or "none"
        print(
            f"{path.stem:26}{tried:6,} mutants{time.monotonic() - began:8.1f} s   accepted and true: {kinds}",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
