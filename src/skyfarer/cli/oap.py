"""`skyfarer oap`: running one, and what can be asked of one that runs on this machine."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from skyfarer.cli import descriptions as say
from skyfarer.cli.looks import add_looks
from skyfarer.cli.parser import Parser

Commands = argparse._SubParsersAction
LISTED = 50
LISTED_MAX = 100_000
WAIT_S = 30
WAIT_S_MAX = 600


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
    _add_top(parts)
    _add_parked(parts)
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
        type=_limit,
        default=LISTED,
        help="at most so many, the newest (default: %(default)s)",
    )
    listed.add_argument("--json", action="store_true", help="lines of JSON in place of a table")
    show = _add_of_parked(parked, "show", "one of them, with its bytes")
    show.set_defaults(command=_show)
    show.add_argument("sequence", metavar="SEQUENCE", type=_sequence)
    show.add_argument("--raw", action="store_true", help="its bytes as they are, and nothing else")
    _add_retry(parked)
    group.set_defaults(parser=group)
    group.commands = tuple(parked.choices)


def _add_retry(parked: Commands[Parser]) -> None:
    retry = _add_of_parked(parked, "retry", "have them analysed anew")
    retry.set_defaults(command=_retry)
    retry.add_argument("sequences", metavar="SEQUENCE", type=_sequence, nargs="*")
    retry.add_argument("--all", action="store_true", help="all that were not sent again yet")
    retry.add_argument("--reason", metavar="WORD", help="all of these, as in unknown_instance")
    retry.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_wait,
        default=WAIT_S,
        help="for analysis, to say what became of them (default: %(default)s)",
    )


def _add_of_parked(parked: Commands[Parser], name: str, summary: str) -> Parser:
    part = parked.add_parser(
        name, help=summary, description=say.PARKED_ABOUT, epilog=say.PARKED_EXAMPLES
    )
    part.set_defaults(parser=part, package="skyfarer[oap]")
    part.add_argument("--config", metavar="FILE", type=Path, help="of the OAP that is meant")
    part.add_argument(
        "--data-dir", metavar="DIR", type=Path, help="its data (default: where its file says)"
    )
    part.add_argument("--queue", metavar="ID", help="of this queue; it matters once there were two")
    return part


def _limit(text: str) -> int:
    return _whole(text, 1, LISTED_MAX)


def _wait(text: str) -> int:
    return _whole(text, 0, WAIT_S_MAX)


def _sequence(text: str) -> int:
    return _whole(text, 0, 1 << 62)


def _whole(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from {least} to {most}")
    return int(text)


def _start(parsed: argparse.Namespace) -> int:
    from skyfarer.oap.boot.app import run

    return run(parsed.config, os.environ)


def _top(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.oap_top import top

    return top(parsed.url or _metrics_url(parsed.config), parsed.once, parsed.interval)


def _metrics_url(config: Path | None) -> str:
    from skyfarer.oap.boot.config import load_application
    from skyfarer.oap.boot.settings import PrometheusConfig

    prometheus = load_application(config, os.environ).config(PrometheusConfig)
    host = "127.0.0.1" if prometheus.host in ("", "0.0.0.0") else prometheus.host
    return f"http://{host}:{prometheus.port}/metrics"


def _directory(parsed: argparse.Namespace) -> Path:
    if parsed.data_dir is not None:
        return Path(parsed.data_dir)
    from skyfarer.oap.boot.config import load_application
    from skyfarer.oap.boot.settings import CoreConfig

    application = load_application(parsed.config, os.environ)
    return application.config(CoreConfig).dataDirectory.absolute()


def _list(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import listed

    return listed(_directory(parsed), parsed.queue, parsed.reason, parsed.limit, parsed.json)


def _show(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import show

    return show(_directory(parsed), parsed.queue, parsed.sequence, parsed.raw)


def _retry(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.parked import RetrySettings, retry

    asked = bool(parsed.sequences) + parsed.all + (parsed.reason is not None)
    if asked != 1:
        parsed.parser.error("say which records: their numbers, or --reason, or --all")
    settings = RetrySettings(parsed.queue, parsed.sequences or None, parsed.reason, parsed.wait)
    return retry(_directory(parsed), settings)
