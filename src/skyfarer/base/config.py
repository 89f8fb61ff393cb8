"""What a user writes: one YAML file with `${ENV:default}` in its values.

A `Document` is the file as text: scalars stay the text that was written (`base.placeholders` fills
them in) and get their type from the dataclass they are bound to (`base.binding`). Whatever is wrong
becomes one ConfigError sentence that names the file, before anything has started.

Tags, anchors and merge keys are refused: a configuration file is data, and small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from skyfarer.base.binding import bind as bind
from skyfarer.base.binding import nearest as nearest
from skyfarer.base.errors import ConfigError
from skyfarer.base.placeholders import PlaceholderError, substitute
from skyfarer.base.units import MIB

FILE_BYTES_MAX: Final = 1 * MIB

_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "value")
)
_NULL_TAG: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class Document:
    """`raw` holds mappings, lists, text and None; `file` is the name used in errors.

    Placeholders are filled in when a part is asked for, so a section that is not used needs none of
    its environment.
    """

    file: str
    raw: Mapping[str, object]
    environ: Mapping[str, str]

    def values(self) -> dict[str, object]:
        """The whole document with its placeholders filled in."""
        return self.section()

    def section(self, *path: str) -> dict[str, object]:
        """The mapping at `path`, filled in; empty when it is absent or has no keys."""
        inside = self.keys(*path)
        return {key: self._resolved(value, (*path, key)) for key, value in inside.items()}

    def value(self, *path: str) -> object:
        """What stands at `path`, filled in; None when it is absent."""
        return self._resolved(self.keys(*path[:-1]).get(path[-1]), path)

    def keys(self, *path: str) -> Mapping[str, object]:
        """As `section`, with the placeholders as they were written."""
        node: object = self.raw
        for depth, key in enumerate(path, start=1):
            node = node.get(key) if isinstance(node, Mapping) else None
            if node is not None and not isinstance(node, Mapping):
                at = self.where(*path[:depth])
                raise ConfigError(f"{at} must hold keys and values, not {node!r}")
        return node if isinstance(node, Mapping) else {}

    def where(self, *path: str) -> str:
        """How an error names this part; what `bind` wants."""
        return f"{self.file}: {'.'.join(path)}" if path else self.file

    def _resolved(self, value: object, path: tuple[str, ...]) -> object:
        if isinstance(value, str):
            try:
                return substitute(value, self.environ)
            except PlaceholderError as error:
                raise ConfigError(f"{self.where(*path)} {error}") from error
        if isinstance(value, list):
            return [self._resolved(item, path) for item in value]
        if isinstance(value, Mapping):
            return {key: self._resolved(item, (*path, key)) for key, item in value.items()}
        return value


def read_yaml(path: Path, environ: Mapping[str, str]) -> Document:
    """Blocks on the file; an absent, unreadable, oversized or malformed one is a ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    return parse_yaml(content, path.name, environ)


def parse_yaml(content: bytes | str, file: str, environ: Mapping[str, str]) -> Document:
    try:
        node = yaml.compose(content, Loader=_Loader)
        raw = _plain(node, file) if node is not None else {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not YAML: {_one_line(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{file} is nested too deep") from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{file} must hold keys and values at its top")
    return Document(file, raw, environ)


class _Loader(yaml.SafeLoader):
    """Refuses aliases, by which one small file could unfold into any size."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias is not allowed", problem_mark=mark)
        return super().compose_node(parent, index)


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


def _plain(node: yaml.Node, file: str) -> object:
    line = node.start_mark.line + 1
    if node.tag not in _PLAIN_TAGS:
        raise ConfigError(f"{file} line {line}: the tag {node.tag} is not allowed")
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node, file)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, file) for item in node.value]
    return None if node.tag == _NULL_TAG else str(node.value)


def _plain_mapping(node: yaml.MappingNode, file: str) -> dict[str, object]:
    found: dict[str, object] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(f"{file} line {line}: a key must be text")
        key = str(key_node.value)
        if key in found:
            raise ConfigError(
                f"{file}: the key '{key}' is given twice, in lines {lines[key]} and {line}"
            )
        found[key], lines[key] = _plain(value_node, file), line
    return found
