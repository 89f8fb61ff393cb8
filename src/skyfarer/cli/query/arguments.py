"""The arguments of `skyfarer query`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from skyfarer.cli import descriptions as say
from skyfarer.cli.oap_place import whole
from skyfarer.cli.parser import Parser
from skyfarer.cli.query import defaults

if TYPE_CHECKING:
    from skyfarer.cli.query.client import Oap
    from skyfarer.cli.query.times import Span

Commands = argparse._SubParsersAction
LIMIT_MAX: Final = 1000
MS_MAX: Final = 2**31 - 1
PAGE_MAX: Final = 10_000


def add_query(commands: Commands[Parser]) -> None:
    group = commands.add_parser(
        "query",
        help="what an OAP knows: services, maps, traces, logs, metrics",
        description=say.QUERY_ABOUT,
        epilog=say.QUERY_EXAMPLES,
    )
    parts = group.add_subparsers(metavar="COMMAND")
    _add_services(parts)
    _add_topology(parts)
    _add_traces(parts)
    _add_logs(parts)
    _add_metrics(parts)
    group.set_defaults(parser=group)
    group.commands = tuple(parts.choices)


def _add(parts: Commands[Parser], name: str, summary: str, timed: bool = True) -> Parser:
    part = parts.add_parser(
        name, help=summary, description=say.QUERY_ABOUT, epilog=say.QUERY_EXAMPLES
    )
    part.set_defaults(parser=part, package="skyfarer")
    part.add_argument(
        "--url", default=defaults.URL, help="where an OAP answers queries (default: %(default)s)"
    )
    part.add_argument("--json", action="store_true", help="JSON in place of a table")
    if timed:
        part.add_argument(
            "--last", metavar="TIME", help=f"so far back, as in 45s, 30m, 6h, 2d ({defaults.LAST})"
        )
        part.add_argument(
            "--start", metavar="TIME", help="in the server's zone: '2026-11-15 08:30'"
        )
        part.add_argument("--end", metavar="TIME", help="likewise (default: now)")
    return part


def _limit(part: Parser, default: int) -> None:
    part.add_argument(
        "--limit",
        metavar="N",
        type=whole(1, LIMIT_MAX),
        default=default,
        help="at most so many (default: %(default)s)",
    )


def _page(part: Parser, default: int) -> None:
    _limit(part, default)
    part.add_argument("--page", metavar="N", type=whole(1, PAGE_MAX), default=1, help="from 1")


def _of(part: Parser) -> None:
    part.add_argument("--service", metavar="NAME", help="of this service")
    part.add_argument("--instance", metavar="NAME", help="of this instance of it")
    part.add_argument("--endpoint", metavar="NAME", help="of this endpoint of it")


def _tags(part: Parser) -> None:
    part.add_argument(
        "--tag",
        metavar="KEY=VALUE",
        dest="tags",
        action="append",
        default=[],
        help="which has this tag; may be given several times",
    )


def _add_services(parts: Commands[Parser]) -> None:
    services = _add(parts, "services", "a table of them, with how they do")
    services.set_defaults(command=_services)
    services.add_argument("--layer", metavar="NAME", help="as in GENERAL, VIRTUAL_DATABASE")
    _limit(services, 50)
    instances = _add(parts, "instances", "those of a service")
    instances.set_defaults(command=_instances)
    instances.add_argument("service", metavar="SERVICE")
    _limit(instances, 50)
    endpoints = _add(parts, "endpoints", "those of a service")
    endpoints.set_defaults(command=_endpoints)
    endpoints.add_argument("service", metavar="SERVICE")
    endpoints.add_argument("--keyword", metavar="TEXT", default="", help="in their names")
    _limit(endpoints, 20)


def _add_topology(parts: Commands[Parser]) -> None:
    topology = _add(parts, "topology", "who called whom")
    topology.set_defaults(command=_topology)
    topology.add_argument("--layer", metavar="NAME", help="of the services of this layer")
    topology.add_argument("--service", metavar="NAME", help="of this service")
    topology.add_argument("--to", metavar="NAME", help="of its instances and those of this service")
    topology.add_argument("--endpoint", metavar="NAME", help="of this endpoint of the service")


def _add_traces(parts: Commands[Parser]) -> None:
    traces = _add(parts, "traces", "a list of them")
    traces.set_defaults(command=_traces)
    _of(traces)
    traces.add_argument("--state", choices=("all", "success", "error"), default="all")
    traces.add_argument("--order", choices=("start", "duration"), default="start")
    for name in ("min", "max"):
        traces.add_argument(
            f"--{name}-duration", metavar="MS", type=whole(0, MS_MAX), default=0, dest=f"{name}_ms"
        )
    _tags(traces)
    _page(traces, 20)
    trace = _add(parts, "trace", "one of them, as a tree", timed=False)
    trace.set_defaults(command=_trace)
    trace.add_argument("id", metavar="TRACE_ID")


def _add_logs(parts: Commands[Parser]) -> None:
    logs = _add(parts, "logs", "the newest of them")
    logs.set_defaults(command=_logs)
    _of(logs)
    logs.add_argument("--trace", metavar="ID", help="of this trace, whenever it was")
    logs.add_argument(
        "--keyword",
        metavar="TEXT",
        action="append",
        default=[],
        dest="keywords",
        help="in their content; may be repeated, all must be there",
    )
    _tags(logs)
    _page(logs, 50)


def _add_metrics(parts: Commands[Parser]) -> None:
    metrics = _add(parts, "metrics", "what an expression comes to")
    metrics.set_defaults(command=_metrics)
    metrics.add_argument("expression", metavar="EXPRESSION", help="as in service_cpm")
    _of(metrics)
    metrics.add_argument("--to", metavar="NAME", help="called by it: this service")
    metrics.add_argument("--to-instance", metavar="NAME", help="this instance of that")
    metrics.add_argument("--to-endpoint", metavar="NAME", help="this endpoint of that")
    metrics.add_argument("--points", action="store_true", help="every value with its time")


def _asked(parsed: argparse.Namespace) -> tuple[Oap, Span]:
    from skyfarer.cli.query.client import Oap
    from skyfarer.cli.query.times import asked

    oap = Oap(parsed.url)
    return oap, asked(oap, parsed.last, parsed.start, parsed.end)


def _picked(parsed: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(parsed, name) for name in names}


def _services(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.lists import services

    return services(*_asked(parsed), parsed.layer, parsed.limit, parsed.json)


def _instances(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.lists import instances

    return instances(*_asked(parsed), parsed.service, parsed.limit, parsed.json)


def _endpoints(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.lists import endpoints

    return endpoints(
        *_asked(parsed), **_picked(parsed, "service", "keyword", "limit"), as_json=parsed.json
    )


def _topology(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.maps import Wanted, topology

    wanted = Wanted(**_picked(parsed, "layer", "service", "to", "endpoint"))
    wanted.check()
    return topology(*_asked(parsed), wanted, parsed.json)


def _traces(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.traces import Wanted, traces

    names = ("service", "instance", "endpoint", "state", "order", "tags", "min_ms", "max_ms")
    wanted = Wanted(**_picked(parsed, *names, "page", "limit"))
    return traces(*_asked(parsed), wanted, parsed.json)


def _trace(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.client import Oap
    from skyfarer.cli.query.traces import trace

    return trace(Oap(parsed.url), parsed.id, parsed.json)


def _logs(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.logs import Wanted, logs

    names = ("service", "instance", "endpoint", "trace", "tags", "keywords", "page", "limit")
    return logs(*_asked(parsed), Wanted(**_picked(parsed, *names)), parsed.json)


def _metrics(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.query.metrics import Whose, metrics

    names = ("service", "instance", "endpoint", "to", "to_instance", "to_endpoint")
    whose = Whose(**_picked(parsed, *names))
    return metrics(*_asked(parsed), parsed.expression, whose, parsed.points, parsed.json)
