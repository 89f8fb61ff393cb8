"""What the page says when there is nothing to draw: nobody has called yet, or the OAP is away."""

from __future__ import annotations

from nicegui import ui

from skyfarer.ui.boxes import box, heading

COLLECTOR = "127.0.0.1:11800"

PYTHON_AGENT = f"""\
SW_AGENT_NAME=my-service \\
SW_AGENT_COLLECTOR_BACKEND_SERVICES={COLLECTOR} \\
  sw-python run python app.py"""

JAVA_AGENT = f"""\
java -javaagent:skywalking-agent.jar \\
  -Dskywalking.agent.service_name=my-service \\
  -Dskywalking.collector.backend_service={COLLECTOR} \\
  -jar app.jar"""


class Empty:
    """Shown until the first service reports; says how to make one do so."""

    def __init__(self) -> None:
        with box("state", "empty", tag="section") as self.element:
            heading("Waiting for the first service", 2).classes("state-title")
            ui.label(
                f"Point a SkyWalking agent at {COLLECTOR}. Its service shows up here a few seconds "
                "after the first call."
            ).classes("state-text")
            _snippet("Python", PYTHON_AGENT)
            _snippet("Java", JAVA_AGENT)
            with box("waiting"):
                box("pulse")
                ui.label("Listening; this page refreshes by itself.").classes("muted")


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
