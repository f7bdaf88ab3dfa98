"""The inputs of `tests.fuzz`: command lines, sweep files, automaton files, folders of results, all a little wrong."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

LONG = "9" * 400
WORDS = (
    "", " ", "²", "-1", "0", "1", "2", "1e309", "nan", "-inf", LONG, LONG * 13, "../..", "/dev/null", "/dev/zero", ".",
    "/", "[", "]", "[[", "{", "}", "a=b", "=", "txc[p=", "fsm[k=5,k=6]", "fsm[k=²]", f"fsm[k={LONG}]", "\U0001f99c",
    "\x1b[2J", "a" * 5000, "--", "-", "%s", "${HOME}", "true", "null", "&a [*a]", "!!int foo", "2024-13-45",
    "automaton[file=/dev/zero]", "automaton[file=x.yaml]", "automaton[file=none.yaml]", "regex[pattern=((((]",
    "regex[pattern=(a|b)*]", "regex[pattern=\"(ab|,)*\"]", "s5xs5", "<(0 1)>", "<(0 1),(2 3)", "<>", "z999999999",
    "s3", "a4xz5", "txc", "TXC", "parity", "rtc", "fsm", "dyck[depth=3]", "cups[n=4,weights=[1,1,2]]", "boxes",
    "track_the_stat.median", "stream.max", "mlp", "gru[hidden=8]", "gru[hidden=-1]", "gru[hidden=[1]]", "mamba2-0l",
    "e88-gain-1l-small", f"mamba2-{LONG}l", "none.py:Mine", "os:system", "torch.hub:load[repo_or_dir=x]", ":", "a:",
    ":a", "a..b:c", "x.yaml", "hf:", "openai:", "oracle", "random", "explicit:oracle", "window-0", "demo", "all",
    "nc1_groups", "x" * 300,
)  # fmt: skip
WRONG = ("²", "nan", "-1", "", LONG, LONG * 13, "1e5", "[", "0x10", "1_000_000_000_000_000_000", "--json")
SMALL = ["--length", "4", "--set", "most_checks=1", "--set", "check_every=2", "--set", "polish=1", "--set", "batch=2"]
LINES: dict[str, list[str]] = {
    "list": ["tasks"], "show": ["txc"], "floors": ["fsm", "--length", "8"], "predict": ["mamba2-4l", "txc"],
    "reflections": ["s3"], "documents": [], "data": ["txc", "--length", "8", "--count", "4", "--out", "x.jsonl"],
    "audit": ["x.jsonl"], "train": ["txc", "mlp[hidden=4]"], "play": ["txc"], "lm-eval-path": [],
    "ask": ["txc", "--solver", "oracle", "--samples", "2", "--length", "4"],
    "sweep": ["x.yaml", "--out", "o", "--dry-run"],
}  # fmt: skip
OF_FOLDERS: dict[str, list[str]] = {
    "status": ["results"], "results": ["results"], "report": ["results"], "merge": ["results", "other", "--out", "o"],
    "pack": ["results", "o.tar.gz", "--part-size", "20k"], "unpack": ["results.tar.gz", "o"],
    "diagnose": ["results", "--stream", "64"],
}  # fmt: skip
SWEEP = "name: x\nabout: y\ntasks: [txc]\nsubjects: [mlp]\nlengths: [4]\nseeds: 1\nsettings: {batch: 4}\n"
MACHINE = "states: [a, b]\nalphabet: [x]\nstart: a\nsteps: {a: {x: b}, b: {x: a}}\nanswers: {a: 0, b: 1}\n"
YAML_PARTS = (
    "[", "]", "{", "}", ": ", "- ", "&a ", "*a", "<<: *a\n", "!!int ", "!!float ", "!!binary ", "!!python/none ",
    "null", "~", "on", "2024-13-45", "0x" + LONG, LONG, "1e400", ".nan", ".inf", "'", '"', "\0", "\t", "\n", "# ",
    "| ", "> ", "? ", "%YAML 3.0\n", "---\n", "...\n", "[[1]]", "{a: b}", "ask:", "ask:hf: implicit", "ask:none oracle",
    "\x1b", "\U0001f99c", "100000000000", "-1", "blocks: []\n", "blocks: [1]\n", "protocol: ask\n", "protocol: []\n",
    "resources: {cpus: x}\n", "note: [1]\n", "settings: []\n", "settings: {rates: [[1]]}\n", "settings: {stream: -1}\n",
    "subjects: ['{model}']\n", "subjects: ['none.py:Mine']\n", "lengths: [0]\n", "lengths: 1e9\n", "seeds: [-1]\n",
)  # fmt: skip


OTHER_VALUES = (None, "x", -1, 1e308, float("nan"), [], {}, True, 10**30, "\x1b[2J", "mine.py:Mine")


@dataclass(frozen=True)
class Case:
    """A command line, the files that it finds, and what else is done to its folder first."""

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda folder: None

    @property
    def shown(self) -> str:
        files = {name: content[:300] for name, content in self.files.items() if name.endswith(("yaml", "jsonl"))}
        return f"{shlex.join(self.arguments)[:600]}  {files or ''}"


@dataclass(frozen=True)
class Folder:
    """A folder of results, by the names of its files, and its archive."""

    files: dict[str, bytes]
    archive: bytes

    @classmethod
    def read(cls, place: Path) -> Folder:
        found = place / "results"
        files = {str(path.relative_to(found)): path.read_bytes() for path in found.rglob("*") if path.is_file()}
        return cls(files, (place / "results.tar.gz").read_bytes())


def make(chance: Random, held: Folder, folders: bool) -> Case:
    """The case of a generator."""
    kind = chance.choice(["line", "line", "sweep", "machine", *(["folder", "folder"] if folders else [])])
    files = {"x.yaml": mutated(chance, chance.choice([SWEEP, MACHINE])) if kind == "line" else SWEEP.encode()}
    if kind == "sweep":
        return Case(["sweep", *LINES["sweep"]], {"x.yaml": mutated(chance, SWEEP)})
    if kind == "machine":
        name = chance.choice(["x.yaml", "x.yaml", "x.json"])
        text = MACHINE if name == "x.yaml" else json.dumps(_machine())
        verb = chance.choice([["show"], ["floors", "--length", "8"], ["data", "--length", "4", "--count", "2"]])
        return Case([verb[0], f"automaton[file={name}]", *verb[1:]], {name: mutated(chance, text)})
    verbs = LINES if kind == "line" else OF_FOLDERS
    verb = chance.choice(list(verbs))
    arguments = line(chance, verb, list(verbs[verb]))
    if verb == "audit":
        files["x.jsonl"] = mutated(chance, '{"inputs": [1, 0], "targets": [1, 1], "task": "txc"}\n' * 2)
    if kind == "line":
        return Case(arguments, files)
    seed = chance.random()
    return Case(arguments, files, lambda folder: spoil(Random(seed), folder, held))


def _machine() -> dict[str, Any]:
    return {"states": ["a"], "alphabet": ["x"], "start": "a", "steps": {"a": {"x": "a"}}, "answers": {"a": 0}}


def line(chance: Random, verb: str, arguments: list[str]) -> list[str]:
    """A command line with something wrong in it; what would run for long is kept small."""
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        change = chance.choice(["replace", "insert", "option", "option", "remove"])
        at = chance.randrange(len(arguments) + 1)
        if change == "insert" or not arguments:
            arguments.insert(at, chance.choice(WORDS))
        elif change == "replace":
            arguments[at % len(arguments)] = chance.choice(WORDS)
        elif change == "remove":
            del arguments[at % len(arguments)]
        else:
            arguments += [option for option in [chance.choice(options(verb))] if option not in ("--ray", "--open")]
            arguments += [chance.choice((*WORDS, *WRONG))] if chance.random() < 0.7 else []
    if verb == "train":
        arguments += SMALL
    if verb == "train" and chance.random() < 0.3:
        arguments[chance.choice([-9, -7, -5, -3, -1])] = chance.choice(WRONG)
    if verb == "sweep" and "--dry-run" not in arguments:
        arguments.append("--dry-run")
    return [verb, *(text.replace("\0", "") for text in arguments)]


def options(verb: str) -> list[str]:
    """All options of a verb."""
    import typer

    from statetrack.cli import app

    command: Any = typer.main.get_command(app)
    return [name for each in command.commands[verb].params for name in each.opts if name.startswith("--")] or ["--help"]


def mutated(chance: Random, text: str) -> bytes:
    """A text with parts put in, cut out, doubled, or bytes changed."""
    for _ in range(chance.choice([0, 1, 1, 2, 4])):
        at = chance.randrange(len(text) + 1)
        until = min(len(text), at + chance.choice([0, 1, 5, 20]))
        part = chance.choice(YAML_PARTS) * chance.choice([1, 1, 1, 2, 5000])
        lines = text.splitlines(keepends=True) or [""]
        change = chance.choice(["insert", "replace", "line", "value"])
        if change == "value":
            number = chance.randrange(len(lines))
            lines[number] = lines[number].partition(":")[0] + ": " + part.strip() + "\n"
            text = "".join(lines)
        elif change == "line":
            text = "".join([*lines[: at % len(lines)], part, *lines[at % len(lines) :]])
        else:
            text = text[:at] + part + text[at if change == "insert" else until :]
    content = bytearray(text.encode("utf-8", "surrogatepass"))
    if content and chance.random() < 0.1:
        content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


def spoil(chance: Random, folder: Path, held: Folder) -> None:
    """Write the folder of results and its archive, with something damaged."""
    for name, content in held.files.items():
        for place in ("results", "other"):
            (folder / place / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / place / name).write_bytes(content)
    (folder / "results.tar.gz").write_bytes(flipped(chance, held.archive))
    for _ in range(chance.choice([0, 1, 1, 2])):
        victim = folder / "results" / chance.choice(list(held.files))
        change = chance.choice(["flip", "cut", "text", "value", "folder", "loop", "fifo", "endless", "nested"])
        content = held.files[str(victim.relative_to(folder / "results"))]
        if victim.is_dir():
            continue
        if change == "value" and victim.suffix == ".json":
            victim.unlink(missing_ok=True)
            victim.write_bytes(other_value(chance, content))
            continue
        victim.unlink(missing_ok=True)
        if change == "folder":
            victim.mkdir()
        elif change == "loop":
            victim.symlink_to(victim.name)
        elif change == "fifo":
            os.mkfifo(victim)
        elif change == "endless":
            victim.symlink_to("/dev/zero")
        else:
            spoilt = {"cut": content[: chance.randrange(len(content) + 1)], "text": mutated(chance, "{}"),
                      "nested": b"[" * 100_000}  # fmt: skip
            victim.write_bytes(spoilt.get(change) or flipped(chance, content))


def flipped(chance: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    if changed and chance.random() < 0.7:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def other_value(chance: Random, content: bytes) -> bytes:
    """JSON in which one value is another one."""
    document = json.loads(content)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return json.dumps(document).encode()
        key = chance.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.3:
            place[key] = chance.choice(
                [None, "x", -1, 1e308, float("nan"), [], {}, True, 10**30, "\x1b[2J", "mine.py:Mine"]
            )
            return json.dumps(document).encode()
        place = place[key]
