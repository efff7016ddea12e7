"""Flask and APScheduler, whose thread is started by a hook in each worker."""

import os
from datetime import datetime
from pathlib import Path

from apscheduler.schedulers.background import BackgroundScheduler
from flask import Flask

app = Flask(__name__)
scheduler = BackgroundScheduler(timezone="UTC")


@scheduler.scheduled_job("interval", seconds=0.2, next_run_time=datetime.now().astimezone())
def note():
    with Path("jobs.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")


@app.get("/")
def answer():
    return {"pid": os.getpid(), "right": scheduler.running}
