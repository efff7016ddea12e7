"""Runs a report's program, asks each tool once, and compares what it says with the cause.

A tool that names the cause in the first place is *exact*; one that says something that leads there
(the package, the class of what is kept) is *near*; else it said *nothing* of it.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.memory.reports.catalogue import Report
from cpythonplus._doctor.report.verdict import statements

__all__ = ["TOOLS", "Verdict", "judged"]

TOOLS = ("attach", "memray", "tracemalloc", "objgraph", "guppy3")
"""`attach` is `memray attach`; the others are in the program from its start."""
Verdict = dict[str, str]
"""`said`, the first sentence or line; `verdict`."""
_HERE = Path(__file__).parent
_LIMIT_S = 600
_ENDS_S = 3.0
"""The tracer has written its file by then."""
_PATHS = re.compile(r"/\S*/(?:site-packages|memory/reports|python3\.\d+)/")
"""An environment is called like its report: that a path has the name says nothing."""


def judged(report: Report, python: Path, seconds: float) -> dict[str, Any]:
    """Return what each tool said of a report, by tool."""
    found: dict[str, Any] = {"name": report.name}
    with _service(python, report.name) as pid:
        for name, words in (("doctor", []), ("native", ["--native"])):
            asked = ["doctor", "growth", *words, "--seconds", f"{seconds:g}", str(pid)]
            found[name] = _verdict(report, _sentences(python, asked))
        found["attach"] = _attached(report, python, seconds, pid)
    for tool in TOOLS[1:]:
        found[tool] = _told(report, [str(python), str(_HERE / "serve.py"), report.name, tool])
    return found


def _attached(report: Report, python: Path, seconds: float, pid: int) -> Verdict:
    """Attach memray, which needs gdb or lldb up to 3.13, for so many seconds."""
    with TemporaryDirectory() as folder:
        file = f"{folder}/records"
        asked = ["attach", "--native", "--duration", f"{seconds:.0f}", "-o", file, str(pid)]
        done = _run([str(python), "-m", "memray", *asked])
        if done.returncode:
            return _failed(done)
        time.sleep(seconds + _ENDS_S)
        return _told(report, [str(python), str(_HERE / "serve.py"), "--read", file])


def _told(report: Report, command: list[str]) -> Verdict:
    """Return the verdict on the last line that a command prints, as JSON."""
    done = _run(command)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return _failed(done)
    return _verdict(report, [json.loads(lines[-1])])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)


def _failed(done: subprocess.CompletedProcess[str]) -> Verdict:
    error = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return {"said": error, "verdict": "failed"}


@contextmanager
def _service(python: Path, name: str) -> Iterator[int]:
    """Yield the PID of the program, under `cpythonplus run`, when it has warmed up."""
    command = [str(python), "-m", "cpythonplus", "run", str(_HERE / "serve.py"), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None  # noqa: S101
            if service.stdout.readline() != "ready\n":
                raise RuntimeError(f"{name}: the program did not start")
            yield service.pid
        finally:
            service.kill()


def _sentences(python: Path, words: list[str]) -> list[str]:
    """Return the sentences that the report begins with, or the one line on why there is none."""
    done = _run([str(python), "-m", "cpythonplus", *words, "--format", "json"])
    if done.returncode:
        return [done.stderr.strip()]
    return [each.sentence for each in statements(json.loads(done.stdout))]


def _verdict(report: Report, sentences: list[str]) -> Verdict:
    sentences = [_PATHS.sub("", each) for each in sentences]
    first = sentences[0] if sentences else "-"
    if first.startswith("cpythonplus doctor: "):
        verdict = "refused"
    elif re.search("|".join(filter(None, (report.exact, report.line))), first):
        verdict = "exact"
    elif any(re.search(f"{report.exact}|{report.near}", each) for each in sentences):
        verdict = "near"
    else:
        verdict = "nothing"
    return {"said": first, "verdict": verdict, "all": "\n".join(sentences)}
