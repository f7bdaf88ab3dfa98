"""Run a model along rows of its task once, and keep what the other parts look at: answers, and states now and then.

The rows come from two splits: what is fitted (probes, directions) is fitted on validation rows, what is said of the
model is counted on test rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.diagnosis.true_states import TrueStates, asked_everywhere, running_count
from statetrack.errors import BadInput
from statetrack.models import NO_ANSWER, SequenceModel, State, answers_of
from statetrack.tasks.base import Ints, Task
from statetrack.training.evaluate import NO_STREAM, to_ids

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

MOST_ROWS, LEAST_ROWS = 512, 72  # half to fit on, half to test on: of 36 all right is surely above 90 %, of 34 not
SAMPLES = 256  # states to fit a probe on at each position
MOST_STREAM = 16_384
STOPS = 48  # positions at which states are kept
SKETCH = 1024  # numbers of a state that are kept: a larger one is sketched
BOUND = 1e15  # of a number in a state: beyond, float32 has nothing more to tell
FEWEST = 4  # stops
PIECE = 256  # steps of one forward pass
# What a token costs on one core, in microseconds: measured on E88, Mamba-2 and a tanh RNN of several sizes.
PER_STATE, PER_WEIGHT, PER_TOKEN = 2.7e-3, 7e-5, 0.7
WALK_WORK, STREAM_WORK = 8.4e6, 8.6e6  # microseconds, about


@dataclass(frozen=True)
class Plan:
    """How much is looked at: so many rows of each split, `length` steps with states, `stream` steps of answers."""

    rows: int
    length: int
    stream: int
    stops: tuple[int, ...]  # positions at which states are kept
    window: int  # states kept at each: those after the last so many inputs

    @classmethod
    def of(cls, model: SequenceModel, trained: int, length: int | None, stream: int = MOST_STREAM) -> Plan:
        """Chosen by what the model costs, so that large and small ones take about the same time."""
        limit = getattr(model, "positions", None)
        wanted = length if length is not None else max(trained, min(16 * trained, 1024))
        if limit is not None and wanted > limit:
            if length is not None:
                raise BadInput(f"the model has {limit} positions; --length {length} does not fit")
            wanted = limit
        cost = cost_of(model)
        rows = int(np.clip(WALK_WORK / (2 * wanted * cost), LEAST_ROWS // 2, MOST_ROWS // 2))
        affordable = min(int(STREAM_WORK / (rows * cost)) // PIECE * PIECE, stream)
        far = wanted if state_problem(model) == NO_STREAM else max(wanted, affordable)
        window = min(-(-SAMPLES // rows), wanted)
        return cls(rows, wanted, far, tuple(grid(window, wanted, STOPS)), window)


def device_of(model: SequenceModel) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def cost_of(model: SequenceModel) -> float:
    """Microseconds a token, about."""
    return PER_STATE * model.state_size + PER_WEIGHT * model.parameter_count + PER_TOKEN


def grid(first: int, last: int, most: int) -> list[int]:
    """At most so many whole numbers from first to last, their ratios about equal.

    >>> grid(1, 64, 8)
    [1, 2, 3, 6, 11, 20, 35, 64]
    """
    return [int(t) for t in np.unique(np.round(np.geomspace(first, last, most)).astype(int))]


NO_STATE = "the model keeps no state from step to step"


def state_problem(model: SequenceModel) -> str | None:
    """Why there is no state to look at; None where there is one."""
    if not model.recurrent:
        return NO_STREAM
    before = model.initial_state(1)
    if not any(part.is_floating_point() and part.numel() for part in before):
        return NO_STATE
    with torch.no_grad():
        _, after = model.forward_from(torch.zeros(1, 2, dtype=torch.long, device=before[0].device), before)
    return None if [part.shape for part in after] == [part.shape for part in before] else NO_STREAM


def flat(state: State) -> Tensor:
    """All numbers of the state of every row, (rows, numbers)."""
    return torch.cat([part.flatten(1).float() for part in state if part.is_floating_point()], dim=1)


@torch.no_grad()
def reads_state(model: SequenceModel, ids: Tensor) -> bool:
    """Whether a logit changes where rows have each other's state, at one of a few positions."""
    start = model.initial_state(len(ids), ids.device)
    stops = [t for t in (2, 4, 8, 16, 64) if t < ids.shape[1]] or [ids.shape[1] - 1]
    for _, end, _, state in pieces(model, ids[:, : stops[-1]], start, stops):
        own, _ = model.step(ids[:, end], state)
        for shift in range(1, min(len(ids), 4)):
            other, _ = model.step(ids[:, end], tuple(part.roll(shift, 0) for part in state))
            if not torch.equal(own, other):
                return True
    return False


