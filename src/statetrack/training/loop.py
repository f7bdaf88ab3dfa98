"""Fit R replicas of one model to one task. The loop reads from top to bottom.

Every replica has its own seed or learning rate, its own rows, its own progress through the protocol; a replica that is
done waits with a learning rate of 0. So what comes out for a seed does not depend on which seeds run beside it, up to
rounding: sums over a batched product may be taken in another order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from statetrack.errors import BadInput
from statetrack.models import Replicas, SequenceModel, answers_of
from statetrack.models.chance import seed_of
from statetrack.models.custom import own_name
from statetrack.models.replicas import Turn
from statetrack.tasks.base import Task
from statetrack.training import checkpoint, metrics
from statetrack.training.batches import Batches, BatchRequest, ReplicaRows, tensors
from statetrack.training.curves import Callback, is_check, last_check, tell
from statetrack.training.evaluate import pass_rows
from statetrack.training.hard_rows import Attack, Broken
from statetrack.training.memory import beside_others, hand_back, keep_memory, ran_out_of_memory
from statetrack.training.noise import StateNoise, check_state
from statetrack.training.optimizer import AdamW, FlatParameters
from statetrack.training.protocol import Progress, Protocol
from statetrack.training.step import Loss, Stepper

SAVE_SECONDS = 20.0
BUFFER, BEST_BUFFER = "buffer.", "best_buffer."  # their names in a checkpoint begin so

Report = Callable[["Fit"], None]


@dataclass
class Fit:
    """A training run in progress, and what it leaves: the best weights of each replica and how it went."""

    task: Task
    replicas: Replicas
    seeds: list[int]
    progress: list[Progress]
    device: torch.device
    floor: float | None = None  # what a guess without the past can score at the full length
    best_weights: Tensor = field(init=False)
    best_buffers: dict[str, Tensor] = field(init=False)  # (R, ...) each, where the models have any
    losses: list[list[float]] = field(init=False)
    norms: list[float | None] = field(init=False)  # of the gradients since the last check, the mean
    tokens: int = 0
    seconds: float = 0.0
    saved: int | None = None  # the update of the last checkpoint
    broken: list[Broken] = field(init=False)  # words that each network answered wrong, where hard rows are trained on

    def __post_init__(self) -> None:
        self.broken = [Broken([]) for _ in self.seeds]
        self.losses = [[] for _ in self.seeds]
        self.norms = [None for _ in self.seeds]
        self.best_buffers = self.replicas.buffers_of_all()

    @property
    def done(self) -> bool:
        return all(progress.done for progress in self.progress)

    def models(self) -> list[SequenceModel]:
        """Each replica with the weights that validation chose."""
        return [self.replicas.one(row).to(self.device) for row in range(len(self.seeds))]


def fit(
    task: Task, models: list[SequenceModel], length: int, seeds: list[int], rates: list[float], protocol: Protocol,
    device: torch.device, saved: Path | None = None, floor: float | None = None, report: Report = lambda _: None,
    callback: Callback | None = None,
) -> Fit:  # fmt: skip
    """Train one replica for each (model, seed, rate); with a `saved` file, go on from it and keep it up to date.

    A run that goes on tells the callback first of the check that it goes on from: a kill may have come between the two.
    """
    keep_memory()
    replicas = Replicas(models, device)
    freeze(replicas, models[0])
    flat = FlatParameters(replicas)
    optimizer = AdamW(flat, protocol.weight_decay, protocol.clip)
    progress = [Progress(protocol, rate, protocol.stages(length)) for rate in rates]
    run = Fit(task, replicas, seeds, progress, device, floor)
    run.best_weights = flat.values.clone()
    keeper = Keeper(saved, run, flat, optimizer, length)
    keeper.resume()
    feed = Batches(task, device)
    stepper = Stepper(replicas, optimizer, protocol.precision, loss_of(protocol, seeds, replicas, device))
    attack = Attack(task, replicas.one(0)) if protocol.hard_rows else None
    count = protocol.batch_at(length)  # the same at every stage, so that a replica's rows do not depend on the others
    pending: list[Tensor] = []  # losses and norms still on the device
    report(run)
    try:
        keeper.tell(callback, [row for row, p in enumerate(progress) if p.checks or p.done])
        began, clock = time.monotonic(), run.seconds
        while not run.done:
            # 1. a step
            rows = feed.get(wanted(run, count), count, wanted(run, count, ahead=1))
            replicas.turns = turns(run) if replicas.changing else ()
            rates_now = torch.tensor([p.learning_rate for p in progress], device=device)
            steps_now = torch.tensor([p.step + 1 for p in progress], device=device)
            pending.append(stepper(rows, rates_now, steps_now))
            run.tokens += rows.inputs.numel()
            for p in progress:
                p.after_step()
            # 2. now and then a check on validation data, which moves the protocol on
            if max(p.step for p in progress) % protocol.check_every == 0:
                going_on = [row for row, p in enumerate(progress) if not p.done]
                settle(run, pending)
                check(run, flat)
                if attack:
                    look_for_words(run, attack, count, going_on)
                run.seconds = clock + time.monotonic() - began
                report(run)
                keeper.save_when_due(last=run.done)
                began += keeper.tell(callback, going_on)
    except RuntimeError as error:
        if not ran_out_of_memory(error):
            raise
        raise BadInput(out_of_memory(stepper, rows)) from None
    finally:
        feed.close()
    with torch.no_grad():
        flat.values.copy_(run.best_weights)
    replicas.put_buffers_of_all(run.best_buffers)
    return run


def freeze(replicas: Replicas, like: SequenceModel) -> None:
    """Parameters that the model keeps fixed stay so in every replica."""
    trained = {name: p.requires_grad for name, p in like.named_parameters()}
    for part in replicas.parts:
        for name, p in part.named_parameters():
            p.requires_grad_(trained[name])


def wanted(run: Fit, count: int, ahead: int = 0) -> tuple[BatchRequest, ...]:
    """The rows that every replica reads at its step: the next `count` of its own stream. One that is done gets any."""
    longest = max(p.length for p in run.progress if not p.done)
    hard = run.progress[0].protocol.hard_of(count)
    return tuple(
        BatchRequest(seed, longest, 0)
        if p.done
        else BatchRequest(seed, p.length, (p.step + ahead) * count, hard, broken.known)
        for seed, p, broken in zip(run.seeds, run.progress, run.broken)
    )


def turns(run: Fit) -> list[Turn]:
    """What every replica reads of the rows that are `wanted`, and the seed of what it draws at its step."""
    return [Turn(want.length, seed_of(seed, p.step)) for want, seed, p in zip(wanted(run, 0), run.seeds, run.progress)]


def loss_of(protocol: Protocol, seeds: list[int], replicas: Replicas, device: torch.device) -> Loss:
    """The loss of a step: of the network as it is, or with noise on its state."""
    if not protocol.state_noise:
        return plain_loss
    check_state(replicas.first)
    noise = StateNoise(protocol.state_noise, seeds, device, protocol.noise_kind)
    return lambda replicas, rows, steps: batch_loss(noise.logits(replicas, rows.inputs, steps), rows)


def plain_loss(replicas: Replicas, rows: ReplicaRows, _: Tensor) -> Tensor:
    """The loss of the network as it is, at any update."""
    return batch_loss(replicas(rows.inputs), rows)


def batch_loss(logits: Tensor, rows: ReplicaRows) -> Tensor:
    """Each replica's mean cross-entropy over the positions it is asked at."""
    logits = logits.float()
    loss = F.cross_entropy(logits.flatten(0, 2), rows.targets.flatten(), reduction="none").view(rows.mask.shape)
    asked = rows.mask.to(loss.dtype)
    return (loss * asked).sum((1, 2)) / asked.sum((1, 2)).clamp(min=1)


