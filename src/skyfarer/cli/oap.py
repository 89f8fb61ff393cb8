"""`skyfarer oap`: running one, and what can be asked of one that runs on this machine."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from skyfarer.cli import descriptions as say
from skyfarer.cli.looks import add_looks
from skyfarer.cli.oap_agents import add_profile, add_settings
from skyfarer.cli.oap_place import add_place, directory, whole
from skyfarer.cli.oap_queue import add_ingest_queue
from skyfarer.cli.oap_ttl import add_ttl
from skyfarer.cli.parser import Parser

Commands = argparse._SubParsersAction
LISTED = 50
LISTED_MAX = 100_000
WAIT_S = 30
WAIT_S_MAX = 600
SEQUENCE_MAX = 1 << 62


def add_oap(commands: Commands[Parser]) -> None:
    group = commands.add_parser(
        "oap",
        help="the analysis platform",
        description=say.OAP_ABOUT,
        epilog=say.OAP_EXAMPLES,
    )
    parts = group.add_subparsers(metavar="COMMAND")
    start = _add(parts, "start", "run until stopped", say.OAP_ABOUT)
    start.set_defaults(command=_start, package="skyfarer[oap]")
    start.add_argument(
        "--mode",
        choices=("init", "no-init"),
        help="init: make the tables of storage and end; no-init: wait until they are made"
        " (default: $SKYFARER_MODE, else make them and serve)",
    )
    _add_top(parts)
    _add_nodes(parts)
    _add_prepare(parts)
    _add_parked(parts)
    add_ingest_queue(parts)
    add_settings(parts)
    add_profile(parts)
    add_ttl(parts)
    group.set_defaults(parser=group)
    group.commands = tuple(parts.choices)


def _add(parts: Commands[Parser], name: str, summary: str, about: str) -> Parser:
    part = parts.add_parser(name, help=summary, description=about, epilog=say.OAP_EXAMPLES)
    part.set_defaults(parser=part, package="skyfarer")
    part.add_argument(
        "--config", metavar="FILE", type=Path, help="a YAML file in place of the shipped one"
    )
    return part


def _add_top(parts: Commands[Parser]) -> None:
    top = _add(parts, "top", "a live view of the analysis", say.OAP_TOP_ABOUT)
    top.set_defaults(command=_top)
    add_looks(top)


def _add_nodes(parts: Commands[Parser]) -> None:
    nodes = _add(parts, "nodes", "the nodes of its cluster", say.NODES_ABOUT)
    nodes.set_defaults(command=_nodes)
    nodes.add_argument("--url", help="of its HTTP port (default: where the configuration says)")
    nodes.add_argument("--json", action="store_true", help="lines of JSON in place of a table")


def _add_prepare(parts: Commands[Parser]) -> None:
    prepare = parts.add_parser(
        "prepare",
        help="make later starts faster, once an installation",
        description=say.PREPARE_ABOUT,
        epilog=say.OAP_EXAMPLES,
    )
    prepare.set_defaults(command=_prepare, parser=prepare, package="skyfarer[oap]")


def _add_parked(parts: Commands[Parser]) -> None:
    group = parts.add_parser(
        "parked",
        help="records that could not be analysed",
        description=say.PARKED_ABOUT,
        epilog=say.PARKED_EXAMPLES,
    )
    parked = group.add_subparsers(metavar="COMMAND")
    listed = _add_of_parked(parked, "list", "a table of them, the newest last")
    listed.set_defaults(command=_list)
    listed.add_argument("--reason", metavar="WORD", help="only those, as in undecodable")
    listed.add_argument(
        "--limit",
        metavar="N",
        type=whole(1, LISTED_MAX),
        default=LISTED,
        help="at most so many, the newest (default: %(default)s)",
    )
    listed.add_argument("--json", action="store_true", help="lines of JSON in place of a table")
    show = _add_of_parked(parked, "show", "one of them, with its bytes")
    show.set_defaults(command=_show)
    show.add_argument("sequence", metavar="SEQUENCE", type=whole(0, SEQUENCE_MAX))
    show.add_argument("--raw", action="store_true", help="its bytes as they are, and nothing else")
    _add_retry(parked)
    group.set_defaults(parser=group)
    group.commands = tuple(parked.choices)


def _add_retry(parked: Commands[Parser]) -> None:
    retry = _add_of_parked(parked, "retry", "have them analysed anew")
    retry.set_defaults(command=_retry)
    retry.add_argument("sequences", metavar="SEQUENCE", type=whole(0, SEQUENCE_MAX), nargs="*")
    retry.add_argument("--all", action="store_true", help="all that were not sent again yet")
    retry.add_argument("--reason", metavar="WORD", help="all of these, as in unknown_instance")
    retry.add_argument(
        "--wait",
        metavar="SECONDS",
        type=whole(0, WAIT_S_MAX),
        default=WAIT_S,
        help="for analysis, to say what became of them (default: %(default)s)",
    )


def _add_of_parked(parked: Commands[Parser], name: str, summary: str) -> Parser:
    part = parked.add_parser(
        name, help=summary, description=say.PARKED_ABOUT, epilog=say.PARKED_EXAMPLES
    )
    part.set_defaults(parser=part, package="skyfarer[oap]")
    add_place(part)
    part.add_argument("--queue", metavar="ID", help="of this queue; it matters once there were two")
    return part


def _start(parsed: argparse.Namespace) -> int:
    from skyfarer.oap.boot.app import run

    return run(parsed.config, os.environ, parsed.mode)


def _prepare(_parsed: argparse.Namespace) -> int:
    from skyfarer.oap.boot.preparing import prepare

    return prepare()


def _top(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.oap_top import top

    return top(parsed.url or _metrics_url(parsed.config), parsed.once, parsed.interval)


def _nodes(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.oap_nodes import listed

    return listed(parsed.url or _rest_url(parsed.config), parsed.json)


def _rest_url(config: Path | None) -> str:
    from skyfarer.oap.boot.config import load_application
    from skyfarer.oap.boot.settings import CoreConfig

    core = load_application(config, os.environ).config(CoreConfig)
    host = "127.0.0.1" if core.restHost in ("", "0.0.0.0") else core.restHost
    return f"{'https' if core.restSSLEnabled else 'http'}://{host}:{core.restPort}"


def _metrics_url(config: Path | None) -> str:
    from skyfarer.oap.boot.config import load_application
    from skyfarer.oap.boot.settings import PrometheusConfig

    prometheus = load_application(config, os.environ).config(PrometheusConfig)
    host = "127.0.0.1" if prometheus.host in ("", "0.0.0.0") else prometheus.host
    return f"http://{host}:{prometheus.port}/metrics"


def _list(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import listed

    return listed(directory(parsed), parsed.queue, parsed.reason, parsed.limit, parsed.json)


def _show(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import show

    return show(directory(parsed), parsed.queue, parsed.sequence, parsed.raw)


def _retry(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import RetrySettings, retry

    asked = bool(parsed.sequences) + parsed.all + (parsed.reason is not None)
    if asked != 1:
        parsed.parser.error("say which records: their numbers, or --reason, or --all")
    settings = RetrySettings(parsed.queue, parsed.sequences or None, parsed.reason, parsed.wait)
    return retry(directory(parsed), settings)
