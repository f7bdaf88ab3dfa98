"""From what is seen before a model fails, the length at which it will.

Two things can end it. The distance between true states may fade, as exp(-rate t); then the question is how far it may
fade before the network misreads its own state. That is asked of the network: at a position before the failure, the
part of each state that lies in the directions telling true states apart is shrunk by a factor, as fading would, the
rest is left as it is, and the network goes on for a step. The factor at which its accuracy passes below a level,
exp(-k), is reached k / rate steps later. (A linear probe is the wrong judge: it still finds the true state long after
the network has lost it.)

Or the network slips, a step now and then, without any fading: then its skill, the share of the way from the floor to 1,
falls as exp(-slip t), and the slips before the failure say when.

A network that corrects itself does not fade: if the distance is halved and comes back within a few steps, true states
are attractors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.diagnosis.failure_length import LEVEL, crossing, halfway, reach
from statetrack.diagnosis.state_distances import Fade, Groups, squared_distance, told_apart
from statetrack.diagnosis.trajectories import Bools, Floats, device_of, flat, pieces
from statetrack.models import SequenceModel, State, answers_of
from statetrack.training.evaluate import to_ids

Ints = NDArray[np.integer[Any]]

FADES = np.arange(0, 8.1, 0.25)  # k of exp(-k)
BACK = (1, 5, 9)  # positions before the last at which states are shrunk
HEAL = 16  # steps after which a halved distance is looked at again
HEALED = 0.8  # of the distance of rows that were left alone: it would be .5 had nothing come back
NEVER = 0.5  # a separation below which true states were never apart
MOST = 100_000  # steps; a prediction beyond is none
SLIGHT = 0.1  # of the strongest direction: below, offsets are those of chance
RESAMPLES = 200
NO_END = reach(None, np.inf, np.inf, MOST)

Reaches = dict[str, dict[str, Any]]


def moved(state: State, by: Floats) -> State:
    """The state with `by` (rows, numbers) added."""
    parts, begin = [], 0
    for part in state:
        if not part.is_floating_point():
            parts.append(part)
            continue
        size = part[0].numel()
        shift = torch.from_numpy(by[:, begin : begin + size]).to(part).reshape(part.shape)
        parts.append(part + shift)
        begin += size
    return tuple(parts)


@dataclass(frozen=True)
class Row:
    """Rows of the task with their answers and true states, and the model that reads them."""

    model: SequenceModel
    inputs: Ints
    targets: Ints
    asked: Bools
    truth: Ints
    states: int
    symbols: int

    @property
    def ids(self) -> Tensor:
        return to_ids(self.inputs, device_of(self.model))

    def groups(self, t: int) -> Groups:
        return Groups.of(self.truth[:, t - 1], self.inputs[:, t - 1], self.states, self.symbols)

    def towards_centre(self, state: State, t: int) -> tuple[Floats, Bools]:
        """What takes each row to the centre in the directions that tell true states apart, and whether it has one."""
        groups, x = self.groups(t), flat(state).cpu().numpy()
        good = told_apart(groups, groups)
        offsets = groups.offsets(x, good)
        _, strengths, directions = np.linalg.svd(offsets[good], full_matrices=False)
        directions = directions[strengths > SLIGHT * strengths.max(initial=0)]
        away = x - (groups.means(x)[0] - offsets)[groups.label]
        return -(away @ directions.T) @ directions, good[groups.label]


@torch.no_grad()
def states_at(rows: Row, stops: list[int]) -> dict[int, State]:
    """The states after these positions."""
    ids = rows.ids
    start = rows.model.initial_state(len(ids), ids.device)
    walked = pieces(rows.model, ids[:, : max(stops)], start, stops)
    return {end: state for _, end, _, state in walked if end in stops}


def looked_at(last: int) -> list[int]:
    """The positions whose states are tampered with."""
    return sorted({last - back for back in (*BACK, HEAL) if last - back >= 1})


@torch.no_grad()
def faded_accuracy(rows: Row, states: dict[int, State]) -> Floats | None:
    """Hits and questions (rows, fades, 2) of the answer one step after states were shrunk by each of FADES."""
    ids, seen = rows.ids, np.zeros((len(rows.inputs), len(FADES), 2))
    for stop, state in sorted(states.items())[-len(BACK) :]:
        way, good = rows.towards_centre(state, stop)
        asked = rows.asked[:, stop] & good
        for i, k in enumerate(FADES):
            logits, _ = rows.model.step(ids[:, stop], moved(state, ((1 - np.exp(-k)) * way).astype(np.float32)))
            right = answers_of(logits).cpu().numpy() == rows.targets[:, stop]
            seen[:, i, 0] += right & asked
            seen[:, i, 1] += asked
    return seen if seen[..., 1].any() else None


@torch.no_grad()
def healing(rows: Row, states: dict[int, State], last: int) -> float | None:
    """The distance at `last`, had it been halved HEAL steps before, over the distance it has: .5 when nothing heals."""
    if last - HEAL not in states:
        return None
    begin = last - HEAL
    state = states[begin]
    way, _ = rows.towards_centre(state, begin)
    ids, half = rows.ids[:, begin:last], len(rows.inputs) // 2
    distances = []
    for start in (state, moved(state, (0.5 * way).astype(np.float32))):
        after = flat(rows.model.forward_from(ids, start)[1]).cpu().numpy()
        groups = rows.groups(last)
        square = squared_distance(after[:half], groups.take(slice(half)), after[half:], groups.take(slice(half, None)))
        distances.append(np.sqrt(max(square, 0.0)))
    return float(distances[1] / distances[0]) if distances[0] > 0 else None


def by_fading(fade: Fade, seen: Floats, level: float) -> dict[str, Any]:
    """last + k / rate, where k is how much fading takes the accuracy below the level; bounds by resampling both."""
    draws = np.random.default_rng(0)

    def after(rows: Any, rate: float) -> float:
        hits, counts = seen[rows].sum(0).T
        accuracy = np.divide(hits, counts, out=np.full(len(hits), np.nan), where=counts > 0)
        k = crossing(np.exp(FADES), accuracy, np.full(len(FADES), level))
        return np.inf if k is None or rate <= 0 else fade.last + float(np.log(k)) / rate

    length = after(slice(None), fade.rate)
    rates = fade.again or (fade.rate,)
    again = [after(draws.integers(0, len(seen), len(seen)), rates[i % len(rates)]) for i in range(RESAMPLES)]
    return _predicted(length, again)


def _predicted(length: float, again: list[float]) -> dict[str, Any]:
    """A length with its interval, by what was found on rows drawn again."""
    low, high = np.quantile(again, [0.025, 0.975], method="nearest")
    return reach(length if length <= MOST else None, float(low), float(high) if high <= MOST else np.inf, MOST)


def slip_rate(right: Bools, asked: Bools, floor: Floats) -> float:
    """The rate at which skill is lost: -log of the skill over all positions, divided by their mean position."""
    hits, counts = (right & asked).sum(), asked.sum()
    usual = float((floor * asked.sum(0)).sum() / max(counts, 1))
    if not counts or usual >= 1:
        return 0.0
    skill = (hits / counts - usual) / (1 - usual)
    where = float((np.arange(1, right.shape[1] + 1) * asked.sum(0)).sum() / counts)
    return float(-np.log(np.clip(skill, 1e-3, 1)) / where)


def by_slips(right: Bools, asked: Bools, floor: Floats, level: float) -> dict[str, Any]:
    """The length at which skill, lost at the rate seen so far, is down to the level's."""
    usual = float(floor[-1])
    if usual >= level:
        return NO_END
    wanted = -np.log((level - usual) / (1 - usual))
    draws = np.random.default_rng(0)

    def after(rows: Any) -> float:
        rate = slip_rate(right[rows], asked[rows], floor)
        return wanted / rate if rate > 0 else np.inf

    length = after(slice(None))
    again = [after(draws.integers(0, len(right), len(right))) for _ in range(RESAMPLES)]
    return _predicted(length, again)


def sooner(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """The prediction that comes true first."""
    return min((one, two), key=lambda each: np.inf if each["length"] is None else each["length"])


def levels(floor: float) -> dict[str, float]:
    """The levels that lengths are told for."""
    return {"at_90": LEVEL, "at_half": float(halfway(np.array(floor)))}


def stays(fade: Fade, healed: float | None) -> bool:
    """Whether nothing fades: what is lost comes back, or no loss can be told from none."""
    return (healed is not None and healed >= HEALED) or fade.low <= 0


def says(fade: Fade | None, healed: float | None, predicted: Reaches, slips: Reaches) -> str:
    """What becomes of true states, in a word or two."""
    if fade is None:
        return "unclear"
    fails = [each["at_90"]["length"] for each in (predicted, slips)]
    if fails[1] is not None and (fails[0] is None or fails[1] < fails[0]):
        return "slip"
    return "stay apart" if stays(fade, healed) or fails[0] is None else "fade"
