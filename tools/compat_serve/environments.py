"""One virtual environment for each group of applications, kept between runs, with pinned packages.

Made of the interpreter that runs this, from wheels only: an interpreter that is new has none yet of
some packages, and that is told instead of building them.  The package under test is the wheel that
tools/setup_env.py has built, installed as a user would.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TextIO

PINS = Path(__file__).parent / "pins.txt"
INSTALL_S = 900.0

GROUPS = {
    "django": (
        "django",
        "djangorestframework",
        "channels",
        "flask",
        "sentry-sdk",
        "uvicorn-worker",
        "websockets",
    ),
    "flask": ("flask", "sqlalchemy", "sentry-sdk", "prometheus-client", "apscheduler", "coverage"),
    "asgi": ("fastapi", "starlette", "uvicorn-worker", "httptools", "uvloop"),
    "opentelemetry": ("flask", "opentelemetry-instrumentation-flask", "opentelemetry-sdk"),
    "gevent": ("flask", "gevent", "packaging"),  # gunicorn's worker imports it
    "grpc": ("flask", "grpcio"),
    "data": ("flask", "numpy", "pandas", "pyarrow"),
}
_OURS = ("gunicorn", "rich")


class NoEnvironmentError(Exception):
    """One line that says what cannot be installed."""


_locks: list[TextIO] = []


def root() -> Path:
    """Return the folder of all environments."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "cpythonplus", "compat-serve")


def wheel() -> Path:
    """Return the wheel of this checkout, for this interpreter."""
    built = os.environ.get("CPYTHONPLUS_BUILD_DIR")
    found = sorted(Path(built, "wheel").glob("*.whl")) if built else []
    if len(found) != 1:
        raise NoEnvironmentError("there is no wheel to test: start it with make compat-serve")
    return found[0]


@cache
def ready(group: str) -> Path:
    """Return the folder of the group's environment, made or brought up to date.

    It belongs to this process until its end: another checkout would put its own wheel into it.
    """
    tag = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    folder = root() / f"{group}-{tag}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    _locks.append(lock)
    wanted = [*GROUPS[group], *_OURS]
    packages = _text_of(sys.version, PINS.read_text("utf-8"), *wanted)
    if _stamp(folder, "packages") != packages:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)], "venv")
        _pip(folder, "--only-binary=:all:", "--constraint", str(PINS), *wanted)
        (folder / "packages").write_text(packages, "utf-8")
    ours = wheel()
    content = hashlib.sha256(ours.read_bytes()).hexdigest()
    if _stamp(folder, "wheel") != content:
        _pip(folder, "--no-deps", "--force-reinstall", str(ours))
        (folder / "wheel").write_text(content, "utf-8")
    return folder


def versions(folder: Path, group: str) -> dict[str, str]:
    """Return the versions of gunicorn and of the packages that the group names."""
    program = (
        "import sys; from importlib.metadata import version as v; print(*map(v, sys.argv[1:]))"
    )
    names = ["gunicorn", *GROUPS[group]]
    command = [str(folder / "bin" / "python"), "-c", program, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.split(), strict=True))


def _stamp(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text("utf-8")
    except OSError:
        return ""


def _text_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _pip(folder: Path, *words: str) -> None:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
    _run([*pip, "install", *words], "pip")


def _run(command: list[str], what: str) -> None:
    """Run a step; the last line of what it says is the reason when it fails."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, capture_output=True, text=True, env=kept, check=False, timeout=INSTALL_S
    )
    if done.returncode == 0:
        return
    missing = re.search(r"No matching distribution found for ([\w.=<>-]+)", done.stderr)
    if missing:
        raise NoEnvironmentError(f"no wheel of {missing[1]}")
    lines = done.stderr.strip().splitlines() or ["no message"]
    raise NoEnvironmentError(f"{what}: {lines[-1]}")
