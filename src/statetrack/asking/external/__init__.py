"""What other programs measured of our tasks: lm-evaluation-harness's results and Inspect's logs, found in a folder.

    DIR/MODEL/results_2026-11-18T21-20-45.json     lm_eval --output_path DIR
    DIR/MODEL/samples_s5_composition_....jsonl     --log_samples
    DIR/2026-11-18T21-23-26_....eval               inspect eval --log-dir DIR

They are read where they are, each time, and neither changed nor kept. A file that is of no task of ours, or that cannot
be read, is left out and named. Of runs that asked the same the latest counts; those that differ in anything that
changes what was asked or how it was scored are all there, each with what differs in its name (`question.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from statetrack.asking.external import harness, inspect_log, means, plain, runs
from statetrack.asking.external.archive import Unreadable
from statetrack.files import read_start
from statetrack.formatting import MOST_NAMED, plural
from statetrack.results.external import ExternalEpisodes, ExternalMean, ExternalScores
from statetrack.results.store import KEY

EVAL, JSON = ".eval", ".json"
MOST_DEEP, MOST_SEEN = 4, 100_000  # folders within folders, and files and folders in all, that are looked at
HEAD = 4096
OF_HARNESS = re.compile(rb'\s*\{\s*"results":')  # how these files begin, whole or not
OF_INSPECT = re.compile(rb'\s*\{\s*"version": *\d+, *\s*"status": *"\w+",\s*"eval":')


@dataclass(frozen=True)
class LeftOut:
    """A file that is not counted, and why. `foreign`: it is whole, and of no task of ours; `repeat`: it, or what `why`
    names of it, was asked again later.
    """

    file: str
    why: str
    foreign: bool = False
    repeat: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@dataclass
class External:
    """What was found."""

    scores: list[ExternalScores] = field(default_factory=list)
    means: list[ExternalMean] = field(default_factory=list)
    episodes: list[ExternalEpisodes] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.scores or self.episodes)

    @property
    def files(self) -> list[str]:
        """Those that something was taken from."""
        return list(dict.fromkeys(each.file for each in runs.sources(self.scores, self.episodes)))

    def foreign(self, known: Iterable[str] = ()) -> list[str]:
        """The files of no task of ours: those, and of the ones `known` to be no cells those that nothing is said of."""
        told = {*self.files, *(each.file for each in self.left_out if not each.foreign)}
        return sorted({*known, *(each.file for each in self.left_out if each.foreign)} - told)

    @property
    def notices(self) -> list[str]:
        """What is said of logs of our tasks that are not counted: one line for each reason."""
        told = [each for each in self.left_out if not each.foreign]
        wrong, again = ([str(each) for each in told if each.repeat is repeat] for repeat in (False, True))
        made = [f"{plural(len(wrong), 'log', 'is', 'are')} left out: {_listed(wrong)}"] if wrong else []
        return made + ([f"of what was asked the same the latest counts, and not {_listed(again)}"] if again else [])


def _listed(named: list[str]) -> str:
    more = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
    return f"{'; '.join(named[:MOST_NAMED])}{more}"


def read(place: Path) -> External:
    """What a folder holds, or a single file."""
    found = External()
    for path in [place] if place.is_file() else _candidates(place):
        file = path.name if path == place else str(path.relative_to(place))
        try:
            _take(found, path, plain.name(file))
        except (harness.NotOurs, inspect_log.NotOurs) as error:
            found.left_out.append(LeftOut(plain.name(file), str(error), foreign=True))
        except Unreadable as error:
            found.left_out.append(LeftOut(plain.name(file), str(error)))
    runs.tell_apart(found.scores, found.episodes)
    runs.name_differences(found.scores)
    found.left_out += [LeftOut(*each, repeat=True) for each in runs.drop_repeats(found.scores, found.episodes)]
    told = list(means.named(found.means, found.scores))
    found.means = [each for each in told if isinstance(each, ExternalMean)]
    found.left_out += [LeftOut(*each, repeat=True) for each in told if not isinstance(each, ExternalMean)]
    return found


def _take(found: External, path: Path, file: str) -> None:
    if path.suffix == EVAL:
        found.episodes.append(inspect_log.read_eval(path, file))
        return
    data = plain.read(path)
    if harness.is_results(data):
        told = harness.read(data, path, file)
        found.scores += told.scores
        found.means += told.means
        found.left_out += [LeftOut(file, why) for why in told.wrong]
    elif isinstance(data, dict) and "eval" in data:
        found.episodes.append(inspect_log.read_json(data, file))
    else:
        raise harness.NotOurs("no results of a harness")


def _candidates(folder: Path) -> Iterator[Path]:
    """The files that look like logs, in the order of their names. Links to folders are not followed."""
    seen = 0
    for here, folders, names in os.walk(folder):
        deep = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(each for each in folders if not each.startswith(".")) if deep < MOST_DEEP else []
        for each in sorted(names):
            seen += 1
            if seen > MOST_SEEN:
                return
            path = Path(here, each)
            if path.suffix == EVAL or (path.suffix == JSON and not KEY.fullmatch(path.stem) and _is_log(path)):
                yield path


def _is_log(path: Path) -> bool:
    with suppress(OSError):
        head = read_start(path, HEAD)
        return bool(OF_HARNESS.match(head) or OF_INSPECT.match(head))
    return False
