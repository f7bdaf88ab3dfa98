"""A sweep as a short YAML file: blocks, each the product of its tasks, subjects, lengths and seeds.

    name: parity
    about: which forms of E88 keep parity, and how far
    protocol: curriculum              # what stands here holds for every block that does not say otherwise
    seeds: 3                          # 0, 1, 2; or a list
    blocks:
      - tasks: [txc]
        subjects: [e88-gain-1l-small, e88-published-1l-small]
        lengths: [16, 64]
        settings: {rates: [1e-3, 3e-3], stream: 65536}
      - tasks: [txc]
        subjects: [mlp]
        lengths: [16]
        seeds: [0]
        note: one seed
        resources: {cpus: 1, gpus: 0.25}

A file without `blocks` is one block. In Python a sweep is a list of such blocks. A cell that stands in two blocks is
one cell, evaluated as both ask for. Whatever cannot be run is refused before anything runs, with the line of the file.

`match: {parameters: 100k}` chooses the width of a block's models, `rates: {gru: 3e-3}` a learning rate for each.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from statetrack import plain_yaml, trust
from statetrack.errors import BadInput, shortened, unknown
from statetrack.results.cell import ASK, MATCH, TRAIN
from statetrack.results.kinds import WrongPart
from statetrack.results.plans import PlannedCell, Sweep, united
from statetrack.sweeps.kinds import KINDS, code_named, load, module_of
from statetrack.sweeps.rates import RATES, Given, Rates

SHIPPED = Path(__file__).parent / "shipped"
PRODUCT = ("tasks", "subjects", "lengths", "seeds")
KEYS = (*PRODUCT, "protocol", "settings", RATES, MATCH, "note", "resources")
MOST_NAME = 200  # bytes: that of a file, with its ending
MOST_CELLS = 100_000  # of one sweep
MODEL = "{model}"  # stands for each model that the caller names
MERGE = "tag:yaml.org,2002:merge"
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Changes:
    """What a caller puts in place of what stands in a file: other models for all that it trains, and their rates."""

    subjects: tuple[str, ...] = ()
    rates: Rates | None = None

    @classmethod
    def given(cls, subjects: Sequence[str] | None, rates: Given | None) -> Changes:
        return cls(tuple(subjects or ()), None if rates is None else Rates.asked(rates))

    def of_subjects(self, texts: list[str], kinds: Mapping[str, str]) -> list[str]:
        """Those of a block. A language model that is asked stays as it is."""
        if not self.subjects:
            return texts
        asked = [text for text in texts if module_of(text, kinds) != kinds[TRAIN]]
        return [*asked, *(self.subjects if len(asked) < len(texts) else ())]


AS_IT_IS = Changes()


@dataclass(frozen=True)
class Document:
    """Plain data and where each part of it stands."""

    where: str
    data: Any
    lines: Mapping[Place, int]

    def at(self, place: Place) -> str:
        """The place in words: the line of a file, or the block of a Python list."""
        while place and place not in self.lines:
            place = place[:-1]
        if place in self.lines:
            return f"{self.where}, line {self.lines[place]}"
        return self.where

    def wrong(self, place: Place, message: object) -> BadInput:
        return BadInput(f"{self.at(place)}: {message}")


def shipped() -> dict[str, Path]:
    """The sweeps that come with statetrack."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read(
    name_or_path: str | Path, models: Sequence[str] = (), kinds: Mapping[str, str] = KINDS, trust_code: bool = False,
    subjects: Sequence[str] | None = None, rates: Given | None = None,
) -> Sweep:  # fmt: skip
    """A shipped sweep by name, or a sweep from a YAML file. `models` take the place of {model} in its subjects;
    `subjects` that of all models that it trains, and then its cells come beside those that a folder has of this sweep;
    `rates` that of the rates in the file.

    Code that the file names, `mine.py:Mine`, is run only where `statetrack.trust` allows it, or with `trust_code`.
    """
    sweeps = shipped()
    path = Path(name_or_path)
    if str(name_or_path).lower() in sweeps:
        path = sweeps[str(name_or_path).lower()]
    elif path.suffix not in (".yaml", ".yml"):
        raise unknown("sweep or .yaml file", str(name_or_path), sweeps)
    try:
        text = plain_yaml.content(path).decode()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if models and MODEL not in text:
        raise BadInput(f"{path.name} has no place for a language model; leave --model out")
    with trust.trusting(*models, everything=trust_code):
        changes = Changes.given(subjects, rates)
        whole = expand(_parse(text, path.name), path.stem, models, kinds, changes)
    return replace(whole, shipped=path in sweeps.values(), beside=bool(changes.subjects))


