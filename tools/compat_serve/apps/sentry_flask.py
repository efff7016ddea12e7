"""Flask and Sentry: an event for each request, over Sentry's own transport and thread."""

import os

import sentry_sdk
from flask import Flask

sentry_sdk.init(traces_sample_rate=0.1, auto_session_tracking=True)  # the DSN is in SENTRY_DSN
app = Flask(__name__)


@app.get("/")
def answer():
    with sentry_sdk.new_scope() as scope:
        scope.set_tag("pid", os.getpid())
        sentry_sdk.capture_message("visited")
    return {"pid": os.getpid()}


@app.get("/fails")
def fails():
    sentry_sdk.set_tag("pid", os.getpid())
    raise LookupError("on purpose")
