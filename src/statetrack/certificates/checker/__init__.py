"""Check a proof that a network answers a task rightly after every word, of any length.

A proof is a cover: regions of the state, each with the region that every token leads to. The checker reads the weights
and the cover and checks, with numbers that are rounded outward,

    1. the start state lies in its region;
    2. the image of every region under every token, with an error of epsilon in each number of the state, lies in the
       region that the proof names for it;
    3. followed from the start beside the task's automaton, whatever the state inside its regions is, the right class
       has the largest logit, by a margin above 0. Columns that the proof leaves out may lie anywhere in [-1, 1].

By induction over the word, every implementation whose steps are off by at most epsilon in each number of the state, and
whose logits are off by less than half of the margin, is right for ever. Trusted are the task's automaton and the
weights, which are bound by a hash. Nothing of what searched for the proof, and nothing of the models, is imported here:

    rounding.py   intervals of float64 that are rounded outward
    float32.py    what float32 makes of a step and of the read-out, at most
    maps.py       the maps of columns that move by s' = tanh(A s + c), and what they make of regions
    network.py    what is asked of every network
    networks.py   the maps and the read-out of a network, in intervals, from its weights
    gated.py      the same of a GRU and an LSTM
    cover.py      regions, their images, and the product with the task's automaton
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from statetrack.certificates.checker.cover import Chosen, Part, follow
from statetrack.certificates.checker.maps import Maps
from statetrack.certificates.checker.network import MOST_WIDE, Tensors
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.certificates.checker.rounding import Floats, Refused
from statetrack.tasks import trusted_task
from statetrack.tasks.finite import explore

MOST_STATES, MOST_STEPS = 100_000, 2**22  # of a task; a step is a token in a state
MOST_HEADER = 2**24  # bytes that name the tensors of a file
MOST_VALUES = 2**20  # of a proof, its arrays counted as one each
MOST_NAME = 1000  # characters of a model's name
MOST_TOGETHER = 2**26  # letters of the covers of all parts, of one that parts share once for each
MOST_WORK = 2**35  # products of two numbers in all images

__all__ = ["Checked", "Refused", "check", "hash_of", "read_tensors", "verify"]


@dataclass(frozen=True)
class Checked:
    """What a proof that was accepted shows, and by how much."""

    task: str
    model: str  # as the proof calls it; what was checked is the network
    network: str
    weights: str  # the hash that binds them
    epsilon: float
    margin: float  # of the logits, at least
    float32: (
        float  # a step in float32 is off by at most this, if its tanh, exp and erf are by 8 units in the last place
    )
    float32_logits: float  # and a logit by at most this
    regions: int
    states: int  # of the product with the task's automaton

    @property
    def covers_float32(self) -> bool:
        return self.float32 <= self.epsilon and 2 * self.float32_logits < self.margin


def verify(proof: Path, weights: Path) -> Checked:
    """Check a proof file against a file of weights; Refused where it does not hold."""
    try:
        data = proof.read_bytes()
        if sum(map(data.count, b"[{,")) > MOST_VALUES:  # arrays are base64; as JSON lists they would take gigabytes
            raise Refused(f"{proof.name} has more than {MOST_VALUES:,} values, which no proof has")
        return check(json.loads(data), read_tensors(weights))
    except Refused:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise Refused(f"{proof.name} is not a proof for {weights.name} ({said})") from None


def check(told: dict[str, Any], tensors: Tensors) -> Checked:
    """Check a proof that was read against weights by name."""
    if told["weights"] != hash_of(tensors):
        raise Refused("the weights are not those that the proof is about")
    task, epsilon = trusted_task(told["task"]), float(told["epsilon"])
    if told["network"] not in NETWORKS:
        raise Refused(f"{told['network']} is not a network that can be checked; those are {', '.join(NETWORKS)}")
    name = told["model"]
    if not (isinstance(name, str) and name.isprintable() and len(name) <= MOST_NAME):
        raise Refused("what it calls its model is no name")
    if not 0 <= epsilon < 1:
        raise Refused(f"epsilon {epsilon} should lie in 0..1")
    used = Used(tensors)
    network = NETWORKS[told["network"]](used, task.inputs)
    machine = explore(task.start(), task.step, task.answer, task.inputs, task.name, _most_states(task.inputs))
    _check_size(told, network.maps)
    parts = [Part.read(part, told["covers"][part["cover"]], network.maps) for part in told["parts"]]
    columns = [column for part in parts for column in part.columns]
    if len(set(columns)) < len(columns) or not parts:
        raise Refused("each column should be covered at most once, and one at least")
    moved: set[Any] = set()
    for part, each in zip(parts, told["parts"]):
        part.check_start(network.maps)
        maps = tuple(head for head, _ in part.columns) if network.alike_columns else part.columns
        if (each["cover"], maps) not in moved:
            part.check_images(network.maps, epsilon)
            moved.add((each["cover"], maps))
    cases, margin, off, answers = follow(parts, machine.steps), np.inf, 0.0, machine.answers.astype(np.int64)
    for rows in cases.chunks():
        chosen = [Chosen(part, own) for part, own in zip(parts, cases.regions[rows].T)]
        reading = network.reading(chosen, cases.tokens[rows], answers[cases.after[rows]])
        margin, off = np.minimum(margin, reading.margin), np.maximum(off, reading.float32)  # NaN stays NaN
    float32 = network.float32_error(parts)
    if not margin > 0:
        raise Refused(f"the read-out may be wrong: all that is known of its margin is that it is above {margin:.3g}")
    if strange := sorted(tensors.keys() - used.names):
        raise Refused(f"the weights have {strange[0]}, which is no part of {told['network']}")
    return Checked(
        told["task"], name, told["network"], told["weights"], epsilon, float(margin), float32, float(off),
        sum({each["cover"]: len(part.next) for part, each in zip(parts, told["parts"])}.values()), cases.states,
    )  # fmt: skip


def _most_states(inputs: int) -> int:
    return min(MOST_STATES, MOST_STEPS // inputs)


def _check_size(told: dict[str, Any], maps: Maps) -> None:
    """Refuse a proof that would take gigabytes or hours: a small file may name one cover for thousands of columns."""
    heads, n, most = maps.shape
    if len(told["parts"]) > heads * most:
        raise Refused("it has more parts than the network has columns")
    letters = work = 0
    for part in told["parts"]:
        cover = told["covers"][part["cover"]]
        letters += sum(len(cover[each]["data"]) for each in ("centres", "radii", "next"))
        work += len(cover["centres"]["data"]) // 8 * n * maps.tokens
    if letters > MOST_TOGETHER or work > MOST_WORK:
        raise Refused("the covers of its parts are larger than can be checked")


class Used(dict[str, Floats]):
    """Tensors by name, and which of them were looked at."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__(tensors)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Floats:
        self.names.add(name)
        return super().__getitem__(name)