def from_blocks(name: str, blocks: Sequence[Mapping[str, Any]], kinds: Mapping[str, str] = KINDS) -> Sweep:
    """A sweep from a Python list of blocks. Code that they name is named by the caller, and may be run."""
    data = [dict(block) for block in blocks]
    with trust.trusting(*(address for block in data for address in code_named(block))):
        return expand(Document(f"sweep {name}", {"blocks": data}, {}), name, (), kinds)


def about(path: Path) -> str:
    """What a sweep's file says about itself, in one line."""
    data = _parse(path.read_text(), path.name).data
    return str(data.get("about", "")) if isinstance(data, dict) else ""


def expand(
    document: Document, name: str, models: Sequence[str] = (), kinds: Mapping[str, str] = KINDS,
    changes: Changes = AS_IT_IS,
) -> Sweep:  # fmt: skip
    """Every cell of the document, in the order of the file, each once."""
    data = document.data
    if not isinstance(data, dict):
        raise document.wrong((), "a sweep is a mapping with tasks, subjects and lengths, or with blocks of them")
    _known_keys(document, (), data, ("name", "about", "blocks", *KEYS))
    common = {key: data[key] for key in KEYS if key in data}
    blocks = data.get("blocks", [{}])
    if not isinstance(blocks, list) or not blocks:
        raise document.wrong(("blocks",), "blocks should be a list of one or more blocks")
    entries: list[PlannedCell] = []
    for number, block in enumerate(blocks):
        place: Place = ("blocks", number) if "blocks" in data else ()
        if not isinstance(block, dict):
            raise document.wrong(place, f"a block is a mapping with {', '.join(KEYS)}")
        _known_keys(document, place, block, KEYS if "blocks" in data else ("name", "about", *KEYS))
        entries += _block(document, place, common, block, models, kinds, changes)
        if len(entries) > MOST_CELLS:
            raise document.wrong(place, f"more than {MOST_CELLS:,} cells")
    named = str(data.get("name", name))
    if "/" in named or named.startswith(".") or not named.isprintable() or not 0 < len(named.encode()) <= MOST_NAME:
        raise document.wrong(("name",), f"name {shortened(named)} should be usable as the name of a file")
    return Sweep(named, str(data.get("about", "")), united(entries))


def _block(
    document: Document, place: Place, common: dict[str, Any], block: dict[str, Any], models: Sequence[str],
    kinds: Mapping[str, str], changes: Changes,
) -> Iterator[PlannedCell]:  # fmt: skip
    whole = common | block

    def at(key: str, *further: int) -> Place:
        return (*place, key, *further) if key in block else (key, *further)

    for key in PRODUCT:
        if key not in whole and key != "seeds":
            raise document.wrong(place, f"a block needs {key}")
    tasks = _texts(document, at("tasks"), whole["tasks"])
    subjects = changes.of_subjects(_texts(document, at("subjects"), whole["subjects"]), kinds)
    rates = changes.rates or _rates(document, at(RATES), whole)
    lengths = _numbers(document, at("lengths"), whole["lengths"], 1)
    seeds = _seeds(document, at("seeds"), whole.get("seeds", 1))
    if (count := len(tasks) * len(subjects) * len(lengths) * len(seeds)) > MOST_CELLS:
        raise document.wrong(place, f"{count:,} cells: a sweep has at most {MOST_CELLS:,}")
    settings, resources = whole.get("settings") or {}, whole.get("resources") or {}
    for key, value in (("settings", settings), ("resources", resources)):
        if not isinstance(value, dict):
            raise document.wrong(at(key), f"{key} should be a mapping, such as {{batch: 64}}")
    _check_settings(document, at("settings"), settings)
    _check_resources(document, at("resources"), resources)
    if MATCH in settings:
        raise document.wrong(at("settings"), f"{MATCH} stands beside settings, and not in them")
    settings = settings | ({MATCH: whole[MATCH]} if MATCH in whole else {})
    protocol = whole.get("protocol", "curriculum")
    if not isinstance(protocol, str):
        raise document.wrong(at("protocol"), f"protocol {shortened(protocol)} should be the name of a protocol")
    for (i, task), (j, subject), (k, length) in itertools.product(
        enumerate(tasks), enumerate(subjects), enumerate(lengths)
    ):
        for named in _with_models(document, at("subjects", j), subject, models):
            for seed in seeds:
                module = module_of(named, kinds)
                try:
                    kind = load(module)
                    own = {RATES: rates.of(named)} if rates and module == kinds[TRAIN] else {}
                    wanted = kind.describe(task, named, length, seed, protocol, settings | own)
                except BadInput as error:
                    chosen = {"tasks": (i,), "subjects": (j,), "lengths": (k,)}
                    part = error.part if isinstance(error, WrongPart) else "subjects"
                    raise document.wrong(at(part, *chosen.get(part, ())), error) from error
                note, cost = str(whole.get("note", "")), kind.cost(wanted)
                yield PlannedCell(wanted.cell, module, cost, note, dict(resources), wanted.streams, wanted.words)


