"""What the sections of a diagnosis hold, number by number.

Positions count from 1: position t is after t inputs. Curves are lists of one length beside a list `position`, thinned
to at most 128 positions. Numbers have four significant digits; null is what was not measured at that position. A
section that cannot be had of a model or a task is {"absent": "why"} and nothing else. Fields that are NotRequired came
after 0.2.0.
"""

# Without `from __future__ import annotations`: NotRequired is not seen inside a text.
from typing import Any, NotRequired, TypedDict

Numbers = list[float | None]

# What the state was seen to do: `Diagnosis.mechanism` is one of these words, and verdicts go by it.
M_HOLDS = "holds"  # true states stay apart, and the network is right as far as it was run
M_SHRINKS = "shrinks but is read"  # the distance between true states shrinks, and the network is right all the same
M_FADES = "fades"  # it shrinks, and the network fails
M_SLIPS = "slips"  # it does not, yet single steps go wrong
M_EXPLODES = "explodes"  # the state, or a logit, grows out of all bounds
M_NOT_READ = "no state is read"  # logits are the same whatever the state
M_NO_STATE = "no state"  # nothing is kept from step to step
M_UNLEARNED = "never tracked"  # the network fails from the start: nothing to hold or to lose was seen
M_UNCLEAR = "unclear"
NOT_READ = "no logit depends on the state"  # why there is no gradient then
MECHANISMS = (M_HOLDS, M_SHRINKS, M_FADES, M_SLIPS, M_EXPLODES, M_NOT_READ, M_NO_STATE, M_UNLEARNED, M_UNCLEAR)


class PositionsSection(TypedDict):
    """Accuracy by position, Wilson's interval over rows, and what the best answer for each position scores."""

    position: list[int]
    accuracy: Numbers
    low: Numbers
    high: Numbers
    floor: Numbers
    rows: int


class GradientSection(TypedDict):
    """|d loss / d state after position t|, median over rows; the loss is the cross-entropy at the last position asked.

    All of it but `over_all` is of that loss alone; `over_all` has the norms for the mean loss over all positions.

    `per_step` is the factor by which the norm changes a step towards the past (fitted; below 1 it vanishes), over the
    positions `fitted`; `reaches` is how many steps back the norm is still above 1e-3 of its largest value.
    """

    position: list[int]
    norm: Numbers
    low: Numbers  # 10 % of rows
    high: Numbers  # 90 % of rows
    per_step: float | None
    reaches: int
    loss: str
    loss_position: int
    rows: int
    over_all: NotRequired[Numbers]


class Probe(TypedDict):
    """How well a linear map of the state tells `says`, by position, on rows that it was not fitted on.

    `gap` is how far a state must be moved along the probe's direction to be told as another, the mean over classes.
    """

    says: str
    measure: str  # "R^2" or "accuracy"
    score: Numbers
    chance: Numbers
    gap: NotRequired[Numbers]


class Decoding(TypedDict):
    """What probes with samples enough find of the true state at one position, and what they would have found.

    Accuracies on test rows. `planted` has those of the same probes on the same states with the truth planted in them:
    `number` (linear) as a number of its own, of the size that the state's numbers have, `direction` (linear) added to
    all numbers along a random direction as long as one number is wide, `product` (nonlinear) as two numbers of which
    neither alone tells anything. Empty where the state is the same in all rows. See diagnosis/decoding.py.
    """

    position: int
    samples: int  # to fit on
    numbers: int  # in the state; none is sketched
    chance: float
    linear: float
    nonlinear: float
    planted: dict[str, float]


class ProbesSection(TypedDict):
    """By position, on states of more than 1,024 numbers sketched to as many; `decoding` is of all of the state.

    It is there for a network that never tracked: of another its own answers show what is in its state.
    """

    position: list[int]
    count: Probe
    state: Probe
    fitted_on: int  # rows
    tested_on: int
    numbers: int  # in the state
    decoding: NotRequired[Decoding]


class PortraitSection(TypedDict):
    """The state in its two leading principal directions.

    `paths` are a few rows followed over time; a point is [x, y, true state, position]. `labels[i]` names true state i
    (none where there are very many).
    """

    explained: list[float]  # shares of the variance, two
    paths: list[list[list[float]]]
    labels: list[str]


class FailureLength(TypedDict):
    """The length at which accuracy passes below a level, with a 95 % interval.

    `length` is null where it never does up to `beyond` steps. All four are null where nothing is predicted: of a model
    that never tracked, one without a state, or a task that is no machine of few states.
    """

    length: float | None
    low: float | None
    high: float | None
    beyond: int | None


