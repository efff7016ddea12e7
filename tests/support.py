"""What tests of several rooms share: programs in processes of their own, C compiled on the spot."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

SOURCES = Path(__file__).resolve().parent.parent / "src" / "cpythonplus"
SANITIZED = "CPYTHONPLUS_SANITIZER" in os.environ
BUILD = os.environ.get("CPYTHONPLUS_BUILD_DIR")
DEBUG = hasattr(sys, "gettotalrefcount")  # the interpreter asserts
HAS_JIT = hasattr(sys, "_jit") and sys._jit.is_available()
JIT_ON = hasattr(sys, "_jit") and sys._jit.is_enabled()
# For a child that looks at how memory lies: a debug build has checks around each block.
PYMALLOC = {"PYTHONMALLOC": "pymalloc"} if DEBUG else {}

# What all but debug builds begin with, see the documentation of `warnings`.
_USUAL_WARNINGS = (
    "ignore::ResourceWarning",
    "ignore::ImportWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::DeprecationWarning",
    "default::DeprecationWarning:__main__",
)
FREE_THREADED = "t" in sys.abiflags
"""How the interpreter is built, whether its GIL is on or not; see the marker `needs_gil`."""
WITHOUT_GIL = "needs an interpreter that is built with a GIL"

AT_START = ["cpythonplus", "cpythonplus._start"] if sys.version_info >= (3, 15) else []
"""What of the package every interpreter loads, also for nothing (`cpythonplus.start`)."""

LOAD, LONGEST_S = 5, 500
"""How much longer than their tests say children may take, since a limit only ends what hangs.

The most seconds are below faulthandler_timeout.
"""

WITH_CTRL_C = ("env", "--default-signal=INT")
"""In front of a command that is to be interrupted: under nohup it would inherit that it is not."""

is_built = pytest.mark.skipif(
    BUILD is None, reason="CPYTHONPLUS_BUILD_DIR is not set: use make test"
)


@dataclass(frozen=True)
class Child:
    """What a process left behind."""

    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def own_children() -> set[int]:
    """Return the PIDs of this process's children, also of those that nobody has waited for."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has ended
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@contextmanager
def under(umask: int) -> Iterator[None]:
    """Have this process make files under another umask."""
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def child_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment, without what would switch anything on in the child."""
    result = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "CPYTHONPLUS_RUN"))
    }
    if DEBUG:
        # It shows all warnings: what a program leaves open at its end, to begin with.
        result.setdefault("PYTHONWARNINGS", ",".join(_USUAL_WARNINGS))
    for name, value in (changes or {}).items():
        # A sanitizer's library has to stay the first one.
        joined = name == "LD_PRELOAD" and result.get(name)
        result[name] = f"{result[name]}:{value}" if joined else value
    return result


def start_child(
    path: Path, *, env: Mapping[str, str] | None = None, args: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start the program at `path` in a session of its own, with pipes."""
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(path), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
        env=child_environment(env),
        start_new_session=True,
    )


def finish_child(process: subprocess.Popen[str], *, timeout: float) -> Child:
    """Wait for its end; a child that hangs fails the test with the stacks of all its threads.

    timeout: the most seconds that it takes on a machine without other load.
    """
    limit = min(LOAD * timeout, LONGEST_S)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # faulthandler prints the stacks
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            _kill_session(process)
            out, err = process.communicate()
        ended = Child(process.returncode, out, err)
        pytest.fail(f"the child did not end within {limit:g} s\n{ended}")
    finally:
        _kill_session(process)
    return Child(process.returncode, out, err)


def _kill_session(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_child(
    code: str,
    *,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    args: Sequence[str] = (),
    status: int | None = 0,
) -> Child:
    """Run `code` as a script of its own, since it may crash or hang.

    timeout: see finish_child.  status: the exit status that it must have; None: any.  Whatever
    goes wrong fails the test with the child's output.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(dedent(code))
        child = finish_child(start_child(path, env=env, args=args), timeout=timeout)
    if status is not None and child.status != status:
        pytest.fail(f"the child ended with {child.status} instead of {status}\n{child}")
    return child


def compile_c(output: Path, sources: Sequence[Path], *flags: str) -> Path:
    """Compile C sources of the checkout or of a test with the system's compiler."""
    compiler = shlex.split(os.environ.get("CC", "cc"))  # it may have arguments: "ccache gcc"
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    # No sanitizer's library inside the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [*compiler, "-std=c11", "-O1", "-g", f"-I{SOURCES}", *map(str, sources)]
    done = subprocess.run(
        [*command, *flags, "-pthread", "-ldl", "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        pytest.fail(done.stderr)
    return output


def c_file(name: str) -> Path:
    """Return the one C file of that name, wherever its feature's folder lies."""
    (found,) = SOURCES.rglob(name)
    return found


def interp_sources() -> list[Path]:
    """Return the C of `_interp` and of what it needs, without its binding."""
    room = [path for path in (SOURCES / "_interp").rglob("*.c") if path.name != "facts_py.c"]
    names = (
        "address_table",
        "copy_memory",
        "granules",
        "own_memory",
        "raise",
        "record_table",
        "segments",
    )
    return [*room, *(c_file(f"{name}.c") for name in names)]


def run_c_program(name: str, env: Mapping[str, str] | None = None) -> None:
    """Run a C test program that was built beside the wheel, `room/test_what`."""
    program = Path(BUILD or "", "tests", name.replace("/", "_"))
    assert program.exists(), f"{name} is not in tests/meson.build"
    # The sanitizers of the interpreter's process are not the program's own.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment | dict(env or {}),
    )
    assert done.returncode == 0, done.stdout + done.stderr
