"""The web pages: what the services do, live, in a browser.

Contract: a client of the OAP's public HTTP API and of nothing else, so it can run anywhere and
shows exactly what any other client would be told. Times are the server's. Nothing is loaded from
outside: no fonts, no scripts, no pictures. When the OAP is away the page keeps what it last knew,
says so and keeps trying.

Must never: import the OAP, read its storage, or put text from the wire into HTML or script.
"""

from skyfarer.ui.app import create, run

__all__ = ["create", "run"]