def _rates(document: Document, place: Place, block: Mapping[str, Any]) -> Rates | None:
    """A rate for each model, where the block has them."""
    if RATES not in block:
        return None
    if RATES in (block.get("settings") or {}):
        raise document.wrong(place, "rates stand here and in settings; leave one of them out")
    try:
        return Rates.read(block[RATES])
    except BadInput as error:
        raise document.wrong(place, error) from error


def _with_models(document: Document, place: Place, subject: str, models: Sequence[str]) -> list[str]:
    if MODEL not in subject:
        if not subject.removeprefix(f"{ASK}:").strip():
            raise document.wrong(place, f"{subject!r} names no model")
        return [subject]
    if not models:
        raise document.wrong(place, f"{subject!r} needs a model: --model NAME, once for each model")
    return [subject.replace(MODEL, model) for model in models]


def _known_keys(document: Document, place: Place, mapping: dict[Any, Any], allowed: Sequence[str]) -> None:
    for key in mapping:
        if key not in allowed:
            raise document.wrong((*place, key), unknown("key", str(key), allowed))


def _texts(document: Document, place: Place, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise document.wrong(place, f"{place[-1]} should be a list of names")
    for number, text in enumerate(value):
        if not isinstance(text, str):
            raise document.wrong((*place, number), f"{shortened(text)} in {place[-1]} should be text")
    return value


def _numbers(document: Document, place: Place, value: Any, least: int) -> list[int]:
    value = [value] if isinstance(value, int) else value
    if not isinstance(value, list) or not value:
        raise document.wrong(place, f"{place[-1]} should be a list of whole numbers")
    for number, given in enumerate(value):
        if not isinstance(given, int) or isinstance(given, bool) or given < least:
            raise document.wrong(
                (*place, number), f"{shortened(given)} in {place[-1]} should be a whole number of at least {least}"
            )
    return value


def _seeds(document: Document, place: Place, value: Any) -> list[int]:
    """How many, counted from 0, or which."""
    if isinstance(value, list):
        return _numbers(document, place, value, 0)
    (count,) = _numbers(document, place, value, 1)
    if count > MOST_CELLS:
        raise document.wrong(place, f"{shortened(count)} seeds: a sweep has at most {MOST_CELLS:,} cells")
    return list(range(count))


def _check_settings(document: Document, place: Place, settings: dict[Any, Any]) -> None:
    for key, value in settings.items():
        if any(isinstance(part, list | dict) for part in (value if isinstance(value, list) else [value])):
            raise document.wrong(
                (*place, key), f"{key}={shortened(value)} should be a number, a word or a list of them"
            )


def _check_resources(document: Document, place: Place, resources: dict[Any, Any]) -> None:
    for key, value in resources.items():
        if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise document.wrong(
                (*place, key), f"resources: {key}={shortened(value, quoted=False)} should be a name and a number"
            )


def _parse(text: str | bytes, where: str) -> Document:
    """YAML with the line of every part."""
    lines: dict[Place, int] = {}
    root = plain_yaml.tree(text, where)
    loader = yaml.SafeLoader("")
    try:
        return Document(where, _plain(loader, root, where, (), lines) if root is not None else None, lines)
    finally:
        loader.dispose()


def _plain(loader: yaml.SafeLoader, node: yaml.Node, where: str, place: Place, lines: dict[Place, int]) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        _no_key_twice(loader, node, where)
        try:
            loader.flatten_mapping(node)
        except yaml.YAMLError as error:
            raise BadInput(f"{plain_yaml.at(node, where)}: {getattr(error, 'problem', error)}") from None
        names = [str(plain_yaml.construct(loader, key, where)) for key, _ in node.value]
        return {  # what is merged by << comes first, so that what stands here counts
            name: _plain(loader, value, where, (*place, name), lines) for name, (_, value) in zip(names, node.value)
        }
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, value, where, (*place, number), lines) for number, value in enumerate(node.value)]
    return plain_yaml.construct(loader, node, where)


def _no_key_twice(loader: yaml.SafeLoader, node: yaml.MappingNode, where: str) -> None:
    names = [str(plain_yaml.construct(loader, key, where)) for key, _ in node.value if key.tag != MERGE]
    for name, count in Counter(names).items():
        if count > 1:
            raise BadInput(f"{name!r} appears twice in one mapping (line {node.start_mark.line + 1})")
