"""Kind → configuration name → constructor, imported on first use.

A program writes its built-ins as one table of rows `"package.module:Constructor"`, so that a driver
that is not installed costs nothing until it is chosen. Others add theirs as entry points of the
group `skyfarer.<kind>`; a name taken twice is an error, whoever took it first. Nothing is
registered by being imported: a Spark worker imports only what a pickled function needs, and such a
registry would be empty there.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError

Rows = Mapping[str, Mapping[str, str]]
EntryPoints = Callable[[str], Iterable[tuple[str, str]]]


def installed_entry_points(group: str) -> list[tuple[str, str]]:
    """Name and `module:constructor` of what the installed packages offer in this group.

    Read from where pip writes them. `importlib.metadata` does the same for 2 MB, which a sidecar
    of 30 has better uses for.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for directory in filter(os.path.isdir, dict.fromkeys(sys.path)):
        for file in sorted(Path(directory).glob("*.dist-info/entry_points.txt")):
            # The first of one name is the one that is imported.
            found.setdefault(file.parent.name.partition("-")[0], list(_points(file, group)))
    return [point for points in found.values() for point in points]


def _points(file: Path, group: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


class Catalog:
    """Immutable once built; any thread. `extras` maps a package to the extra that installs it."""

    def __init__(
        self,
        rows: Rows,
        extras: Mapping[str, str] | None = None,
        entry_points: EntryPoints = installed_entry_points,
    ) -> None:
        self._built_in = rows
        self._extras = extras or {}
        self._entry_points = entry_points

    def kinds(self) -> list[str]:
        return sorted(self._built_in)

    def names(self, kind: str) -> list[str]:
        return sorted(self._rows(kind))

    def resolve(self, kind: str, name: str) -> Any:
        """The constructor; ConfigError when the name is unknown or its package not installed."""
        rows = self._rows(kind)
        if name not in rows:
            raise ConfigError(f"there is no {kind} named '{name}'{nearest(name, rows)}")
        path, _, attribute = rows[name].partition(":")
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            raise self._not_installed(kind, name, error) from error
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            raise ConfigError(f"{kind} '{name}': {path} has no '{attribute}'") from error

    def _rows(self, kind: str) -> dict[str, str]:
        if kind not in self._built_in:
            raise ConfigError(f"there is nothing called '{kind}'{nearest(kind, self._built_in)}")
        merged = dict(self._built_in[kind])
        for name, value in self._entry_points(f"skyfarer.{kind}"):
            if name in merged:
                raise ConfigError(
                    f"{kind} '{name}' is offered twice: by {merged[name]} and by {value}"
                )
            merged[name] = value
        return merged

    def _not_installed(self, kind: str, name: str, error: ModuleNotFoundError) -> ConfigError:
        package = (error.name or "").partition(".")[0]
        extra = self._extras.get(package)
        install = f"; install it with: pip install 'skyfarer[{extra}]'" if extra else ""
        return ConfigError(f"{kind} '{name}' needs the module '{error.name}'{install}")
