"""What an application has to show beside its answers; each check returns complaints."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing

from tools.compat_serve.client import get
from tools.compat_serve.run import WORKERS, Run

INTERNAL_ERROR = 500


def unequal(run: Run, what: str, found: Counter[int], *, lost: bool = False) -> list[str]:
    """Compare numbers by worker with its right answers; requests that failed may count or not.

    lost: whether a worker that was killed may have taken some with it.
    """
    if not found:
        return [f"no {what} at all"]
    failed = run.client.total.errors.total()
    wrong = []
    for pid in sorted(found.keys() | run.client.total.pids.keys()):
        more = found[pid] - run.client.total.pids[pid]
        if (more < 0 and not (lost and pid in run.killed)) or more > failed:
            wrong.append(f"{found[pid]} {what} for {run.client.total.pids[pid]} answers")
    return [f"{len(wrong)} workers, e.g. {wrong[0]}"] if wrong else []


def numbers_in(run: Run, pattern: str) -> Counter[int]:
    """Count the numbers that stand in lines of files of the run, one a line."""
    found: Counter[int] = Counter()
    for path in run.folder.glob(pattern):
        found.update(int(line) for line in path.read_text("utf-8").split())
    return found


def rows(run: Run) -> list[str]:
    """One row for each request."""
    with closing(sqlite3.connect(run.folder / "visits.db")) as database:
        found = Counter(dict(database.execute("SELECT pid, count(*) FROM visits GROUP BY pid")))
    return unequal(run, "rows", found)


def tasks(run: Run) -> list[str]:
    """One background task for each request."""
    return unequal(run, "background tasks", numbers_in(run, "tasks.txt"), lost=True)


def lifespans(run: Run) -> list[str]:
    """Each worker that answered came up once, and went down unless it was killed."""
    noted = Counter((run.folder / "lifespan.txt").read_text("utf-8").split("\n"))
    for pid in sorted(run.client.total.pids):
        up, down = noted[f"up {pid}"], noted[f"down {pid}"]
        if (up, down) != (1, 0 if pid in run.killed else 1):
            return [f"a worker came up {up} times and went down {down} times"]
    return []


_ROOM = """
import sys
from websockets.sync.client import connect
for number in range(10):
    with connect(f"ws://127.0.0.1:{sys.argv[1]}/room") as link:
        link.send('{"text": "hello"}')
        if '"hello"' not in link.recv(timeout=10):
            sys.exit("another answer")
print("right")
"""


def room(run: Run) -> list[str]:
    """A websocket is answered over the channel layer, and a blocking view in its thread."""
    said = run.ask(_ROOM, str(run.address))
    status, _ = get(run.address, "/blocking")
    complaints = [] if said == "right" else [f"websocket: {said}"]
    return complaints if status == 200 else [*complaints, f"the blocking view: status {status}"]  # noqa: PLR2004


def an_error_arrives(run: Run) -> list[str]:
    """What a view raises is an event."""
    status, _ = get(run.address, "/fails")
    if status != INTERNAL_ERROR:
        return [f"status {status} of a view that raises"]
    run.until("the event of an exception", lambda: bool(_pids_of(run, raised=True)))
    return []


def events(run: Run) -> list[str]:
    """One event for each request; those of a worker that is killed at once may be lost."""
    assert run.sink is not None  # noqa: S101  # an application with this check has one
    found = Counter(_pids_of(run, raised=False))
    del found[0]  # the master's own, which logs that a worker was killed
    problems = run.sink.unreadable
    garbled = [f"{len(problems)} unreadable, e.g. {problems[0]}"] if problems else []
    return garbled + unequal(run, "events", found, lost=True)


def _pids_of(run: Run, *, raised: bool) -> list[int]:
    assert run.sink is not None  # noqa: S101  # an application with these checks has one
    sent = [event for event in run.sink.events if ("exception" in event) == raised]
    return [int(event.get("tags", {}).get("pid", 0)) for event in sent]


def spans(run: Run) -> list[str]:
    """One span for each request."""
    found = Counter(
        {
            int(path.stem.rpartition("-")[2]): len(path.read_text("utf-8").splitlines())
            for path in run.folder.glob("spans-*.txt")
        }
    )
    return unequal(run, "spans", found, lost=True)


def live_workers(run: Run) -> list[str]:
    """The metrics of all workers come from any of them."""
    _, text = get(run.address, "/metrics")
    return _sample(text, "live", range(WORKERS, WORKERS + 1))


_METRICS = """
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def metrics(run: Run) -> list[str]:
    """The sums are right when all workers are gone, and no worker counts as live."""
    text = run.ask(_METRICS)
    total = run.client.total
    requests = range(total.ok, total.ok + total.errors.total() + 1)
    complaints = _sample(text, "visits_total", requests) + _sample(text, "seconds_count", requests)
    # Without any worker there may be no file to read it from.
    return complaints + (_sample(text, "live", range(1)) if "\nlive " in text else [])


def _sample(text: str, name: str, expected: range) -> list[str]:
    found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
    if found is None:
        return [f"no sample of {name}"]
    if float(found[1]) in expected:
        return []
    return [f"{name} is {float(found[1]):g}, not {_said(expected)}"]


def _said(expected: range) -> str:
    return f"{expected[0]}" if len(expected) == 1 else f"{expected[0]} to {expected[-1]}"


def jobs(run: Run) -> list[str]:
    """The job ran in each worker that answered."""
    ran = numbers_in(run, "jobs.txt").keys()
    return _share("workers had no job", run.client.total.pids.keys() - ran, run.client.total.pids)


def jobs_of_workers_only(run: Run) -> list[str]:
    """The job ran in each worker that answered, and in no master."""
    ran = numbers_in(run, "jobs.txt").keys()
    return [*jobs(run), *_share("masters had a job", ran & set(run.masters), run.masters)]


def _share(what: str, some: Iterable[int], of: Iterable[int]) -> list[str]:
    count = len(list(some))
    return [f"{count} of {len(list(of))} {what}"] if count else []


_LINES = """
import glob, re
from coverage import CoverageData
(wanted,) = [n for n, line in enumerate(open("app.py"), 1) if "pid = os.getpid()" in line]
for path in glob.glob(".coverage.*"):
    data = CoverageData(path)
    data.read()
    names = [name for name in data.measured_files() if name.endswith("/app.py")]
    if any(wanted in data.lines(name) for name in names):
        print(re.search(r"[.]pid(\\d+)[.]|[.](\\d+)[.]", path).group(1) or "?")
"""


def covered(run: Run) -> list[str]:
    """Each worker that ended by itself has left the lines that it ran.

    Those of the second master do not count: it is started without coverage on both sides.
    """
    seen: set[int] = set()
    for name, phase in run.phases.items():
        if name == "USR2":
            break
        seen |= phase.counts.pids.keys()
    said = run.ask(_LINES).split()
    missing = seen - run.killed - {int(word) for word in said if word.isdecimal()}
    return _share("workers left no data", missing, seen)
