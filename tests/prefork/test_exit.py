"""fast_exit, and the light end of children: what a program can see of its end is as ever."""

import signal
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import run_child

# What happens at the end of a process, in order; written with one system call each.
TELL = """
import atexit, os, sys, threading

def tell(text):
    os.write(1, text.encode() + b"\\n")

class Guard:
    def __del__(self, write=os.write):
        write(1, b"finalised\\n")

atexit.register(tell, "registered before")
from cpythonplus import prefork
"""

AT_END = """
atexit.register(tell, "registered after")
gate = threading.Event()
def work():
    gate.wait()
    tell("thread done")
threading.Thread(target=work).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
guard = Guard()
file = open(sys.argv[1], "w")
file.write("buffered")
print("printed")
gate.set()
"""

IN_ORDER = ["thread done", "registered after", "registered before", "printed", ""]


# Else what is printed does not wait in a buffer.
BUFFERED = {"PYTHONUNBUFFERED": ""}


def end(program: str, path: Path, status: int) -> str:
    done = run_child(TELL + AT_END + dedent(program), args=[str(path)], env=BUFFERED, status=status)
    assert path.read_text() == "buffered"
    return done.out


@pytest.mark.parametrize(
    ("argument", "status"), [("", 0), ("0", 0), ("3", 3), ("None", 0), ("True", 1), ("-1", 255)]
)
def test_fast_exit_ends_in_order(tmp_path: Path, argument: str, status: int) -> None:
    out = end(f"prefork.fast_exit({argument})", tmp_path / "file", status)
    assert out.split("\n") == IN_ORDER


def test_fast_exit_with_a_message(tmp_path: Path) -> None:
    program = TELL + "prefork.fast_exit('went wrong')"
    done = run_child(program, args=[str(tmp_path)], status=1)
    assert done.err == "went wrong\n"


def test_fast_exit_leaves_the_heap_alone(tmp_path: Path) -> None:
    assert "finalised" in run_child(TELL + "guard = Guard()").out
    assert "finalised" not in end("prefork.fast_exit()", tmp_path / "file", 0)


def test_fast_exit_is_for_the_main_thread() -> None:
    run_child(
        TELL
        + dedent("""
        def work():
            try:
                prefork.fast_exit(4)
            except RuntimeError as error:
                tell(str(error))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """)
    )


def test_an_exit_function_that_raises(tmp_path: Path) -> None:
    program = dedent("""
        def fail():
            raise LookupError("in an exit function")
        atexit.register(fail)
        prefork.fast_exit(7)
    """)
    done = run_child(TELL + program, status=7)
    assert "LookupError: in an exit function" in done.err
    assert "registered before" in done.out


def test_a_hook_that_raises_does_not_keep_the_process() -> None:
    run_child(
        """
        import atexit, sys
        from cpythonplus import prefork
        def fail(*_):
            raise LookupError
        sys.unraisablehook = fail
        atexit.register(fail)
        prefork.fast_exit(3)
        """,
        status=3,
    )


@pytest.mark.parametrize("outer", ["prefork.fast_exit(3)", "sys.exit(3)"])
def test_fast_exit_in_an_exit_function_does_not_begin_again_and_again(outer: str) -> None:
    # It cannot know which of them ran already, so one may run twice.
    program = TELL + dedent("""
        atexit.register(prefork.fast_exit, 3)
        atexit.register(tell, "registered after")
    """)
    lines = run_child(program + outer, status=3).out.split("\n")
    assert lines.count("registered before") == 1
    assert 1 <= lines.count("registered after") <= 2


def test_a_child_that_an_exit_function_forks() -> None:
    program = TELL + dedent("""
        forks = []
        def fork():
            forks.append(1)
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                return
            tell(f"child {len(forks)}")
            prefork.fast_exit()
        atexit.register(fork)
        prefork.fast_exit()
    """)
    assert run_child(program).out.split("\n").count("child 1") == 1


