"""Which OAP of this machine a command means."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path


def add_place(part: argparse.ArgumentParser) -> None:
    part.add_argument("--config", metavar="FILE", type=Path, help="of the OAP that is meant")
    part.add_argument(
        "--data-dir", metavar="DIR", type=Path, help="its data (default: where its file says)"
    )


def directory(parsed: argparse.Namespace) -> Path:
    if parsed.data_dir is not None:
        return Path(parsed.data_dir)
    from skyfarer.oap.boot.config import load_application
    from skyfarer.oap.boot.settings import CoreConfig

    application = load_application(parsed.config, os.environ)
    return application.config(CoreConfig).dataDirectory.absolute()


def whole(least: int, most: int) -> Callable[[str], int]:
    """Of an argument: a whole number between these, or argparse says so."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {least} to {most}")
        return int(text)

    return read
