"""Writes docs/guide/satellite-reference.md from the configuration's dataclasses and their comments.

python tools/satellite_reference.py            writes the page
python tools/satellite_reference.py --check    fails when the page is not what would be written
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from skyfarer.satellite import receivers, sections, stock
from skyfarer.satellite.catalog import ROWS, catalog
from skyfarer.satellite.config import DEFAULT_FILE, QUEUES

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "satellite-reference.md"
TITLES = {
    "server": "Servers: `sharing.servers[]`",
    "client": "Clients: `sharing.clients[]`",
    "fetcher": "Fetchers: `pipes[].gatherer.fetcher`",
    "filter": "Filters: `pipes[].processor.filters[]`",
}
TOP = (
    ("At the top", sections.GeneralConfig, ()),
    ("`logger`", sections.LoggerConfig, ("logger",)),
    ("`telemetry`", sections.TelemetryConfig, ("telemetry",)),
    ("`sharing`", sections.SharingConfig, ("sharing",)),
    ("`pipes[].common_config`", sections.CommonConfig, ("pipes", "0", "common_config")),
    ("`pipes[].gatherer`", sections.GathererConfig, ("pipes", "0", "gatherer")),
    ("`pipes[].processor`", sections.ProcessorConfig, ("pipes", "0", "processor")),
    ("`pipes[].sender`", sections.SenderConfig, ("pipes", "0", "sender")),
)
INTRODUCTION = """\
# The satellite's configuration, key by key