def settle(run: Fit, pending: list[Tensor]) -> None:
    """Bring losses and norms home; a replica whose loss is not a number is marked, with its step, and stops."""
    if not pending:
        return
    losses, norms = torch.stack(pending, dim=1).cpu()
    for row, p in enumerate(run.progress):
        own, norm = losses[:, row], float(norms[:, row].double().mean())
        run.norms[row] = norm if math.isfinite(norm) else None
        finite = torch.isfinite(own)
        if not p.done and not bool(finite.all()):
            p.diverged_at = p.step - len(own) + int(finite.logical_not().nonzero()[0]) + 1
            p.done = True
        run.losses[row].extend(own.tolist())
        del run.losses[row][:-1000]
    pending.clear()


@torch.no_grad()
def check(run: Fit, flat: FlatParameters) -> None:
    """Validate every replica at the length it is at, and keep its weights where they are the best so far."""
    at: dict[int, list[int]] = {}
    for row, p in enumerate(run.progress):
        if not p.done:
            at.setdefault(p.length, []).append(row)
    for length, rows in at.items():
        right, asked = validate(run, length)
        for row in rows:
            p = run.progress[row]
            accuracy, tail = (measure(right[row], asked[row]) or 0.0 for measure in (metrics.share, metrics.tail))
            loss = float(np.mean(run.losses[row][-p.protocol.check_every :]))
            if p.after_check(accuracy, tail, loss, run.norms[row]):
                run.best_weights[row].copy_(flat.values[row])
                for name, buffer in run.replicas.buffers_of_all().items():
                    run.best_buffers[name][row] = buffer[row]


