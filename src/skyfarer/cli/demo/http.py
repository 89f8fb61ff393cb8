"""HTTP as the demo needs it: JSON from a URL on this machine, off the event loop."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

from skyfarer.base.errors import RetryableError

TIMEOUT_S = 10.0
PROBE_TIMEOUT_S = 2.0


async def answers(url: str) -> bool:
    """Whether it says 200, and that soon: it may be somebody else who listens there."""
    try:
        await asyncio.to_thread(_read, url, None, PROBE_TIMEOUT_S)
    except RetryableError:
        return False
    return True


async def get_text(url: str) -> str:
    return (await asyncio.to_thread(_read, url, None)).decode()


async def get_json(url: str) -> Any:
    return json.loads(await get_text(url))


async def post_json(url: str, body: object) -> Any:
    return json.loads(await asyncio.to_thread(_read, url, json.dumps(body).encode()))


def _read(url: str, body: bytes | None, timeout_s: float = TIMEOUT_S) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    # No proxy: it is this machine's own port, whatever the environment says of the world.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            content: bytes = response.read()
            return content
    except (OSError, urllib.error.URLError) as error:
        raise RetryableError(f"{url}: {error}") from error
