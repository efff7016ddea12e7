"""What an application has to show beside its answers; each check returns complaints."""

import sqlite3
from collections import Counter
from contextlib import closing

from tools.compat_serve.run import Run


def rows(run: Run) -> list[str]:
    """One row for each request; what failed may have written one too."""
    with closing(sqlite3.connect(run.folder / "visits.db")) as database:
        found = Counter(dict(database.execute("SELECT pid, count(*) FROM visits GROUP BY pid")))
    return unequal(run, "rows", found)


def unequal(run: Run, what: str, found: Counter[int], *, lost: bool = False) -> list[str]:
    """Compare numbers by worker with its right answers; requests that failed may count or not.

    lost: whether a worker that was killed may have taken some with it.
    """
    failed = run.client.total.errors.total()
    wrong = []
    for pid in sorted(found.keys() | run.client.total.pids.keys()):
        more = found[pid] - run.client.total.pids[pid]
        if (more < 0 and not (lost and pid in run.killed)) or more > failed:
            wrong.append(f"{found[pid]} {what} for {run.client.total.pids[pid]} answers")
    if not found:
        return [f"no {what} at all"]
    return [f"{len(wrong)} workers, e.g. {wrong[0]}"] if wrong else []


def lifespans(run: Run) -> list[str]:
    """Each worker that answered came up once, and went down unless it was killed."""
    lines = (run.folder / "lifespan.txt").read_text("utf-8").split("\n")
    noted = Counter(lines)
    complaints = []
    for pid in sorted(run.client.total.pids):
        expected = (1, 0 if pid in run.killed else 1)
        found = (noted[f"up {pid}"], noted[f"down {pid}"])
        if found != expected:
            complaints.append(f"a worker came up {found[0]} times and went down {found[1]} times")
    return complaints[:1]
