"""What axe-core, a checker of accessibility that comes by npm, has to say of a page."""

from __future__ import annotations

from pathlib import Path

from e2e import environments
from skyfarer.testing.browser import Browser

LOCKS = Path(__file__).parents[1] / "third_parties"

_RUN = """
return axe.run(document, { resultTypes: ["violations", "passes"] }).then((told) => ({
  passed: told.passes.length,
  faults: told.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id} at ${node.target.join(" ")}, ${rule.impact}: ${node.failureSummary}`)),
}));
"""


# Something that fades in is pale for a moment. What never ends is no arrival.
_AT_REST = """
return document.getAnimations().every((one) =>
  one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity);
"""


class Axe:
    """Reads the checker when it is made, which may fetch it: some seconds."""

    def __init__(self) -> None:
        packages = environments.node_modules("axe", beside=LOCKS)
        self._source = (packages / "axe-core" / "axe.min.js").read_text("utf-8")

    def faults(self, browser: Browser) -> list[str]:
        """Of the page when it is at rest, grave or not, a text each. AssertionError when no rule
        applied at all: then nothing was checked."""
        browser.wait_for("page at rest", lambda: browser.script(_AT_REST))
        browser.script(self._source)
        told = browser.script(_RUN)
        assert told["passed"], "axe found nothing to check"
        faults: list[str] = told["faults"]
        return faults
