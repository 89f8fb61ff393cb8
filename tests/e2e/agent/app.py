"""A small shop under the real agent: a page, one that fails, one that asks the shop's own stock,
one that takes its time, and one that asks another shop's depot.

Given: "grpc" or "http", the address to report to, the service, the port to serve at, and the
address of the other shop, if there is one.
"""

from __future__ import annotations

import sys
import time

import requests
from flask import Flask
from skywalking import agent, config
from werkzeug.serving import make_server

protocol, backend, service, port, *others = sys.argv[1:]
config.init(
    agent_protocol=protocol,
    agent_collector_backend_services=backend,
    agent_name=service,
    agent_instance_name=f"{service}-1",
    agent_logging_level="WARNING",
)
agent.start()

app = Flask(__name__)


@app.get("/catalogue")
def catalogue() -> str:
    app.logger.warning("asked for the catalogue")
    return "books"


@app.get("/checkout")
def checkout() -> tuple[str, int]:
    return "no money", 500


@app.get("/basket")
def basket() -> str:
    return requests.get(f"http://127.0.0.1:{port}/stock", timeout=120).text


@app.get("/stock")
def stock() -> str:
    return "plenty"


@app.get("/stocktaking")
def stocktaking() -> str:
    time.sleep(0.3)
    return "all there"


@app.get("/parcel")
def parcel() -> str:
    return requests.get(f"{others[0]}/depot", timeout=120).text


@app.get("/depot")
def depot() -> str:
    return "on its way"


server = make_server("127.0.0.1", int(port), app, threaded=True)
print("ready", flush=True)
server.serve_forever()
