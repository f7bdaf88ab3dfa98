"""`st.ask`: a language model, or a baseline, on samples of a task; what comes of it, counted and shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.asking import engines, metrics, run
from statetrack.asking.rules import FORCED, Rules
from statetrack.asking.solvers import solver as solver_of
from statetrack.asking.survival import HalfFailed
from statetrack.display import Card, Measured, Table
from statetrack.errors import BadInput, refusing_unknown
from statetrack.formatting import fixed, plural, visible
from statetrack.progress import progress as progress_bar
from statetrack.results.records import AskedRecord
from statetrack.secrets import guard
from statetrack.tasks import Task, given_task

SAMPLES = 250
MOST_SAMPLES = 1_000_000  # of one call: each is a cell

Summary = dict[str, Any]


def check_samples(samples: int) -> None:
    """Refuse more than can be listed."""
    if samples > MOST_SAMPLES:
        raise BadInput(f"{samples:,} samples are more than {MOST_SAMPLES:,}; ask for fewer at a time")


@dataclass(frozen=True, repr=False)
class Asked(Measured):
    """What samples came to. `records` has one for each that was asked; `samples` is how many were wanted."""

    records: tuple[AskedRecord, ...]
    samples: int
    classes: int  # of answers

    drawn_first = ("survival", "asked-positions", "asked")

    @property
    def unfinished(self) -> int:
        """Samples that have no result: a server failed, or another process has them. They are in no mean."""
        return self.samples - len([record for record in self.records if record.finished])

    def summary(self, compat: bool | None = None) -> Summary:
        """How long episodes last, with n and intervals, and what that hides, as plain data; with `compat` lengths are
        counted as the original Track the Stat does, where a perfect run has 299. None: as they were asked.
        """
        episodes = [record.episode for record in self.records]
        if compat is None:
            compat = any(record.cell.protocol.get("compat", False) for record in self.records)
        told = metrics.summary(episodes, compat) | {"unfinished": self.unfinished, "ended": metrics.ended(episodes),
                                                    "tokens": metrics.tokens(episodes).to_dict()}  # fmt: skip
        if not self.records:
            return told
        cell = self.records[0].cell
        what: Summary = {"task": cell.task, "subject": cell.subject, "length": cell.length, "protocol": cell.protocol}
        if cell.protocol.get("way") == "whole":
            what["chance"] = 1 / self.classes
        if FORCED in cell.protocol:  # a pass tells the canonical reply from any other, and no more
            told |= {"violation_rate": None, "violation_interval": None}
        return what | told

    @property
    def failures(self) -> str:
        """What was left undone, in one line; nothing where all is done. Episodes that failed are in no mean."""
        failed = [record.reason for record in self.records if not record.finished]
        left = self.samples - len(self.records)
        if failed:
            gave_up = f", so {left} more were not asked" if left else ""
            return visible(f"the server failed in {plural(len(failed), 'episode')} ({failed[0]}){gave_up}")
        return f"{plural(left, 'sample')} in the hands of another process" if left else ""

    def card(self) -> Card:
        told = self.summary()
        below = [self.failures] if self.failures else []
        if not told["episodes"]:
            return Card("nothing was answered to the end", below=below)
        return Card(title(told), [Table(("", "value", "95 %"), summary_rows(told))], below=[*spent(told), *below])

    def contents(self) -> tuple[Sequence[AskedRecord], list[Any]]:
        return self.records, []


def _say(line: str) -> None:
    print(f"statetrack: {line}", file=sys.stderr, flush=True)


@refusing_unknown
def ask(
    task: Task | str, model: str = "", *, solver: str = "implicit", samples: int = SAMPLES, first: int = 0,
    length: int | None = None, way: str = "turns", style: str = "ids", shots: int = 0, relabel: int | None = None,
    regime: str = "instant", keep_reasoning: bool = False, history: str = "stop", every: int = 1,
    distractors: Sequence[str] = (), parser: str = "strict", room: int = 0, limit: int = 0,
    compat: bool = False, prompt: str = "", out: Path | str | None = None, batch: int = 16,
    episode_seconds: float | None = None, device: str = "auto",
    teacher_forced: bool = False, progress: bool | None = None, report: run.Report | None = None,
    warn: Callable[[str], None] | None = None,
) -> Asked:  # fmt: skip
    """Ask a language model sample by sample, and count how far it keeps track.

    task      a task's text, "track_the_stat.median" or "s5", or a task: `st.task("cups[n=4]")`
    model     "hf:PATH_OR_NAME" (also a GGUF file) in this process, or "PROVIDER/MODEL" as Inspect names it
    solver    who answers: "implicit" is the model itself, "explicit" shows it the state before each answer; baselines
              need no model: "random", "copy-last", "window-64", "oracle" (`statetrack list solvers`)
    samples, first  how many samples, and the number of the first
    length    inputs of a sample; None: 300 turn by turn, 20 in a whole prompt

    The rules, each a part of what a result is filed under (`asking/rules.py`):

    way       "turns": one input in each turn; "whole": all of them in one prompt
    style     permutations as "ids", "table", "cycles" or "generators"
    shots     worked examples in a whole prompt
    relabel   a seed that shuffles the IDs of a group
    regime    "instant", or "thinking": room to reason before the answer; keep_reasoning leaves it in the history
    history   "stop" at the first error; or go on with "own", "corrected" or "absent" replies
    every     ask at every n-th input only
    distractors  of "chatter", "streams", "words", "retractions"
    parser    "strict" or "lenient"
    room      tokens that a reply may have; 0: 32 instant, 2,048 thinking, any number with compat
    limit     tokens that an episode may use before it is cut off; 0: any number
    compat    Track the Stat by the original's rules (docs/published.md)
    prompt    the text of a prompt of your own, with placeholders (docs/ask.md)

    out       a folder for the results; what is there is not asked again, and what was cut off goes on
    batch     episodes side by side
    episode_seconds  that an episode may take in one call; then it has failed, and is asked on later
    device    for hf: "auto", "cpu" or "cuda"
    teacher_forced   for hf: score all turns in one pass
    progress  None: a bar in a terminal or a notebook; True: elsewhere too, as a line now and then; False: never
    report    called after every turn with the episodes that are over and the turns that were answered
    warn      called with a line about samples that others hold (None: printed on standard error)

    Gives an `Asked`: `.summary()` has the numbers, `.records` the dialogues, `.unfinished` what a server failed.

    >>> found = ask("track_the_stat.median", solver="window-8", samples=5, length=20)
    >>> found.summary()["avg_max_length"], found.unfinished
    (8.0, 0)
    """
    check_samples(samples)
    if samples < 1 or first < 0 or batch < 1:
        raise BadInput(f"samples={samples} and batch={batch} should be at least 1, first={first} at least 0")
    the_task, who = given_task(task, kept=out is not None), solver_of(solver)
    rules = Rules.among(locals())
    if who.needs_model and not model:
        raise BadInput(f"solver {who.name} needs a model: hf:PATH_OR_NAME or PROVIDER/MODEL")
    if who.needs_model:
        guard()
    options = {"device": device} if model.startswith(engines.LOCAL) else {}
    with progress_bar("words bar percent left", "asking", samples, shown=progress) as move:

        def told(ended: int, turns: int) -> None:
            move(completed=ended, description=f"asking, {turns:,} turns")
            if report:
                report(ended, turns)

        records = run.ask(
            the_task, rules, who, range(first, first + samples), length=length, model=model,
            out=Path(out) if out is not None else None, forced=teacher_forced,
            engine=lambda: engines.engine(model, batch=batch, **options), report=told, seconds=episode_seconds,
            warn=warn or _say,
        )  # fmt: skip
    return Asked(tuple(records), samples, the_task.outputs)


def title(summary: Summary) -> str:
    """What was asked, and how it is counted."""
    whole = summary["protocol"].get("way") == "whole"
    asked = plural(summary["episodes"], "question" if whole else "episode")
    counted = "one answer each" if whole else f"counted {summary['counting']}"
    return f"{summary['task']}, {summary['subject']}: {asked} of {plural(summary['length'], 'input')}, {counted}"


def summary_rows(summary: Summary) -> list[list[str]]:
    """Name, value and interval of what a person looks at: how long episodes last, and what that hides; of questions
    that hold the whole row, what one answer can tell.
    """
    if summary["protocol"].get("way") == "whole":
        return [["accuracy", *_share(summary["accuracy"])], ["  chance", f"{summary['chance']:.3g}", ""],
                *_violations(summary)]  # fmt: skip
    half, (low, high) = summary["half_failed_by"], summary["avg_interval"]
    found = HalfFailed(half["turn"], half["interval"][0], half["interval"][1], half["seen"])
    return [
        ["half have failed by turn", found.text, found.between],
        ["avg_max_length", f"{summary['avg_max_length']:.3f}", f"{low:.3f} to {high:.3f}"],
        ["stddev_max_length", f"{summary['stddev_max_length']:.3f}", ""],
        ["median_max_length", f"{summary['median_max_length']:g}", ""],
        ["max_max_length", str(summary["max_max_length"]), ""],
        ["min_max_length", str(summary["min_max_length"]), ""],
        *_violations(summary),
        ["accuracy of all answers", *_share(summary["accuracy"])],
        ["  where the answer changes", *_share(summary["steps"]["change"])],
        ["  where it stays", *_share(summary["steps"]["no_change"])],
    ]


def spent(summary: Summary) -> list[str]:
    """How episodes ended, and the tokens that they took."""
    failed = [f"failed by the server, and in no mean: {plural(summary['failed'], 'episode')}"] * bool(summary["failed"])
    lines = [*failed, "ended: " + ", ".join(f"{count} {kind}" for kind, count in summary["ended"].items() if count)]
    if any(summary["tokens"].values()):
        lines.append("tokens: " + ", ".join(f"{count:,} {name}" for name, count in summary["tokens"].items()))
    return lines


def _violations(summary: Summary) -> list[list[str]]:
    rate = summary["violation_rate"]
    return [] if rate is None else [["violation_rate", fixed(rate), _between(summary["violation_interval"])]]


def _share(counted: Summary) -> list[str]:
    if counted["accuracy"] is None:
        return ["-", ""]
    return [f"{fixed(counted['accuracy'])} (n = {counted['n']:,})", _between(counted["interval"])]


def _between(interval: list[float]) -> str:
    return f"{fixed(interval[0])} to {fixed(interval[1])}"
