"""One colour, one mark and one dash for each model, the same in every figure of a report.

Models of one architecture share a hue and differ in lightness and mark; what lacks a part (no tanh, no bias) or has one
more (eigenvalues below 0) has the colour of the whole model, dashed. The hues are told apart with deuteranopia and
protanopia as well (a test measures it).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from statetrack import spec
from statetrack.asking.solvers import solver, split_subject
from statetrack.errors import BadInput
from statetrack.models.catalogue import lookup

HUES = {
    "e88-gain": "#2f6fd0",
    "e88-published": "#e79a17",
    "e88": "#b8301f",
    "mamba2": "#3fb08c",
    "linear-rnn": "#c98bc4",
    "mlp": "#6d7080",
}
SPARE = ("#35c0f2", "#f0683c", "#6a3fb5")
ORDER = ("e88-gain", "e88-gain-r", "e88-published", "e88", "mamba2", "linear-rnn")
MARKS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
SOLID, DASHES = (1, 0), ((5, 3), (2, 2), (8, 3, 2, 3))
HOW = " · "  # between a language model and how it was asked


@dataclass(frozen=True)
class Series:
    """How one model is drawn."""

    label: str
    subject: str
    colour: str
    mark: str
    dash: tuple[int, ...]

    @property
    def dashed(self) -> bool:
        return self.dash != SOLID


def group_of(subject: str) -> str:
    """The architecture that a model is a size or a variant of.

    >>> [group_of(name) for name in ("e88-gain-1l-notanh", "e88-4l", "mamba2-32l-neg", "e88-gain-r2", "mine.py:Net")]
    ['e88-gain', 'e88', 'mamba2', 'e88-gain-r', 'mine.py:Net']
    """
    name = _model_of(subject.partition(HOW)[0])
    line = lookup(name)
    if line is not None:
        return line.architecture
    name = _bare(name)
    return name if ":" in name or "/" in name else name.lower()


def _model_of(name: str) -> str:
    """Without the way in which a language model was asked.

    >>> _model_of("hf/my net explicit:implicit"), _model_of("my net.py:Net"), _model_of("oracle")
    ('hf/my net', 'my net.py:Net', 'oracle')
    """
    model, way = split_subject(name)
    try:
        return model if model and solver(way) else name
    except BadInput:
        return name


def series_of(subjects: Mapping[str, str]) -> list[Series]:
    """The series of all models of a report, from label to subject, in the order in which legends name them."""
    groups: dict[str, dict[str, list[str]]] = {}
    for label in sorted(subjects, key=lambda label: _natural(subjects[label])):
        whole = _whole(subjects[label])
        groups.setdefault(group_of(subjects[label]), {}).setdefault(whole, []).append(label)
    ordered = sorted(groups, key=lambda group: (_rank(group), _natural(group)))
    colours = _hues(ordered)
    made: list[Series] = []
    for place, group in enumerate(ordered):
        tones = shades(colours[group], len(groups[group]))
        mark = place // (len(HUES) + len(SPARE))  # where the hues begin again, the marks differ
        for tone, labels in zip(tones, groups[group].values()):
            varied = 0
            for label in sorted(labels, key=lambda label: _ablated(subjects[label])):
                ablated = _ablated(subjects[label])
                dash = DASHES[varied % len(DASHES)] if ablated else SOLID
                varied += ablated
                made.append(Series(label, subjects[label], tone, MARKS[mark % len(MARKS)], dash))
                mark += 1
    return made


def _bare(subject: str) -> str:
    try:
        return spec.parse(subject)[0]
    except BadInput:
        return subject


def _whole(subject: str) -> str:
    """The model that this one is an ablation of, or the model itself."""
    line = lookup(subject)
    return line.ablation_of or subject if line else subject


def _ablated(subject: str) -> bool:
    return _whole(subject) != subject


def _rank(group: str) -> int:
    """One's own models first, then the catalogue's, and last what keeps no state."""
    if ":" in group:
        return -1
    return ORDER.index(group) if group in ORDER else len(ORDER) + (group == "mlp")


def _natural(text: str) -> list[tuple[int, int, str]]:
    """So that 4l comes before 32l."""
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _hues(groups: list[str]) -> dict[str, str]:
    """The fixed hue of a known architecture; the others take what is free, in their order."""
    taken = {group: HUES[group] for group in groups if group in HUES}
    free = [*SPARE, *(hue for group, hue in HUES.items() if group not in taken)]
    for number, group in enumerate(group for group in groups if group not in HUES):
        taken[group] = free[number % len(free)]
    return taken


def shades(colour: str, count: int) -> list[str]:
    """The colour itself for one; for more, from lighter to darker around it.

    >>> shades("#2f6fd0", 1)
    ['#2f6fd0']
    """
    if count == 1:
        return [colour]
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    base = np.array([red, green, blue])
    made = []
    for step in np.linspace(0.32, -0.32, count):
        mixed = base + (1 - base) * step if step > 0 else base * (1 + step)
        made.append("#" + "".join(f"{round(255 * part):02x}" for part in mixed))
    return made
