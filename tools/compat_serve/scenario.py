"""A day's work: what is done to every server, and what it must look like afterwards."""

import os
import signal
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tools.compat_serve import processes
from tools.compat_serve.applications import APPS, Application, Check
from tools.compat_serve.client import SENDERS, Client, free_port
from tools.compat_serve.run import PATIENCE_S, WORKERS, Phase, Run, fresh_folder
from tools.compat_serve.sentry_sink import SentrySink

LOAD_S = 1.0
RECYCLED = 2
"""How many workers beyond the first ones `max_requests` has to bring."""
MAX_REQUESTS = 25

STOCK, PRELOAD, PLUS = "stock", "stock --preload", "plus"
SIDES = {STOCK: "stock", PRELOAD: "preload", PLUS: "plus"}
"""And the names of their folders."""

UNDER_LOAD, AT_THE_END = "data under load", "data at the end"

Phases = dict[str, Phase]


def command(application: Application, side: str, environment: Path) -> list[str]:
    """Return the command of one side; all else stands in the configuration file."""
    words = {
        STOCK: ["gunicorn"],
        PRELOAD: ["gunicorn", "--preload"],
        PLUS: ["cpythonplus", "serve", *application.plus],
    }[side]
    programs = environment / "bin"
    launcher = application.launcher and [str(programs / application.launcher[0])]
    return [*launcher, *application.launcher[1:], str(programs / words[0]), *words[1:], "app:app"]


def go_through(application: Application, side: str, environment: Path, folder: Path) -> Phases:
    """Take one application through all phases; return what was seen in each."""
    files = [(APPS / application.file, "app.py")]
    fresh_folder(folder, [*files, *((APPS / name, name) for name in application.files)])
    address = folder / "socket" if application.unix else free_port()
    with ExitStack() as stack:
        sink = stack.enter_context(SentrySink()) if application.sentry else None
        client = stack.enter_context(Client(address))
        run = Run(
            folder=folder,
            environment=environment,
            address=address,
            client=client,
            command=command(application, side, environment),
            extra={**application.variables, **({"SENTRY_DSN": sink.dsn} if sink else {})},
            sink=sink,
            settings=f"worker_class = {application.worker_class!r}\n{application.settings}",
        )
        run.configure()
        try:
            _all_phases(run, application, side)
        finally:
            run.kill_what_is_left()
    return run.phases


def phase_names(application: Application) -> list[str]:
    """Return the names of all phases that it has to go through."""
    names = [*PHASES, "stop"]
    if application.up:
        names.insert(names.index("load") + 1, UNDER_LOAD)
    return [*names, AT_THE_END] if application.end else names


def _all_phases(run: Run, application: Application, side: str) -> None:
    """Stops where the server is gone: later phases were not reached."""
    for name, work in PHASES.items():
        allowed = SENDERS if name == "kill -9" else 0
        if not run.phase(name, partial(work, run, side), allowed=allowed):
            return
        if name == "load" and application.up:
            run.phase(UNDER_LOAD, partial(_ask, run, application.up))
    run.client.end()
    run.phase("stop", partial(stop, run))
    if application.end:
        run.phase(AT_THE_END, partial(_ask, run, application.end))


def _ask(run: Run, check: Check) -> None:
    for complaint in check(run):
        run.complain(complaint)


def start(run: Run, side: str) -> None:
    """The server comes up, and each worker answers."""
    run.start()
    if run.serving() and side == PLUS and "] prepared: " not in run.log.read_text("utf-8"):
        run.complain("the log does not say that the heap was prepared: nothing is tested")


def load(run: Run, _: str) -> None:
    """Nothing else happens."""
    time.sleep(LOAD_S)
    run.serving()


def hang_up(run: Run, _: str) -> None:
    """HUP replaces all workers."""
    before = run.workers()
    run.signal(signal.SIGHUP)
    _replaced(run, before)


def _replaced(run: Run, before: set[int]) -> None:
    run.until("other workers", lambda: bool(run.workers()) and not run.workers() & before)
    run.serving()


def more_and_fewer(run: Run, _: str) -> None:
    """TTIN adds a worker, TTOU takes one away."""
    run.signal(signal.SIGTTIN)
    run.serving(WORKERS + 1)
    run.signal(signal.SIGTTOU)
    run.serving(WORKERS)


def kill(run: Run, _: str) -> None:
    """A worker that is killed is replaced."""
    victim = min(run.workers())
    run.killed.add(victim)
    os.kill(victim, signal.SIGKILL)
    run.until("the end of the killed worker", lambda: victim not in run.workers())
    run.serving()


def recycle(run: Run, _: str) -> None:
    """Workers with max_requests replace themselves, until a HUP ends that."""
    run.configure(max_requests=MAX_REQUESTS)
    before = run.workers()
    run.signal(signal.SIGHUP)
    run.until("other workers", lambda: bool(run.workers()) and not run.workers() & before)
    known = run.seen | run.workers()
    run.until("recycled workers", lambda: len((run.workers() | run.seen) - known) >= RECYCLED)
    run.configure()
    before = run.workers()
    run.signal(signal.SIGHUP)
    _replaced(run, before)


def upgrade(run: Run, _: str) -> None:
    """USR2 starts another master; the first one is stopped when that serves."""
    old = run.master
    run.signal(signal.SIGUSR2)
    if not run.until("another master", lambda: processes.alive(run.pid_in("pid.2"))):
        return
    new = run.pid_in("pid.2")
    run.until(
        "workers of the other master",
        lambda: (
            len(processes.children(new)) == WORKERS
            and processes.children(new) <= run.client.answered()
        ),
    )
    run.signal(signal.SIGTERM)
    status = _ended(run)
    if status != 0:
        run.complain(f"the first master's exit status is {status}")
    if not processes.alive(new):
        run.complain(f"the other master ended when {old} was stopped")
        return
    run.masters.append(new)
    run.until("the other master's pid file", lambda: run.pid_in("pid") == new)
    run.serving()


def _ended(run: Run) -> int | None:
    """Wait for the master's end; its exit status."""
    end = time.monotonic() + PATIENCE_S
    while (status := run.status()) is None and time.monotonic() < end:
        time.sleep(0.02)
    return status


def stop(run: Run) -> None:
    """TERM ends everything, with status 0, and nothing is left."""
    run.workers()
    run.signal(signal.SIGTERM)
    status = _ended(run)
    if status is None:
        run.complain(f"it has not ended after {PATIENCE_S:g} s")
    elif status != 0:
        run.complain(f"exit status {status}")
    left = run.kill_what_is_left()
    if left:
        run.complain(f"{len(left)} processes are left")
    names = sorted(path.name for path in (run.folder / "tmp").rglob("*"))
    names += [name for name in ("pid", "pid.2", "socket") if (run.folder / name).exists()]
    if names:
        run.complain(f"{len(names)} files are left: {', '.join(names[:3])}")


PHASES = {
    "start": start,
    "load": load,
    "HUP": hang_up,
    "TTIN, TTOU": more_and_fewer,
    # What the worker was at is lost with it, at most one request of each sender.
    "kill -9": kill,
    "recycle": recycle,
    "USR2": upgrade,
}
