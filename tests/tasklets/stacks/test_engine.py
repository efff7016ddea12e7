"""What goes from one C stack to another; and greenlets beside it."""

import platform
from pathlib import Path
from textwrap import dedent

import pytest

from cpythonplus import _native
from tests.support import SANITIZED, SOURCES, compile_c, run_child

HERE = Path(__file__).resolve().parent
has_switch = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "aarch64"}, reason="there is no switch for this processor"
)


def test_it_loads_in_the_first_releases_of_3_14() -> None:
    assert b"ThreadState_SetStackProtection" not in Path(_native.__file__).read_bytes()


@pytest.mark.any_version
@has_switch
def test_a_switch_keeps_what_a_call_keeps(tmp_path: Path) -> None:
    sources = [HERE / "switch_probe.c", *SOURCES.rglob("switch_*.c")]
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
REFUSED = "greenlets can be switched only in the tasklet that they have begun in"


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

                main = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
                main.switch()
                gevent.sleep(0)

                def body():
                    note(gevent.sleep, 0)
                    note(main.switch)

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
                global it
                import greenlet
                it = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch(5))
                print(it.switch())

            tasklet(body)()
            run()
            try:
                it.switch()
            except RuntimeError as error:
                print(error)
            """
        )
        assert child.out == f"5\n{REFUSED}\n"

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

            it = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
            it.switch()
            tasklet(it.switch)()
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
        """Another tasklet cannot switch meanwhile, and can when the first one is out of it."""
        program = """
            def body():
                note(greenlet.greenlet(lambda: schedule() and 1).switch)
                note(greenlet.greenlet(int).switch)

            tasklet(body)()
            tasklet(body)()
            run()
            """
        assert self.logged(program) == str([REFUSED, REFUSED, 1, 0])

    def test_sending_in_a_greenlet_of_a_tasklet(self) -> None:
        program = """
            from cpythonplus.tasklets import channel

            gate = channel()
            gate.preference = 1
            tasklet(lambda: log.append(gate.receive()))()
            run()

            tasklet(lambda: note(greenlet.greenlet(gate.send).switch, 5))()
            run()
            """
        assert self.logged(program) == "[None, 5]"

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
        """Its parent is the thread's, which is whoever switches; or it is parked elsewhere."""
        program = """
            it = greenlet.greenlet(lambda: 5)
            parked = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
            parked.switch()
            tasklet(lambda: note(it.switch))()
            tasklet(lambda: note(greenlet.greenlet(int, parked).switch))()
            tasklet(lambda: note(greenlet.greenlet(int, greenlet.greenlet(int)).switch))()
            run()

            def moves():
                it = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
                it.switch()
                note(setattr, it, "parent", parked)
                note(setattr, it, "parent", greenlet.greenlet(int))
                note(setattr, it, "parent", greenlet.getcurrent())
                note(it.switch)

            tasklet(moves)()
            run()
            """
        assert self.logged(program) == str([5, REFUSED, REFUSED, REFUSED, REFUSED, None, ()])

    def test_parked_ones_of_several_tasklets(self) -> None:
        """Each goes on in its own, at whatever depth of calls."""
        program = """
            def deep(n, call):
                return call() if n == 0 else deep(n - 1, call)

            def inner(name):
                for number in range(3):
                    log.append(f"{name}{number}")
                    deep(30, lambda: outer[name].switch(number))
                return "end"

            def body(name):
                outer[name] = greenlet.getcurrent()
                them[name] = greenlet.greenlet(inner)
                deep(3, lambda: them[name].switch(name))
                schedule()
                deep(50, them[name].switch)
                schedule()
                them[name].switch()
                log.append(them[name].switch())

            outer, them = {}, {}
            for name in "ab":
                tasklet(body)(name)
            schedule()
            note(them["a"].switch)
            run()
            log.append([it.dead for it in them.values()])
            """
        names = ["a0", "b0", REFUSED, "a1", "b1", "a2", "end", "b2", "end", [True, True]]
        assert self.logged(program) == str(names)

    def test_a_tasklet_is_killed_in_a_greenlet(self) -> None:
        program = """
            def inner():
                try:
                    schedule_remove()
                finally:
                    log.append("inner")

            def body():
                try:
                    greenlet.greenlet(inner).switch()
                finally:
                    log.append("outer")

            it = tasklet(body)()
            run()
            it.kill()
            note(greenlet.greenlet(lambda: 5).switch)
            """
        assert self.logged(program) == "['inner', 'outer', 5]"

    def test_one_is_forgotten_in_its_own_tasklet_and_in_another_one(self) -> None:
        program = """
            def inner(name):
                try:
                    greenlet.getcurrent().parent.switch()
                finally:
                    log.append(name)

            def body():
                its = greenlet.greenlet(inner)
                its.switch("own")
                del its
                others.append(greenlet.greenlet(inner))
                others[0].switch("other")

            others = []
            tasklet(body)()
            run()
            others.clear()
            gc.collect()
            note(greenlet.greenlet(lambda: 5).switch)
            """
        assert self.logged(program) == "['own', 5]"

    def test_such_a_tasklet_is_not_pickled_nor_taken_off_its_stack(self) -> None:
        program = """
            import pickle

            def body():
                if greenlet.getcurrent().parent is None:
                    greenlet.greenlet(body).switch()  # its frames look like all of it
                schedule_remove()

            it = tasklet(body)()
            run()
            try:
                pickle.dumps(it)
            except pickle.PicklingError as error:
                print(error)
            it.kill()
            """
        assert self.logged(program) == "greenlets have been switched in this tasklet\n[]"

    def test_coroutines_that_switch_in_aio_run(self) -> None:
        """As SQLAlchemy's asyncio does, for several tasklets at a time."""
        program = """
            import asyncio
            from sqlalchemy.util import await_only, greenlet_spawn
            from cpythonplus.tasklets import aio

            def blocking(name):
                for number in range(3):
                    log.append(f"{name}{await_only(asyncio.sleep(0, number))}")
                return name

            def body(name):
                log.append(aio.run(greenlet_spawn(blocking, name)))

            them = [tasklet(body)(name) for name in "ab"]
            while any(it.alive for it in them):
                run()
            body("c")
            log.sort()
            """
        names = [name + number for name in "abc" for number in ("", "0", "1", "2")]
        assert self.logged(program) == str(names)
