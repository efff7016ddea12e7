"""What goes from one C stack to another; and greenlets beside it."""

import platform
from pathlib import Path
from textwrap import dedent

import pytest

from cpythonplus import _native
from tests.support import SANITIZED, SOURCES, compile_c, run_child

HERE = Path(__file__).resolve().parent
ROOM = SOURCES / "tasklets"
has_switch = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "aarch64"}, reason="there is no switch for this processor"
)


def test_it_loads_in_the_first_releases_of_3_14() -> None:
    assert b"ThreadState_SetStackProtection" not in Path(_native.__file__).read_bytes()


@pytest.mark.any_version
@has_switch
def test_a_switch_keeps_what_a_call_keeps(tmp_path: Path) -> None:
    sources = [HERE / "switch_probe.c", *ROOM.glob("switch_*.c")]
    program = compile_c(tmp_path / "probe", sources, "-O2", "-lm", "-frounding-math")
    child = run_child(f"import os; os.execv({str(program)!r}, ['probe'])")
    assert child.out == "kept\n"


@pytest.mark.any_version
@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own system calls would be answered, too")
def test_shadow_stacks_are_refused(tmp_path: Path) -> None:
    library = compile_c(
        tmp_path / "shadow.so", [HERE / "shadow_stack_on.c"], "-shared", "-fPIC", "-D_GNU_SOURCE"
    )
    child = run_child(
        """
        from cpythonplus import UnsupportedPlatform
        try:
            from cpythonplus import tasklets
        except UnsupportedPlatform as error:
            print(error)
        """,
        env={"LD_PRELOAD": str(library)},
    )
    assert child.out == (
        "cpythonplus.tasklets: this process runs with shadow stacks, which forbid switching "
        "(glibc.cpu.x86_shstk=off)\n"
    )


class TestThreads:
    def test_one_that_ends_inside_of_a_tasklet(self) -> None:
        """As daemon threads do at the interpreter's end up to 3.13; no frame is in its way."""
        child = run_child(
            """
            import ctypes, os, threading, time
            from cpythonplus.tasklets import run, schedule_remove, tasklet

            def work():
                tasklet(schedule_remove)()
                tasklet(lambda: ctypes.CDLL(None).pthread_exit(None))()
                run()
                print("not reached")

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            while os.path.exists(f"/proc/self/task/{thread.native_id}"):
                time.sleep(0)
            print("end")
            """
        )
        assert child.out == "end\n"


GREENLETS = """
import gc, greenlet, weakref
from cpythonplus.tasklets import run, schedule, schedule_remove, tasklet

log = []

def note(function, *args):
    try:
        log.append(function(*args))
    except (RuntimeError, KeyError) as error:
        log.append(str(error))

"""
REFUSED = "greenlets can be switched in the main tasklet only"


