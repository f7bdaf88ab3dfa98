"""What `--metadata` can say to our tasks.

    --metadata '{"per_length": 100, "seed": 1}'          more rows, other rows
    --metadata '{"lengths": "5,50,500"}'                 rows of these lengths alone, and a table of as many lines
    --metadata '{"style": "table", "relabel": 7}'        how permutations are written
    --metadata '{"data": "PATH"}'                        a local copy of the published data

The harness mixes the model's arguments into the same dictionary, so keys that are not ours are left alone, unless they
look like a misspelling.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from statetrack.asking import Rules
from statetrack.errors import BadInput, unknown
from statetrack.integrations.lm_eval.definitions import LENGTHS

LABELS = ("published", "right")
GENERATION_ONLY = ("regime", "parser", "room")
NUMBERS = ("per_length", "seed", "relabel", "room")
SLIP = 0.8  # how alike two keys must be for one to be taken for a misspelling of the other


@dataclass(frozen=True)
class HarnessOptions:
    """The options of a run, with their defaults.

    per_length  rows for each of the lengths 5, 10, ..., 500
    lengths     those of the 100 that are asked and reported, as "5,50,500" or a list; all where none is given
    seed        which rows
    style       ids, table, cycles, generators
    relabel     a seed that shuffles the IDs
    data        a folder or file with published rows, instead of generated ones
    labels      with data: the labels as published, or computed anew as the prompt says (right)
    regime, parser, room   of the answers, where they are generated (see `statetrack.asking.Rules`)
    """

    per_length: int = 20
    lengths: str | int | Sequence[int] | None = None
    seed: int = 0
    style: str = Rules.style
    relabel: int | None = Rules.relabel
    data: str | None = None
    labels: str = "published"
    regime: str = Rules.regime
    parser: str = Rules.parser
    room: int = Rules.room

    @classmethod
    def read(cls, metadata: Mapping[str, Any], generates: bool) -> HarnessOptions:
        """The options in the harness's metadata.

        >>> HarnessOptions.read({"pretrained": "gpt2", "seed": 3}, generates=False).seed
        3
        """
        names = [field.name for field in fields(cls)]
        for key in metadata:
            if key not in names and difflib.get_close_matches(key, names, n=1, cutoff=SLIP):
                raise unknown("option in --metadata", key, names)
        given = {key: metadata[key] for key in names if key in metadata}
        options = cls(**given)
        options._check(generates)
        return options

    def _check(self, generates: bool) -> None:
        plain = HarnessOptions()
        for name in NUMBERS:
            value, least = getattr(self, name), int(name == "per_length")
            empty = name == "relabel" and value is None
            if not empty and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise BadInput(f"{name}={value!r} in --metadata should be a whole number, {least} or more")
        self.asked  # noqa: B018 - lengths that there are not are refused now
        if self.labels not in LABELS:
            raise unknown("labels", str(self.labels), LABELS)
        if not generates and any(getattr(self, name) != getattr(plain, name) for name in GENERATION_ONLY):
            raise BadInput(f"{', '.join(GENERATION_ONLY)} belong to tasks that generate: *_composition_gen")
        if self.data is None and self.labels != plain.labels:
            raise BadInput("labels belong to published data: give data as well")
        self.rules(0)
        if self.data is not None and not self.plain:
            raise BadInput("published rows have IDs of their own: style, relabel and thinking need generated ones")

    @property
    def asked(self) -> tuple[int, ...]:
        """The lengths of the rows, in their order.

        >>> HarnessOptions(lengths="500, 5").asked, len(HarnessOptions().asked)
        ((5, 500), 100)
        """
        if self.lengths is None:
            return LENGTHS
        given = self.lengths.split(",") if isinstance(self.lengths, str) else self.lengths
        found = {str(each).strip() for each in (given if isinstance(given, list | tuple) else [given])}
        if not found or not found <= {str(length) for length in LENGTHS}:
            raise BadInput(f"lengths={self.lengths!r} in --metadata should be some of 5, 10, ..., {LENGTHS[-1]}")
        return tuple(sorted(map(int, found)))

    @property
    def plain(self) -> bool:
        """Whether rows are asked in the permutation benchmark's own words."""
        return self.style == "ids" and self.relabel is None and self.regime == "instant"

    def rules(self, shots: int) -> Rules:
        """The rules of the question, with this many worked examples."""
        return Rules.among(vars(self) | {"way": "whole", "shots": shots})
