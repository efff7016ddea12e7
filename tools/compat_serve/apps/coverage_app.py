"""Flask, under coverage: the lines of the workers have to be in its data."""

import os

from flask import Flask

app = Flask(__name__)


@app.get("/")
def answer():
    pid = os.getpid()
    return {"pid": pid}
