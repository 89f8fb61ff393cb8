"""The page as a web application."""

from __future__ import annotations

import logging
import signal
import socket
from functools import partial

import uvicorn
from fastapi import FastAPI, Request
from fastapi.middleware.gzip import GZipMiddleware
from nicegui import app as pages
from nicegui import ui

from skyfarer.base.errors import PermanentError
from skyfarer.ui import whole_texts
from skyfarer.ui.api import OapClient, Wanted
from skyfarer.ui.listing import asked
from skyfarer.ui.logs import LogQuestion, LogsPage
from skyfarer.ui.map import MapPage
from skyfarer.ui.marks import FAVICON
from skyfarer.ui.page import ServicesPage
from skyfarer.ui.pipeline import PipelinePage
from skyfarer.ui.registry import Lookup, RegistryPage
from skyfarer.ui.traces import SearchPage, TracePage
from skyfarer.ui.traces.model import Search
from skyfarer.ui.window import Window

log = logging.getLogger(__name__)

# A browser that was away this long finds its page as it left it; later it is drawn anew.
RECONNECT_TIMEOUT_S = 10.0
# Of the 2 MB that a new browser fetches: a third of the default's time for a twentieth more bytes.
COMPRESS_LEVEL = 4


def create(oap_url: str) -> FastAPI:
    """The application. NiceGUI keeps its pages in the process, so one call per process."""
    client = OapClient(oap_url)

    @ui.page("/")
    def services(
        service: str = "", instance: str = "", last: str = "", start: str = "", end: str = ""
    ) -> None:
        wanted = Wanted(selected=service, instance=instance, window=Window.of(last, start, end))
        ServicesPage(client, wanted).build()

    @ui.page("/map")
    def whole_map(last: str = "", start: str = "", end: str = "") -> None:
        MapPage(client, Window.of(last, start, end)).build()

    @ui.page("/traces")
    def traces(request: Request) -> None:
        SearchPage(client, asked(Search, request.query_params)).build()

    @ui.page("/trace")
    def trace(id: str = "", last: str = "", start: str = "", end: str = "") -> None:
        TracePage(client, id, Window.of(last, start, end)).build()

    @ui.page("/logs")
    def logs(request: Request) -> None:
        LogsPage(client, asked(LogQuestion, request.query_params)).build()

    @ui.page("/pipeline")
    def pipeline(last: str = "", start: str = "", end: str = "") -> None:
        PipelinePage(client, Window.of(last, start, end)).build()

    @ui.page("/registry")
    def registry(request: Request, last: str = "", start: str = "", end: str = "") -> None:
        lookup = Lookup.of(request.query_params)
        RegistryPage(client, lookup, Window.of(last, start, end)).build()

    whole_texts.register()
    # Its bar over requests has no name that could be read aloud, and ours are seldom any.
    pages.config.quasar_config["loadingBar"]["skipHijack"] = True
    pages.on_shutdown(client.stop)
    application = FastAPI(openapi_url=None)
    ui.run_with(
        application,
        title="Skyfarer",
        favicon=FAVICON,
        dark=None,
        tailwind=False,
        language="en-US",
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_TIMEOUT_S,
        show_welcome_message=False,
        gzip_middleware_factory=partial(GZipMiddleware, compresslevel=COMPRESS_LEVEL),
    )
    return application


def run(oap_url: str, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serves the page until the process is told to stop; PermanentError when the port is taken.

    `oap_url` like http://127.0.0.1:12800. Call in the main thread, whose signals end it.
    """
    listener = _bind(host, port)
    config = uvicorn.Config(
        create(oap_url), log_config=None, access_log=False, server_header=False, ws="wsproto"
    )
    log.info("page on http://%s:%s for the OAP at %s", host, listener.getsockname()[1], oap_url)
    for ending in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops on them and then raises them once more, for whoever was there before.
        signal.signal(ending, lambda _signal, _frame: None)
    uvicorn.Server(config).run([listener])


def _bind(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise PermanentError(f"page cannot listen on {host}:{port}: {error.strerror}") from error
