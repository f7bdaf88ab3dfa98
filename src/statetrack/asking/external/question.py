"""What lm-evaluation-harness asked and how it scored it, in the words by which two runs are told apart.

Everything is in it that changes what the model was given or what counts as right: chat template and instructions, the
examples, the options in --metadata, which rows, how it generates, the version of the task. How the model was loaded is
in its name (`runs.tell_apart`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from statetrack.asking.external.plain import digits, mapping, name

MOST_LENGTHS = 6  # that are written out
ROWS = ("lengths", "per_length", "limit", "version")  # which rows they are, whatever is said around them
PROMPTS = "prompts"  # the hash of all of them, where the samples were kept
NOT_KEPT = "prompts not kept"


def asked(data: Mapping[str, Any], task: str) -> dict[str, str]:
    """From each thing that may differ to how it is called where it does."""
    options = mapping(mapping(_of(data, "configs", task)).get("metadata")).get("options")
    shots = _of(data, "n-shot", task)
    settings = mapping(data.get("config"))
    return {
        "chat template": _text(data, "chat_template", "template"),
        "system instruction": _text(data, "system_instruction", "instruction"),
        **{key: _option(key, value) for key, value in sorted(mapping(options).items())},
        **(_examples(data, settings) if shots else {}),
        "gen_kwargs": _setting("gen_kwargs", settings.get("gen_kwargs")),
        "limit": _setting("limit", settings.get("limit")),
        "version": f"version {_plain(_of(data, 'versions', task))}",
    }


def has_template(data: Mapping[str, Any]) -> bool:
    return bool(_hash(data, "chat_template"))


def has_instruction(data: Mapping[str, Any]) -> bool:
    return bool(_hash(data, "system_instruction"))


def prompts(data: Mapping[str, Any], task: str) -> str:
    """The first digits of the harness's hash of all rows and prompts, which it has where it keeps the samples."""
    return name(_of(data, "task_hashes", task))[:8]


def _of(data: Mapping[str, Any], key: str, task: str) -> Any:
    return mapping(data.get(key)).get(task)


def _hash(data: Mapping[str, Any], key: str) -> str:
    """The harness's hash of a text, or our own of the text where it wrote none."""
    text = data.get(key)
    if isinstance(text, dict):  # templates by their names
        text = json.dumps(text, sort_keys=True)
    given = name(data.get(f"{key}_sha"))
    return given[:8] or (digits(text) if isinstance(text, str) and text else "")


def _text(data: Mapping[str, Any], key: str, called: str) -> str:
    sha256 = _hash(data, key)
    return f"{called} {sha256}" if sha256 else f"no {key.replace('_', ' ')}"


def _examples(data: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, str]:
    turns = bool(data.get("fewshot_as_multiturn"))
    return {"turns": "examples as turns" if turns else "examples in one turn",
            "fewshot_seed": _setting("fewshot_seed", settings.get("fewshot_seed"))}  # fmt: skip


def _option(key: str, value: Any) -> str:
    """
    >>> _option("lengths", "10,5"), _option("lengths", None), _option("lengths", [5, 10]), _option("seed", 1)
    ('lengths 5 10', 'all lengths', 'lengths 5 10', 'seed=1')
    """
    if key == "lengths":
        return _lengths(value)
    if key == "data" and isinstance(value, str):  # a folder on somebody's machine
        return f"data {name(PurePath(value).name)} {digits(value)}"
    return _setting(name(key), value)


def _lengths(value: Any) -> str:
    if value is None:
        return "all lengths"
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    texts = {str(each).strip() for each in given}
    if not all(each.isdecimal() and len(each) < 6 for each in texts):
        return f"lengths {digits(_plain(value))}"
    found = sorted(map(int, texts))
    if len(found) <= MOST_LENGTHS:
        return f"lengths {' '.join(map(str, found))}"
    return f"{len(found)} lengths from {found[0]} to {found[-1]} ({digits(str(found))})"


def _setting(key: str, value: Any) -> str:
    """
    >>> _setting("limit", 4.0), _setting("limit", None), _setting("gen_kwargs", {"temperature": 0.5})
    ('limit=4', 'no limit', 'temperature=0.5')
    """
    if isinstance(value, dict) and value:
        return name(" ".join(f"{each}={_plain(told)}" for each, told in sorted(value.items())))
    return f"no {key}" if value in (None, "", {}) else f"{key}={_plain(value)}"


def _plain(value: Any) -> str:
    """
    >>> _plain(2.0), _plain("x"), _plain([1])
    ('2', 'x', '[1]')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return name(value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str))
