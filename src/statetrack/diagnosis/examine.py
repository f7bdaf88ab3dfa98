"""All that is measured of one trained model."""

from __future__ import annotations

import copy
import functools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from statetrack import plugins
from statetrack.diagnosis import sentences
from statetrack.diagnosis.automaton import automaton
from statetrack.diagnosis.decoding import decode
from statetrack.diagnosis.eigenvalues import eigenvalues
from statetrack.diagnosis.failure_length import LEVEL, NOTHING_SAID, Curve, halfway, passes_below, step_rate
from statetrack.diagnosis.gradient import gradient
from statetrack.diagnosis.measurement import Measurement
from statetrack.diagnosis.portrait import portrait
from statetrack.diagnosis.probe import probe
from statetrack.diagnosis.separation import separation_section
from statetrack.diagnosis.trajectories import (
    MOST_STREAM,
    Floats,
    Plan,
    Trajectories,
    cost_of,
    device_of,
    grid,
    state_problem,
    walk,
)
from statetrack.diagnosis.true_states import MOST_CLASSES, asked_everywhere
from statetrack.errors import BadInput, one_line, refusing_unknown
from statetrack.formatting import without_hash
from statetrack.intervals import wilson
from statetrack.models import SequenceModel
from statetrack.models.custom import as_model, own_name
from statetrack.progress import progress as progress_bar
from statetrack.results.diagnosis import NO_SECTION, POINTS, Diagnosis, Findings, rounded, to_dict
from statetrack.results.sections import SHAPES, Section
from statetrack.tasks import Task, given_task
from statetrack.tasks.base import check_size
from statetrack.theory.floors.strategies import position_floor
from statetrack.training.result import Result
from statetrack.training.threads import threads_for
from statetrack.training.weights import frozen

Tick = Callable[[str], None]

GRADIENT_WORK = 3e6  # microseconds, about
GRADIENT_ROWS = (4, 32)
HALF = 0.5
LEAST_FITTED = 64
REMEMBERED = 16  # inputs
HEADROOM = 0.02  # above the floor
FLOOR_LENGTH = 2048  # positions up to which the floor is computed; beyond, its last value stands in


@refusing_unknown
def diagnose(
    task: Task | str, model: nn.Module | Result, *, length: int | None = None, trained: int | None = None,
    stream: int = MOST_STREAM, seed: int | None = None, word: str | None = None, progress: bool | None = None,
    tick: Tick | None = None,
) -> Findings:  # fmt: skip
    """Say why a trained model stops tracking. The model is left as it is.

    task      a task's text, "txc" or "fsm[k=5]", or a task: `st.task("txc")`
    model     a trained torch module, or the `Result` of `st.train`, which knows `trained`, `seed` and `word` itself
    length    how many positions are looked at; None: 16 times `trained`, up to 1,024
    trained   the length that the model was trained on; None: that of the result, or 64
    stream    on how many steps at most it is run to see where it fails; a large model is run on fewer
    seed      of the rows that it is looked at on; None: that of the result, or 0
    word      an input after which the model is known to err, as `TrainingRecord.broken` writes it
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never
    tick      called with the name of each part that is measured

    Gives plain data, everything of a `Diagnosis` (results/diagnosis.py) by its name: `["conclusion"]`, `["sentences"]`,
    and the sections; at a prompt it is shown in short, in a notebook with the figure of where it fails.

    >>> from statetrack.models.witnesses import toggle
    >>> found = diagnose("txc", toggle([[0, 1], [1, 0]]), trained=16, length=64, stream=256)
    >>> found["conclusion"], found["automaton"]["equal"]
    ('stays apart', True)
    """
    the_task = given_task(task)
    if isinstance(model, Result):
        if model.cell.task != the_task.name:
            raise BadInput(f"the result is of {model.cell.task}, not of {the_task.name}")
        known, model = model.record, model.model
        trained, seed = trained or known.cell.length, known.cell.seed if seed is None else seed
        word = known.broken.word if word is None and known.broken else word
    if not isinstance(model, nn.Module):
        raise BadInput(f"a trained model is a torch.nn.Module or a result of st.train, not a {type(model).__name__}")
    trained, seed = 64 if trained is None else trained, seed or 0
    check_size(trained, 1, seed, 0)
    check_size(trained if length is None else length, 1, seed, 0)
    fitting = as_model(model, own_name(model), the_task.inputs, the_task.outputs)
    check_fits(fitting, the_task)
    plan = Plan.of(fitting, trained, length, stream)
    with _bar(the_task, fitting, progress, tick) as told:
        examined = Examined(the_task, frozen(copy.deepcopy(fitting)), trained, plan, seed, told, word)
        with threads_for(fitting):
            return Findings(to_dict(examined.everything()))


@contextmanager
def _bar(the_task: Task, model: SequenceModel, shown: bool | None, tick: Tick | None) -> Iterator[Tick]:
    called = f"{without_hash(the_task.name)}, {without_hash(model.text or own_name(model))}"
    parts = len(measurements())
    with progress_bar("words bar count spent", called, parts, verb="diagnose", shown=shown) as move:
        done = -1

        def told(part: str) -> None:
            nonlocal done
            done += 1
            move(f"{called}: {part}", completed=done, description=f"{called}: {part}")
            if tick:
                tick(part)

        yield told