@pytest.mark.slow
@pytest.mark.parametrize("end", ["prefork.fast_exit(3)", "sys.exit(3)"])
def test_a_file_that_another_thread_does_not_let_go_of(tmp_path: Path, end: str) -> None:
    if end == "sys.exit(3)" and sys.version_info[:2] == (3, 12):
        pytest.skip("3.12 starts no thread in an exit function, and so waits for ever")
    # A daemon thread is in the middle of a write to a full pipe, and has the lock of the buffer.
    program = TELL + dedent("""
        import select
        reader, writer = os.pipe()
        pipe = open(writer, "wb")
        later = open(sys.argv[1], "w")
        prefork.prepare()
        threading.Thread(target=pipe.write, args=(bytes(10**6),), daemon=True).start()
        while select.select([], [writer], [], 0)[1]:
            pass
        later.write("written")
    """)
    path = tmp_path / "later"
    run_child(program + end, args=[str(path)], status=3, timeout=60)
    assert path.read_text() == "written"


def test_standard_output_that_cannot_be_written() -> None:
    run_child(
        """
        import sys
        from cpythonplus import prefork
        sys.stdout = open("/dev/full", "w")
        print("lost")
        prefork.fast_exit(3)
        """,
        status=120,
    )


def test_streams_that_are_not_there() -> None:
    run_child(
        """
        import sys
        from cpythonplus import prefork
        sys.stdout = sys.stderr = None
        prefork.fast_exit(6)
    """,
        status=6,
    )


# ---- temporary files ----------------------------------------------------------------------------

TEMPORARIES = """
    import os, sys, tempfile
    from cpythonplus import prefork
    def names(folder):
        return sorted(os.listdir(folder))
    folder = tempfile.tempdir = sys.argv[1]
    def make(owner):
        named = tempfile.NamedTemporaryFile(prefix=owner + "_dropped_")
        named.write(b"something")
        kept = tempfile.NamedTemporaryFile(prefix=owner + "_kept_", delete=False)
        closed = tempfile.NamedTemporaryFile(prefix=owner + "_closed_")
        closed.close()
        open(closed.name, "w").close()  # somebody else's by now
        gone = tempfile.NamedTemporaryFile(prefix=owner + "_gone_")
        os.unlink(gone.name)
        others = tempfile.TemporaryFile(), tempfile.SpooledTemporaryFile(max_size=1)
        others[1].write(b"more than one byte")
        return named, kept, closed, gone, others
    def kinds():
        return sorted("_".join(name.split("_")[:2]) for name in os.listdir(folder))
    of_parent = make("parent")
    # An exit function deletes it: in a worker only its own, else in whichever process comes first,
    # as in stock Python.
    directory_of_parent = tempfile.TemporaryDirectory(prefix="parent_directory_")
"""
OF_PARENT = ["parent_closed", "parent_dropped", "parent_kept"]
OF_CHILD = ["child_closed", "child_kept"]


@pytest.mark.parametrize(
    ("begin", "child", "end"),
    [
        ("prefork.install()", "", "sys.exit(3)"),
        ("prefork.install()", "", "prefork.fast_exit(3)"),
        ("prefork.prepare()", "prefork.child()", "raise SystemExit(3)"),
        ("prefork.prepare()", "", "prefork.fast_exit(3)"),
        ("", "", "prefork.fast_exit(3)"),
    ],
)
def test_temporary_files_are_deleted_by_whom_they_belong_to(
    tmp_path: Path, begin: str, child: str, end: str
) -> None:
    directory = ["parent_directory"] if "install" in begin else []
    program = dedent(TEMPORARIES) + dedent(f"""
        {begin}
        pid = os.fork()
        if pid == 0:
            {child}
            of_child = make("child")
            directory = tempfile.TemporaryDirectory(prefix="child_directory_")
            {end}
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 3, status
        assert kinds() == {sorted(OF_CHILD + OF_PARENT + directory)}, kinds()
    """)
    run_child(program, args=[str(tmp_path)])
    # The parent's own end, with an immortal heap or without.
    left = sorted("_".join(path.name.split("_")[:2]) for path in tmp_path.iterdir())
    assert left == [*OF_CHILD, "parent_closed", "parent_kept"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="delete_on_close is new in 3.12")
