"""Mapping → frozen dataclass, strictly.

The dataclass is the whole truth about a section: its field names are the keys (where a key is no
name in Python, it is in the field's metadata, as `key`), its annotations the types, a field without
a default is required, and `__post_init__` may refuse values by ValueError naming the key. Scalars
arrive as the text the user wrote, and the field's type decides what the text means: `0123` is a
fine password and a fine number, `12x` is no number. Accepted types: str, int, float, bool, Path,
Literal, `X | None`, list[X], tuple[X, ...], dict[str, X], dataclasses, and `object` for what is
taken as it was written because somebody else binds it.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from skyfarer.base.errors import ConfigError

T = TypeVar("T")

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}\Z")
_BOOLEANS: Final = {"true": True, "false": False}
_SECRET: Final = re.compile("passw|token|secret|authenti|credential", re.IGNORECASE)


def nearest(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the valid names when none is near."""
    names = sorted(valid)
    lowered = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    if close:
        return f"; did you mean '{lowered[close[0]]}'?"
    return f"; there are: {', '.join(names)}" if names else "; there are none"


def bind(cls: type[T], values: Mapping[str, object], where: str) -> T:
    """`where` begins every error, as in "application.yml: core.default"."""
    inits = [field for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
    fields = {field.metadata.get("key", field.name): field for field in inits}
    for key in values:
        if key not in fields:
            raise ConfigError(f"{where} has no key '{key}'{nearest(str(key), fields)}")
    hints = typing.get_type_hints(cls)
    bound: dict[str, Any] = {}
    for name, field in fields.items():
        if name in values:
            bound[field.name] = _converted(hints[field.name], values[name], _inside(where, name))
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where} needs a value for '{name}'")
    try:
        return cls(**bound)
    except ValueError as refused:
        raise ConfigError(f"{where}: {refused}") from refused


def _inside(where: str, key: str) -> str:
    """`where` is a file, or a file and a place in it."""
    return f"{where}.{key}" if ": " in where else f"{where}: {key}"


def _converted(hint: Any, value: object, where: str) -> Any:
    if hint is object:
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(arguments, value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"{where} is {value!r}{nearest(str(value), map(str, arguments))}")
        return value
    if origin in (list, tuple):
        return origin(_converted(arguments[0], item, where) for item in _items(value, where))
    if origin is dict:
        section = _mapping(value, where)
        return {k: _converted(arguments[1], v, _inside(where, k)) for k, v in section.items()}
    if dataclasses.is_dataclass(hint):
        return bind(typing.cast(type, hint), _mapping(value, where), where)
    return _scalar(hint, value, where)


def _optional(arguments: tuple[Any, ...], value: object, where: str) -> Any:
    inner = [argument for argument in arguments if argument is not types.NoneType]
    if len(inner) != 1 or len(arguments) != 2:
        raise TypeError(f"{where}: only `X | None` can be read from a file")
    return None if value is None or value == "" else _converted(inner[0], value, where)


def _items(value: object, where: str) -> list[object]:
    """A YAML list, or, as SkyWalking writes them and a variable must, items with commas between."""
    if isinstance(value, list | tuple):
        return list(value)
    if value is None:
        return []
    if isinstance(value, str):
        inside = value[1:-1] if value[:1] + value[-1:] == "[]" else value
        return [item.strip() for item in inside.split(",") if item.strip()]
    raise ConfigError(f"{where} must be a list, not {_shown(value, where)}")


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{where} must hold keys and values, not {_shown(value, where)}")


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if _WHOLE.match(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _boolean(value: object) -> bool | None:
    return _BOOLEANS.get(value.lower()) if isinstance(value, str) else _exactly(bool, value)


def _text(value: object) -> str | None:
    return "" if value is None else _exactly(str, value)


def _path(value: object) -> Path | None:
    return Path(value) if isinstance(value, str | Path) and value != "" else None


def _exactly(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None


_SCALARS: Final[Mapping[Any, tuple[Callable[[object], object], str]]] = {
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    bool: (_boolean, "true or false"),
    str: (_text, "text"),
    Path: (_path, "a path"),
}


def _scalar(hint: Any, value: object, where: str) -> object:
    if hint not in _SCALARS:
        raise TypeError(f"{where}: a {hint} cannot be read from a file")
    convert, what = _SCALARS[hint]
    converted = convert(value)
    if converted is None:
        raise ConfigError(f"{where} must be {what}, not {_shown(value, where)}")
    return converted


def _shown(value: object, where: str) -> str:
    """Whoever reads the error may not be the one who knows the secret."""
    if value is None or value == "":
        return "empty"
    written = repr(value)
    return "what stands there" if _SECRET.search(f"{where} {written}") else written
