"""gunicorn's settings for all sides; address, workers and max_requests are on the command line."""

import json
import os
import signal
from pathlib import Path
from typing import Protocol

from benchmarks.common import worker as frame

LIMIT_VARIABLE = "CPYTHONPLUS_BENCH_LIMIT_S"
"""Seconds after which the server ends by itself, should the benchmark be killed outright."""
REPORTS_VARIABLE = "CPYTHONPLUS_BENCH_REPORTS"
"""Folder in which each worker leaves a file, called after its process id, when it is ready."""

worker_class = "sync"
preload_app = True
# A stock worker that copies its whole heap while it ends must be measured, not taken for dead.
timeout = 120
graceful_timeout = 120
loglevel = "error"
control_socket_disable = True


class Worker(Protocol):
    """What is used here of gunicorn's worker."""

    pid: int


def when_ready(_: object) -> None:
    """Arm the alarm of gunicorn's own process; its workers go with it."""
    signal.alarm(int(os.environ.get(LIMIT_VARIABLE, "600")))


def post_worker_init(worker: Worker) -> None:
    """Say that this worker is ready, and which features are on."""
    folder = Path(os.environ[REPORTS_VARIABLE])
    report = {"scheduled": frame.scheduled(), "patched": frame.patched()}
    # Renamed, so that nobody reads half a file.
    draft = folder / f".{worker.pid}"
    draft.write_text(json.dumps(report), encoding="ascii")
    draft.rename(folder / str(worker.pid))
