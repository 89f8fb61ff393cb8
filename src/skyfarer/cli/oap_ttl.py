"""The arguments of `skyfarer oap ttl`."""

from __future__ import annotations

import argparse

from skyfarer.cli import descriptions as say
from skyfarer.cli.oap_place import add_place, directory
from skyfarer.cli.parser import Parser

Commands = argparse._SubParsersAction


def add_ttl(parts: Commands[Parser]) -> None:
    part = parts.add_parser(
        "ttl", help="what has expired", description=say.TTL_ABOUT, epilog=say.TTL_EXAMPLES
    )
    part.set_defaults(parser=part, package="skyfarer[oap]", command=_ttl)
    add_place(part)
    what = part.add_mutually_exclusive_group(required=True)
    what.add_argument("--dry-run", action="store_true", help="show what the next run would drop")
    what.add_argument("--now", action="store_true", help="run at once, under all the rules")
    part.add_argument(
        "--force",
        action="store_true",
        help="all that has expired by the clock: not half of it, and without data that confirms it",
    )
    part.add_argument("--json", action="store_true", help="lines of JSON in place of a table")


def _ttl(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.ttl import dry_run, now

    asked = dry_run if parsed.dry_run else now
    return asked(directory(parsed), parsed.force, parsed.json)
