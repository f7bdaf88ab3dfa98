"""How a model is trained, as short data: the protocols, and what each decides after a check on validation data.

`curriculum` starts at a short length and doubles it when the last one is solved. `design` is the protocol of the design
document: epochs of one length, a cosine, patience. `hold` is a curriculum with noise on the state and hard rows. In
all of them training, validation and test rows come from different splits, the weights that count are chosen on
validation, and the test is touched once.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statetrack.errors import BadInput, shortened, unknown
from statetrack.results.evaluations import is_solved

LEAST = {"batch": 1, "check_every": 1, "most_checks": 1, "most_tokens": 1, "validation_rows": 1}  # the others: 0
MOST = 2**31 - 1
CHOICES = {"precision": ("float32", "bfloat16"), "noise_kind": ("sign", "gaussian")}
LARGEST = {"hard_rows": 1.0}  # the other numbers that are not whole: 1000
LATER = {
    "state_noise": 0.0,
    "hard_rows": 0.0,
    "noise_kind": "sign",
}  # settings that cells of earlier versions do not name


@dataclass(frozen=True)
class Protocol:
    """Everything that decides how the weights come about, but for the seed. Part of a result's description."""

    name: str
    batch: int
    rates: tuple[float, ...]  # learning rates; where there are several, validation chooses
    weight_decay: float
    clip: float
    warmup: int  # steps
    check_every: int  # steps between two checks on validation data: the design document's epoch
    most_checks: int  # checks at most, in each stage of a curriculum or in all
    patience: int  # checks without a better accuracy before it stops; 0: none
    first_length: int = 0  # of a curriculum; 0: the full length from the first step on
    polish: int = 0  # steps in which the rate of a curriculum falls to nothing at the end
    most_tokens: int = 65_536  # tokens per step at most
    validation_rows: int = 256
    precision: str = "float32"
    state_noise: float = 0.0  # after every step of training each number of the state moves by this, up or down
    noise_kind: str = "sign"  # or gaussian, of that deviation
    hard_rows: float = 0.0  # the share of a batch that is long runs, sparse inputs, u v v v ... and words that broke it

    def described(self) -> dict[str, Any]:
        """What a cell holds of it. A setting that came after 0.3 is left out where it has its default, so that cells
        keep their keys.
        """
        return {key: value for key, value in vars(self).items() if LATER.get(key) != value}

    def with_changes(self, **changes: Any) -> Protocol:
        """The same protocol with other numbers; what is not a number of a protocol is refused by name."""
        names = [f.name for f in dataclasses.fields(self) if f.name != "name"]
        for key in changes:
            if key not in names:
                raise unknown("protocol setting", key, names)
        return dataclasses.replace(self, **checked({key: getattr(self, key) for key in names} | changes))

    @classmethod
    def changes(cls, given: Mapping[str, Any], settings: Mapping[str, Any] | None) -> dict[str, Any]:
        """Those of some arguments that are numbers of a protocol and not None, over those of `settings`."""
        if settings is not None and not isinstance(settings, Mapping):
            raise BadInput(f"settings={shortened(settings)} should be a mapping, such as {{'batch': 64}}")
        names = [f.name for f in dataclasses.fields(cls) if f.name != "name"]
        return dict(settings or {}) | {name: given[name] for name in names if given.get(name) is not None}

    def batch_at(self, length: int) -> int:
        """Rows per step: the batch, or fewer where the tokens would be too many."""
        return max(1, min(self.batch, self.most_tokens // length))

    def hard_of(self, count: int) -> int:
        """How many of so many rows are hard ones.

        >>> PROTOCOLS["hold"].hard_of(128), PROTOCOLS["curriculum"].hard_of(128)
        (32, 0)
        """
        return math.ceil(self.hard_rows * count)

    def stages(self, length: int) -> list[int]:
        """The lengths trained on, one after the other.

        >>> PROTOCOLS["curriculum"].stages(50)
        [4, 8, 16, 32, 50]
        """
        if not self.first_length or self.first_length >= length:
            return [length]
        doublings = math.ceil(math.log2(length / self.first_length))
        return [self.first_length * 2**n for n in range(doublings)] + [length]


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a protocol as values of their types, so that 1 and 1.0 make one result; what is wrong is named."""
    kinds = {f.name: f.type for f in dataclasses.fields(Protocol)}
    read = {"int": whole_number, "float": number, "tuple[float, ...]": rates, "str": choice}
    return {key: read[str(kinds[key])](key, value) for key, value in settings.items()}


def whole_number(key: str, value: Any) -> int:
    least = LEAST.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise BadInput(f"{key}={shortened(value, quoted=False)} should be a whole number in {least}..{MOST}")
    return value


def number(key: str, value: Any) -> float:
    most = LARGEST.get(key, 1000.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise BadInput(f"{key}={shortened(value, quoted=False)} should be a number in 0..{most:g}")
    return float(value)


def rates(key: str, value: Any) -> tuple[float, ...]:
    """One learning rate or more, each once."""
    value = [value] if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(value, list | tuple) or not value:
        raise BadInput(
            f"{key}={shortened(value, quoted=False)} should be a list of learning rates, such as [0.001,0.003]"
        )
    for rate in value:
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 10:
            raise BadInput(f"learning rates {shortened(list(value))} should be positive numbers below 10")
    if len(set(value)) < len(value):
        raise BadInput(f"learning rates {shortened(list(value))} should differ")
    return tuple(float(rate) for rate in value)


def choice(key: str, value: Any) -> str:
    if not isinstance(value, str) or value not in CHOICES[key]:
        raise BadInput(f"{key}={shortened(value, quoted=False)} should be {' or '.join(CHOICES[key])}")
    return str(value)


PROTOCOLS = {
    "curriculum": Protocol(
        name="curriculum", batch=128, rates=(2e-3,), weight_decay=0.01, clip=1.0, warmup=100,
        check_every=50, most_checks=30, patience=0, first_length=4, polish=500,
    ),
    "design": Protocol(
        name="design", batch=256, rates=(1e-3,), weight_decay=0.01, clip=1.0, warmup=0,
        check_every=20, most_checks=100, patience=10,
    ),
    # What it takes to hold for ever: the state is moved in every step, and a part of every batch is hard. Under noise
    # many states are learned late, so it has more checks, and a longer descent, in which it is attacked.
    "hold": Protocol(
        name="hold", batch=128, rates=(2e-3,), weight_decay=0.01, clip=1.0, warmup=100,
        check_every=50, most_checks=60, patience=0, first_length=2, polish=2000, state_noise=0.2, hard_rows=0.25,
    ),
}  # fmt: skip


def fuse_from() -> int | None:
    """The tokens per step from which on a GPU runs compiled blocks, as STATETRACK_FUSE says; 0: never. None: unsaid."""
    text = os.environ.get("STATETRACK_FUSE")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise BadInput(f"STATETRACK_FUSE={text} should be 0 (never) or a number of tokens per step")
    return int(text)


def protocol(given: str | Protocol) -> Protocol:
    """A protocol by name, or the protocol itself."""
    if isinstance(given, Protocol):
        return given
    if given.lower() not in PROTOCOLS:
        raise unknown("protocol", given, PROTOCOLS)
    return PROTOCOLS[given.lower()]


@dataclass
class Progress:
    """Where one run stands. It decides from its own checks alone, so replicas do not change one another."""

    protocol: Protocol
    rate: float
    stages: list[int]
    stage: int = 0
    step: int = 0  # in all
    stage_step: int = 0
    polishing: int = 0  # steps of the final descent done
    polish_begun: bool = False
    best: float = -1.0
    best_check: int = 0
    checks: int = 0
    done: bool = False
    diverged_at: int | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.stages[self.stage]

    @property
    def learning_rate(self) -> float:
        """Warm-up, then constant with a descent at the end (curriculum) or a cosine over all steps (design)."""
        if self.done:
            return 0.0
        p = self.protocol
        warm = min(1.0, (self.step + 1) / p.warmup) if p.warmup else 1.0
        if p.first_length:
            through = self.polishing / p.polish if self.polish_begun else 0.0
        else:
            through = self.step / (p.check_every * p.most_checks)
        return self.rate * warm * 0.5 * (1 + math.cos(math.pi * through))

    def after_step(self) -> None:
        if self.done:
            return
        self.step += 1
        self.stage_step += 1
        self.polishing += self.polish_begun

    def after_check(self, accuracy: float, tail: float, loss: float, norm: float | None = None) -> bool:
        """Take note of a check on validation data; True when the weights of this moment are the best so far."""
        if self.done:
            return False
        self.checks += 1
        self.history.append(
            {"step": self.step, "length": self.length, "loss": loss, "accuracy": accuracy, "gradient_norm": norm}
        )
        better = self._is_better(accuracy)
        if better:
            self.best, self.best_check = accuracy, self.checks
        if self.protocol.first_length:
            self._climb(tail)
        else:
            self.done = self.checks >= self.protocol.most_checks or self._out_of_patience()
        return better

    def _is_better(self, accuracy: float) -> bool:
        # In a curriculum only the full length counts, and later weights at equal accuracy are the better trained ones.
        if self.protocol.first_length:
            return self.stage == len(self.stages) - 1 and accuracy >= self.best
        return accuracy > self.best

    def _climb(self, tail: float) -> None:
        p = self.protocol
        if self.polish_begun:
            self.done = self.polishing >= p.polish
            return
        spent = self.stage_step >= p.check_every * p.most_checks
        if is_solved(tail) or spent:
            if self.stage < len(self.stages) - 1:
                self.stage, self.stage_step = self.stage + 1, 0
            else:
                self.polish_begun, self.done = True, p.polish == 0

    def _out_of_patience(self) -> bool:
        return bool(self.protocol.patience) and self.checks - self.best_check >= self.protocol.patience

    @property
    def share(self) -> float:
        """Roughly how much of the way is done, for the progress bar."""
        if self.done:
            return 1.0
        p, stage_steps = self.protocol, self.protocol.check_every * self.protocol.most_checks
        if not p.first_length:
            return self.step / stage_steps
        # A stage weighs by its length: that is what it costs.
        total = sum(self.stages)
        inside = (
            0.8 + 0.2 * self.polishing / max(1, p.polish) if self.polish_begun else 0.8 * self.stage_step / stage_steps
        )
        return (sum(self.stages[: self.stage]) + inside * self.length) / total

    def to_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the weights."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "protocol"}
