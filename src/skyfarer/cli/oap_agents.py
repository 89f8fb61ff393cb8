"""The arguments of `skyfarer oap settings` and `skyfarer oap profile`."""

from __future__ import annotations

import argparse
from pathlib import Path

from skyfarer.cli import descriptions as say
from skyfarer.cli.oap_place import add_place, directory, whole
from skyfarer.cli.parser import Parser

Commands = argparse._SubParsersAction


def add_settings(parts: Commands[Parser]) -> None:
    group = _group(parts, "settings", "what agents are told to use", say.SETTINGS_ABOUT)
    commands = group.add_subparsers(metavar="COMMAND")
    listed = _add(commands, "list", "what there is", say.SETTINGS_ABOUT)
    listed.set_defaults(command=_settings)
    listed.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    apply = _add(commands, "apply", "replace all of it", say.SETTINGS_ABOUT)
    apply.set_defaults(command=_apply)
    apply.add_argument("file", metavar="FILE", type=Path, help="services with their settings")
    group.commands = tuple(commands.choices)


def add_profile(parts: Commands[Parser]) -> None:
    group = _group(parts, "profile", "what agents are to profile", say.PROFILE_ABOUT)
    commands = group.add_subparsers(metavar="COMMAND")
    listed = _add(commands, "list", "the tasks that are not over", say.PROFILE_ABOUT)
    listed.set_defaults(command=_profiles)
    listed.add_argument("--all", action="store_true", help="those that are over as well")
    listed.add_argument("--json", action="store_true", help="lines of JSON in place of a table")
    create = _add(commands, "create", "a new task", say.PROFILE_ABOUT)
    create.set_defaults(command=_create)
    create.add_argument("--service", required=True, help="by name")
    create.add_argument("--endpoint", required=True, help="by name, as in GET:/orders")
    for name, default, most, about in (
        ("--minutes", 5, 15, "it lasts so long"),
        ("--threshold", 0, 1 << 31, "of requests that take longer than so many milliseconds"),
        ("--period", 10, 1 << 31, "milliseconds between two stacks"),
        ("--samples", 5, 9, "at most so many requests of each instance"),
    ):
        create.add_argument(
            name,
            metavar="N",
            type=whole(0, most),
            default=default,
            help=f"{about} (default: %(default)s)",
        )
    group.commands = tuple(commands.choices)


def _group(parts: Commands[Parser], name: str, summary: str, about: str) -> Parser:
    group = parts.add_parser(name, help=summary, description=about, epilog=say.AGENTS_EXAMPLES)
    group.set_defaults(parser=group)
    return group


def _add(commands: Commands[Parser], name: str, summary: str, about: str) -> Parser:
    part = commands.add_parser(name, help=summary, description=about, epilog=say.AGENTS_EXAMPLES)
    part.set_defaults(parser=part, package="skyfarer[oap]")
    add_place(part)
    return part


def _settings(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.agents import settings

    return settings(directory(parsed), parsed.json)


def _apply(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.agents import apply

    return apply(directory(parsed), parsed.file)


def _profiles(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.agents import profiles

    return profiles(directory(parsed), parsed.all, parsed.json)


def _create(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.agents import ProfileWish, create

    wish = ProfileWish(
        service=parsed.service,
        endpoint=parsed.endpoint,
        start_ms=0,
        duration_min=parsed.minutes,
        threshold_ms=parsed.threshold,
        dump_period_ms=parsed.period,
        samples_max=parsed.samples,
    )
    return create(directory(parsed), wish)
