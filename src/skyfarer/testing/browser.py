"""A real headless Chromium, for tests that look at pages.

Uses the machine's `chromium` and `chromedriver` and downloads nothing. It records what the page
said on its console and every address it asked for, so that a test can insist on silence and on
staying at home.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

T = TypeVar("T")

WAIT_S = 120.0
NOT_YET = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementNotInteractableException,
    ElementClickInterceptedException,
)
"""Of an element that is still being drawn, or that something covers which is just going away."""

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
)

# Opaque enough to be seen. Read from a copy: reading the page's own canvas makes Chromium complain.
_INK = """
const canvas = document.querySelector(arguments[0]);
if (!canvas || !canvas.width) return 0;
const copy = document.createElement("canvas");
copy.width = canvas.width;
copy.height = canvas.height;
const brush = copy.getContext("2d", { willReadFrequently: true });
brush.drawImage(canvas, 0, 0);
const pixels = brush.getImageData(0, 0, copy.width, copy.height).data;
let ink = 0;
for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 32) ink++;
return ink;
"""

# In one step, so that a page that redraws itself meanwhile cannot pull the element away.
_TEXTS = """
const found = [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility());
return found.map((element) => element.innerText.trim());
"""


class Browser:
    """Not to be shared between threads. `profile` is a directory of its own, thrown away after."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._driver: webdriver.Chrome | None = None
        self._addresses: list[str] = []
        self._message_chars: list[int] = []

    def start(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = _program("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self._profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self._driver = webdriver.Chrome(options, Service(_program("chromedriver")))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.quit()
            self._driver = None

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        """The page's own size in CSS pixels, and the colour scheme the system would ask for."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self._started.get(url)

    def forget_files(self) -> None:
        """The next page is as if it were the first."""
        self._command("Network.clearBrowserCache")

    def url(self) -> str:
        return self._started.current_url

    def text(self, selector: str = "body") -> str:
        """What a reader sees there, all matches in order; empty when there are none."""
        return "\n".join(self.texts(selector))

    def texts(self, selector: str) -> list[str]:
        """The same, match by match."""
        found: list[str] = self.script(_TEXTS, selector)
        return found

    def click(self, selector: str) -> None:
        """A real click of the mouse; an element that is just being redrawn is looked up again."""
        self.wait_for(f"{selector} to click", lambda: self._done(selector, WebElement.click))

    def click_at(self, selector: str, x: float, y: float) -> None:
        """A real click inside of it, so many CSS pixels from its left and its top."""
        element = self._started.find_element(By.CSS_SELECTOR, selector)
        box = element.rect
        middle = (x - box["width"] / 2, y - box["height"] / 2)
        chain = ActionChains(self._started)
        chain.move_to_element_with_offset(element, *map(round, middle)).click().perform()

    def type(self, selector: str, text: str) -> None:
        """As soon as it is there; none of it twice, since WebDriver refuses before the first."""
        self.wait_for(
            f"{selector} to type into",
            lambda: self._done(selector, lambda element: element.send_keys(text)),
        )

    def _done(self, selector: str, act: Callable[[WebElement], None]) -> bool:
        try:
            act(self._started.find_element(By.CSS_SELECTOR, selector))
        except NOT_YET:
            return False
        return True

    def press(self, *keys: str) -> None:
        """Keys, wherever the focus is; those without a letter have WebDriver's names: ENTER."""
        named = [getattr(Keys, key, key) for key in keys]
        self._started.switch_to.active_element.send_keys(*named)

    def script(self, text: str, *arguments: object) -> Any:
        return self._started.execute_script(text, *arguments)

    def ink(self, selector: str) -> int:
        """How many pixels of that canvas are drawn on; 0 when it is blank or not there."""
        return int(self.script(_INK, selector))

    def screenshot(self, path: Path) -> None:
        self._started.save_screenshot(str(path))

    def save_downloads_to(self, directory: Path) -> None:
        """Under the names that the page gives them."""
        where = {"behavior": "allow", "downloadPath": str(directory)}
        self._command("Browser.setDownloadBehavior", **where)

    def wait_for(self, what: str, look: Callable[[], T], timeout_s: float = WAIT_S) -> T:
        """Looks again until it sees something true; else AssertionError with the page's text."""
        deadline_s = time.monotonic() + timeout_s
        while not (seen := look()):
            if time.monotonic() > deadline_s:
                raise AssertionError(f"no {what} within {timeout_s:g} s; page: {self.text()!r}")
            time.sleep(0.1)
        return seen

    def console_errors(self) -> list[str]:
        """Errors and warnings since the last call."""
        entries = self._log("browser")
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def addresses(self) -> list[str]:
        """Every address asked for over a network since the start: pages, files and sockets."""
        self._read_network()
        return [url for url in self._addresses if url.startswith(("http", "ws"))]

    def message_chars(self) -> list[int]:
        """The length of every message that came over a web socket since the start."""
        self._read_network()
        return self._message_chars

    def _read_network(self) -> None:
        for entry in self._log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                self._addresses.append(event["params"]["request"]["url"])
            elif event["method"] == "Network.webSocketCreated":
                self._addresses.append(event["params"]["url"])
            elif event["method"] == "Network.webSocketFrameReceived":
                self._message_chars.append(len(event["params"]["response"]["payloadData"]))

    def _log(self, kind: str) -> list[dict[str, Any]]:
        driver: Any = self._started  # its get_log has no types
        entries: list[dict[str, Any]] = driver.get_log(kind)
        return entries

    @property
    def _started(self) -> webdriver.Chrome:
        if self._driver is None:
            raise RuntimeError("the browser is not started")
        return self._driver

    def _command(self, name: str, **parameters: object) -> None:
        self._started.execute_cdp_cmd(name, parameters)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise RuntimeError(f"{name} is not installed; on Debian: apt-get install chromium-driver")
    return path
