"""The configuration as this program understood it, for whoever asks a running one.

    <module>.provider            the chosen one
    <module>.<provider>.<key>    its value, as application.yml would have it; defaults too

Secrets are masked by the name of their key, and in addresses that carry one (`//user:secret@`).
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Final

from skyfarer.oap.boot.config import Application

MASK: Final = "******"
SECRET_WORDS: Final = (
    *("user", "password", "passwd", "token", "secret", "accesskey", "authentication"),
    *("authorization", "credential", "expression"),
)
_SECRET_ENDS: Final = ("pass",)
_PLACES: Final = ("file", "path")  # where a secret lies is none
_IN_ADDRESS: Final = re.compile(r"(//)[^/@\s]+@")


def effective(application: Application) -> dict[str, str]:
    shown: dict[str, str] = {}
    for chosen in application.chosen:
        shown[f"{chosen.module}.provider"] = chosen.provider
        if not is_dataclass(chosen.config):
            continue
        for field in fields(chosen.config):
            key = f"{chosen.module}.{chosen.provider}.{field.name}"
            shown[key] = masked(field.name, _text(getattr(chosen.config, field.name)))
    return shown


def masked(key: str, value: str) -> str:
    name = key.lower()
    if name.endswith(_PLACES):
        return value
    if name.endswith(_SECRET_ENDS) or any(word in name for word in SECRET_WORDS):
        return MASK
    return _IN_ADDRESS.sub(rf"\1{MASK}@", value)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(_text, value))
    return str(value)
