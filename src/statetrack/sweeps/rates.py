"""The learning rate of each model of a sweep, as a pilot chose it: `rates` in a block, or `--rates`.

    rates: pilot                              # --rates has to say them
    rates: {gru: 3e-3, "deltanet-neg[heads=8]": 1e-3}

A model is called what it is at all its widths, so that a rate holds for a model of one size on every task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statetrack import plain_yaml
from statetrack.errors import BadInput, shortened
from statetrack.models.catalogue import without_width

RATES = "rates"
PILOT = "pilot"
FILES = (".yaml", ".yml")
Given = str | Path | float | Sequence[float] | Mapping[str, Any]


@dataclass(frozen=True)
class Rates:
    """Those of each model by its name, or the same for all. What is wrong with a rate itself, training says."""

    by_model: Mapping[str, Any] = field(default_factory=dict)
    of_all: Any = None

    @classmethod
    def read(cls, given: Any) -> Rates:
        """What a block of a sweep holds.

        >>> Rates.read({"GRU[hidden=64]": "1e-3"}).of("gru[hidden=128]")
        0.001
        """
        if given == PILOT:
            raise BadInput(
                "the rates are those of a pilot: give --rates, a file that `statetrack rates` has written, or a number"
            )
        if not isinstance(given, dict) or not given:
            raise BadInput(f"rates {shortened(given)} should be 'pilot', or name a rate for each model: {{gru: 3e-3}}")
        named: dict[str, Any] = {}
        for text, rate in given.items():
            name = without_width(str(text))
            if name in named:
                raise BadInput(f"rates name {name!r} twice; widths of a model share a rate")
            named[name] = plain_yaml.numbers_in(rate)
        return cls(named)

    @classmethod
    def asked(cls, given: Given) -> Rates:
        """What a command or a call was given: a number, several, a mapping, or a file with a mapping `rates`.

        >>> Rates.asked("1e-3,3e-3").of("gru")
        [0.001, 0.003]
        """
        if isinstance(given, Mapping):
            return cls.read(dict(given))
        if isinstance(given, str | Path) and Path(given).suffix in FILES:
            return cls.from_file(Path(given))
        if isinstance(given, str):
            try:
                return cls(of_all=[float(part) for part in given.split(",")])
            except ValueError:
                raise BadInput(
                    f"rates {shortened(given)} should be a number, several with commas, or a .yaml file"
                ) from None
        return cls(of_all=list(given) if isinstance(given, Sequence) else given)

    @classmethod
    def from_file(cls, path: Path) -> Rates:
        try:
            held = plain_yaml.read(plain_yaml.content(path), path.name)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
        if not isinstance(held, dict) or RATES not in held:
            raise BadInput(f"{path} has no `rates`; `statetrack rates DIR --out FILE.yaml` writes such a file")
        try:
            return cls.read(held[RATES])
        except BadInput as error:
            raise BadInput(f"{path.name}: {error}") from None

    def of(self, subject: str) -> Any:
        if self.of_all is not None:
            return self.of_all
        name = without_width(subject)
        if name not in self.by_model:
            raise BadInput(
                f"the rates name none for {name!r}; a pilot chooses one (`statetrack rates`), or --rates does"
            )
        return self.by_model[name]
