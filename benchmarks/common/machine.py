"""Describes the machine and the interpreter of a run, so that raw results can be judged later."""

import datetime as dt
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from benchmarks.common.errors import UsageError

_PROBE = """
import json, platform, sys, sysconfig
var = sysconfig.get_config_var
print(json.dumps({
    "python": platform.python_implementation() + " " + platform.python_version(),
    "python_compiler": platform.python_compiler(),
    "python_build_flags": (var("CONFIG_ARGS") or "").strip(),
    "python_optimisation": (var("PY_CFLAGS") or "").strip(),
    "libpython": "shared" if var("Py_ENABLE_SHARED") else "static",
    "free_threaded": "yes" if var("Py_GIL_DISABLED") else "no",
    "executable": sys.executable,
}))
"""


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor as the kernel gives it, or the architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    # aarch64 has no 'model name', only the numbers of implementer and part.
    if name := fields.get("model name"):
        return name
    if part := fields.get("CPU part"):
        return f"{platform.machine()} implementer {fields.get('CPU implementer', '?')} part {part}"
    return platform.machine()


# Of modules that are called otherwise on PyPI.
_DISTRIBUTIONS = {"guppy": "guppy3"}


def _package_version() -> str:
    """Return the version of the package, with the commit when it lies in its own checkout."""
    try:
        version = metadata.version("cpythonplus")
    except metadata.PackageNotFoundError:
        version = "not installed"
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        top = git("rev-parse", "--show-toplevel")
        # A virtual environment may lie in somebody else's checkout, whose commit says nothing.
        if top and (Path(top) / "src" / "cpythonplus" / "__init__.py").is_file():
            commit = git("describe", "--always", "--dirty", "--tags")
            return f"{version} ({commit or 'no commit'})"
    except (OSError, subprocess.SubprocessError):
        pass
    return version


def describe(
    python: str, peers: Sequence[str] = (), programs: Sequence[str] = ()
) -> dict[str, str]:
    """Describe this machine and the interpreter `python`; values are text.

    `peers` are packages installed for it whose versions belong to the description, and `programs`
    what was measured beside it; `PROGRAM version` tells theirs. Raises UsageError with one line
    when the interpreter or a program does not run.
    """
    interpreter: dict[str, str] = json.loads(_ask(python, _PROBE))
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "load_before": f"{os.getloadavg()[0]:.2f}",
        **interpreter,
        "cpythonplus": _package_version(),
        **({"peers": _versions(python, peers)} if peers else {}),
        **{program: _output(program, "version").strip() for program in programs},
    }


def _versions(python: str, packages: Sequence[str]) -> str:
    code = (
        "import importlib.metadata as m, sys; "
        "print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    )
    return _ask(python, code, *(_DISTRIBUTIONS.get(p, p) for p in packages)).strip()


def missing_modules(python: str, *modules: str) -> list[str]:
    """Return those of `modules` that `python` does not find. Raises UsageError if it can't run."""
    code = (
        "import importlib.util as u, sys; "
        "print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
    )
    return _ask(python, code, *modules).split()


def scripts_folder(python: str) -> str:
    """Return the folder of the console scripts installed for `python`. Raises UsageError."""
    code = "import sysconfig; print(sysconfig.get_path('scripts'))"
    return _ask(python, code).strip()


def _ask(python: str, code: str, *arguments: str) -> str:
    return _output(python, "-c", code, *arguments, what="the interpreter ")


def _output(program: str, *arguments: str, what: str = "") -> str:
    """Return what `program` prints; UsageError when it does not end well."""
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"cannot run {what}{program}: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"{what}{program} does not work: {last}")
    return done.stdout
