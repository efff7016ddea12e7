"""Flask on gevent's worker: greenlets that sleep, wait for each other and share a lock."""

import os
import queue
import threading
import time

import gevent
from flask import Flask
from gevent import monkey
from gevent.pool import Pool

app = Flask(__name__)
lock = threading.Lock()


@app.get("/")
def answer():
    done = queue.Queue()

    def work(number):
        time.sleep(0.002)
        with lock:
            done.put(number)
        return number * number

    squares = Pool(3).map(work, range(5))
    gevent.sleep(0)
    seen = {done.get(timeout=5) for _ in range(5)}
    right = seen == set(range(5)) and squares == [0, 1, 4, 9, 16]
    return {"pid": os.getpid(), "right": right and monkey.is_module_patched("time")}
