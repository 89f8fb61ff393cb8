"""Keeping OpenSSL out of a process that speaks plain text.

asyncio imports `ssl` if it can, which costs 4.5 MB of the 30 a sidecar may have, and does without
it if it cannot. Only a program's first lines may call this, and a program that shall speak TLS must
not: its asyncio will never know it.
"""

from __future__ import annotations

import sys


def without_ssl() -> None:
    """Does nothing once `ssl` is loaded, for then the memory is spent."""
    if "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]
    import asyncio  # noqa: F401

    del sys.modules["ssl"]


def knows_ssl() -> bool:
    """Whether this process can still speak TLS: asyncio looked for `ssl` once, and had it."""
    from asyncio import sslproto

    return getattr(sslproto, "ssl", None) is not None
