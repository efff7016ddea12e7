"""What docs/how-to/containers.md says was measured, in namespaces and under seccomp."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent

import pytest

from tests import confined
from tests.prefork.serving import APP, python_path, running, until
from tests.support import SANITIZED, child_environment

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.any_version,
    pytest.mark.skipif(SANITIZED, reason="a sanitizer does not live there"),
]

PROGRAM = """
import json, os, sys, threading
from cpythonplus import gil, threads
tools = [name for name in ("sh", "cc") if os.access(f"/usr/bin/{name}", os.X_OK)]
print(json.dumps([os.getpid(), os.getuid(), gil.active(), threads.patched(), tools]), flush=True)
sys.stdin.read()
"""
NOBODY = 65534
UNKNOWN = 54321
"""A user without a name, as OpenShift picks one."""
REFUSED = ("ptrace", "process_vm_readv", "process_vm_writev", "perf_event_open", "membarrier")


@pytest.fixture
def root() -> None:
    """Skips where namespaces cannot be made."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, unshare and setpriv")
    tried = subprocess.run(["unshare", "-mpf", "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("namespaces cannot be made here")


@contextmanager
def program(
    *front: str, runner: Sequence[str] = ("cpythonplus", "run"), warned: bytes = b""
) -> Iterator[list[object]]:
    """Run PROGRAM under `front`; its process's number as seen from here, and what it printed.

    warned: what `run` says before that.
    """
    with subprocess.Popen(
        [*front, sys.executable, "-m", *runner, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=child_environment(),
    ) as process:
        assert process.stdout is not None
        if warned:
            assert process.stdout.readline() == warned
        line = process.stdout.readline()
        try:
            said = json.loads(line)
        except ValueError:
            pytest.fail(f"{line!r} {process.communicate()[0]!r}")
        pid = process.pid
        if said[0] == 1:  # `unshare --fork` stays, as its parent
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            pid = int(found)
        yield [pid, *said]
        process.communicate()


def doctor(pid: object, *front: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*front, sys.executable, "-m", "cpythonplus", "doctor", "attach", str(pid)],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env=child_environment(),
        timeout=300,
    )


def as_user(uid: int) -> tuple[str, ...]:
    number = str(uid)
    return ("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups")


def in_mounts(*commands: str) -> tuple[str, ...]:
    """In a mount namespace of its own, after these commands of a shell."""
    script = " && ".join(["mount --make-rprivate /", *commands, 'exec "$@"'])
    return ("unshare", "-m", "sh", "-c", script, "sh")


NEEDED = {Path(each).resolve() for each in (sys.prefix, sys.base_prefix, sys.executable)}
"""The environment and the interpreter, which may lie below a folder that a test covers."""


def cover(folder: str | Path, *, mode: str = "1777") -> str:
    """A command of a shell: `folder` becomes empty, but for what this Python needs there."""
    stage = "/sys"  # is everywhere, and no Python is in it
    commands = [f"mount -t tmpfs -o mode={mode} none {stage}"]
    below = {path for path in NEEDED if path.is_relative_to(folder)}
    for path in (path for path in below if below.isdisjoint(path.parents)):
        place = Path(stage, path.relative_to(folder))
        made = place if path.is_dir() else place.parent
        commands.append(f"mkdir -p {shlex.quote(str(made))}")
        if not path.is_dir():
            commands.append(f": > {shlex.quote(str(place))}")
        commands.append(f"mount --bind {shlex.quote(str(path))} {shlex.quote(str(place))}")
    return " && ".join([*commands, f"mount --move {stage} {shlex.quote(str(folder))}"])


# ---- seccomp ------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_system_calls_that_profiles_refuse_are_not_needed(error: str) -> None:
    with program(*confined.command(REFUSED, error, [])) as (pid, *said):
        assert said[2:4] == [True, True]
        done = doctor(pid)
        assert done.returncode == 0, done
        assert "live Python objects" in done.stdout


# ---- a read-only root ---------------------------------------------------------------------------

READ_ONLY = (cover("/tmp"), "mount -o remount,ro /tmp", "mount -o remount,ro,bind /")


def test_a_read_only_root_costs_the_doctor_only(root: None) -> None:
    warned = (
        b"cpythonplus run: no doctor for this process: no folder for its socket"
        b" (Read-only file system); set XDG_RUNTIME_DIR, or use --no-doctor\n"
    )
    with program(*in_mounts(*READ_ONLY), warned=warned) as (pid, *said):
        assert said[2:4] == [True, True]
        done = doctor(pid)
        assert done.returncode == 1
        assert "it has no folder for its socket: " in done.stderr
        assert "is on a read-only file system; set its XDG_RUNTIME_DIR" in done.stderr


def test_with_a_writable_tmp_the_doctor_is_there(root: None) -> None:
    mounts = (cover("/tmp"), "mount -o remount,ro,bind /")
    with program(*in_mounts(*mounts)) as (pid, *_):
        done = doctor(pid)
        assert done.returncode == 0, done


def test_serve_needs_a_folder_for_gunicorn(root: None, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(dedent(APP))

    def serve(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["cpythonplus", "serve", "app:app", "--bind", "127.0.0.1:0", *words]
        # It ends itself, once a worker serves.
        end = "import os\ndef post_worker_init(worker): os.kill(os.getppid(), 15)\n"
        (tmp_path / "conf.py").write_text(end)
        mounts = (f"mkdir -p {shared}", f"mount --bind {tmp_path} {shared}", *READ_ONLY)
        return subprocess.run(
            [*in_mounts(*mounts), sys.executable, "-m", *command, "-c", f"{shared}/conf.py"],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env=child_environment({"PYTHONPATH": python_path(Path(shared))}),
            timeout=300,
        )

    shared = tempfile.mkdtemp(dir="/var")
    try:
        without, done = serve(), serve("--worker-tmp-dir", "/dev/shm")
    finally:
        Path(shared).rmdir()
    assert without.returncode != 0
    assert "No usable temporary directory" in without.stderr, without
    assert done.returncode == 0, done
    assert "Booting worker" in done.stderr


# ---- users --------------------------------------------------------------------------------------


@pytest.fixture
def opened(root: None) -> tuple[str, ...]:
    """What begins a command line so that another user can read this Python: homes are closed."""
    folders = (next(filter(is_closed, reversed(path.parents)), None) for path in NEEDED)
    closed = {each for each in folders if each is not None}
    return in_mounts(*(cover(each, mode="755") for each in sorted(closed)))


def is_closed(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o001


@pytest.mark.parametrize("uid", [NOBODY, UNKNOWN])
def test_any_user_will_do(opened: tuple[str, ...], uid: int) -> None:
    with program(*opened, *as_user(uid)) as (pid, *said):
        assert said[1:4] == [uid, True, True]
        assert doctor(pid, *opened, *as_user(uid)).returncode == 0
        assert doctor(pid).returncode == 0  # root
        other = doctor(pid, *opened, *as_user(uid - 1))
        assert other.returncode == 1, other
        assert f"process {pid} (python) belongs to" in other.stderr


# ---- PID namespaces, hidepid --------------------------------------------------------------------

NAMESPACE = ("unshare", "-mpf", "--mount-proc")


def test_a_process_of_another_pid_namespace_is_found_by_its_number_here(root: None) -> None:
    with program(*NAMESPACE) as (pid, inner, *said):
        assert inner == 1
        assert pid != 1
        assert said[1:3] == [True, True]
        done = doctor(pid)
        assert done.returncode == 0, done


def test_a_container_with_its_own_tmp_is_reached_from_outside(root: None) -> None:
    own = in_mounts("mount -t proc proc /proc", cover("/tmp"))
    with program("unshare", "-mpf", *own[2:]) as (pid, inner, *_):
        assert inner == 1
        assert doctor(pid).returncode == 0


def test_hidepid_hides_nothing_of_ones_own(opened: tuple[str, ...]) -> None:
    script = f"mount -t proc -o hidepid=2 proc /proc && {opened[4]}"
    front = (*opened[:4], script, "sh")
    look = "-c", "import os; print('1' in os.listdir('/proc'))"
    words = [*front, *as_user(NOBODY), sys.executable, *look]
    assert subprocess.run(words, check=True, capture_output=True, cwd="/").stdout == b"False\n"
    with program(*front, *as_user(NOBODY)) as (pid, *said):
        assert said[2:4] == [True, True]
        assert doctor(pid, *front, *as_user(NOBODY)).returncode == 0


# ---- nothing but Python -------------------------------------------------------------------------


def test_no_shell_and_no_compiler_are_needed(root: None) -> None:
    with program(*in_mounts(cover("/usr/sbin"), cover("/usr/bin"))) as (pid, *said):
        assert said[2:5] == [True, True, []]
        assert doctor(pid).returncode == 0


# ---- memory -------------------------------------------------------------------------------------

CGROUP = Path("/sys/fs/cgroup")


@contextmanager
def limited(limit_bytes: int) -> Iterator[Path]:
    """A control group of memory with a limit; the file that a process joins it by."""
    second = (CGROUP / "cgroup.controllers").exists()
    parent = CGROUP if second else CGROUP / "memory"
    try:
        folder = Path(tempfile.mkdtemp(prefix="cpythonplus-test-", dir=parent))
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        limit = folder / ("memory.max" if second else "memory.limit_in_bytes")
        if not limit.exists():
            pytest.skip("no controller of memory here")
        limit.write_text(str(limit_bytes))
        yield folder / "cgroup.procs"
    finally:
        until(lambda: not (folder / "cgroup.procs").read_text(), "an empty group")
        folder.rmdir()


@pytest.mark.slow
def test_a_worker_that_the_kernel_kills_is_replaced(root: None, tmp_path: Path) -> None:
    words = ("--metrics", "/metrics", "--timeout", "0")
    with limited(300 << 20) as members, running(tmp_path, *words, app=APP) as server:
        server.ready(1)
        first = server.workers()
        for pid in (server.process.pid, *first):
            members.write_text(str(pid))
        with suppress(OSError):
            for _ in range(200):
                server.get("/grow")
        until(lambda: not first & server.workers() and server.workers(), "another worker")
        server.ready(1)
        assert server.process.poll() is None
        # Of version 1 the kernel counts for the whole machine, where others may fall too.
        assert server.metric("worker_restarts_total", reason="out_of_memory") == 1