def read_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file, float32 alone, as float64."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    if size > MOST_HEADER:
        raise Refused(f"{path.name} names its tensors in more than {MOST_HEADER:,} bytes")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    tensors = {name: each for name, each in header.items() if name != "__metadata__"}
    for name, each in tensors.items():
        if not all(type(part) is int and part > 0 for part in each["shape"]):
            raise Refused(f"{name} has a shape that no weights have: {each['shape']!s:.60}")
    if sum(4 * math.prod(each["shape"]) for each in tensors.values()) > len(body):
        raise Refused(f"{path.name} holds fewer numbers than it says")  # tensors that lie on one another, each a copy
    if any(part > MOST_WIDE for each in tensors.values() for part in each["shape"]):
        raise Refused(f"a side of a tensor is longer than the {MOST_WIDE:,} that can be checked")
    found = {}
    for name, each in tensors.items():
        if each["dtype"] != "F32":
            raise Refused(f"{name} is {each['dtype']}; a proof is about float32 weights")
        begin, end = each["data_offsets"]
        found[name] = np.frombuffer(body[begin:end], "<f4").reshape(each["shape"]).astype(np.float64)
        if not np.isfinite(found[name]).all():
            raise Refused(f"{name} holds what is not a number")
    return found


def hash_of(tensors: Tensors) -> str:
    """One hash of all weights: names, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(json.dumps([name, list(tensors[name].shape)]).encode())
        digest.update(tensors[name].astype("<f4").tobytes())
    return digest.hexdigest()