class Sketch:
    """A state of very many numbers as 1,024 sums of some of them with random signs, which keep angles and distances.

    Each number goes to one sum (count sketch), so that it costs no more than reading the state.
    """

    def __init__(self, numbers: int, size: int = SKETCH) -> None:
        draws = np.random.default_rng(0)
        self.size = size if numbers > size else 0
        self.place = torch.from_numpy(draws.integers(0, size, numbers))
        self.sign = torch.from_numpy(draws.choice([-1.0, 1.0], numbers).astype(np.float32))

    def __call__(self, states: Tensor) -> Tensor:
        if not self.size:
            return states
        sums = states.new_zeros(len(states), self.size)
        return sums.index_add_(1, self.place.to(states.device), states * self.sign.to(states.device))


@dataclass(frozen=True)
class Trajectories:
    """What was seen. The first `plan.rows` rows are to fit on (validation), the others are the test.

    `states` is (stops, rows, window, numbers): after the inputs stop - window + 1 .. stop; None where there is none.
    `right`, `asked`, `truth` and `count` are (rows, length); `far_right` and `far_asked` (test rows, stream).
    """

    plan: Plan
    truth_of: TrueStates
    inputs: Ints
    targets: Ints
    truth: Ints
    count: NDArray[np.int64]
    right: Bools
    asked: Bools
    far_right: Bools
    far_asked: Bools
    states: NDArray[np.float32] | None
    numbers: int  # in the state, before sketching
    exploded_at: int | None  # the first stop at which the state has grown out of all bounds; stops end before it
    silent_at: int | None  # the first position of the stream at which logits are not numbers

    @property
    def test(self) -> slice:
        return slice(self.plan.rows, None)


@torch.no_grad()
def walk(task: Task, model: SequenceModel, plan: Plan, seed: int) -> Trajectories:
    """Run the model over `plan.length` steps of all rows, then on over the stream with the test rows alone."""
    asked_task = asked_everywhere(task)
    batches = [asked_task.sample(plan.stream, plan.rows, seed, split) for split in ("validation", "test")]
    inputs, targets, mask = (
        np.concatenate([getattr(batch, part) for batch in batches]) for part in ("inputs", "targets", "mask")
    )
    truth_of = TrueStates.of(task)
    device = device_of(model)
    model.eval()
    if state_problem(model) == NO_STREAM:
        answers, states, far, numbers = whole_rows(model, to_ids(inputs, device)), None, None, 0
    else:
        answers, states, far, numbers = in_pieces(model, to_ids(inputs, device), targets, plan)
    length, test = plan.length, slice(plan.rows, None)
    right, asked = answers == targets[:, :length], mask[:, :length].astype(bool)
    streamed = answers[test] if far is None else np.concatenate([answers[test], far], axis=1)
    far_right, far_asked = streamed == targets[test, : streamed.shape[1]], mask[test, : streamed.shape[1]].astype(bool)
    silent = ((streamed == NO_ANSWER) & far_asked).any(0)
    rows_in, rows_out = inputs[:, :length], targets[:, :length]
    plan, states, exploded = bounded(plan, states)
    return Trajectories(
        plan, truth_of, rows_in, rows_out, truth_of.states(rows_in, rows_out), running_count(rows_in, task.inputs),
        right, asked, far_right, far_asked, states, numbers, exploded,
        int(silent.argmax()) + 1 if silent.any() else None,
    )  # fmt: skip