def test_a_temporary_file_that_its_closing_does_not_delete(tmp_path: Path) -> None:
    program = """
        import sys, tempfile
        from cpythonplus import prefork
        tempfile.tempdir = sys.argv[1]
        file = tempfile.NamedTemporaryFile(delete_on_close=False)
        file.close()
        prefork.fast_exit()
    """
    run_child(program, args=[str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


# ---- what a SystemExit would meet on its way ----------------------------------------------------


def test_who_waits_for_an_exception() -> None:
    run_child("""
        import contextlib, sys
        from cpythonplus.prefork._fork.exiting import is_awaited
        def ask():
            return is_awaited(sys._getframe())
        def plainly():
            return ask()
        def finally_():
            try:
                return ask()
            finally:
                pass
        def except_():
            try:
                return ask()
            except SystemExit:
                raise
        def with_():
            with contextlib.suppress(KeyError):
                return ask()
        def deeper():
            return with_()
        # Not in a comprehension: those of 3.12 handle exceptions themselves.
        assert not plainly()
        assert finally_() and except_() and with_() and deeper()
        def beside():
            try:
                pass
            finally:
                pass
            many = [n for n in range(3)]
            found = ask()
            with contextlib.suppress(KeyError):
                pass
            return found
        assert not beside()
        many = "x = str(1);" * 3000
        far = "def far():\\n try:\\n  " + many + "\\n  return ask()\\n finally: pass"
        found = dict(ask=ask)
        exec(far, found)
        assert found["far"]()
        assert not is_awaited(None)
        def named():
            try:
                return is_awaited(sys._getframe(), harmless=(__file__,))
            finally:
                pass
        assert not named()
    """)


# ---- children of a process that called install() -------------------------------------------------

FORK = (
    TELL
    + """
prefork.install()
heap = [[str(n)] for n in range(1000)]
pid = os.fork()
if pid:
    tell(f"status {os.waitpid(pid, 0)[1]}")
    os._exit(0)
"""
    + AT_END
)
ENDINGS = {
    "pass": 0,
    "sys.exit(3)": 3 << 8,
    "sys.exit('message')": 1 << 8,
    "raise SystemExit": 0,
    "raise ValueError": 1 << 8,
    "prefork.fast_exit(4)": 4 << 8,
    "raise KeyboardInterrupt": int(signal.SIGINT),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_children_end_with_their_status(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "file"
    done = run_child(FORK + ending, args=[str(path)], env=BUFFERED)
    lines = done.out.split("\n")
    # After the script the interpreter writes standard output out, before all of this.
    assert lines[-2] == f"status {ENDINGS[ending]}", done
    assert lines.count("printed") == 1
    assert "finalised" not in lines
    assert [line for line in lines if line in IN_ORDER[:3]] == IN_ORDER[:3]
    assert path.read_text() == "buffered"


def test_without_fast_exit_children_take_their_heap_apart() -> None:
    program = TELL + dedent("""
        prefork.install(fast_exit=False)
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            os._exit(0)
        sys.guard = Guard()  # not in a module whose dict is frozen in a cycle
    """)
    assert "finalised" in run_child(program).out


def test_enable_prepares_before_the_fork_and_again_when_the_heap_has_grown() -> None:
    run_child("""
        import os, sys, gc
        from cpythonplus import prefork
        warmed = []
        prefork.install(warm_up=lambda: warmed.append(1), prepare_again=1 << 40)
        def fork():
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        fork()
        assert warmed == [1]
        first = gc.get_freeze_count()
        assert first > 1000
        fork()
        assert gc.get_freeze_count() == first  # nothing to speak of was new
        more = [[n] for n in range(100_000)]
        fork()
        assert gc.get_freeze_count() >= first + 100_000 and warmed == [1]
        prefork.uninstall()
        even_more = [[n] for n in range(100_000)]
        fork()
        assert gc.get_freeze_count() < first + 200_000
    """)


def test_a_warm_up_that_fails_is_told_in_one_line_and_the_fork_goes_on() -> None:
    done = run_child("""
        import os
        from cpythonplus import prefork
        calls = []
        def warm_up():
            calls.append(1)
            raise LookupError("no such page")
        prefork.install(warm_up=warm_up, immortal=False, fill_pools=False)
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            assert len(calls) == 1, calls
    """)
    assert done.err.startswith(
        "cpythonplus prefork: the warm-up warm_up raised LookupError: no such page ("
    )
    assert done.err.count("\n") == 1


def test_a_child_that_goes_on_to_fork() -> None:
    run_child("""
        import os, sys
        from cpythonplus import prefork
        prefork.install()
        for depth in range(5):
            pid = os.fork()
            if pid:
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                sys.exit(0 if depth == 0 and status == 5 else status + (depth > 0) * 0)
        sys.exit(5)
    """)


def test_child_may_be_called_twice_and_elsewhere() -> None:
    done = run_child(
        TELL
        + dedent("""
        prefork.child()
        prefork.child()
        print("alone")
        """),
        env=BUFFERED,
    )
    assert done.out == "alone\nregistered before\n"


def test_the_light_end_of_a_grandchild_and_behind_a_wrapper() -> None:
    # As gevent does: it replaces threading._shutdown by a function that calls what was there.
    program = TELL + dedent("""
        import threading
        prefork.child()
        if os.fork() == 0:
            inherited = threading._shutdown
            prefork.child()
            assert threading._shutdown is inherited
            def wrapped(inner=threading._shutdown):
                tell("wrapped")
                inner()
                # As gevent does, whose modules are asked for anew.
                import colorsys
                sys.modules.pop("json", None)
                import json
                json.dumps([len(sys.modules) > 10, sys.maxsize])
                tell("and after it")
            threading._shutdown = wrapped
            guard = Guard()
            sys.exit(3)
        tell(f"status {os.wait()[1]}")
        os._exit(0)
    """)
    lines = run_child(program).out.split("\n")
    assert lines == ["wrapped", "registered before", "and after it", f"status {3 << 8}", ""]


def test_children_of_multiprocessing_end_in_their_own_way() -> None:
    done = run_child(
        TELL
        + dedent("""
        import multiprocessing
        prefork.install(immortal=False, fill_pools=False)
        def work():
            tell("working")
            threading.Thread(target=tell, args=("thread done",)).start()
            sys.exit(3)
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        tell(f"status {process.exitcode}")
        os._exit(0)
        """)
    )
    # They never call what atexit has, and go on in Python after threading's end.
    assert done.out.split() == ["working", "thread", "done", "status", "3"]
    assert done.err == ""


# ---- the collector ------------------------------------------------------------------------------


def test_gc_is_kept_off() -> None:
    done = run_child("""
        import gc, warnings, weakref
        taken_before = gc.enable
        from cpythonplus import prefork
        thresholds = gc.get_threshold()
        prefork.keep_gc_off()
        prefork.keep_gc_off()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gc.enable()
            gc.set_threshold(1)
        assert len(caught) == 2 and "kept off" in str(caught[0].message)
        taken_before()  # a library that had taken it out of the module
        class Node:
            pass
        watches = []
        for _ in range(20_000):
            node = Node()
            node.self = node
            watches.append(weakref.ref(node))
        del node
        assert all(watch() is not None for watch in watches), "it has run"
        gc.collect()
        assert all(watch() is None for watch in watches)
        prefork.let_gc_run()
        prefork.let_gc_run()
        assert gc.isenabled() and gc.get_threshold() == thresholds
        gc.disable()
        prefork.keep_gc_off()
        prefork.let_gc_run()
        assert not gc.isenabled()
    """)
    assert done.err == ""
