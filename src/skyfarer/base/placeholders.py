"""`${NAME:default}` in a configuration value.

    host: ${SW_CORE_REST_HOST:127.0.0.1}
    url:  http://${HOST:localhost}:${PORT:${SW_CORE_REST_PORT:12800}}/

NAME is an environment variable; set but empty counts as set. Without `:default` it must be set.
A default runs to the brace that closes it, may hold placeholders and balanced braces, and may be
quoted as in YAML (`${NAME:""}`). What the environment gives is taken exactly: it is not searched
for placeholders or quotes, so a secret may hold any character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import yaml

DEPTH_MAX: Final = 20

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class PlaceholderError(ValueError):
    """What is wrong with a placeholder, to be put after the key it stands at."""


def substitute(text: str, environ: Mapping[str, str], depth: int = 0) -> str:
    if depth > DEPTH_MAX:
        raise PlaceholderError(f"nests placeholders more than {DEPTH_MAX} deep")
    parts: list[str] = []
    position = 0
    while (start := text.find("${", position)) >= 0:
        end = _closing_brace(text, start)
        parts.append(text[position:start])
        parts.append(_value(text[start + 2 : end], environ, depth))
        position = end + 1
    parts.append(text[position:])
    return "".join(parts)


def _closing_brace(text: str, start: int) -> int:
    open_braces = 0
    for position in range(start + 1, len(text)):
        if text[position] == "{":
            open_braces += 1
        elif text[position] == "}":
            open_braces -= 1
            if not open_braces:
                return position
    raise PlaceholderError(f"has a placeholder without its closing brace: {text[start:]!r}")


def _value(inner: str, environ: Mapping[str, str], depth: int) -> str:
    name, colon, default = inner.partition(":")
    if not _NAME.match(name):
        raise PlaceholderError(f"has a placeholder without a variable's name: '${{{inner}}}'")
    if name in environ:
        return environ[name]
    if not colon:
        raise PlaceholderError(f"needs the environment variable {name}, which is not set")
    return substitute(_unquoted(default), environ, depth + 1)


def _unquoted(default: str) -> str:
    text = default.strip()
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return default
    try:
        return str(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise PlaceholderError(f"has a default that is not one quoted text: {text}") from error
