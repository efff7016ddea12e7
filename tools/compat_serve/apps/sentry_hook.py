"""Flask and Sentry, which is started by a hook in each worker, and so not in the master."""

import os

import sentry_sdk
from flask import Flask

app = Flask(__name__)


def start():
    sentry_sdk.init(traces_sample_rate=0.1)  # the DSN is in SENTRY_DSN


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