@pytest.mark.skipif(SANITIZED, reason="greenlet copies stacks without telling the sanitizer")
class TestGreenletsBeside:
    """Other libraries' greenlets: what can go wrong is refused."""

    @pytest.fixture(autouse=True)
    def libraries(self) -> None:
        pytest.importorskip("gevent")

    def logged(self, program: str) -> object:
        return run_child(GREENLETS + dedent(program) + "\nprint(log)").out.rstrip()

    def test_tasklets_do_not_import_it(self) -> None:
        child = run_child(
            """
            import sys
            from cpythonplus import tasklets
            print("greenlet" in sys.modules)
            """
        )
        assert child.out == "False\n"

    @pytest.mark.parametrize(
        "first",
        [
            "import greenlet, cpythonplus.tasklets",
            "import cpythonplus.tasklets, greenlet",
            "import gevent, cpythonplus.tasklets",
            "import cpythonplus.tasklets, gevent",  # whose C looks the functions up in a table
            "import cpythonplus.tasklets, importlib; importlib.import_module('greenlet')",
        ],
    )
    def test_whichever_is_imported_first(self, first: str) -> None:
        child = run_child(
            first
            + dedent(
                """
                import sys
                before = list(sys.meta_path)
                """
            )
            + GREENLETS
            + dedent(
                """
                import gevent

                def body():
                    note(gevent.sleep, 0)
                    note(greenlet.greenlet(int).switch)

                tasklet(body)()
                run()
                gevent.sleep(0)
                note(greenlet.greenlet(lambda: 5).switch)
                assert sys.meta_path == before
                assert type(greenlet.__spec__.loader) is type(gevent.__spec__.loader)
                print(log)
                """
            )
        )
        assert child.out == f"{[REFUSED, REFUSED, 5]}\n"

    def test_imported_in_a_tasklet(self) -> None:
        child = run_child(
            """
            from cpythonplus.tasklets import run, tasklet

            def body():
                import greenlet
                greenlet.greenlet(print).switch(5)

            tasklet(body)()
            try:
                run()
            except RuntimeError as error:
                print(error)
            """
        )
        assert child.out == f"{REFUSED}\n"

    def test_it_is_loaded_again(self) -> None:
        """From another place, as after a change of sys.path; or what was imported is half of it."""
        child = run_child(
            """
            import sys
            from cpythonplus.tasklets import run, tasklet

            class Broken:
                def find_spec(self, name, path=None, target=None):
                    if name == "greenlet._greenlet":
                        raise ImportError("not now")

            broken = Broken()
            sys.meta_path.insert(0, broken)
            try:
                import greenlet
            except ImportError as error:
                print(error)
            sys.meta_path.remove(broken)
            import greenlet

            def body():
                greenlet.greenlet(print).switch(5)

            tasklet(body)()
            try:
                run()
            except RuntimeError as error:
                print(error)
            """
        )
        assert child.out == f"not now\n{REFUSED}\n"

    def test_in_main(self) -> None:
        program = """
            import gevent

            def handle(number):
                gevent.sleep(0)
                for letter in "ab":
                    tasklet(log.append)((letter, number))
                run()

            gevent.joinall([gevent.spawn(handle, number) for number in range(2)])
            """
        assert self.logged(program) == "[('a', 0), ('b', 0), ('a', 1), ('b', 1)]"

    def test_main_moves_from_one_to_another(self) -> None:
        program = """
            def inner():
                tasklet(log.append)(1)
                run()
                greenlet.getcurrent().parent.switch()
                tasklet(log.append)(3)
                run()

            it = greenlet.greenlet(inner)
            it.switch()
            tasklet(log.append)(2)
            run()
            it.switch()
            tasklet(log.append)(4)
            run()
            """
        assert self.logged(program) == "[1, 2, 3, 4]"

    def test_waiting_in_a_tasklet(self) -> None:
        """The hub lives on main's part of the stack."""
        program = """
            import gevent
            gevent.sleep(0)

            def body(number):
                note(gevent.sleep, 0)
                schedule()
                note(gevent.sleep, 0)

            for number in range(2):
                tasklet(body)(number)
            run()
            """
        assert self.logged(program) == str([REFUSED] * 4)

    def test_scheduling_in_a_greenlet_of_a_tasklet(self) -> None:
        program = """
            def body():
                note(greenlet.greenlet(lambda: note(schedule)).switch)
                schedule()

            tasklet(body)()
            tasklet(body)()
            run()
            """
        assert self.logged(program) == str([REFUSED] * 2)

    def test_sending_in_a_greenlet_of_a_tasklet(self) -> None:
        """Nothing is switched by it where the sender goes on."""
        program = """
            from cpythonplus.tasklets import channel

            gate = channel()
            gate.preference = 1
            tasklet(lambda: log.append(gate.receive()))()
            run()

            tasklet(lambda: note(greenlet.greenlet(gate.send).switch, 5))()
            run()
            """
        assert self.logged(program) == str([REFUSED])

    def test_throwing_in_a_tasklet(self) -> None:
        program = """
            def inner():
                greenlet.getcurrent().parent.switch()

            it = greenlet.greenlet(inner)
            it.switch()
            tasklet(lambda: note(it.throw, KeyError, 5))()
            run()
            """
        assert self.logged(program) == str([REFUSED])

    def test_one_is_forgotten_in_a_tasklet(self) -> None:
        """It ends, or stays as it is: nothing runs over anything."""
        program = """
            class Own(greenlet.greenlet):
                pass

            def inner():
                try:
                    greenlet.getcurrent().parent.switch()
                finally:
                    log.append("ended")

            for kind in greenlet.greenlet, Own:
                them = [kind(inner)]
                them[0].switch()
                tasklet(them.clear)()
                run()
            gc.collect()
            """
        assert self.logged(program) == "[]"

    def test_ending_in_a_tasklet(self) -> None:
        """Its parent is main's, which is parked."""
        program = """
            it = greenlet.greenlet(lambda: 5)
            tasklet(lambda: note(it.switch))()
            run()
            """
        assert self.logged(program) == str([REFUSED])
