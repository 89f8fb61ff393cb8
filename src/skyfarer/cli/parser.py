"""An argument parser whose complaints are one sentence, with the word that was probably meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)
        self.commands: tuple[str, ...] = ()

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """As `parse_args`, but an unknown flag is answered with the nearest one."""
        parsed, unknown = self.parse_known_args(arguments)
        chosen: Parser = getattr(parsed, "parser", self)
        if unknown:
            flag = unknown[0].partition("=")[0]
            known = [name for name in chosen._option_string_actions if name.startswith("--")]
            chosen.error(f"there is no argument '{flag}'{_nearest(flag, known)}")
        if getattr(parsed, "command", None) is None:
            chosen.error(f"a command is missing ({' or '.join(chosen.commands)})")
        return parsed

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(USAGE_ERROR)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """argparse's own text lists every choice and suggests none."""
        if action.choices is not None and value not in action.choices:
            hint = _nearest(str(value), [str(choice) for choice in action.choices])
            self.error(f"there is no command '{value}'{hint}")


def _nearest(word: str, known: Sequence[str]) -> str:
    # Imported here: a command line without a mistake has no use for it.
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    if close:
        return f" (did you mean '{close[0]}'?)"
    return f" (there are {', '.join(sorted(known))})" if known else ""
