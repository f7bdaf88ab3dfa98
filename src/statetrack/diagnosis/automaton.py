"""The finite machine that a network has become, beside the one it should be.

States of the network that make it say the same from here on are one state of the machine. Each state met along rows of
the task is asked what the network would say after each of a few continuations; states with equal answers form a
cluster, rare ones join the nearest. The step from cluster to cluster is the one most of their members take. The machine
is minimised and compared with the task's smallest one, and the shortest input on which they differ is put to the
network itself. If the network is right there, the clusters were too coarse: the ends of that input become continuations
and it is done again.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.diagnosis.trajectories import cost_of, device_of
from statetrack.diagnosis.true_states import asked_everywhere, minimal_machine
from statetrack.formatting import plural
from statetrack.models import SequenceModel, State, answers_of
from statetrack.tasks.base import Ints, Task
from statetrack.tasks.finite import NOTHING, Automaton
from statetrack.tasks.scan import scan

LENGTH = 128  # positions of a row at most
MOST_STATES = 4096  # states of the network that are looked at
MOST_NUMBERS = 2**23  # in all of them
CONTINUATIONS = 40
COVERED = 0.99  # of the states should lie in clusters of their own
MOST_CLUSTERS = 64
MOST_TRANSITIONS = 2048
ROUNDS = 4
TRIED, MOST_TRIED = 2**10, 2**14  # short words that the network is tried on, all of one length
WORDS_WORK = 4e6  # microseconds, about
PERIOD, MOST_PERIODIC = 3, 256  # symbols of u and v in u v^k; such words
MOST_TOKENS = 2**18  # of one forward pass
UNKNOWN = -2  # the answer of the state behind a step that was never seen

String = tuple[int, ...]
CHECKED = ("rows", "length", "majority", "agreement", "row_errors", "words", "word_length", "periodic")


def continuations(symbols: list[int], most: int = CONTINUATIONS) -> list[String]:
    """All strings of these symbols up to the length at which there would be too many; at least the first symbols.

    >>> continuations([0, 1], 8)
    [(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    """
    found: list[String] = []
    for length in itertools.count(1):
        longer = list(itertools.product(symbols, repeat=length))
        if len(found) + len(longer) > most:
            return found or longer[:most]
        found += longer
    return found


@torch.no_grad()
def answers_after(model: SequenceModel, state: State, strings: list[String]) -> Ints:
    """The network's answer at the end of every string, from every state: (rows, strings). Beginnings are shared."""
    found: dict[String, NDArray[np.int32]] = {}
    wanted = {string[:cut] for string in strings for cut in range(1, len(string) + 1)}

    def visit(before: String, state: State) -> None:
        for string in sorted(string for string in wanted if string[:-1] == before):
            ids = torch.full((len(state[0]),), string[-1], device=state[0].device)
            logits, after = model.step(ids, state)
            found[string] = answers_of(logits).cpu().numpy().astype(np.int32)
            visit(string, after)

    visit((), state)
    return np.column_stack([found[string] for string in strings])


@dataclass(frozen=True)
class Met:
    """States met along rows: what came in, what the network said, and the states, row after row."""

    inputs: Ints  # (rows, length)
    said: Ints
    states: State  # (rows * length, ...)
    start: State  # one row


@torch.no_grad()
def meet(model: SequenceModel, inputs: Ints) -> Met:
    """Step along the rows and keep every state."""
    device = device_of(model)
    ids = torch.from_numpy(inputs.astype(np.int64)).to(device)
    state = model.initial_state(len(ids), device)
    said: list[Tensor] = []
    kept: list[State] = []
    for t in range(ids.shape[1]):
        logits, state = model.step(ids[:, t], state)
        said.append(answers_of(logits))
        kept.append(state)
    stacked = tuple(torch.stack(parts, dim=1).flatten(0, 1) for parts in zip(*kept))
    return Met(inputs, torch.stack(said, dim=1).cpu().numpy().astype(np.int32), stacked, model.initial_state(1, device))


def clustered(features: Ints) -> tuple[NDArray[np.int64], Ints]:
    """The cluster of every row of features, and the features of every cluster, the most frequent first."""
    kinds, which, counts = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    covered = np.cumsum(counts[order]) / counts.sum()
    keep = order[: min(int(np.searchsorted(covered, COVERED)) + 1, MOST_CLUSTERS)]
    far = np.stack([(kinds != one).sum(1) for one in kinds[keep]], axis=1)
    return far.argmin(1)[which.ravel()], kinds[keep]


def extract(met: Met, ahead: Ints, first: Ints, symbols: int) -> tuple[Automaton, int, float]:
    """The machine, the number of clusters and the share of steps that are the machine's, from the answers ahead of
    every state met and of the start.

    Its state 0 is the start; what was never seen leads to UNKNOWN.
    """
    rows, length = met.inputs.shape
    which, centres = clustered(np.column_stack([met.said.ravel(), ahead]))
    alike = np.flatnonzero((centres[:, 1:] == first).all(1))
    count = len(centres)
    start = int(alike[0]) if len(alike) else count  # before any input nothing was said: only what follows counts
    votes = np.zeros((count + 1, symbols, count), np.int64)
    path = which.reshape(rows, length)
    np.add.at(votes, (np.full(rows, start), met.inputs[:, 0], path[:, 0]), 1)
    np.add.at(votes, (path[:, :-1].ravel(), met.inputs[:, 1:].ravel(), path[:, 1:].ravel()), 1)
    steps = np.where(votes.sum(2) > 0, votes.argmax(2), count + 1)
    steps = np.vstack([steps, np.full((1, symbols), count + 1)])
    answers = np.concatenate([centres[:, 0], [NOTHING, UNKNOWN]])
    return reachable(steps, answers, start).minimised(), count, float(votes.max(2).sum() / votes.sum())


def reachable(steps: NDArray[Any], answers: NDArray[Any], start: int) -> Automaton:
    """The states that can be reached, numbered as they are met."""
    numbers, queue = {start: 0}, deque([start])
    while queue:
        for after in steps[queue.popleft()].tolist():
            if after not in numbers:
                numbers[after] = len(numbers)
                queue.append(after)
    old = list(numbers)
    table = np.array([[numbers[after] for after in steps[state].tolist()] for state in old], np.int32)
    return Automaton(table, answers[old].astype(np.int32))


def first_difference(machine: Automaton, task: Automaton) -> String | None:
    """The shortest input after which the two answer differently, where the task asks and the machine is known.

    >>> parity = Automaton(np.array([[0, 1], [1, 0]], np.int32), np.array([0, 1], np.int32))
    >>> three = Automaton(np.array([[0, 1], [1, 2], [2, 0]], np.int32), np.array([0, 1, 0], np.int32))
    >>> first_difference(three, parity)
    (1, 1, 1)
    """
    came: dict[tuple[int, int], String] = {(0, 0): ()}
    queue = deque([(0, 0)])
    while queue:
        pair = queue.popleft()
        for symbol in range(task.steps.shape[1]):
            after = int(machine.steps[pair[0], symbol]), int(task.steps[pair[1], symbol])
            said, wanted = int(machine.answers[after[0]]), int(task.answers[after[1]])
            if said == UNKNOWN:
                continue
            if wanted != NOTHING and said != wanted:
                return (*came[pair], symbol)
            if after not in came:
                came[after] = (*came[pair], symbol)
                queue.append(after)
    return None


@torch.no_grad()
def network_says(model: SequenceModel, string: String) -> int:
    """The network's answer at the end of a string."""
    return int(answers_of(model(torch.tensor([string], device=device_of(model)))[0, -1]))


def machine_says(machine: Automaton, string: String) -> int:
    return int(machine.answers[scan(machine.steps, np.array([string]), 0)[0, -1]])


def words_to_try(symbols: list[int], most: int, long: int) -> list[Ints]:
    """Inputs as batches: all words of one length, of which there are at most `most`, and u v^k up to a length, where u
    and v have at most three symbols.

    >>> [words.shape for words in words_to_try([0, 1], 1000, 64)]
    [(512, 9), (210, 64)]
    """
    depth = max(1, min(int(np.log(most) / np.log(max(2, len(symbols))) + 1e-9), long))
    every = np.array(list(itertools.islice(itertools.product(symbols, repeat=depth), most)), np.int32)
    short = [word for length in range(1, PERIOD + 1) for word in itertools.product(symbols, repeat=length)]
    pairs = itertools.islice(itertools.product([(), *short], short), MOST_PERIODIC)
    periodic = [(u + v * long)[:long] for u, v in pairs]
    return [every, np.array(periodic, np.int32)]


@torch.no_grad()
def shortest_error(model: SequenceModel, task: Task, batches: list[Ints]) -> String | None:
    """The shortest beginning of one of these inputs after which the network is wrong; None where it is right on all."""
    device = device_of(model)
    best: String | None = None
    for inputs in (part for batch in batches for part in np.array_split(batch, -(-batch.size // MOST_TOKENS))):
        batch = task.with_parameters(ask="every").batch(inputs)
        said = answers_of(model(torch.from_numpy(inputs.astype(np.int64)).to(device))).cpu().numpy()
        wrong = (said != batch.targets) & batch.mask.astype(bool)
        if wrong.any():
            end = int(wrong.any(0).argmax())
            row = int(wrong[:, end].argmax())
            if best is None or end + 1 < len(best):
                best = tuple(int(x) for x in inputs[row, : end + 1])
    return best


@dataclass(frozen=True)
class Checked:
    """What the machine was read from and what the network was tried on."""

    rows: int  # that the machine was read from, and as many that it was tested on
    length: int
    majority: float  # share of the steps seen that are the machine's
    agreement: float  # of machine and network on test rows
    row_errors: float  # share of test rows on which the network errs somewhere
    words: int
    word_length: int
    periodic: int
    error: String | None
    known: str | None  # a word that is known to break it, by its record


def automaton(task: Task, model: SequenceModel, trained: int, seed: int, known: str | None = None) -> dict[str, Any]:
    """The machine of the network at lengths it was trained on, and its first difference from the task's.

    `known` is a word after which the network is known to err: its record may hold one.
    """
    wanted = minimal_machine(task)
    if wanted is None:
        return {"absent": "the task is no machine of few states"}
    if wanted.states * task.inputs > MOST_TRANSITIONS:
        return {"absent": f"{wanted.states} states with {task.inputs} symbols are too many steps to be seen"}
    numbers = sum(part[0].numel() for part in model.initial_state(1))
    length = min(trained, LENGTH)
    rows = max(4, min(MOST_STATES, MOST_NUMBERS // max(1, numbers)) // length)
    inputs = task.sample(length, rows, seed, "validation").inputs
    met = meet(model, inputs)
    symbols = [int(x) for x in np.unique(inputs)]
    strings, more = [], continuations(symbols)
    ahead, first = np.zeros((met.said.size, 0), np.int32), np.zeros(0, np.int32)
    for _ in range(ROUNDS):
        ahead = np.column_stack([ahead, answers_after(model, met.states, more)])
        first = np.concatenate([first, answers_after(model, met.start, more)[0]])
        strings += more
        machine, clusters, majority = extract(met, ahead, first, task.inputs)
        string = first_difference(machine, wanted)
        if string is None:
            break
        more = [end for cut in range(len(string)) if (end := string[cut:]) not in strings]
        if network_says(model, string) != machine_says(wanted, string) or not more:
            break
    tested = asked_everywhere(task).sample(length, rows, seed, "test")
    said = meet(model, tested.inputs).said
    agreement = float((machine.answers[scan(machine.steps, tested.inputs, 0)] == said).mean())
    erred = ((said != tested.targets) & tested.mask.astype(bool)).any(1)
    tried = words_to_try(symbols, int(np.clip(WORDS_WORK / (14 * cost_of(model)), TRIED, MOST_TRIED)), trained)
    error = shortest_error(model, task, [*tried, tested.inputs])
    checked = Checked(rows, length, majority, agreement, float(erred.mean()), len(tried[0]), tried[0].shape[1],
                      len(tried[1]), error, known)  # fmt: skip
    return described(task, machine, wanted, clusters, checked, string, model)


def described(
    task: Task, machine: Automaton, wanted: Automaton, clusters: int, checked: Checked, string: String | None,
    model: SequenceModel,
) -> dict[str, Any]:  # fmt: skip
    """The section of the record."""
    known = np.flatnonzero(machine.answers != UNKNOWN).tolist()
    number = {state: place for place, state in enumerate(known)}
    found: dict[str, Any] = {
        "states": len(known),
        "steps": [[number.get(after) for after in machine.steps[state].tolist()] for state in known],
        "answers": [None if machine.answers[state] == NOTHING else int(machine.answers[state]) for state in known],
        "task_states": wanted.states,
        "task_steps": wanted.steps.tolist(),
        "task_answers": wanted.answers.tolist(),
        "clusters": clusters,
        **{name: getattr(checked, name) for name in CHECKED},
        "equal": string is None,
        "difference": None, "machine_says": None, "task_says": None, "network_says": None, "network_errs": None,
        "error_string": None if checked.error is None else [task.symbol_text(x) for x in checked.error],
        "known_word": checked.known,
    }  # fmt: skip
    if string is not None:
        target, by_machine = machine_says(wanted, string), machine_says(machine, string)
        said = network_says(model, string)
        found |= {
            "difference": [task.symbol_text(x) for x in string],
            "machine_says": task.answer_text(by_machine) if by_machine >= 0 else None,
            "task_says": task.answer_text(target),
            "network_says": task.answer_text(said) if said >= 0 else "nothing",
            "network_errs": said != target,
        }
    found["says"] = says(found)
    return found


def says(found: dict[str, Any]) -> str:
    """The finding in a sentence: the machine, what of the network it was read from, and whether that breaks it."""
    machine = f"the machine found in it on {plural(found['rows'], 'row')} of {found['length']}"
    if found["equal"]:
        share = f"{found['majority']:.2%}" if found["majority"] < 1 else "all"
        equal = f"{machine} equals the task's ({plural(found['task_states'], 'state')}), as {share} of its steps do"
        error = found["known_word"] or (shown(found["error_string"]) if found["error_string"] else None)
        if error is not None:
            rows = f"{found['row_errors']:.2%} of {found['rows']} test rows err"
            return f"{equal}; yet the network errs after {error} ({rows})"
        tried = f"all {found['words']:,} words of {found['word_length']}, {found['periodic']} of the form u v^k"
        return f"{equal}; on {tried} and on {found['rows']} test rows the network is right"
    after = shown(found["difference"])
    sizes = f"{plural(found['states'], 'state')} against {found['task_states']}"
    where = f"it errs after {after}, where the network itself is right"
    if found["network_errs"]:
        where = f"after {after} the network says {found['network_says']}, right is {found['task_says']}"
    return f"{machine} is not the task's ({sizes}): {where}"


def shown(symbols: list[str]) -> str:
    """A string for people; a symbol over and over is written as a power.

    >>> shown(["1", "0", "1"]), shown(["1"] + ["0"] * 30)
    ('1 0 1', '1 0^30')
    """
    runs = [(symbol, len(list(same))) for symbol, same in itertools.groupby(symbols)]
    return " ".join(f"{symbol}^{times}" if times > 4 else " ".join([symbol] * times) for symbol, times in runs)
