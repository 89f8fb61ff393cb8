"""`skyfarer ui start`: the page's own program, and the one line when it answers."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from threading import Thread

POLL_S = 0.2
TIMEOUT_S = 60.0


def run(oap_url: str, host: str, port: int) -> int:
    from skyfarer.telemetry import logs
    from skyfarer.ui.app import run as serve

    logs.configure("ui")
    Thread(target=_announce, args=(host, port), name="announce", daemon=True).start()
    serve(oap_url, host, port)
    return 0


def _announce(host: str, port: int) -> None:
    """Asks the page itself: its server blocks the main thread and tells nobody when it is up. For
    as long as the program lives: whoever waits for the line must not wait in vain."""
    url = f"http://{host}:{port}/"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            opener.open(url, timeout=TIMEOUT_S).close()
        except (OSError, urllib.error.URLError):
            time.sleep(POLL_S)
        else:
            print(f"skyfarer ui is ready: {url}", flush=True)
            return
