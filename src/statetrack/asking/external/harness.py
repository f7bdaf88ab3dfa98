"""lm-evaluation-harness's results of our tasks: results_*.json, which --output_path writes, and samples_*.jsonl.

For each task the file has an accuracy for every length from 5 to 500 (-1: no row of this length was asked) and the
smallest number of rows behind one of them. Where that does not say how many rows each length has, the samples do, if
they were kept (--log_samples); without them there are at least so many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from statetrack import spec
from statetrack.asking.external import means, question
from statetrack.asking.external.archive import Unreadable
from statetrack.asking.external.plain import loads, mapping, model_name, name
from statetrack.asking.external.runs import loaded
from statetrack.asking.rules import Rules
from statetrack.errors import BadInput
from statetrack.files import open_plain
from statetrack.results import schema
from statetrack.results.external import ExternalMean, ExternalScores, Source
from statetrack.results.schema import BadRecord
from statetrack.tasks import trusted_task
from statetrack.tasks.groups import catalogue
from statetrack.tasks.groups.names import MATCHED

PROGRAM = "lm-evaluation-harness"
ENDING, GENERATED = "_composition", "_gen"
LENGTH = re.compile("[1-9][0-9]{0,4}")
LONGEST_ROW = 10_000
MOST_LINE, MOST_SAMPLES = 2**20, 2**28  # bytes of a line of samples, and of all that are read for one file


class NotOurs(Unreadable):
    """Results of no task of statetrack."""


def is_results(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("results"), dict) and "configs" in data


@dataclass
class Results:
    """What a results file says of our tasks, and what is wrong with what it says of others of them."""

    scores: list[ExternalScores] = field(default_factory=list)
    means: list[ExternalMean] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def read(data: Mapping[str, Any], path: Path, file: str) -> Results:
    """What it holds; `file` is its name."""
    ours = [task for task, told in data["results"].items() if _group(task) and _is_ours(data, task, told)]
    if not ours:
        others = ", ".join(sorted(map(name, data["results"]))[:3])
        raise NotOurs(f"{PROGRAM}'s results of {others or 'no task'}, no task of statetrack")
    samples, made = _Samples(path), Results()
    for task in ours:
        try:
            made.scores.append(_scores(data, task, file, samples))
        except Unreadable as error:
            made.wrong.append(str(error))
    for mean in means.read(data, made.scores, GENERATED):
        if isinstance(mean, ExternalMean):
            made.means.append(mean)
        else:
            made.wrong.append(str(mean))
    return made


def _group(task: str) -> str:
    """The group of one of our tasks; nothing where it is none of them.

    >>> _group("psl2_7_composition_gen"), _group("hellaswag"), _group("x_composition")
    ('psl2_7', '', '')
    """
    group, ending, _ = task.removesuffix(GENERATED).partition(ENDING)
    return group if ending and (group in MATCHED or group in catalogue()) else ""


def _is_ours(data: Mapping[str, Any], task: str, told: Any) -> bool:
    return "options" in _metadata(data, task) and isinstance(told, dict)


def _metadata(data: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    return mapping(mapping(mapping(data["configs"]).get(task)).get("metadata"))


def _scores(data: Mapping[str, Any], task: str, file: str, samples: _Samples) -> ExternalScores:
    told = {key.partition(",")[0]: value for key, value in data["results"][task].items()}
    at = {int(key): value for key, value in told.items() if LENGTH.fullmatch(key)}
    asked = {length: value for length, value in sorted(at.items()) if value not in (-1, None)}
    total, least, unanswered = told.get("sample_len"), told.get("n_per_length"), told.get("unanswered", 0)
    if type(total) is int and type(unanswered) is int and 0 < unanswered <= total:
        total -= unanswered  # the harness counts them as samples; they are in no mean
    options, shots = _metadata(data, task)["options"], mapping(data.get("n-shot")).get(task)
    try:
        rows = _rows(task, asked, total, least, samples)
        made = schema.read(ExternalScores, {
            "source": _source(data, task, file), "task": _named(task, mapping(options)), "model": _model(data),
            "how": _how(task, mapping(options), shots, _framed(data)), "accuracy": told.get("acc"), "rows": total,
            "chance": 1 / trusted_task(f"{_group(task)}{ENDING}").outputs,
            "lengths": [{"length": length, "accuracy": value, **rows[length]} for length, value in asked.items()],
            "falls_below_half": None if told.get("falls_below_half") == -1 else told.get("falls_below_half"),
            "too_long": told.get("too_long", 0), "unanswered": unanswered,
            "violations": told.get("violations"), "asked": question.asked(data, task),
            "prompts": question.prompts(data, task),
        })  # fmt: skip
        if (why := made.problem()) is not None:
            raise BadRecord(why)
    except (BadRecord, BadInput, TypeError) as error:
        raise Unreadable(f"{name(task)}: {name(str(error))}") from None
    return made


def _rows(task: str, asked: Mapping[int, Any], total: Any, least: Any, samples: _Samples) -> dict[int, dict[str, Any]]:
    """How many rows each length has, as far as that is told."""
    if total == 0:
        raise BadRecord("no reply came")
    if type(total) is not int or type(least) is not int or not 0 < least * len(asked) <= total:
        raise BadRecord("it does not say how many rows were asked")
    if total == least * len(asked):
        return {length: {"rows": least} for length in asked}
    counted = samples.of(task)
    if counted.keys() == asked.keys() and sum(counted.values()) == total:
        return {length: {"rows": count} for length, count in counted.items()}
    return {length: {"rows": least, "at_least": True} for length in asked}


def _source(data: Mapping[str, Any], task: str, file: str) -> dict[str, Any]:
    date = data.get("date")
    made = Source(
        program=PROGRAM, version=name(data.get("lm_eval_version")), file=file, task=name(task), model=_model(data),
        created=_date(date) if isinstance(date, int | float) else "",
        loaded=loaded(mapping(mapping(data.get("config")).get("model_args"))),
    )  # fmt: skip
    return schema.plain(made)


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


def _model(data: Mapping[str, Any]) -> str:
    """How the harness reaches the model, and the model: `hf/smollm2`."""
    how, called = name(data.get("model_source")), model_name(data.get("model_name"))
    return "/".join(filter(None, [how, called])) or "no name"


def _named(task: str, options: Mapping[str, Any]) -> str:
    """What the task is called here."""
    over = {"over": "generators"} if options.get("style") == "generators" else {}
    return trusted_task(spec.write(f"{_group(task)}{ENDING}", over)).name


def _framed(data: Mapping[str, Any]) -> list[str]:
    """What was put around the prompt."""
    return [
        *(["chat template"] if question.has_template(data) else []),
        *(["system instruction"] if question.has_instruction(data) else []),
    ]


def _how(task: str, options: Mapping[str, Any], shots: Any, framed: Sequence[str] = ()) -> str:
    """What differs from the plain prompt, scored by log-likelihood.

    >>> _how("s5_composition_gen", {"style": "table"}, 2), _how("s5_composition", {"seed": 1}, 0, ["chat template"])
    ('generated, table, shots=2', 'chat template, seed=1')
    """
    given = {key: value for key, value in options.items() if value is not None}
    rules = Rules.among(given | {"way": "whole", "shots": shots if type(shots) is int else 0})
    words = ["generated" if task.endswith(GENERATED) else "", *framed]
    words += [rules.changed.removeprefix("whole").removeprefix(", ")]
    words += [f"seed={seed}"] if type(seed := given.get("seed")) is int and seed else []
    words += [f"published data, labels {name(given.get('labels'))}"] if given.get("data") else []
    return ", ".join(filter(None, words))


class _Samples:
    """The samples beside a results file, which bear its date: how many rows of each length there are."""

    def __init__(self, path: Path) -> None:
        self.path, self.left = path, MOST_SAMPLES

    def of(self, task: str) -> dict[int, int]:
        """Nothing where there are none, or more than are read."""
        beside = self.path.with_name(f"samples_{task}_{self.path.stem.rpartition('_')[2]}.jsonl")
        counts: dict[int, int] = {}
        try:
            for line in self._lines(beside):
                length = mapping(mapping(loads(line)).get("doc")).get("sequence_length")
                if type(length) is not int or not 0 < length <= LONGEST_ROW:
                    return {}
                counts[length] = counts.get(length, 0) + 1
        except (OSError, Unreadable):  # then there are at least as many as the results say
            return {}
        return dict(sorted(counts.items()))

    def _lines(self, path: Path) -> Iterator[bytes]:
        with open_plain(path) as file:
            while line := file.readline(MOST_LINE + 1):
                self.left -= len(line)
                if self.left < 0 or len(line) > MOST_LINE:
                    raise Unreadable("the samples are more than are read")
                yield line
