"""Look for a proof that a network is right for ever, for a word that breaks it, or say what is missing.

broken   by a word, which is run through the network itself
proved   as trained: a proof that the checker has accepted
pruned   where that is asked for: a proof of a copy whose read-out leaves out what resists
open     neither; `covered` is the length up to which every word was tried
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from statetrack.certificates.boxes import WAYS, Way, grow
from statetrack.certificates.checker import Checked, Refused, check, hash_of
from statetrack.certificates.checker.gated import Gated
from statetrack.certificates.checker.network import Network
from statetrack.certificates.checker.networks import NETWORKS
from statetrack.certificates.cover import BoxMaps, Cover, CoveredPart, PointMaps, proof_of
from statetrack.certificates.gated import points_of_cell
from statetrack.certificates.points import POINT_WAYS, PointSearch, PointWay
from statetrack.certificates.pruned import proved_pruned
from statetrack.errors import BadInput
from statetrack.formatting import plural
from statetrack.models import SequenceModel, answers_of
from statetrack.models.e88 import E88, E88Mixer
from statetrack.models.reflections import E88Reflections, ReflectionMixer
from statetrack.models.rnn import ClassicRNN
from statetrack.results.evaluations import BreakingWord
from statetrack.tasks import Task
from statetrack.tasks.finite import Automaton, explore
from statetrack.training.beams import broken_by_beam
from statetrack.training.breaking import on_words

PROVED, PRUNED, BROKEN, OPEN = "proved as trained", "proved pruned", "broken by a word", "open"
LEAST_FIRST, FACTOR = 1e-3, 3.0  # a proof allows at first for that, or for what float32 is off by; then more or less
LEAST_EPSILON, MOST_EPSILON = 1e-6, 0.25
MOST_GROWTH = 4  # a proof that has more than so many times the regions is not worth its larger epsilon
WORD_TOKENS = 2**19  # that are spent on hard words before a proof is looked for
BEAM_TOKENS = 2**18  # that a search directed by the state takes
EVERY_WORD = 2**17  # words at most that are all tried
MOST_TOKENS, MOST_STATES = 1024, 10_000  # of a task
CERTIFY_SECONDS = 60.0

NO_HELP = "so more seconds will not help"
ALL_TRIED, TIME_OVER = f"all that are known were tried, {NO_HELP}", "the time was over, more seconds may help"

Tick = Callable[[str], None]
AnyWay = Way | PointWay
Found = tuple[AnyWay, list[Cover], list[CoveredPart]]


@dataclass(frozen=True)
class Certificate:
    """What is known of a network at every length."""

    outcome: str
    proof: dict[str, Any] | None = field(default=None, repr=False)
    checked: Checked | None = None
    word: BreakingWord | None = None
    why: str = ""  # of what is open
    covered: int = 0  # every word of so many tokens was tried
    seconds: float = 0.0
    pruned: SequenceModel | None = field(default=None, repr=False)  # the network that the proof is about instead

    @property
    def sentence(self) -> str:
        """In words."""
        if self.word:
            return f"Broken by the word {self.word.word} ({self.word.tokens} tokens): it answers {self.word.given}, " \
                   f"right is {self.word.expected}."  # fmt: skip
        if self.checked:
            float32 = "covers float32" if self.checked.covers_float32 else "does not cover float32"
            what = "Proved as trained" if self.pruned is None else "Proved pruned, not as trained"
            return (
                f"{what}: right after every word, for ever, in every implementation whose steps are off by "
                f"at most {self.checked.epsilon:g} ({float32}, which is off by at most {self.checked.float32:.1e}); "
                f"margin {self.checked.margin:.3g}, {plural(self.checked.regions, 'region')}."
            )
        covered = f" Every word of up to {plural(self.covered, 'token')} was tried and is answered rightly."
        return f"Open: {self.why}.{covered if self.covered else ''}"


def certify(
    task: Task, model: SequenceModel, *, length: int = 16, seed: int = 0, seconds: float = CERTIFY_SECONDS,
    name: str = "", prune: bool = False, tick: Tick = lambda _: None,
) -> Certificate:  # fmt: skip
    """Whether a network answers a task rightly for ever: a word that breaks it, a proof, or neither. With `prune` a
    copy whose read-out leaves out what resists is tried where the network itself is not proved.

    >>> from statetrack.models.witnesses import toggle
    >>> from statetrack.tasks import task
    >>> certify(task("txc"), toggle([[0, 1], [1, 0]])).outcome
    'proved as trained'
    """
    began = time.monotonic()
    tick("hard words")
    if (word := on_words(task, model, length, seed, WORD_TOKENS).breaking) is not None:
        return Certificate(BROKEN, word=word, seconds=time.monotonic() - began)
    try:
        machine = machine_of(task)
    except BadInput as error:
        return Certificate(OPEN, why=str(error), seconds=time.monotonic() - began)
    if model.recurrent and model.state_shapes():
        tick("words that push its state away")
        if (word := broken_by_beam(task, model, machine, length, BEAM_TOKENS, seed)) is not None:
            return Certificate(BROKEN, word=word, seconds=time.monotonic() - began)
    kind = ""
    try:
        kind = kind_of(model)
        until = time.monotonic() + seconds  # what the words took does not count
        found = prove(task.name, machine, model, kind, name or model.text or kind, until, tick)
        over = time.monotonic() >= until
        why = f"no cover that was tried holds its images and is read rightly; {TIME_OVER if over else ALL_TRIED}"
    except (BadInput, Refused) as error:
        found, why = None, str(error)
    if found:
        return Certificate(PROVED, *found, seconds=time.monotonic() - began)
    if prune and kind:
        tick("with a part of the read-out left out")
        until = time.monotonic() + seconds
        if smaller := proved_pruned(task.name, machine, model, kind, name or model.text or kind, until, tick):
            copied, proof, checked = smaller
            return Certificate(PRUNED, proof, checked, seconds=time.monotonic() - began, pruned=copied)
    tick("every short word")
    return Certificate(OPEN, why=why, covered=every_word(model, machine), seconds=time.monotonic() - began)


def machine_of(task: Task) -> Automaton:
    """The task's automaton; BadInput where it is too large, or none."""
    if task.inputs > MOST_TOKENS:
        raise BadInput(
            f"{task.name} has {task.inputs:,} inputs; proofs are looked for up to {MOST_TOKENS:,}, {NO_HELP}"
        )
    return explore(task.start(), task.step, task.answer, task.inputs, task.name, MOST_STATES)


