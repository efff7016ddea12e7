"""Flask and prometheus_client in its multiprocess mode: a folder of files that workers share."""

import os

from flask import Flask, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

VISITS = Counter("visits", "Requests")
SECONDS = Histogram("seconds", "How long they took")
LIVE = Gauge("live", "Workers that have answered", multiprocess_mode="livesum")

app = Flask(__name__)


@app.get("/")
def answer():
    with SECONDS.time():
        VISITS.inc()
        LIVE.set(1)
    return {"pid": os.getpid()}


@app.get("/metrics")
def metrics():
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return Response(generate_latest(registry), mimetype="text/plain")
