"""Flask and APScheduler, whose thread is started while the application is imported."""

import os
from datetime import datetime
from pathlib import Path

from apscheduler.schedulers.background import BackgroundScheduler
from flask import Flask

app = Flask(__name__)


def note():
    with Path("jobs.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")


scheduler = BackgroundScheduler(timezone="UTC")
scheduler.add_job(note, "interval", seconds=0.2, next_run_time=datetime.now().astimezone())
scheduler.start()


@app.get("/")
def answer():
    return {"pid": os.getpid()}
