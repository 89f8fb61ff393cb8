"""`skyfarer satellite`: running one, checking what it would do, and looking at one that runs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skyfarer.cli import descriptions as say
from skyfarer.cli.looks import add_looks, number
from skyfarer.cli.parser import Parser

if TYPE_CHECKING:
    from skyfarer.satellite.assembly import Assembly
    from skyfarer.satellite.config import SatelliteConfig

Commands = argparse._SubParsersAction
RATE_DEFAULT = 10.0
RATE_MAX = 1000.0


def add_satellite(commands: Commands[Parser]) -> None:
    group = commands.add_parser(
        "satellite",
        help="the sidecar that agents report to",
        description=say.SATELLITE_ABOUT,
        epilog=say.SATELLITE_EXAMPLES,
    )
    parts = group.add_subparsers(metavar="COMMAND")
    start = _add(parts, "start", "run until stopped", say.SATELLITE_ABOUT)
    start.set_defaults(command=_start)
    validate = _add(parts, "validate", "check a configuration", say.VALIDATE_ABOUT)
    validate.set_defaults(command=_validate)
    printed = _add(parts, "print-config", "what it comes to", say.PRINT_CONFIG_ABOUT)
    printed.set_defaults(command=_print_config)
    graph = _add(parts, "graph", "draw it as a flowchart", say.GRAPH_ABOUT)
    graph.set_defaults(command=_graph)
    _add_tap(parts)
    _add_top(parts)
    _add_replay(parts)
    group.set_defaults(parser=group)
    group.commands = tuple(parts.choices)


def _add(parts: Commands[Parser], name: str, summary: str, about: str) -> Parser:
    part = parts.add_parser(name, help=summary, description=about, epilog=say.SATELLITE_EXAMPLES)
    part.set_defaults(parser=part, package="skyfarer")
    default = os.environ.get("SATELLITE_CONFIG")
    part.add_argument(
        *("--config", "-c"),
        metavar="FILE",
        type=Path,
        default=Path(default) if default else None,
        help="a YAML file in place of the shipped one (default: $SATELLITE_CONFIG)",
    )
    return part


def _add_tap(parts: Commands[Parser]) -> None:
    tap = _add(parts, "tap", "show records of a running satellite as they pass", say.TAP_ABOUT)
    tap.set_defaults(command=_tap)
    tap.add_argument("--pipe", metavar="NAME", help="of this pipe alone")
    tap.add_argument("--kind", metavar="KIND", help="of this kind alone, as in SEGMENT or LOG")
    tap.add_argument("--point", choices=("in", "out"), help="as they came, or as they leave")
    tap.add_argument(
        "--rate",
        type=_rate,
        default=RATE_DEFAULT,
        help="at most so many records a second (default: %(default)g)",
    )
    tap.add_argument("--count", metavar="N", type=_count, help="end after so many records")
    tap.add_argument("--json", action="store_true", help="lines of JSON with the payload in base64")


def _add_top(parts: Commands[Parser]) -> None:
    top = _add(parts, "top", "a live table of every pipe", say.TOP_ABOUT)
    top.set_defaults(command=_top)
    add_looks(top)


def _add_replay(parts: Commands[Parser]) -> None:
    replay = _add(parts, "replay", "send a pipe's dead letters again", say.LETTERS_ABOUT)
    replay.set_defaults(command=_replay)
    replay.add_argument("--pipe", metavar="NAME", help="of this pipe alone (default: of all)")
    replay.add_argument("--dry-run", action="store_true", help="list them and send nothing")


def _rate(text: str) -> float:
    return number(text, RATE_MAX, "is no rate")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of records")
    return int(text)


def _loaded(parsed: argparse.Namespace) -> SatelliteConfig:
    from skyfarer.satellite.config import load

    return load(parsed.config, os.environ)


def _checked(parsed: argparse.Namespace) -> tuple[SatelliteConfig, Assembly]:
    """The configuration, and everything made of it once, so that it is known to work."""
    from skyfarer.satellite.assembly import assembled

    config = _loaded(parsed)
    return config, assembled(config)


def _start(parsed: argparse.Namespace) -> int:
    """Reads the configuration before asyncio is there: only TLS is worth the memory of `ssl`."""
    config = _loaded(parsed)
    if not config.speaks_tls:
        from skyfarer.satellite.lean import without_ssl

        without_ssl()
    from skyfarer.satellite.program import run

    return run(config, lambda: _loaded(parsed))


def _validate(parsed: argparse.Namespace) -> int:
    from skyfarer.satellite.room import short_of_room

    config, _ = _checked(parsed)
    for line in filter(None, (*config.notes.lines(), short_of_room(config))):
        print(f"warning: {line}", file=sys.stderr)
    print(f"{config.file} is valid: {len(config.pipes)} pipes, {len(config.servers)} servers")
    return 0


def _print_config(parsed: argparse.Namespace) -> int:
    from skyfarer.satellite.effective import text

    config, assembly = _checked(parsed)
    print(text(config, assembly.bound), end="")
    return 0


def _graph(parsed: argparse.Namespace) -> int:
    from skyfarer.satellite.graph import mermaid

    print(mermaid(_checked(parsed)[0]), end="")
    return 0


def _tap(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.tap import TapSettings, tap

    directory = _loaded(parsed).data_directory
    settings = TapSettings(
        parsed.pipe, parsed.kind, parsed.point, parsed.rate, parsed.count, parsed.json
    )
    return tap(directory, settings)


def _top(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.top import top

    url = parsed.url
    if url is None:
        prometheus = _loaded(parsed).telemetry.prometheus
        host, _, port = prometheus.address.rpartition(":")
        host = "127.0.0.1" if host in ("", "0.0.0.0") else host
        url = f"http://{host}:{port}{prometheus.endpoint}"
    return top(url, parsed.once, parsed.interval)


def _replay(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.letters import replay

    config, assembly = _checked(parsed)
    return replay(config, assembly, parsed.pipe, parsed.dry_run)
