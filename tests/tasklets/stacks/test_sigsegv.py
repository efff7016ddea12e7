"""The handler of faults on the stacks of tasklets: what it tells, and who comes after it."""

import signal
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import SANITIZED, Child, compile_c, run_child

pytestmark = pytest.mark.skipif(SANITIZED, reason="the sanitizer handles the signal itself")

OURS = "a tasklet has overrun its C stack of"
FAULTHANDLER = "Fatal Python error: Segmentation fault"
THEIRS = "told by theirs"
ENDED = -signal.SIGSEGV

# The children are started with -X faulthandler.
BEGIN = """
import ctypes, faulthandler, signal, sys
library = ctypes.CDLL(sys.argv[1])
"""
USE = """
from cpythonplus.tasklets import run, stack_size, tasklet
tasklet(int)()
run()
"""
OVERRUN = """
tasklet(library.overrun)(0)
run()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("sigsegv") / "theirs.so"
    source = Path(__file__).with_name("sigsegv.c")
    return str(compile_c(output, [source], "-shared", "-fPIC", "-fno-optimize-sibling-calls"))


def run_parts(
    library: str, *parts: str, status: int = ENDED, env: dict[str, str] | None = None
) -> Child:
    program = BEGIN.replace("sys.argv[1]", repr(library)) + "".join(map(dedent, parts))
    return run_child(program, status=status, env=env)


def told(child: Child) -> list[str]:
    """Return who has said something about it, in their order."""
    found = {words: child.err.find(words) for words in (OURS, FAULTHANDLER, THEIRS)}
    return sorted((words for words in found if found[words] >= 0), key=found.__getitem__)


def test_a_signal_that_somebody_sent_is_not_swallowed(library: str) -> None:
    """No instruction failed, so none fails again once the handler has gone."""
    child = run_parts(library, USE, 'signal.raise_signal(signal.SIGSEGV)\nprint("still here")')
    assert OURS not in child.err


def test_what_was_sent_has_no_address(library: str) -> None:
    """A process and a user stand in its place, or whatever the sender has put there."""
    child = run_parts(
        library,
        USE,
        """
        stack_size(8 << 20)  # 9 MiB with the room up to the next guard, of 1 MiB
        tasklet(library.send)(19 << 19)
        run()
        """,
    )
    assert told(child) == [FAULTHANDLER]


class TestWhoElseIsTold:
    def test_nobody(self, library: str) -> None:
        child = run_parts(library, "faulthandler.disable()\n", USE, OVERRUN)
        assert told(child) == [OURS]

    def test_faulthandler_before(self, library: str) -> None:
        assert told(run_parts(library, USE, OVERRUN)) == [OURS, FAULTHANDLER]

    def test_faulthandler_after_the_import(self, library: str) -> None:
        child = run_parts(
            library,
            "faulthandler.disable()\nimport cpythonplus.tasklets\nfaulthandler.enable()\n",
            USE,
            OVERRUN,
        )
        assert told(child) == [OURS, FAULTHANDLER]

    def test_faulthandler_after_the_first_use(self, library: str) -> None:
        """It hands on a signal without an address."""
        child = run_parts(
            library, "faulthandler.disable()\n", USE, "faulthandler.enable()\n", OVERRUN
        )
        assert told(child) == [FAULTHANDLER]

    def test_faulthandler_that_is_switched_off_again(self, library: str) -> None:
        """It puts back what was there before it came, and that was not yet ours."""
        child = run_parts(library, USE, "faulthandler.disable()\n", OVERRUN)
        assert told(child) == []

    def test_a_library_before(self, library: str) -> None:
        child = run_parts(library, "library.install()\n", USE, OVERRUN, status=3)
        assert told(child) == [OURS, THEIRS]

    def test_a_library_before_and_a_fault_elsewhere(self, library: str) -> None:
        child = run_parts(
            library, "library.install()\n", USE, "tasklet(ctypes.string_at)(1)\nrun()", status=3
        )
        assert told(child) == [THEIRS]

    def test_a_library_after(self, library: str) -> None:
        child = run_parts(library, USE, "library.install()\n", OVERRUN, status=3)
        assert told(child) == [THEIRS]

    def test_a_library_that_mends_faults(self, library: str) -> None:
        """A virtual machine's way to check for null; from its first one on it stands alone."""
        child = run_parts(
            library,
            "library.install()\n",
            USE,
            """
            mended = []
            tasklet(lambda: mended.extend(library.fault_and_go_on() for _ in range(2)))()
            run()
            assert mended == [5, 5]
            """,
            OVERRUN,
            status=3,
        )
        assert child.err.count("mended by theirs") == 2
        assert told(child) == [THEIRS]

    def test_a_thread_of_the_program(self, library: str) -> None:
        child = run_parts(
            library,
            USE,
            """
            import threading

            def work():
                tasklet(library.overrun)(0)
                run()

            threading.Thread(target=work).start()
            """,
        )
        assert told(child) == [OURS, FAULTHANDLER]


class TestDeclined:
    """With CPYTHONPLUS_NO_SIGSEGV_HANDLER."""

    QUIET = "faulthandler.disable()\n"

    @pytest.mark.parametrize("value", ["1", "yes", "whatever"])
    def test_there_is_none(self, library: str, value: str) -> None:
        env = {"CPYTHONPLUS_NO_SIGSEGV_HANDLER": value}
        child = run_parts(
            library, self.QUIET, USE, "assert library.is_default()\n", OVERRUN, env=env
        )
        assert told(child) == []

    @pytest.mark.parametrize("value", ["0", "no", ""])
    def test_there_is_one(self, library: str, value: str) -> None:
        env = {"CPYTHONPLUS_NO_SIGSEGV_HANDLER": value}
        child = run_parts(
            library, self.QUIET, USE, "assert not library.is_default()\n", OVERRUN, env=env
        )
        assert told(child) == [OURS]

    def test_others_can_tell_of_it_still(self, library: str) -> None:
        """There is a stack for handlers in each thread."""
        env = {"CPYTHONPLUS_NO_SIGSEGV_HANDLER": "1"}
        assert told(run_parts(library, USE, OVERRUN, env=env)) == [FAULTHANDLER]