Made by `tools/satellite_reference.py` from the source: change the dataclasses, not this page. How
the keys work together is in [the guide](satellite.md), how values are written in
[configuration](configuration.md). A plugin is chosen by `plugin_name`; a shared one may have a
`name` besides, when there are two of it. Variables are those of the shipped file.
"""


def comments(cls: type) -> dict[str, str]:
    """Field → what the source says behind it, or in the lines above it."""
    source = textwrap.dedent(inspect.getsource(cls))
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            end = node.end_lineno or node.lineno
            last = lines[end - 1][node.end_col_offset or 0 :]
            said = last.partition("#")[2].strip()
            first = node.lineno - 2
            while not said and first >= 0 and lines[first].strip().startswith("#"):
                said = f"{lines[first].strip(' #')} {said}".strip()
                first -= 1
            found[node.target.id] = said
    return found


def rows(cls: type, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """(key, type, default, comment) of a dataclass, those of the dataclasses in it included."""
    hints, said = typing.get_type_hints(cls), comments(cls)
    for field in dataclasses.fields(cls):
        inner, many = _inner(hints[field.name])
        key = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(inner):
            about = said[field.name] or _first_paragraph(inner)
            if _default(field) not in ("", "required") or many or about:
                yield f"{key}{'[]' if many else ''}", "keys", _outer_default(field), about
            yield from rows(typing.cast(type, inner), f"{key}{'[]' if many else ''}.")
        else:
            yield key, _type(hints[field.name]), _default(field), said[field.name]


def _inner(hint: Any) -> tuple[Any, bool]:
    """What a field holds, without `| None` and the list around it."""
    arguments = [one for one in typing.get_args(hint) if one is not types.NoneType]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _inner(arguments[0])
    if typing.get_origin(hint) in (tuple, list):
        return arguments[0], True
    return hint, False


def _type(hint: Any) -> str:
    inner, many = _inner(hint)
    if typing.get_origin(inner) is typing.Literal:
        shown = ", ".join(f"`{one}`" for one in typing.get_args(inner) if one != "")
    elif typing.get_origin(inner) is dict:
        shown = "keys and values"
    else:
        names = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
        shown = names.get(inner, getattr(inner, "__name__", str(inner)).lower())
    return f"list of {shown}" if many else shown


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is field.default_factory is dataclasses.MISSING:
        return "required"
    value = field.default_factory() if callable(field.default_factory) else field.default
    if value is None or value == "" or value == () or value == {}:
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _outer_default(field: dataclasses.Field[Any]) -> str:
    return "required" if _default(field) == "required" else ""


def _first_paragraph(cls: Any) -> str:
    text = inspect.cleandoc(cls.__doc__ or "")
    return "" if text.startswith(f"{cls.__name__}(") else " ".join(text.split("\n\n")[0].split())


def table(cls: type, variables: Mapping[str, str]) -> list[str]:
    found = list(rows(cls))
    if not found:
        return ["It has no keys."]
    lines = ["| key | type | default | variable | what |", "|---|---|---|---|---|"]
    for key, kind, default, said in found:
        variable = variables.get(key.replace("[]", ""), "")
        shown = f"`{variable}`" if variable else ""
        lines.append(f"| `{key}` | {kind} | {default} | {shown} | {_cell(said)} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _variables(node: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, variable) of every `${NAME:…}` in a part of the shipped file."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _variables(value, f"{prefix}{key}.")
    elif isinstance(node, str) and node.startswith("${"):
        yield prefix.rstrip("."), node[2:].partition(":")[0].rstrip("}")


def _part(document: Any, path: tuple[str, ...]) -> object:
    for step in path:
        document = document[int(step)] if step.isdigit() else document.get(step, {})
    return document


def _plugin_variables(document: Any, kind: str, name: str) -> dict[str, str]:
    shared = document["sharing"].get(f"{kind}s", [])
    return dict(_variables(next((one for one in shared if one["plugin_name"] == name), {})))


def page() -> str:
    document = yaml.safe_load(DEFAULT_FILE.read_text())
    lines = [INTRODUCTION]
    for title, cls, path in TOP:
        about = _first_paragraph(cls)
        lines += [f"## {title}", "", *([about, ""] if about else [])]
        lines += [*table(cls, dict(_variables(_part(document, path)))), ""]
    lines += _queues(document)
    for kind, title in TITLES.items():
        lines += [f"## {title}", ""]
        for name, row in ROWS[kind].items():
            if find_spec(row.partition(":")[0]) is None:
                continue
            constructor = catalog(lambda group: []).resolve(kind, name)
            about = _first_paragraph(inspect.getmodule(constructor))
            lines += [f"### `{name}`", "", about, ""]
            lines += [*table(constructor.config_type, _plugin_variables(document, kind, name)), ""]
    return "\n".join([*lines, *_receivers(), *_originals()])


def _queues(document: Any) -> list[str]:
    lines = ["## Queues: `pipes[].gatherer.queue`", ""]
    for name, cls in QUEUES.items():
        used = _part(document, ("pipes", "0", "gatherer", "queue"))
        variables = dict(_variables(used)) if name == "mmap-queue" else {}
        lines += [f"### `{name}`", "", _first_paragraph(cls), "", *table(cls, variables), ""]
    return lines


def _receivers() -> list[str]:
    lines = ["## Receivers: `pipes[].gatherer.receiver`", "", *RECEIVERS_HEAD]
    for name in receivers.GRPC_RECEIVERS:
        signal = receivers.GRPC_RECEIVERS[name]
        services = ", ".join(f"`{one}`" for one in receivers.SIGNALS[signal])
        shown = f"all that `grpc-{signal}-…-receiver` take" if signal in WHOLE else services
        lines.append(f"| `{name}` | grpc-server | {shown} |")
    for name, paths in receivers.HTTP_RECEIVERS.items():
        lines.append(f"| `{name}` | http-server | {', '.join(f'`{one}`' for one in paths)} |")
    return [*lines, ""]


WHOLE = ("native", "envoy", "otlp")
RECEIVERS_HEAD = ["| plugin_name | server | takes |", "|---|---|---|"]


def _originals() -> list[str]:
    fallbackers = ", ".join(f"`{one}`" for one in stock.FALLBACKERS)
    forwarders = ", ".join(f"`{one}`" for one in receivers.FORWARDERS)
    return [
        "## Names of the original that are accepted",
        "",
        f"`pipes[].sender.fallbacker`: {fallbackers}. The first has the keys of `sender.retry`, and"
        " the others are read as it.",
        "",
        "`pipes[].gatherer.queue`: `memory-queue` is read as `mmap-queue`.",
        "",
        f"`pipes[].sender.forwarders[]`: {forwarders}.",
        "",
    ]


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print(f"{PAGE.name} is out of date: python tools/satellite_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