def look_for_words(run: Fit, attack: Attack, count: int, rows: list[int]) -> None:
    """Search those of these replicas whose check went well and whose turn it is."""
    for row in rows:
        p, broken = run.progress[row], run.broken[row]
        if p.done or p.diverged_at is not None:
            continue
        length = int(p.history[-1]["length"])
        if attack.due(broken, p.step, p.history[-1]["accuracy"], length, count):
            attack.make(run.replicas.one(row).to(run.device), broken, run.seeds[row], p.step, length)


def validate(run: Fit, length: int) -> tuple[Any, Any]:
    """(right, asked) of all replicas (R, rows, T) on their validation rows of this length."""
    protocol = run.progress[0].protocol
    count = max(16, min(protocol.validation_rows, protocol.most_tokens // length))
    batches = [run.task.sample(length, count, seed, "validation") for seed in run.seeds]
    ids = torch.stack([tensors(b.inputs, b.targets, b.mask)[0] for b in batches]).to(run.device)
    rows = max(1, pass_rows(run.device, length, run.task.outputs) // len(run.seeds))
    run.replicas.eval()
    classes = torch.cat([answers_of(run.replicas(part)).cpu() for part in ids.split(rows, dim=1)], dim=1)
    run.replicas.train()
    right = classes.numpy() == np.stack([b.targets for b in batches])
    return right, np.stack([b.mask for b in batches]).astype(bool)


def out_of_memory(stepper: Stepper, rows: ReplicaRows) -> str:
    """The line that says which batch would have fitted, found by halving."""
    count, length = rows.inputs.shape[1:]
    fits = count // 2
    while fits:
        hand_back(rows.inputs.device)
        try:
            stepper.gradient(
                ReplicaRows(*(part[:, :fits] for part in rows)), torch.ones(len(rows.inputs), device=rows.inputs.device)
            )
            break
        except RuntimeError as error:
            if not ran_out_of_memory(error):
                raise
            fits //= 2
    advice = f"a batch of {fits} fits: --set batch={fits}" if fits else "not even a batch of 1 fits"
    others = beside_others(rows.inputs.device)
    return f"out of memory at a batch of {count} rows of length {length}{others}; {advice}"


class Keeper:
    """Saves the run from time to time, and takes it up again where it was left."""

    def __init__(self, path: Path | None, run: Fit, flat: FlatParameters, optimizer: AdamW, length: int) -> None:
        self.run, self.flat, self.optimizer = run, flat, optimizer
        what = describe(run, length)
        self.identity = checkpoint.fingerprint(what)
        self.of = {name: what[name] for name in ("task", "model", "length")}  # for people: `status` names it
        self.path = path
        self.saved_at = time.monotonic()

    def resume(self) -> None:
        state = checkpoint.load_for(self.path, self.identity) if self.path else None
        if state is None:
            return
        assert self.path is not None
        saved_tensors, note = state
        try:
            self._check(saved_tensors, note)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise checkpoint.Damaged(self.path, error) from None
        with torch.no_grad():
            for name, tensor in self.matrices().items():
                tensor.copy_(saved_tensors[name])
            for name, tensor in self.run.best_buffers.items() if self._with_buffers(saved_tensors) else ():
                tensor.copy_(saved_tensors[BEST_BUFFER + name])
                self.run.replicas.put_buffers_of_all({name: saved_tensors[BUFFER + name].to(tensor.device)})
        for p, saved in zip(self.run.progress, note["progress"]):
            for key, value in saved.items():
                setattr(p, key, value)
        if self.run.progress[0].protocol.hard_rows:
            self.run.broken = [Broken.read(each) for each in note["broken"]]
        self.run.losses = note["losses"]
        self.run.tokens, self.run.seconds = note["tokens"], note["seconds"]
        self.run.saved = max(p.step for p in self.run.progress)

    def _check(self, held: dict[str, Tensor], note: dict[str, Any]) -> None:
        """Whether a run can go on from it: the shapes and types of this one, and numbers where it has not diverged."""
        for p, saved, losses in zip(self.run.progress, note["progress"], note["losses"], strict=True):
            own = p.to_dict()
            kinds = {key: type(value) for key, value in saved.items() if key != "diverged_at"}
            if kinds != {key: type(value) for key, value in own.items() if key != "diverged_at"}:
                raise ValueError("its progress is not that of a run")
            if not all(is_check(entry) for entry in saved["history"]):
                raise ValueError("its checks are not those of a run")
            if type(losses) is not list or type(saved["diverged_at"]) not in (int, NoneType):
                raise ValueError("its losses are not those of a run")
        going_on = torch.tensor([saved["diverged_at"] is None for saved in note["progress"]])
        expected = self.matrices() | (self.buffers() if self._with_buffers(held) else {})
        for name, tensor in expected.items():
            found = held[name]
            if found.dtype != tensor.dtype or found.shape != tensor.shape:
                raise ValueError(f"{name} is {found.dtype} of shape {tuple(found.shape)}")
            if name in self.matrices() and not torch.isfinite(found[going_on]).all():  # a mask may hold -inf
                raise ValueError(f"{name} holds what is not a number")
        if self.run.progress[0].protocol.hard_rows and len([Broken.read(each) for each in note["broken"]]) != len(
            going_on
        ):
            raise ValueError("its words are not those of its networks")
        if type(note["tokens"]) is not int or type(note["seconds"]) is not float:
            raise ValueError("its tokens or seconds are not numbers")

    def _with_buffers(self, held: dict[str, Tensor]) -> bool:
        """Whether a checkpoint should hold buffers: versions before 0.4.0 saved none, and took none that change."""
        return self.run.replicas.changing or any(name.startswith((BUFFER, BEST_BUFFER)) for name in held)

    def save_when_due(self, last: bool) -> None:
        if last or time.monotonic() - self.saved_at >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        if self.path is None:
            return
        note = {
            "run": self.identity, "of": self.of, "seeds": self.run.seeds,
            "progress": [p.to_dict() for p in self.run.progress], "losses": self.run.losses, "tokens": self.run.tokens,
            "seconds": self.run.seconds,
        }  # fmt: skip
        if self.run.progress[0].protocol.hard_rows:
            note["broken"] = [broken.to_dict() for broken in self.run.broken]
        checkpoint.save(self.path, self.matrices() | self.buffers(), note)
        self.run.saved = max(p.step for p in self.run.progress)
        self.saved_at = time.monotonic()

    def tell(self, callback: Callback | None, rows: list[int]) -> float:
        """Tell the user's own function of the last check of these replicas; gives the seconds that it took."""
        run, began = self.run, time.monotonic()
        for row in rows if callback else []:
            assert callback is not None
            tell(callback, last_check(run.progress[row], run.seeds[row], run.floor, run.seconds), self.save_now)
        return time.monotonic() - began

    def save_now(self) -> str:
        """Save, and say what was kept and how to go on."""
        if self.path is None:
            return "nothing was kept: with out= the next call would go on from here"
        self.save()
        return f"the checkpoint {self.path} is kept, and the next call goes on from it"

    def matrices(self) -> dict[str, Tensor]:
        return {
            "weights": self.flat.values,
            "first_moment": self.optimizer.first,
            "second_moment": self.optimizer.second,
            "best_weights": self.run.best_weights,
        }

    def buffers(self) -> dict[str, Tensor]:
        """Those of the replicas now, and those that go with their best weights."""
        now, best = self.run.replicas.buffers_of_all(), self.run.best_buffers
        return {BUFFER + name: now[name] for name in now} | {BEST_BUFFER + name: best[name] for name in best}


def describe(run: Fit, length: int) -> dict[str, Any]:
    """What makes two runs the same."""
    shapes = {name: list(p.shape) for name, p in run.replicas.named_parameters()}
    rates = [p.rate for p in run.progress]
    protocol = {key: value for key, value in run.progress[0].protocol.described().items() if key != "rates"}
    return {
        "task": run.task.name, "length": length, "seeds": run.seeds, "rates": rates, "protocol": protocol,
        "model": getattr(run.replicas.first, "text", None) or own_name(run.replicas.first), "shapes": shapes,
    }  # fmt: skip