def kind_of(model: SequenceModel) -> str:
    """Which network of the checker this is; BadInput where it is none."""
    if isinstance(model, ClassicRNN) and model.layers == 1:
        return {"tanh": "tanh-rnn"}.get(model.cell, model.cell)
    mixers = list(model.mixers) if isinstance(model, E88 | E88Reflections) else []
    if len(mixers) == 1 and getattr(mixers[0], "nonlinearity", "") == "tanh":
        if isinstance(mixers[0], ReflectionMixer):
            return "e88-gain-reflections"
        if isinstance(mixers[0], E88Mixer) and mixers[0].form == "gain":
            return "e88-gain"
    raise BadInput(
        "it is not known how to prove anything of this network; of a tanh RNN, a GRU, an LSTM, of E88 with gain and of "
        f"its reflections it is, with one layer; {NO_HELP}"
    )


def tensors_of(model: SequenceModel) -> dict[str, NDArray[np.float64]]:
    """The weights by name, as the checker takes them."""
    found = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    if any(tensor.dtype != torch.float32 for tensor in found.values()):
        raise BadInput("a proof is about float32 weights")
    return {name: tensor.numpy().astype(np.float64) for name, tensor in found.items()}


def prove(
    task: str, machine: Automaton, model: SequenceModel, kind: str, name: str, until: float,
    tick: Tick = lambda _: None,
) -> tuple[dict[str, Any], Checked] | None:  # fmt: skip
    """The proof with the largest epsilon that is found, among those that are tried; one that covers float32 before all
    that do not.
    """
    tensors = tensors_of(model)
    network, weights = NETWORKS[kind](tensors, machine.steps.shape[1]), hash_of(tensors)
    maps = maps_of(network)
    search = PointSearch(maps) if isinstance(maps, PointMaps) else None
    ways: Sequence[AnyWay] = POINT_WAYS if network.alike_columns else WAYS
    first = epsilon = max(LEAST_FIRST, network.float32_error())
    best = None
    while LEAST_EPSILON <= epsilon <= MOST_EPSILON and time.monotonic() < until:
        tick(f"covers with an error of {epsilon:.1g}")
        found = None
        for way, covers, parts in covers_of(maps, search, machine, epsilon, ways, until):
            proof = proof_of(task, name, kind, weights, epsilon, covers, parts)
            try:
                checked = check(proof, tensors)
            except Refused as error:
                tick(f"refused: {error}")
                continue
            if found is None or checked.covers_float32:
                found, chosen = (proof, checked), way
            if checked.covers_float32:
                break  # else narrower regions, which are read with more margin, may
        if found:
            ways = [chosen]  # what allows for more is looked for in the same way
        if best and (found is None or not is_worth_more(found[1], best[1])):
            return best
        best = found or best
        if best and epsilon < first:  # what lies above was tried
            return best
        epsilon = epsilon * FACTOR if found else epsilon / FACTOR
    return best


def is_worth_more(found: Checked, best: Checked) -> bool:
    """Whether a proof with a larger epsilon may take the place of another: it does not by losing float32, nor by many
    regions more.
    """
    return found.covers_float32 >= best.covers_float32 and found.regions <= MOST_GROWTH * best.regions


def maps_of(network: Network) -> BoxMaps:
    """The maps of a network as float64."""
    return points_of_cell(network.maps) if isinstance(network.maps, Gated) else PointMaps.of(network)


def covers_of(
    maps: BoxMaps, search: PointSearch | None, machine: Automaton, epsilon: float, ways: Sequence[AnyWay], until: float
) -> Iterator[Found]:
    """Covers to be checked: around points where columns turn, else boxes around all columns together."""
    for way in ways:
        if time.monotonic() > until:
            return
        if isinstance(way, PointWay):
            if search and (covered := search.turn(epsilon, way, until)) is not None:
                yield way, *covered
        elif (cover := grow(maps, maps.columns, machine.steps, epsilon, way, until)) is not None:
            yield way, [cover], [CoveredPart(maps.columns, 0)]


@torch.no_grad()
def every_word(model: SequenceModel, machine: Automaton) -> int:
    """The length up to which the network is right on every word, tried one by one."""
    device = next(model.parameters()).device
    tokens = machine.steps.shape[1]
    state, at, length = model.initial_state(1, device), np.zeros(1, np.int64), 0
    while len(at) * tokens <= EVERY_WORD:
        ids = torch.arange(tokens, device=device).repeat(len(at))
        logits, state = model.step(ids, tuple(part.repeat_interleave(tokens, dim=0) for part in state))
        at = machine.steps[at].reshape(-1).astype(np.int64)
        due = machine.answers[at]
        if ((answers_of(logits).cpu().numpy() != due) & (due >= 0)).any():
            break
        length += 1
    return length