def bounded(plan: Plan, states: NDArray[np.float32] | None) -> tuple[Plan, NDArray[np.float32] | None, int | None]:
    """The stops before the state grows out of all bounds, and where it does."""
    if states is None:
        return plan, None, None
    with np.errstate(invalid="ignore"):
        fine = (np.abs(states) < BOUND).all(axis=(1, 2, 3))
    if fine.all():
        return plan, states, None
    kept = int(fine.argmin())
    fewer = dataclasses.replace(plan, stops=plan.stops[:kept])
    return fewer, states[:kept] if kept >= FEWEST else None, plan.stops[kept]


def whole_rows(model: SequenceModel, ids: Tensor) -> Ints:
    """The answers of a model that must see all of a row at once."""
    rows = max(1, 2**15 // ids.shape[1])
    return np.concatenate([answers_of(model(part)).cpu().numpy() for part in ids.split(rows)])


def far_answers(model: SequenceModel, ids: Tensor, state: State, targets: Ints, plan: Plan) -> Ints:
    """Answers beyond the length, until all is lost for as long as it was held."""
    answers: list[Ints] = []
    lost = 0  # the first position at which a piece was lost
    for begin, end, logits, _ in pieces(model, ids, state, []):
        answers.append(answers_of(logits).cpu().numpy())
        if not lost and is_lost(answers[-1], targets[:, begin:end]):
            lost = plan.length + end
        if lost and plan.length + end >= 2 * lost:
            break
    return np.concatenate(answers, axis=1)


def is_lost(answers: Ints, wanted: Ints) -> bool:
    """Whether the answers are nearer to always giving the most frequent one than to being right."""
    usual = np.bincount(wanted.ravel()).max() / wanted.size
    return bool((answers == wanted).mean() < min((1 + usual) / 2, 0.98))


def in_pieces(
    model: SequenceModel, ids: Tensor, targets: Ints, plan: Plan
) -> tuple[Ints, NDArray[np.float32] | None, Ints | None, int]:
    """Answers up to the length, states at the stops, answers beyond; the stream ends where all is lost."""
    begin = model.initial_state(len(ids), ids.device)
    wanted = sorted({t - back for t in plan.stops for back in range(plan.window)})
    has_state = bool(sum(part.numel() for part in begin))
    numbers = flat(begin).shape[1] if has_state else 0
    sketch, kept, answers = Sketch(numbers), {}, []
    for _, end, logits, state in pieces(model, ids[:, : plan.length], begin, wanted):
        answers.append(answers_of(logits).cpu().numpy())
        if has_state and end in wanted:
            kept[end] = sketch(flat(state)).cpu().numpy()
    states = np.stack([np.stack([kept[t - back] for back in reversed(range(plan.window))], axis=1)
                       for t in plan.stops]) if kept else None  # fmt: skip
    far, last = None, slice(max(0, plan.length - PIECE), plan.length)
    seen = np.concatenate(answers, axis=1)
    if plan.stream > plan.length and not is_lost(seen[plan.rows :, last], targets[plan.rows :, last]):
        state = tuple(part[plan.rows :] for part in state)
        far = far_answers(model, ids[plan.rows :, plan.length :], state, targets[plan.rows :, plan.length :], plan)
    return seen, states, far, numbers


def pieces(
    model: SequenceModel, ids: Tensor, state: State, stops: list[int]
) -> Iterator[tuple[int, int, Tensor, State]]:
    """(begin, end, logits, state after) of stretches that end at every stop, and every so many steps."""
    length = ids.shape[1]
    ends = sorted({*(t for t in stops if t <= length), *range(PIECE, length, PIECE), length})
    begin = 0
    for end in ends:
        logits, state = model.forward_from(ids[:, begin:end], state)
        yield begin, end, logits, state
        begin = end
