"""Two tables of what was trained: every number measured at the length trained on, and where rows of another kind are
answered wrongly by a network that solved random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from statistics import median

from statetrack.formatting import RULE, number, shown
from statetrack.reports import figure_data
from statetrack.reports.figures.view import slug
from statetrack.reports.folder import Folder, TrainedCell
from statetrack.reports.table import Table

MOST_OPEN = 40  # rows of a table that is not folded
MEASURES = ["whole rows", "crossings", "paired crossings", "epochs", "loss", "tokens a second", "trained together"]


def measures(folder: Folder, task: str, protocol: str) -> Table:
    """Rows without an error, crossings, epochs, loss and speed: a line for each model and length trained on."""
    lines = [[model, length, len(same), *_measured(same)] for model, length, same in _groups(folder.of(task, protocol))]
    where = _where(folder, task, protocol)
    caption = (
        "At the length trained on, the median over seeds and in brackets the lowest and the highest: the share of rows "
        "without an error; the accuracy where the answer changes (crossings), and there and right before it (paired); "
        "after how many checks on validation data it was within .001 of its best (epochs); the training loss at the "
        "last check; and the tokens trained on in a second, of all seeds trained together in one batch. How much else "
        f"ran on the device at that time is not recorded, so speeds of a busy device are too low. Shares are {RULE}."
    )
    return Table(
        f"{slug(where)}-measures", f"{where}: whole rows, crossings, epochs, loss and speed", caption,
        ["model", "length", "seeds", *MEASURES], lines, folded=len(lines) > MOST_OPEN, download=True,
    )  # fmt: skip


def _groups(runs: Iterable[TrainedCell]) -> list[tuple[str, int, list[TrainedCell]]]:
    """Seeds of one model and length together; the runs of a folder are in that order."""
    groups = groupby(runs, key=lambda run: (run.model, run.trained))
    return [(model, length, list(same)) for (model, length), same in groups]


def _where(folder: Folder, task: str, protocol: str) -> str:
    return f"{task}, {protocol}" if len(folder.protocols(task)) > 1 else task


def _measured(runs: Sequence[TrainedCell]) -> list[str]:
    here, took = [run.record.at_length for run in runs], [run.record.training for run in runs]
    return [
        _shares(each.full_sequence_accuracy for each in here), _shares(each.crossing_accuracy for each in here),
        _shares(each.paired_crossing_accuracy for each in here), _numbers(each.epochs_to_converge for each in took),
        _numbers(each.final_train_loss for each in took), _numbers(each.tokens_per_second for each in took),
        ", ".join(f"{count}" for count in sorted({each.replicas for each in took})),
    ]  # fmt: skip


def _shares(values: Iterable[float | None]) -> str:
    return _spread(values, shown)


def _numbers(values: Iterable[float | None]) -> str:
    """
    >>> _numbers([1, 2.5, 4]), _numbers([2, None, 2]), _numbers([None])
    ('2.500 (1–4)', '2', '')
    """
    return _spread(values, lambda value: f"{value:,.0f}" if float(value).is_integer() else number(value))


def _spread(values: Iterable[float | None], write: Callable[[float], str]) -> str:
    """The median of those that are known, and the lowest and the highest where they differ."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    middle, low, high = write(median(known)), write(min(known)), write(max(known))
    return middle if low == high else f"{middle} ({low}–{high})"


def off_data(folder: Folder, task: str, protocol: str) -> Table | None:
    """Of the networks that solved the length trained on, those that are wrong on rows that training never showed."""
    lines = []
    for model, length, same in _groups(folder.of(task, protocol)):
        tried, wrong = figure_data.wrong_elsewhere(same)
        if wrong:
            lowest, kind, _ = wrong[0]
            lines.append([model, length, tried, len(wrong), kind, shown(lowest)])
    if not lines:
        return None
    where = _where(folder, task, protocol)
    caption = (
        "Random rows show little of what can happen. These networks solved random rows of the length trained on, and "
        "are right at less than 99 % of the positions of rows of another kind, of the same length: with other rates of "
        "ones (p), or with a pattern. So being right on random rows does not show that the task was learned. A model "
        "that is not here was right, was not tested so, or did not solve random rows."
    )
    headers = ["model", "length", "solved random rows", "of them below 99 % elsewhere", "worst on", "accuracy there"]
    title = f"{where}: right on random rows, wrong on others"
    return Table(f"{slug(where)}-off-data", title, caption, headers, lines, len(lines) > MOST_OPEN, True)
