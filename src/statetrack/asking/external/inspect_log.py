"""Inspect's logs of our tasks, read without Inspect: an .eval file, or the same as one JSON file.

The score of a sample holds the record of its episode, as `statetrack ask` keeps it, and the sample's metadata say which
task and rules it was: together a record like those of a folder. What was said stays in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from statetrack import spec
from statetrack.asking.episode import DONE, FAILURES, FAULTS, INTERRUPTIONS, LETTERS, RUNNING
from statetrack.asking.external import archive
from statetrack.asking.external.archive import Archive, Unreadable
from statetrack.asking.external.plain import digits, fields_before, loads, mapping, model_name, name
from statetrack.asking.external.runs import loaded
from statetrack.asking.rules import Rules
from statetrack.asking.solvers import solver as who
from statetrack.asking.tokens import NO_TOKENS
from statetrack.errors import BadInput
from statetrack.results import schema
from statetrack.results.cell import ASK, Cell
from statetrack.results.external import ExternalEpisodes, Source
from statetrack.results.records import FAILED, AskedRecord, EpisodeRecord, Record, no_result
from statetrack.results.schema import BadRecord

PROGRAM = "Inspect"
OURS = "statetrack/"  # before the names of our tasks and solvers
HEADER, START = "header.json", "_journal/start.json"  # the latter of a log that is not finished
SAMPLE = re.compile(r"samples/[^/]+\.json")
STORE = "store"  # what comes before it in a sample is all that is needed
MOST_INPUTS = 10**6  # in an episode
ENDS = (DONE, *FAILURES, *INTERRUPTIONS, RUNNING)
MODEL_SETTINGS = ("temperature", "top_p", "top_k", "seed", "reasoning_effort", "reasoning_tokens")
ERROR = "the sample ended in an error"


class NotOurs(Unreadable):
    """A whole log of something that is no task of statetrack."""


def read_eval(path: Path, file: str) -> ExternalEpisodes:
    """The episodes in an .eval file; `file` is what it is called."""
    with archive.opened(path) as packed:
        first = next((each for each in (HEADER, START) if each in packed.entries), None)
        if first is None:
            raise Unreadable(archive.CUT)
        header = mapping(loads(packed.read(first)))
        of = _ours(header)
        names = sorted(each for each in packed.entries if SAMPLE.fullmatch(each))
        return _episodes(header, of, file, (_sample(packed, each) for each in names))


def read_json(header: Mapping[str, Any], file: str) -> ExternalEpisodes:
    """The episodes in a log that is one JSON file."""
    of, samples = _ours(header), header.get("samples")
    return _episodes(header, of, file, map(mapping, samples if isinstance(samples, list) else []))


def _ours(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the log says of the evaluation, if it is one of ours."""
    of = mapping(header.get("eval"))
    task = of.get("task_registry_name") or of.get("task")
    if not isinstance(task, str) or not task.startswith(OURS):
        raise NotOurs(f"Inspect's log of {name(task) or 'no task'}, which is no task of statetrack")
    return of


def _sample(packed: Archive, entry: str) -> Mapping[str, Any]:
    """A sample, as far as it has to be read: its events, which follow, are most of it."""
    for data, _ in packed.beginnings(entry):
        told = fields_before(STORE, data)
        if told is not None:
            return told
    raise Unreadable(archive.CUT)


def _episodes(
    header: Mapping[str, Any], of: Mapping[str, Any], file: str, samples: Iterator[Mapping[str, Any]]
) -> ExternalEpisodes:
    plan = mapping(header.get("plan"))
    source = Source(
        program=PROGRAM, version=name(mapping(of.get("packages")).get("inspect_ai")), file=file,
        task=name(of.get("task_registry_name") or of.get("task")), model=_model(of, plan),
        created=name(of.get("created")), loaded=loaded(mapping(of.get("model_args"))),
    )  # fmt: skip
    subject = _subject(source.model, plan)
    found, repeats = [], 0
    for sample in samples:
        if sample.get("epoch", 1) == 1:
            found.append(_record(sample, subject))
        else:
            repeats += 1
    if not found:
        raise Unreadable("it holds no sample")
    return ExternalEpisodes(source=source, records=tuple(found), repeats=repeats)


