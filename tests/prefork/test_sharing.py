"""`sharing` and `private_bytes`: a process and its descendants, as the kernel counts them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from cpythonplus._doctor.questions import taken
from cpythonplus._doctor.report.text import part_text
from cpythonplus.prefork._blame.sharing import ProcessMemory, Sharing, private_bytes, sharing
from tests.support import run_child


def test_a_family() -> None:
    run_child(
        """
        import os, sys, threading
        from cpythonplus.prefork._blame.sharing import private_bytes, sharing

        WRITTEN = 8 << 20
        big = bytearray(b"x") * WRITTEN
        ready, end = os.pipe(), os.pipe()

        def wait():
            os.write(ready[1], b"x")
            os.read(end[0], 1)

        def fork(function):
            pid = os.fork()
            if pid == 0:
                try:
                    function()
                finally:
                    os._exit(0)
            return pid

        def writer():
            for i in range(0, WRITTEN, 4096):
                big[i] = 1
            wait()

        def parent():
            fork(wait)
            wait()

        children = [fork(wait), fork(writer), fork(parent)]
        for _ in range(4):
            assert os.read(ready[0], 1)
        found = sharing()
        assert found.processes[0].pid == os.getpid()
        pids = [each.pid for each in found.processes]
        assert len(pids) == 5, found
        assert pids.index(children[2]) == len(pids) - 2  # its child comes behind it
        assert set(children) < set(pids)
        by_pid = {each.pid: each for each in found.processes}
        quiet, written = by_pid[children[0]], by_pid[children[1]]
        assert written.private_bytes - quiet.private_bytes > 0.9 * WRITTEN, found
        assert quiet.shared_bytes > 0.9 * WRITTEN, found
        total = found.total
        assert total.resident_bytes > total.proportional_bytes > total.private_bytes, found
        assert sharing(children[2]).processes[0].pid == children[2]
        assert len(sharing(children[2]).processes) == 2
        assert private_bytes(children[1]) > 0.9 * WRITTEN
        os.write(end[1], b"four")
        for pid in children:
            os.waitpid(pid, 0)
        """
    )


def test_this_process() -> None:
    memory = sharing().processes[0]
    assert memory.pid == os.getpid()
    assert memory.name == Path("/proc/self/comm").read_text().rstrip("\n")
    assert 0 < memory.private_bytes <= memory.proportional_bytes <= memory.resident_bytes
    assert private_bytes() % 1024 == 0


@pytest.mark.any_version
def test_a_child_that_has_ended_is_left_out() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert ended.pid not in [each.pid for each in sharing().processes]
        with pytest.raises(ProcessLookupError, match="there is no running process"):
            private_bytes(ended.pid)


@pytest.mark.any_version
@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test_processes_that_are_not_there(pid: int) -> None:
    with pytest.raises(ProcessLookupError, match=f"^there is no running process {pid}$"):
        private_bytes(pid)
    with pytest.raises(ProcessLookupError, match=f"^there is no running process {pid}$"):
        sharing(pid)


def test_another_users_process() -> None:
    child = run_child(
        """
        import os
        from cpythonplus.prefork._blame.sharing import private_bytes

        other = 1
        if os.geteuid() == 0:
            other = os.getppid()
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        try:
            private_bytes(other)
        except PermissionError as error:
            print(error)
        """
    )
    assert ": it belongs to another user" in child.out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a /proc of one's own")
def test_a_process_that_proc_hides() -> None:
    """hidepid=2: of another user's process there is no folder."""
    child = run_child(
        """
        import ctypes
        import os
        import subprocess

        from cpythonplus.prefork._blame.blaming import blame
        from cpythonplus.prefork._blame.sharing import private_bytes

        CLONE_NEWNS = 0x20000
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
        subprocess.run(["mount", "--make-private", "/proc"], check=True)
        subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
        other = os.getppid()
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        assert not os.path.exists(f"/proc/{other}")
        for look in (private_bytes, blame):
            try:
                look(other)
            except PermissionError as error:
                print(str(error)[:50])
        """
    )
    assert child.out.count("cannot read the memory of process") == 2


@pytest.mark.any_version
def test_it_is_printed_as_a_table() -> None:
    found = Sharing(
        (
            ProcessMemory(7, "gunicorn", 260 << 20, 100 << 20, 250 << 20, 10 << 20),
            ProcessMemory(123, "worker", 270 << 20, 90 << 20, 240 << 20, 30 << 10),
        )
    )
    head, master, worker, total = (" ".join(line.split()) for line in str(found).splitlines())
    assert head == "process pid resident proportional shared private"
    assert master == "gunicorn 7 260 MiB 100 MiB 250 MiB 10 MiB"
    assert worker == "worker 123 270 MiB 90 MiB 240 MiB 30 KiB"
    assert total == "total 530 MiB 190 MiB 490 MiB 10 MiB"
    assert found.as_json()["total"]["private_bytes"] == (10 << 20) + (30 << 10)


@pytest.mark.any_version
def test_it_is_a_part_of_a_report() -> None:
    """Of `doctor PID`: the largest rows, and the total beside."""
    rows = tuple(ProcessMemory(n, f"worker {n}", 4 << 20, 0, 0, 0) for n in range(1, 4))
    text = part_text("sharing", Sharing(rows).as_json(), top=2)
    assert text.splitlines()[-1] == "  and 1 more"
    assert re.search(r"worker 2 .*\n  total .* 12 MiB", text)
    assert "worker 3" not in text
    assert taken("sharing")["processes"]


@pytest.mark.any_version
def test_it_is_asked_for_where_prefork_is_in_use() -> None:
    """Elsewhere the import would take 2 MiB in a process that is to be examined."""
    code = """
        import sys
        from cpythonplus._doctor.agent.examining import hello

        def offered():
            return "sharing" in [each["name"] for each in hello()["examinations"]]

        assert not offered() and "cpythonplus.prefork" not in sys.modules
        import cpythonplus.prefork
        assert offered()
        """
    run_child(code)
