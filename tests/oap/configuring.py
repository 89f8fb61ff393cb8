"""What the tests of the OAP's configuration read it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.config import Application, load_application

MINIMAL = "cluster:\n  selector: standalone\ncore:\n  selector: ${SW_CORE:default}\n  default:\n"


def load(
    file: Path, text: str, overrides: dict[str, object] | None = None, **environ: str
) -> Application:
    file.write_text(text, encoding="utf-8")
    return load_application(file, environ, overrides)


def refusal(
    file: Path, text: str, overrides: dict[str, object] | None = None, **environ: str
) -> str:
    with pytest.raises(ConfigError) as refused:
        load(file, text, overrides, **environ)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def chosen(application: Application) -> list[str]:
    return [f"{one.module}.{one.provider}" for one in application.chosen]


def flat(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value)
        else:
            yield key, value
