"""gunicorn's settings for the benchmark; the address is given on the command line."""

import os
import signal

LIMIT_VARIABLE = "CPYTHONPLUS_BENCH_LIMIT_S"
"""Seconds after which the server ends by itself, should the benchmark be killed outright."""

worker_class = "gthread"
workers = 1
threads = 16
worker_connections = 1000
# Idle connections must outlive a stock server's longest pause, and a worker that is slow beside a
# CPU thread must not be taken for dead.
keepalive = 120
timeout = 120
graceful_timeout = 2
loglevel = "error"
control_socket_disable = True


def when_ready(_: object) -> None:
    """Arm the alarm of gunicorn's own process; its worker goes with it."""
    signal.alarm(int(os.environ.get(LIMIT_VARIABLE, "600")))
