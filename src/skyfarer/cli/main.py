"""`skyfarer`: the commands, what they say of themselves, and how their failures end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.cli import descriptions as say
from skyfarer.cli.oal import add_oal
from skyfarer.cli.oap import add_oap
from skyfarer.cli.parser import USAGE_ERROR, Parser
from skyfarer.cli.query.arguments import add_query
from skyfarer.cli.queue import add_queue
from skyfarer.cli.satellite import add_satellite

FAILURE = 1
INTERRUPTED = 130
RATE_MAX = 2000  # traces per second of the demo, which makes them one by one

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    parsed = parser.parse(sys.argv[1:] if arguments is None else arguments)
    command: Command = parsed.command
    try:
        return command(parsed)
    except ConfigError as error:
        return _fail(str(error), USAGE_ERROR)
    except SkyfarerError as error:
        return _fail(str(error), FAILURE)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "skyfarer":
            raise
        return _fail(
            f"this command needs the module '{error.name}';"
            f" install it with: pip install '{parsed.package}'",
            FAILURE,
        )
    except KeyboardInterrupt:
        return INTERRUPTED


def _fail(sentence: str, code: int) -> int:
    print(f"skyfarer: {sentence}", file=sys.stderr)
    return code


def _parser() -> Parser:
    parser = Parser("skyfarer", description=say.ABOUT, epilog=say.EXAMPLES)
    commands = parser.add_subparsers(metavar="COMMAND")
    add_satellite(commands)
    add_oap(commands)
    _add_ui(commands)
    _add_demo(commands)
    add_query(commands)
    add_queue(commands)
    add_oal(commands)
    version = commands.add_parser("version", help="print the version", description="The version.")
    version.set_defaults(command=_version, parser=version, package="skyfarer")
    parser.commands = tuple(commands.choices)
    return parser


Commands = argparse._SubParsersAction


def _add_start(
    commands: Commands[Parser], program: str, summary: str, about: str, examples: str
) -> Parser:
    """A program's own command with `start`, the only thing there is to do with it so far."""
    group = commands.add_parser(program, help=summary, description=about, epilog=examples)
    start = group.add_subparsers(metavar="COMMAND").add_parser(
        "start", help="run until stopped", description=about, epilog=examples
    )
    group.set_defaults(parser=group)
    group.commands = ("start",)
    return start


def _add_ui(commands: Commands[Parser]) -> None:
    start = _add_start(commands, "ui", "the web page", say.UI_ABOUT, say.UI_EXAMPLES)
    start.set_defaults(command=_ui_start, parser=start, package="skyfarer[ui]")
    start.add_argument(
        "--oap",
        metavar="URL",
        default="http://127.0.0.1:12800",
        help="where the OAP answers queries (default: %(default)s)",
    )
    start.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    start.add_argument("--port", type=_port, default=8080, help="default: %(default)s")


def _add_demo(commands: Commands[Parser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="see everything at work on this machine",
        description=say.DEMO_ABOUT,
        epilog=say.DEMO_EXAMPLES,
    )
    demo.set_defaults(command=_demo, parser=demo, package="skyfarer[demo]")
    demo.add_argument(
        "--seconds",
        type=_duration,
        default=0.0,
        help="stop sending after so long, verify and exit (default: %(default)g, until Ctrl-C)",
    )
    demo.add_argument(
        "--rate", type=_rate, default=20.0, help="traces per second (default: %(default)g)"
    )
    demo.add_argument("--seed", type=int, default=1, help="of the traffic (default: %(default)s)")
    demo.add_argument(
        "--data-dir", metavar="DIR", type=Path, help="keep data and logs here, not in a temporary"
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port")
    return int(text)


def _duration(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds")
    return number


def _rate(text: str) -> float:
    number = _duration(text)
    if not 0 < number <= RATE_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not between 0 and {RATE_MAX}")
    return number


def _ui_start(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.page import run

    return run(parsed.oap, parsed.host, parsed.port)


def _demo(parsed: argparse.Namespace) -> int:
    from skyfarer.cli.demo import DemoSettings, run

    return run(
        DemoSettings(
            seconds=parsed.seconds or None,
            rate=parsed.rate,
            seed=parsed.seed,
            data_directory=parsed.data_dir,
        )
    )


def _version(parsed: argparse.Namespace) -> int:
    from skyfarer import __version__

    print(f"skyfarer {__version__}")
    return 0
