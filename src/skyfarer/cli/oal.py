"""`skyfarer oal`: definitions of metrics, looked at before an OAP is started with them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skyfarer.cli import descriptions as say
from skyfarer.cli.parser import USAGE_ERROR, Parser

if TYPE_CHECKING:
    from skyfarer.oap.oal.compiler import Text

Commands = argparse._SubParsersAction


def add_oal(commands: Commands[Parser]) -> None:
    group = commands.add_parser(
        "oal",
        help="check definitions of metrics",
        description=say.OAL_ABOUT,
        epilog=say.OAL_EXAMPLES,
    )
    under = group.add_subparsers(metavar="COMMAND")
    check = under.add_parser(
        "check",
        help="find what is wrong in files",
        description=say.OAL_CHECK_ABOUT,
        epilog=say.OAL_EXAMPLES,
    )
    check.set_defaults(command=_check, parser=check, package="skyfarer")
    check.add_argument("files", metavar="FILE", type=Path, nargs="+", help="OAL, in UTF-8")
    explain = under.add_parser(
        "explain",
        help="show what a metric is made of",
        description=say.OAL_EXPLAIN_ABOUT,
        epilog=say.OAL_EXAMPLES,
    )
    explain.set_defaults(command=_explain, parser=explain, package="skyfarer[oap]")
    explain.add_argument("metric", metavar="METRIC", help="its name, as in service_cpm")
    explain.add_argument(
        "files",
        metavar="FILE",
        type=Path,
        nargs="*",
        help="OAL of your own, beside what is shipped",
    )
    explain.add_argument(
        "--spark",
        action="store_true",
        help="start Spark and show the physical plan that it makes for the metric's source",
    )
    group.set_defaults(parser=group)
    group.commands = tuple(under.choices)


def _check(parsed: argparse.Namespace) -> int:
    from skyfarer.oap.oal.compiler import compile_texts, listed, shipped

    beside = compile_texts(shipped())
    compiled = compile_texts([*shipped(), *map(_read, parsed.files)])
    if compiled.problems:
        print(listed(compiled.problems), file=sys.stderr)
        return USAGE_ERROR
    number = len(compiled.defined - beside.defined)
    print(f"{number} metric{'' if number == 1 else 's'}")
    return 0


def _explain(parsed: argparse.Namespace) -> int:
    from skyfarer.oap.oal.compiler import plan_of, shipped
    from skyfarer.oap.oal.explanation import explained

    plan = plan_of([*shipped(), *map(_read, parsed.files)])
    print(explained(plan, parsed.metric), flush=True)
    if parsed.spark:
        from skyfarer.oap.boot.explaining import print_physical_plan

        print_physical_plan(plan, parsed.metric)
    return 0


def _read(file: Path) -> Text:
    from skyfarer.oap.boot.definitions import read

    return read(file)