def _model(of: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """The model, with those of its settings that change what it says: its own, and those of the run."""
    called = model_name(of.get("model"))
    given = {**mapping(of.get("model_generate_config")), **mapping(plan.get("config"))}
    settings = {key: name(str(given[key])) for key in MODEL_SETTINGS if isinstance(given.get(key), int | float | str)}
    if isinstance(told := given.get("system_message"), str) and told:
        settings["system_message"] = digits(told)
    return spec.write(called, settings) if settings else called


def _subject(model: str, plan: Mapping[str, Any]) -> str:
    """Model and solver in one, as `statetrack ask` files them."""
    steps = plan.get("steps")
    told = [mapping(step) for step in steps] if isinstance(steps, list) else []
    step = next((each for each in told if str(each.get("solver")).startswith(OURS)), {})
    solver, params = name(step.get("solver")).removeprefix(OURS).replace("_", "-"), mapping(step.get("params"))
    if solver == "explicit":
        role = name(params.get("role")) or "assistant"
        solver = f"explicit{'' if role == 'assistant' else f'-{role}'}:{name(params.get('inner')) or 'implicit'}"
    elif numbers := [value for key in ("seed", "width") if type(value := params.get(key)) is int]:
        solver = f"{solver}-{numbers[0]}"
    called = _as_here(solver or "implicit")
    return f"{model} {called}" if _has_model(model) else called


def _as_here(solver: str) -> str:
    """The solver as `statetrack ask` calls it; one that it does not know keeps its name.

    >>> _as_here("random-0"), _as_here("window-3"), _as_here("mine")
    ('random', 'window-3', 'mine')
    """
    try:
        return who(solver).name
    except BadInput:
        return solver


def _has_model(model: str) -> bool:
    return bool(model) and model.partition("/")[0] != "none"


def _record(sample: Mapping[str, Any], subject: str) -> Record:
    """The record of a sample: that of its episode, or that it has none."""
    told = mapping(sample.get("metadata"))
    scores = [mapping(mapping(each).get("metadata")) for each in mapping(sample.get("scores")).values()]
    notes = next((each for each in scores if "record" in each), {})
    try:
        episode = _checked(notes["record"]) if notes else None
        length = told.get("length") or (episode.asked if episode else 0)
        if type(length) is not int or not 0 <= length <= MOST_INPUTS or type(told.get("sample")) is not int:
            raise BadRecord("a sample without its length or number")
        rules = Rules.of_protocol(mapping(told.get("rules")))
        cell = Cell(_task(told.get("task")), subject, length, told["sample"], {"name": ASK, **rules.to_dict()})
    except (BadRecord, BadInput, TypeError, ValueError) as error:
        raise Unreadable(f"a sample of it is not one of this version: {name(str(error))}") from None
    if episode is None:
        return no_result(cell, FAILED, ERROR)
    if episode.ended in (RUNNING, *FAULTS):
        return AskedRecord(cell=cell, status=FAILED, reason=episode.ended, episode=episode)
    return AskedRecord(cell=cell, episode=episode)


def _task(value: Any) -> str:
    task = name(value)
    if not task or task != value:
        raise BadRecord("a task without a name")
    spec.parse(task)
    return task


def _checked(data: Any) -> EpisodeRecord:
    """An episode whose parts belong together, without what was said."""
    episode = schema.read(EpisodeRecord, data)
    asked = len(episode.outcomes)
    if episode.ended not in ENDS or set(episode.outcomes) - set(LETTERS.values()) or set(episode.changes) - set("-01"):
        raise BadRecord("an episode with letters that mean nothing")
    if not asked == len(episode.positions) == len(episode.changes) or not 0 <= episode.max_length <= asked:
        raise BadRecord("an episode whose parts are not of one length")
    if not asked <= episode.asked <= MOST_INPUTS or not all(0 <= at <= MOST_INPUTS for at in episode.positions):
        raise BadRecord("an episode of more inputs than there can be")
    if not episode.tokens.keys() <= vars(NO_TOKENS).keys():
        raise BadRecord("an episode with tokens of no kind")
    if (why := episode.problem()) is not None:
        raise BadRecord(why)
    return replace(
        episode, replies=[""] * len(episode.replies), system="", prompts=None, shown="", detail="", logprobs=None,
        prompt_sha256=name(episode.prompt_sha256), effort=name(episode.effort),
    )  # fmt: skip
