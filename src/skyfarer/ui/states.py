"""What the page says when there is nothing to draw: nobody has called yet, or the OAP is away."""

from __future__ import annotations

import httpx
from nicegui import ui

from skyfarer.ui.boxes import box, heading

COLLECTOR_PORT = 11800


def collector_of(oap_url: str) -> str:
    """Where agents report to: the OAP's own host, at the port that is usual."""
    host = httpx.URL(oap_url).host
    return f"[{host}]:{COLLECTOR_PORT}" if ":" in host else f"{host}:{COLLECTOR_PORT}"


def _python_agent(collector: str) -> str:
    return f"""\
SW_AGENT_NAME=my-service \\
SW_AGENT_COLLECTOR_BACKEND_SERVICES={collector} \\
  sw-python run python app.py"""


def _java_agent(collector: str) -> str:
    return f"""\
java -javaagent:skywalking-agent.jar \\
  -Dskywalking.agent.service_name=my-service \\
  -Dskywalking.collector.backend_service={collector} \\
  -jar app.jar"""


class Empty:
    """Shown until the first service reports to `collector`; says how to make one do so."""

    def __init__(self, collector: str) -> None:
        with box("state", "empty", tag="section") as self._element:
            heading("Waiting for the first service", 2).classes("state-title")
            ui.label(
                f"Point a SkyWalking agent at {collector}. Its service shows up here a few seconds "
                "after the first call."
            ).classes("state-text")
            _snippet("Python", _python_agent(collector))
            _snippet("Java", _java_agent(collector))
            with box("waiting"):
                box("pulse")
                ui.label("Listening; this page refreshes by itself.").classes("muted")
        self.show(False)

    def show(self, nobody: bool) -> None:
        self._element.set_visibility(nobody)


def _snippet(title: str, text: str) -> None:
    with box("snippet"):
        ui.label(title).classes("muted snippet-title")
        with box("code", tag="pre"):
            ui.label(text)


class Banner:
    """One line on top of everything while the OAP does not answer, or answers no."""

    def __init__(self) -> None:
        with box("banner").props("role=status aria-live=polite") as self.element:
            box("pulse")
            self._text = ui.label()
        self.element.set_visibility(False)

    def say(self, text: str) -> None:
        self._text.set_text(text)
        self.element.set_visibility(bool(text))
