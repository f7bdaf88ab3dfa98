"""From dataclasses to plain data and back. Every field is checked by its type, on the way out and on the way in.

>>> from dataclasses import dataclass
>>> @dataclass
... class Point:
...     x: float
...     names: list[str] | None = None
>>> plain(Point(1.5)), read(Point, {"x": 1})
({'x': 1.5}, Point(x=1, names=None))
>>> read(Point, {"x": 1.5, "names": ["a", 2]})
Traceback (most recent call last):
statetrack.results.schema.BadRecord: names[1] is 2, not text
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")
Check = Callable[[Any], Any]  # gives the value that the field holds, or raises BadRecord


class BadRecord(ValueError):
    """Plain data that is not what it should be."""


def plain(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as data for a JSON file; those it needs, always."""
    return {name: _plain(value) for name, value, default in _values(instance) if default is dataclasses.MISSING
            or value != default}  # fmt: skip


def _values(instance: Any) -> list[tuple[str, Any, Any]]:
    return [(field.name, getattr(instance, field.name), field.default) for field in dataclasses.fields(instance)]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return tagged(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def tagged(instance: Any) -> dict[str, Any]:
    """The same with its kind in front, if its class has one."""
    kind = getattr(type(instance), "kind", None)
    return {"kind": kind, **plain(instance)} if isinstance(kind, str) else plain(instance)


def read(kind: type[Made], data: Any) -> Made:
    """The dataclass that this data stands for. What it has no field for is refused, as is what has the wrong type."""
    if not isinstance(data, dict):
        raise BadRecord(f"is {data!r:.40}, not a mapping")
    simple, checks, required = _checks(kind)  # type: ignore[arg-type]
    values = {}
    for name, value in data.items():
        allowed = simple.get(name)
        if allowed is not None and type(value) in allowed:
            values[name] = value
        elif name in checks:
            try:
                values[name] = checks[name](value)
            except BadRecord as error:
                raise BadRecord(f"{name}{_joined(error)}") from None
        elif name not in ("kind", "format"):
            raise BadRecord(f"{kind.__name__} has no field {name}")
    if not required <= values.keys():
        raise BadRecord(f"{min(required - values.keys())} is missing")
    # A call of the class would take longer than all of the above; its attributes are the defaults.
    instance = object.__new__(kind)
    instance.__dict__.update(values)
    return instance


def _joined(error: BadRecord) -> str:
    """What stands behind a field's name: a deeper place, or what is wrong there."""
    text = str(error)
    return text if text.startswith("[") else f" {text}" if text.startswith(("is ", "should ")) else f".{text}"


@functools.cache
def _checks(kind: type[Any]) -> tuple[dict[str, frozenset[type[Any]]], dict[str, Check], frozenset[str]]:
    """The types of fields that are a number or a text, how every field is checked, and which must be there."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    simple = {field.name: allowed for field in fields if (allowed := _types(hints[field.name]))}
    required = frozenset(field.name for field in fields if field.default is dataclasses.MISSING)
    return simple, {field.name: _check(hints[field.name]) for field in fields}, required


WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@functools.cache
def _check(hint: Any) -> Check:
    if hint is Any:
        return lambda value: value
    if hint in WORDS:
        return functools.partial(_is, frozenset((int, float) if hint is float else (hint,)), WORDS[hint])
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = [each for each in inside if each is not type(None)]
        return functools.partial(_optional, _check(inner))
    if origin is dict:
        return functools.partial(_each_value, _check(inside[1]))
    if origin in (list, tuple):
        simple = _types(inside[0])
        if simple and origin is list:
            return functools.partial(_list_of, simple, _check(inside[0]))
        return functools.partial(_each, origin, _check(inside[0]))
    variants: dict[str, type[Any]] | None = getattr(hint, "variants", None)
    return functools.partial(_variant, variants) if variants else functools.partial(read, hint)


def _types(hint: Any) -> frozenset[type[Any]] | None:
    """The types of a value that is a number, a text or nothing; None where it is made of parts."""
    inside = frozenset(typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,))
    if not inside <= {*WORDS, type(None)}:
        return None
    return inside | {int} if float in inside else inside


def _is(allowed: frozenset[type[Any]], words: str, value: Any) -> Any:
    if type(value) not in allowed:
        raise BadRecord(f"is {value!r:.40}, not {words}")
    return value


def _optional(inner: Check, value: Any) -> Any:
    return None if value is None else inner(value)


def _list_of(allowed: frozenset[type[Any]], inner: Check, value: Any) -> Any:
    if type(value) is list and allowed.issuperset(map(type, value)):
        return value
    return _each(list, inner, value)


def _each(make: type[Any], inner: Check, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise BadRecord(f"is {value!r:.40}, not a list")
    items = []
    for number, item in enumerate(value):
        try:
            items.append(inner(item))
        except BadRecord as error:
            raise BadRecord(f"[{number}]{_joined(error)}") from None
    return make(items)


def _each_value(inner: Check, value: Any) -> Any:
    if not isinstance(value, dict):
        raise BadRecord(f"is {value!r:.40}, not a mapping")
    items = {}
    for key, item in value.items():
        try:
            items[key] = inner(item)
        except BadRecord as error:
            raise BadRecord(f"[{key!r}]{_joined(error)}") from None
    return items


def _variant(variants: dict[str, type[Any]], value: Any) -> Any:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in variants:
        raise BadRecord(f"is {kind!r}, not one of {', '.join(variants)}")
    return read(variants[kind], value)
