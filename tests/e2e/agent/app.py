"""A small shop under the real agent: two pages, one of which fails now and then."""

from __future__ import annotations

import sys

from flask import Flask
from skywalking import agent, config

config.init(
    agent_collector_backend_services=sys.argv[1],
    agent_name="real-shop",
    agent_instance_name="real-shop-1",
    agent_logging_level="WARNING",
    agent_meter_reporter_active=False,
    agent_log_reporter_active=False,
    agent_profile_active=False,
)
agent.start()

app = Flask(__name__)


@app.get("/catalogue")
def catalogue() -> str:
    return "books"


@app.get("/checkout")
def checkout() -> tuple[str, int]:
    return "no money", 500


app.run(host="127.0.0.1", port=int(sys.argv[2]))