def check_fits(model: SequenceModel, the_task: Task) -> None:
    """Refuse a model that was made for another task."""
    if (model.inputs, model.outputs) != (the_task.inputs, the_task.outputs):
        sizes = f"{model.inputs} inputs and {model.outputs} classes"
        raise BadInput(f"the model has {sizes}; {the_task.name} has {the_task.inputs} and {the_task.outputs}")
    device = device_of(model)
    with torch.no_grad():
        shape = tuple(model(torch.zeros(2, 3, dtype=torch.long, device=device)).shape)
    if shape != (2, 3, the_task.outputs):
        raise BadInput(f"the model makes {shape} of (2, 3) ids; expected (2, 3, {the_task.outputs}) logits")


class Examined:
    """One model on one task; each part is measured when it is asked for."""

    def __init__(
        self, task: Task, model: SequenceModel, trained: int, plan: Plan, seed: int, tick: Tick, word: str | None = None
    ) -> None:
        self.task, self.model, self.trained, self.plan = task, model, trained, plan
        self.seed, self.tick, self.word = seed, tick, word

    @functools.cached_property
    def no_state(self) -> str | None:
        """Why there is no state to look at; None where there is one."""
        problem = state_problem(self.model)
        if problem is None and self.walk.states is None:
            return f"its state grows out of all bounds by position {self.walk.exploded_at:,}"
        return problem

    def everything(self) -> Diagnosis:
        began = time.monotonic()
        sections: dict[str, Section] = {}
        for name, each in measurements().items():
            self.tick(each.called or name)
            sections[name] = {"absent": self.no_state} if each.of_state and self.no_state else self.section(name, each)
        exploded, silent = self.walk.exploded_at, self.walk.silent_at
        ends: dict[str, Any] = {"trained": self.trained, "exploded_at": exploded, "silent_at": silent}
        conclusion, lines = sentences.conclude(sections | ends)
        lines += [part["says"] for name, part in sections.items() if name not in SHAPES and "says" in part]
        mechanism = sentences.mechanism(sections | ends, conclusion)
        return Diagnosis(
            task=self.task.name, model=self.model.text or own_name(self.model), length=self.plan.length,
            seed=self.seed, conclusion=conclusion, mechanism=mechanism, sentences=lines,
            seconds=time.monotonic() - began, sections=sections, **ends,
        )  # fmt: skip

    def section(self, name: str, measurement: Measurement) -> Section:
        """What is measured; an installed measurement that fails is absent, and leaves the others as they are."""
        if name in MEASUREMENTS:
            return measurement.measure(self)
        try:
            found: Section = json.loads(json.dumps(rounded(dict(measurement.measure(self)))))
            return found | ({"says": str(found["says"])} if "says" in found else {})
        except Exception as error:  # somebody's own measurement may raise anything
            plugins.say(f"the diagnostic {name} failed on {self.task.name}: {one_line(error)}")
            return {"absent": f"its measurement failed: {one_line(error)}"}

    @functools.cached_property
    def walk(self) -> Trajectories:
        return walk(self.task, self.model, self.plan, self.seed)

    @functools.cached_property
    def floor(self) -> Floats:
        """The floor by position over all positions streamed; NaN where nothing is asked."""
        steps = self.walk.far_right.shape[1]
        values = position_floor(asked_everywhere(self.task), min(steps, FLOOR_LENGTH)).by_position
        return np.concatenate([values, np.full(max(0, steps - len(values)), values[-1])])

    @functools.cached_property
    def curve(self) -> Curve:
        return Curve.of(self.walk.far_right, self.walk.far_asked)

    @functools.cached_property
    def measured(self) -> dict[str, dict[str, Any]]:
        """The lengths at which the model fails, as streamed."""
        right, asked = self.walk.far_right, self.walk.far_asked
        half = halfway(np.nan_to_num(self.floor, nan=1.0))
        return {"at_90": passes_below(right, asked, LEVEL), "at_half": passes_below(right, asked, half)}

    @functools.cached_property
    def fitted_to(self) -> int:
        """The last position that a prediction may look at: the length trained on, or 64 where that is shorter, but no
        more than half of the failing length.

        Where nothing was learned there is no time before the failure, and it is the length trained on.
        """
        if not self.learned:
            return max(2, min(self.trained, self.plan.length))
        fails = self.measured["at_90"]["length"]
        before = self.plan.length if fails is None else int(fails / 2)
        return max(2, min(max(self.trained, LEAST_FITTED), self.plan.length, before))

    @functools.cached_property
    def learned(self) -> bool:
        """Whether it ever tracked: at the length trained on, or for longer than a few inputs can be remembered."""
        lost = self.measured["at_half"]["length"]
        return self.skill_at_end() >= HALF or lost is None or lost >= max(REMEMBERED, self.trained / 16)

    def positions(self) -> dict[str, Any]:
        test = self.walk.test
        right, asked = self.walk.right[test], self.walk.asked[test]
        shown = np.array(grid(1, self.plan.length, POINTS)) - 1
        hits, counts = (right & asked).sum(0)[shown], asked.sum(0)[shown]
        bounds = [wilson(hit, n) if n else (None, None) for hit, n in zip(hits.tolist(), counts.tolist())]
        return {
            "position": (shown + 1).tolist(),
            "accuracy": [hit / n if n else None for hit, n in zip(hits.tolist(), counts.tolist())],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
            "floor": self.floor[shown].tolist(),
            "rows": len(right),
        }

    def gradient(self) -> dict[str, Any]:
        rows = int(np.clip(GRADIENT_WORK / (5 * self.plan.length * cost_of(self.model)), *GRADIENT_ROWS))
        return gradient(self.task, self.model, self.plan.length, rows, self.seed)

    def eigenvalues(self) -> dict[str, Any]:
        return eigenvalues(self.task, self.model, min(self.trained, self.plan.length), self.seed)

    @functools.cached_property
    def separated(self) -> dict[str, Any]:
        if self.walk.truth_of.classes > MOST_CLASSES:
            return {"absent": f"{self.walk.truth_of.says} is one of {self.walk.truth_of.classes}: too many to compare"}
        return separation_section(self.walk, self.model, self.floor, self.fitted_to, self.learned, self.probed)

    @functools.cached_property
    def probed(self) -> dict[str, Any]:
        """Probes at every stop, and of a network that never tracked what they could have found."""
        found, truth_of = probe(self.walk), self.walk.truth_of
        if not self.learned and truth_of.classes <= MOST_CLASSES:
            position = min(self.walk.plan.stops, key=lambda stop: abs(stop - self.trained))
            found["decoding"] = decode(truth_of, self.model, position, self.walk.numbers, self.seed)
        return found

    def skill_at_end(self) -> float:
        """Of the way from the floor to 1, what the network makes over the last quarter of the length trained on; over
        all of it where the floor of that quarter leaves nothing to be told.
        """
        end = min(self.trained, self.plan.length)
        skill = 0.0
        for first in (end - max(1, end // 4), 0):
            part = slice(first, end)
            right, asked = (seen[self.walk.test, part] for seen in (self.walk.right, self.walk.asked))
            counts = asked.sum(0)
            total = max(1, int(counts.sum()))
            usual = float((np.nan_to_num(self.floor[part], nan=0.0) * counts).sum() / total)
            skill = float(((right & asked).sum() / total - usual) / max(1 - usual, 1e-9))
            if usual <= 1 - HEADROOM:
                break
        return skill

    def error(self) -> dict[str, Any]:
        """Error rates of a step, lengths measured and predicted, and the curve they were read from."""
        seen, curve = self.walk, self.curve
        shown = slice(None, None, max(1, len(curve.position) // 48))
        bounds = curve.intervals()[shown]
        within = slice(0, self.trained)
        nothing = dict.fromkeys(self.measured, NOTHING_SAID)
        predicted = nothing if self.no_state else self.separated.get("predicted", nothing)
        return {
            **step_rate(seen.far_right, seen.far_asked),
            "within": step_rate(seen.far_right[:, within], seen.far_asked[:, within]),
            "skill_at_end": self.skill_at_end(), "learned": self.learned, "measured": self.measured,
            "predicted": predicted,
            "ratio": {name: ratio(each, self.measured[name]) for name, each in predicted.items()},
            "streamed": seen.far_right.shape[1], "rows": len(seen.far_right),
            "position": curve.position[shown].tolist(), "accuracy": curve.accuracy()[shown].tolist(),
            "low_curve": [low for low, _ in bounds], "high_curve": [high for _, high in bounds],
            "floor": self.floor[curve.position - 1][shown].tolist(),
        }  # fmt: skip


def ratio(predicted: dict[str, Any], measured: dict[str, Any]) -> float | None:
    """Predicted over measured, where both are lengths."""
    if predicted["length"] is None or not measured["length"]:
        return None
    return float(predicted["length"] / measured["length"])


MEASUREMENTS = {  # in their order; a new one is its module and a line here
    "positions": Measurement(Examined.positions, of_state=False),
    "gradient": Measurement(Examined.gradient),
    "probe": Measurement(lambda seen: seen.probed),
    "portrait": Measurement(lambda seen: portrait(seen.walk)),
    "separation": Measurement(lambda seen: seen.separated),
    "error": Measurement(Examined.error, of_state=False, called="where it fails"),  # the name would read as a failure
    "eigenvalues": Measurement(Examined.eigenvalues),
    "automaton": Measurement(lambda seen: automaton(seen.task, seen.model, seen.trained, seen.seed, seen.word)),
}


def measurements() -> dict[str, Measurement]:
    """All of them by the name of their section, those of installed packages last."""
    taken = MEASUREMENTS.keys() | NO_SECTION
    return MEASUREMENTS | plugins.loaded(plugins.DIAGNOSTICS, taken, lambda point: plugins.load(point, Measurement))
