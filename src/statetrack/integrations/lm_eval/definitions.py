"""The YAML files that make the harness know our tasks: all of them come from here, none is written by hand.

A task's file names the class; everything else is in the class. A selector is a group of the harness, which takes the
means over its members; `permutation_groups` is made of the other two, so that one run gives all three means.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from statetrack.files import together
from statetrack.tasks.groups import catalogue, selector
from statetrack.tasks.groups.names import MATCHED

VERSION = 2.0  # of prompts, data and metrics together; 1.0 is the benchmark as first described
LENGTHS = tuple(range(5, 501, 5))
FOLDER = "lm_eval/tasks/state_tracking"  # where a wheel puts the files, beside the harness's own
DISTRIBUTION = "statetrack-lm-eval"  # of lm_eval_tasks/, which the extra lm-eval brings
LOGGER = "lm_eval.tasks.statetrack"  # below the harness's own, which prints and filters what is logged
MATCHED_TAG = "matched_order_groups"
KINDS = {"": "Composition", "_gen": "CompositionGen"}
WHOLE, PARTS = "permutation_groups", ("tc0_groups", "nc1_groups")


def files() -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    for kind, class_name in KINDS.items():
        for group in (*catalogue(), *MATCHED):
            yield f"{group}{kind}.yaml", _task(group, kind, class_name)
        for part in PARTS:
            yield f"{part}{kind}.yaml", _selector(part + kind, [task_name(group, kind) for group in selector(part)])
        yield f"{WHOLE}{kind}.yaml", _selector(WHOLE + kind, [part + kind for part in PARTS])


def task_name(group: str, kind: str = "") -> str:
    """The harness's name for a group's task.

    >>> task_name("s5"), task_name("s5", "_gen")
    ('s5_composition', 's5_composition_gen')
    """
    return f"{group}_composition{kind}"


def group_of(task: str) -> str:
    """The group of a task of the harness.

    >>> group_of("psl2_7_composition_gen")
    'psl2_7'
    """
    return task.removesuffix("_gen").removesuffix("_composition")


def _task(group: str, kind: str, class_name: str) -> str:
    fields: dict[str, Any] = {"task": task_name(group, kind)}
    if group in ("a5", *MATCHED):
        fields["tag"] = MATCHED_TAG + kind
    fields["metadata"] = {"version": VERSION}
    return _written(fields) + f"class: !function {__package__}.task.{class_name}\n"


def _selector(name: str, members: Sequence[str]) -> str:
    means = [
        # Every group counts once. No filter is named: the harness would warn of each length that nobody asked for.
        {"metric": metric, "aggregation": "mean", "weight_by_size": False}
        for metric in ("acc", "chance", *map(str, LENGTHS))
    ]
    return _written(
        {"group": name, "task": list(members), "aggregate_metric_list": means, "metadata": {"version": VERSION}}
    )


def _written(fields: dict[str, Any]) -> str:
    """One line per field, its value in JSON, which is YAML: building the package needs no YAML library."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())


def folder() -> Path:
    """Where the files lie: where pip put them, beside the harness's own, or else in a folder that is made now."""
    try:
        installed = Path(str(distribution(DISTRIBUTION).locate_file(FOLDER)))
    except PackageNotFoundError:
        return _made()
    return installed.resolve() if installed.is_dir() else _made()


def _made() -> Path:
    """A folder of the user's cache whose name says what is in it, so that another version has another."""
    made = dict(files())
    digest = hashlib.sha256(json.dumps(made).encode()).hexdigest()[:12]
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "statetrack", f"lm_eval-{digest}")
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with together(place) as (part,):
            part.mkdir()
            for name, text in made.items():
                (part / name).write_text(text, encoding="utf-8")
    return place
