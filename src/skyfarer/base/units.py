"""Sizes in bytes, so that a bound reads `256 * KIB` and never as a bare number."""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
