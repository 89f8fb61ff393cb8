"""The configuration as this program understood it, for whoever asks a running one.

    <module>.provider            the chosen one
    <module>.<provider>.<key>    its value, as application.yml would have it; defaults too
    <module>.<provider>.<key>.<key of its own>  where the value has keys itself

Secrets are masked by the name of their key, and in addresses that carry one, before the host
(`//user:secret@`) or as a parameter (`?password=secret`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final
from urllib.parse import unquote_plus

from skyfarer.oap.boot.config import Application

MASK: Final = "******"
SECRET_WORDS: Final = (
    *("user", "password", "passwd", "token", "secret", "accesskey", "authentication"),
    *("authorization", "credential", "expression"),
)
_SECRET_ENDS: Final = ("pass",)
_PLACES: Final = ("file", "path")  # where a secret lies is none
_BEFORE_HOST: Final = re.compile(r"(//)\S*@")
_PARAMETER: Final = re.compile(r"(?<![^?&;\s])([^?&;=\s]+)=('(?:\\.|[^'\\])*'|[^&\s]*)")


def effective(application: Application) -> dict[str, str]:
    shown: dict[str, str] = {}
    for chosen in application.chosen:
        shown[f"{chosen.module}.provider"] = chosen.provider
        place = f"{chosen.module}.{chosen.provider}"
        shown |= {f"{place}.{key}": value for key, value in _keys(chosen.config)}
    return shown


def masked(key: str, value: str) -> str:
    if _is_secret(key):
        return MASK
    if key.lower().endswith(_PLACES):
        return value
    return _PARAMETER.sub(_parameter, _BEFORE_HOST.sub(rf"\1{MASK}@", value))


def _is_secret(key: str) -> bool:
    name = key.lower()
    if name.endswith(_PLACES):
        return False
    return name.endswith(_SECRET_ENDS) or any(word in name for word in SECRET_WORDS)


def _parameter(found: re.Match[str]) -> str:
    """A name may be escaped as well as a value."""
    return f"{found[1]}={MASK}" if _is_secret(unquote_plus(found[1])) else found[0]


def _keys(config: object) -> Iterator[tuple[str, str]]:
    for key, value in _inside(config).items():
        if _inside(value) and not _is_secret(key):
            yield from ((f"{key}.{below}", text) for below, text in _keys(value))
        else:
            yield key, _text(key, value)


def _inside(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return {}


def _text(key: str, value: object) -> str:
    match value:
        case None:
            return masked(key, "")
        case bool():
            return masked(key, str(value).lower())
        case tuple():
            return MASK if _is_secret(key) else ",".join(_text(key, one) for one in value)
    return masked(key, str(value))