class FailureLengths(TypedDict):
    """at_90: below .9; at_half: below halfway between 1 and the floor (for parity .75), at most .98."""

    at_90: FailureLength
    at_half: FailureLength


class SeparationSection(TypedDict):
    """How far apart true states stay, against their spread, by position."""

    position: list[int]
    separation: Numbers
    distance: Numbers
    spread: Numbers
    measure: str  # what was measured, in words
    fitted_to: int  # the last position that the trend saw
    fitted_from: int
    per_step: float | None  # the factor by which it changes a step
    low: float | None
    high: float | None
    healed: float | None  # of a distance that was halved, the share that is there again some steps later; .5: none
    heal_steps: int
    by_fading: FailureLengths  # as predicted by each of the two ways to fail
    by_slips: FailureLengths
    predicted: FailureLengths  # the sooner of the two
    says: str  # "stay apart", "fade", "shrink", "slip", "never apart" or "unclear"
    shrunk: NotRequired[float | None]  # the probe's gap at the last position over that at the first, see `Probe`


class StepRate(TypedDict):
    """The chance of a first error at a step, given that all answers before were right, and Wilson's interval."""

    step_rate: float
    low: float
    high: float
    errors: int
    steps: int


class ErrorsSection(TypedDict):
    """The rate over all steps streamed (as in StepRate) and up to the length trained on; lengths reached."""

    step_rate: float
    low: float
    high: float
    errors: int
    steps: int
    within: StepRate
    skill_at_end: float  # of the way from the floor to 1, over the last quarter of the length trained on
    learned: bool  # whether it ever tracked
    measured: FailureLengths
    predicted: FailureLengths
    ratio: dict[str, float | None]  # predicted / measured: at_90, at_half
    streamed: int  # steps
    rows: int
    position: list[int]  # the last of each window, at lengths that grow geometrically
    accuracy: Numbers  # over the window
    low_curve: Numbers
    high_curve: Numbers
    floor: Numbers


class Symbol(TypedDict):
    """Of the one-step Jacobian for one input symbol, over the sampled steps (medians, and the extremes)."""

    symbol: str
    samples: int
    largest: float  # magnitude of the leading eigenvalue, median
    largest_range: list[float]
    most_negative: float | None  # the most negative real eigenvalue, median; null where there is none
    most_negative_range: list[float] | None
    leading: list[list[float]]  # [re, im] of the leading ones at one typical step


class EigenvaluesSection(TypedDict):
    symbols: list[Symbol]
    method: str  # "dense" or "Arnoldi, N steps"
    negative: bool  # a real eigenvalue below -0.05 at some symbol
    says: str


class AutomatonSection(TypedDict):
    """What the network does as a finite machine, beside what the task is.

    `equal` speaks of the machine, which is made of majorities: the network may err all the same (`error_string`,
    `known_word`).
    """

    states: int  # of the extracted machine, minimised
    steps: list[list[int | None]]  # steps[state][symbol], 0 the start; null for a step that was never seen
    answers: list[int | None]  # null for a start that is never come back to
    task_states: int
    task_steps: list[list[int]]
    task_answers: list[int]
    clusters: int
    length: int  # of the rows that it was read from
    agreement: float  # share of positions of held-out rows at which machine and network say the same
    equal: bool
    difference: list[str] | None  # the shortest input on which machine and task differ, symbol by symbol
    machine_says: str | None
    task_says: str | None
    network_says: str | None
    network_errs: bool | None  # whether the network itself is wrong there
    error_string: list[str] | None  # a shortest input found on which the network is wrong
    known_word: NotRequired[str | None]  # one that its record holds
    rows: NotRequired[int]  # that the machine was read from; the network was tried on as many others
    majority: NotRequired[float]  # share of the steps seen that are the machine's: it takes the most frequent ones
    row_errors: NotRequired[float]  # share of the test rows on which the network errs
    words: NotRequired[int]  # tried: all of length `word_length`, or the first of them where they are very many
    word_length: NotRequired[int]
    periodic: NotRequired[int]  # of the form u v^k, tried up to the length trained on
    says: str


Section = dict[str, Any]  # one of the above, or {"absent": why}
SHAPES: dict[str, Any] = {  # of the sections that are read elsewhere; one that is not here may hold anything
    "positions": PositionsSection, "gradient": GradientSection, "probe": ProbesSection, "portrait": PortraitSection,
    "separation": SeparationSection, "error": ErrorsSection,
    "eigenvalues": EigenvaluesSection, "automaton": AutomatonSection,
}  # fmt: skip
