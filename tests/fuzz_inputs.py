"""The inputs of `tests.fuzz` as strategies of hypothesis: command lines of every verb, and the files that they find.

A case is plain data, a command line and a tree of files, so that it can be shrunk, shown, kept and run again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as some
from hypothesis.strategies import SearchStrategy

from statetrack.formatting import visible

LONG = "9" * 400
WORDS = (
    "", "0", "1", "2", "-1", "txc", "mlp", "x.yaml", "results", " ", "²", "1e309", "nan", "-inf", LONG, LONG * 13,
    "../..", "/dev/null", "/dev/zero", ".", "/", "[", "]", "[[", "{", "}", "a=b", "=", "txc[p=", "fsm[k=5,k=6]",
    "fsm[k=²]", f"fsm[k={LONG}]", "\U0001f99c", "\x1b[2J", "a" * 5000, "--", "-", "%s", "${HOME}", "true", "null",
    "&a [*a]", "!!int foo", "2024-13-45", "automaton[file=/dev/zero]", "automaton[file=x.yaml]",
    "automaton[file=none.yaml]", "regex[pattern=((((]", "regex[pattern=(a|b)*]", "regex[pattern=\"(ab|,)*\"]",
    "s5xs5", "<(0 1)>", "<(0 1),(2 3)", "<>", "z999999999", "s3", "a4xz5", "TXC", "parity", "rtc", "fsm",
    "dyck[depth=3]", "cups[n=4,weights=[1,1,2]]", "boxes", "track_the_stat.median", "stream.max", "gru[hidden=8]",
    "gru[hidden=-1]", "gru[hidden=[1]]", "mamba2-0l", "e88-gain-1l-small", f"mamba2-{LONG}l", "none.py:Mine",
    "os:system", "torch.hub:load[repo_or_dir=x]", ":", "a:", ":a", "a..b:c", "hf:", "openai:", "oracle", "random",
    "explicit:oracle", "window-0", "demo", "all", "nc1_groups", "x" * 300, "results.tar.gz", "x.jsonl",
    "x.safetensors", "0x10", "1_000_000_000_000_000_000", "1e5", "--json",
)  # fmt: skip
WEIGHTS = "x.safetensors"
LINES: dict[str, list[str]] = {
    "list": ["tasks"], "show": ["txc"], "floors": ["fsm", "--length", "8"], "predict": ["mamba2-4l", "txc"],
    "reflections": ["s3"], "rates": ["results"], "documents": ["results"], "play": ["txc"], "lm-eval-path": [],
    "demo": [],
    "data": ["txc", "--length", "8", "--count", "4", "--out", "o.jsonl"], "audit": ["x.jsonl"],
    "train": ["txc", "mlp[hidden=4]"], "evaluate": ["results"],
    "ask": ["txc", "--solver", "oracle", "--samples", "2", "--length", "4"],
    "sweep": ["x.yaml", "--out", "o"], "status": ["results"], "check": ["results"], "results": ["results"],
    "diagnose": ["results", "--stream", "64"], "report": ["results"], "merge": ["results", "other", "--out", "o"],
    "certify": ["txc", WEIGHTS, "--model", "tanh-rnn[hidden=2]"], "verify": ["x.yaml", WEIGHTS],
    "pack": ["results", "o.tar.gz"], "unpack": ["results.tar.gz", "o"],
}  # fmt: skip
"""A command line that is well for each verb; a verb without one fails a test."""
ALSO: dict[str, list[str]] = {"evaluate": ["txc", WEIGHTS, "--model", "gru[hidden=2]"], "certify": ["results"]}
"""Another one, where a verb does two things."""
ENDS: dict[str, SearchStrategy[list[str]]] = {
    "train": some.just(
        ["--length", "4", "--set=batch=2", "--set=check_every=2", "--set=most_checks=1", "--set=polish=1"]
    ),
    "sweep": some.one_of(
        some.just(["--dry-run"]),
        some.sampled_from("01").map(lambda n: ["--workers", n, "--limit-seconds", "4", "--cell-seconds", "2"]),
    ),
    "evaluate": some.sampled_from(["0", "256"]).map(lambda n: ["--lengths", "8", "--words", n, "--stream", n]),
    "certify": some.just(["--seconds", "1"]),
    "demo": some.just(["--out", "x.yaml"]),  # a file: refused, for the whole of it takes a minute
}
"""What stands last, where all else would take longer than a case may."""
NEVER = ("--ray", "--open", "--no-open", "--watch")  # a cluster, a browser, somebody who sits there
TINY = {"batch": 2, "check_every": 2, "most_checks": 1, "polish": 1, "warmup": 0, "validation_rows": 16}
"""The settings of a training that is quickly done."""
SWEEP = f"name: x\nabout: y\ntasks: [txc]\nsubjects: ['mlp[hidden=2]']\nlengths: [4]\nseeds: 1\nsettings: {TINY}\n"
MACHINE = "states: [a, b]\nalphabet: [x]\nstart: a\nsteps: {a: {x: b}, b: {x: a}}\nanswers: {a: 0, b: 1}\n"
ROWS = '{"inputs": [1, 0], "targets": [1, 1], "task": "txc"}\n' * 2
PARTS = (
    "0", "[", "]", "{", "}", ": ", "- ", "&a ", "*a", "<<: *a\n", "!!int ", "!!float ", "!!binary ", "!!python/none ",
    "null", "~", "on", "2024-13-45", "0x" + LONG, LONG, "1e400", ".nan", ".inf", "'", '"', "\0", "\t", "\n", "# ",
    "| ", "> ", "? ", "%YAML 3.0\n", "---\n", "...\n", "[[1]]", "{a: b}", "ask:", "ask:hf: implicit", "ask:none oracle",
    "\x1b", "\U0001f99c", "100000000000", "-1", "blocks: []\n", "blocks: [1]\n", "protocol: ask\n", "protocol: []\n",
    "resources: {cpus: x}\n", "note: [1]\n", "settings: []\n", "settings: {rates: [[1]]}\n", "settings: {stream: -1}\n",
    "subjects: ['{model}']\n", "subjects: ['none.py:Mine']\n", "lengths: [0]\n", "lengths: 1e9\n", "seeds: [-1]\n",
)  # fmt: skip


@dataclass(frozen=True)
class Special:
    """What is no plain file: a folder, a link or a pipe."""

    kind: str
    target: str = ""


Node = bytes | Special
Tree = dict[str, Node]  # by path


@dataclass(frozen=True)
class Case:
    """A command line and the files that it finds."""

    arguments: list[str]
    tree: Tree = field(default_factory=dict, repr=False)
    plain: Mapping[str, Node] = field(default_factory=dict, repr=False)  # the tree before anything was done to it

    @property
    def shown(self) -> str:
        """The command line, and the files that matter: those that are as they should be are left out."""
        missing = [name for name in self.plain if name not in self.tree]
        changed = {name: node for name, node in sorted(self.tree.items()) if node != self.plain.get(name)}
        lines = [f"statetrack {' '.join(visible(shlex.quote(each)) for each in self.arguments)}"[:2000]]
        lines += [f"    {name}: {node!r:.600}" for name, node in changed.items()]
        return "\n".join([*lines, *(f"    {name} is missing" for name in missing)])

    @property
    def mark(self) -> str:
        """The same for equal cases, and for no others."""
        return hashlib.sha256(
            repr((self.arguments, sorted(self.tree.items(), key=lambda item: item[0]))).encode()
        ).hexdigest()

    def put(self, folder: Path) -> None:
        """Lay its files down."""
        for name, node in self.tree.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(node, bytes):
                path.write_bytes(node)
            elif node.kind == "folder":
                path.mkdir(exist_ok=True)
            elif node.kind == "pipe":
                os.mkfifo(path)
            else:
                path.symlink_to(node.target)

    def write(self, path: Path) -> None:
        nodes = {name: base64.b64encode(node).decode() if isinstance(node, bytes) else [node.kind, node.target]
                 for name, node in self.tree.items()}  # fmt: skip
        path.write_text(json.dumps({"arguments": self.arguments, "tree": nodes}))

    @classmethod
    def read(cls, path: Path) -> Case:
        held = json.loads(path.read_text())
        nodes = {name: base64.b64decode(node) if isinstance(node, str) else Special(*node)
                 for name, node in held["tree"].items()}  # fmt: skip
        return cls(held["arguments"], nodes)


TEXT = some.text(some.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
WORD = some.one_of(some.sampled_from(WORDS), some.sampled_from(WORDS), TEXT)
PLACE = some.integers(0, 12)
VALUES: SearchStrategy[Any] = some.recursive(
    some.one_of(
        some.sampled_from(
            [None, True, 0, 1, -1, 2**63, 10**30, 1e308, float("nan"), "", "x", "\x1b[2J", "mine.py:Mine"]
        ),
        TEXT,
    ),
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def seldom(more: SearchStrategy[Any], usual: Any = None) -> SearchStrategy[Any]:
    """One time in four."""
    return some.integers(0, 3).flatmap(lambda chance: more if chance == 3 else some.just(usual))


def options(verb: str) -> list[str]:
    """All options of a verb."""
    import typer

    from statetrack.cli import app

    command: Any = typer.main.get_command(app)
    names = [name for each in command.commands[verb].params for name in each.opts if name.startswith("--")]
    return sorted({"--help", *names} - set(NEVER))


def command_lines(verb: str) -> SearchStrategy[list[str]]:
    """The line of a verb with something changed in it."""
    option = some.tuples(some.just("option"), some.sampled_from(options(verb)), some.none() | WORD)
    others = [some.tuples(some.just(what), PLACE, WORD) for what in ("insert", "replace", "remove")]
    edits = some.just([]) | some.lists(some.one_of(*others, option, option, option), min_size=1, max_size=3)
    plain = some.sampled_from([LINES[verb], *([ALSO[verb]] if verb in ALSO else [])])
    end = ENDS.get(verb, some.just([]))
    return some.builds(lambda line, changes, last: [verb, *_changed(line, changes), *last], plain, edits, end)


def _changed(arguments: list[str], edits: list[tuple[str, Any, Any]]) -> list[str]:
    line = list(arguments)
    for what, at, word in edits:
        if what == "option":
            line += [at, *([] if word is None else [word])]
        elif what == "insert" or not line:
            line.insert(at % (len(line) + 1), word)
        elif what == "replace":
            line[at % len(line)] = word
        else:
            del line[at % len(line)]
    return line


def texts(plain: SearchStrategy[str] | str) -> SearchStrategy[bytes]:
    """A text with parts put in, cut out or doubled, lines given another value, or a byte changed."""
    whole = some.just(plain) if isinstance(plain, str) else plain
    part = some.one_of(some.sampled_from(PARTS), TEXT)
    edit = some.tuples(
        some.sampled_from(["value", "insert", "replace", "line"]), some.integers(0, 400), part,
        some.sampled_from([1, 1, 1, 2, 5000]),
    )  # fmt: skip
    byte = seldom(some.tuples(some.integers(0, 400), some.integers(0, 255)))
    edits = some.just([]) | some.lists(edit, min_size=1, max_size=3)
    return some.builds(_edited, whole, edits, byte)


def _edited(text: str, edits: list[tuple[str, int, str, int]], byte: tuple[int, int] | None) -> bytes:
    for what, place, part, times in edits:
        at, lines = place % (len(text) + 1), text.splitlines(keepends=True) or [""]
        number = place % len(lines)
        if what == "value":
            lines[number] = lines[number].partition(":")[0] + ": " + (part * times).strip() + "\n"
            text = "".join(lines)
        elif what == "line":
            text = "".join([*lines[:number], part * times, *lines[number:]])
        else:
            text = text[:at] + part * times + text[at + (5 if what == "replace" else 0) :]
    content = bytearray(text.encode("utf-8", "surrogatepass"))
    if content and byte is not None:
        content[byte[0] % len(content)] = byte[1]
    return bytes(content)


def sweep_files() -> SearchStrategy[bytes]:
    """Sweeps whose cells are quickly done, and such with values that fit nowhere, as YAML with edits."""
    odd = seldom(some.dictionaries(some.sampled_from([*TINY, "rates", "stream", "words", "x"]), VALUES, min_size=1), {})
    training = some.fixed_dictionaries(
        {"subjects": _few("mlp[hidden=2]", "gru[hidden=2]", "e88-gain-1l-small[hidden=4]", "none.py:Mine"),
         "settings": odd.map(lambda other: TINY | other)}
    )  # fmt: skip
    asking = some.fixed_dictionaries(
        {"subjects": _few("ask:none oracle", "ask:none random", "ask:none last", "ask:x/y implicit", "ask:hf:none"),
         "protocol": some.just("ask")}
    )  # fmt: skip
    grid = some.fixed_dictionaries(
        {"tasks": _few("txc", "fsm[k=2]", "s3", "track_the_stat.mode", "automaton[file=x.json]", "cups[n=3]"),
         "lengths": some.lists(some.integers(1, 4), min_size=1, max_size=2),
         "seeds": some.one_of(some.integers(1, 2), some.lists(some.integers(0, 3), min_size=1, max_size=2))}
    )  # fmt: skip
    block = some.builds(lambda one, other: one | other, grid, training | asking)
    keys = some.sampled_from(["name", "about", "tasks", "lengths", "seeds", "note", "resources", "x"])
    wrong = seldom(some.dictionaries(keys, VALUES, min_size=1, max_size=2), {})
    document = some.one_of(block, some.lists(block, min_size=1, max_size=2).map(lambda blocks: {"blocks": blocks}))
    well = some.builds(lambda one, other: {"name": "x"} | one | other, document, wrong)
    return texts(well.map(_yaml)) | texts(SWEEP)


def _few(*names: str) -> SearchStrategy[list[str]]:
    return some.lists(some.sampled_from(names), min_size=1, max_size=2, unique=True)


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


@some.composite
def machines(draw: some.DrawFn) -> dict[str, Any]:
    """A small automaton, whole or with a value that does not fit."""
    states, symbols = "abcd"[: draw(some.integers(1, 4))], "xyz"[: draw(some.integers(1, 3))]
    steps = {state: {symbol: draw(some.sampled_from(states)) for symbol in symbols} for state in states}
    machine = {"states": list(states), "alphabet": list(symbols), "start": draw(some.sampled_from(states)),
               "steps": steps, "answers": {state: draw(some.integers(0, 2)) for state in states}}  # fmt: skip
    return machine | draw(seldom(some.dictionaries(some.sampled_from([*machine, "x"]), VALUES, min_size=1), {}))


def machine_cases() -> SearchStrategy[Case]:
    verb = some.sampled_from(
        [["show"], ["floors", "--length", "8"], ["predict", "gru"], ["data", "--length", "4", "--count", "2"]]
    )
    file = some.one_of(
        some.tuples(some.just("x.yaml"), texts(machines().map(_yaml)) | texts(MACHINE)),
        some.tuples(some.just("x.json"), texts(machines().map(json.dumps))),
    )
    return some.builds(_machine_case, verb, file)


def _machine_case(verb: list[str], file: tuple[str, bytes]) -> Case:
    models, rest = (verb[1:], []) if verb[0] == "predict" else ([], verb[1:])
    return Case([verb[0], *models, f"automaton[file={file[0]}]", *rest], dict([file]))


def sweep_cases() -> SearchStrategy[Case]:
    """Sweeps that are run, or only looked at."""
    machine = texts(machines().map(json.dumps))
    return some.builds(
        lambda end, text, other: Case(["sweep", *LINES["sweep"], *end], {"x.yaml": text, "x.json": other}),
        ENDS["sweep"], sweep_files(), machine,
    )  # fmt: skip


def row_cases() -> SearchStrategy[Case]:
    row = some.fixed_dictionaries({"inputs": some.lists(some.integers(0, 1) | VALUES, max_size=3), "targets": VALUES,
                                   "task": some.just("txc") | VALUES})  # fmt: skip
    written = some.lists(row, max_size=3).map(lambda rows: "".join(json.dumps(each) + "\n" for each in rows))
    return texts(written).map(lambda text: Case(["audit", "x.jsonl"], {"x.jsonl": text}))
