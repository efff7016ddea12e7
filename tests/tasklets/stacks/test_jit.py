"""Code that the JIT has compiled (PYTHON_JIT=1), and tasklets that are parked in it."""

import pytest

from tests.support import HAS_JIT, run_child

pytestmark = pytest.mark.skipif(not HAS_JIT, reason="this interpreter has no JIT")


def test_compiled_code_stays_while_a_tasklet_is_parked_in_it() -> None:
    """The interpreter frees code that is no longer valid after 1000 compilations or so."""
    child = run_child(
        """
        import _opcode, gc, sys
        from cpythonplus.tasklets import run, schedule, tasklet

        def compiled(function):
            for offset in range(0, len(function.__code__.co_code), 2):
                try:
                    return _opcode.get_executor(function.__code__, offset)
                except ValueError:
                    pass

        def loops(count, log):
            i = 0
            while i < count:
                i += 1
                schedule()
            log.append(i)

        def counts():
            i = 0
            while i < 9000:
                i += 1

        def main():
            log = []
            tasklet(loops)(30_000, log)
            run()
            assert compiled(loops) is not None
            for _ in range(5):
                tasklet(loops)(1000, log)
            for _ in range(10):
                schedule()
            print(compiled(loops) is not None, flush=True)
            sys._clear_internal_caches()
            print(compiled(loops) is not None, flush=True)
            for _ in range(1500):
                counts.__code__ = counts.__code__.replace(co_name="again")
                counts()
            gc.collect()
            run()
            print(log)

        main()
        """,
        env={"PYTHON_JIT": "1"},
    )
    assert child.out.splitlines() == ["True", "False", f"[30000{5 * ', 1000'}]"]


def test_what_a_parked_tasklet_says_of_itself() -> None:
    """Its line, and each reference of its frames: the collector must see all, and none twice."""
    program = """
    import _opcode, gc, sys
    from cpythonplus.tasklets import channel, run, tasklet

    class Thing:
        pass

    def is_compiled(function):
        for offset in range(0, len(function.__code__.co_code), 2):
            try:
                return _opcode.get_executor(function.__code__, offset) is not None
            except ValueError:
                pass
        return False

    def waits(send, count, thing):
        both = [thing]
        for i in range(count):
            both = [thing, send(thing), both[0]]
        return both

    def main():
        gets = channel()
        task = tasklet(waits)(gets.send, 30_000, Thing())
        run()
        for i in range(20_000):
            gets.receive()
        assert is_compiled(waits) == sys._jit.is_enabled()
        print(*sorted(type(each).__name__ for each in gc.get_referents(task)))
        print(task.frame.f_lineno, task.frame.f_locals["i"])

    main()
    """
    compiled, plain = (run_child(program, env={"PYTHON_JIT": mode}).out for mode in "10")
    assert compiled == plain
    assert compiled.endswith(" 19999\n")


def test_variables_of_a_thread_that_computes() -> None:
    """What `prefork` finds in frames that are somewhere in compiled code."""
    run_child(
        """
        import sys, threading
        from cpythonplus import prefork

        def counts():
            kept = tuple(object() for _ in range(3))
            found.append(kept)
            i = 0
            while not stop:
                i += 1
            checked.append(kept)

        stop, found, checked = [], [], []
        thread = threading.Thread(target=counts)
        thread.start()
        while not found:
            pass
        for _ in range(300_000):
            pass
        assert sys._current_frames()[thread.ident].f_code is counts.__code__
        prefork.prepare()
        stop.append(True)
        thread.join()
        assert sys.getrefcount(checked[0]) == sys.getrefcount(None)
        assert sys.getrefcount(checked[0][0]) == sys.getrefcount(None)
        """,
        env={"PYTHON_JIT": "1"},
    )


def test_stacks_that_are_too_small_for_it_are_refused() -> None:
    """3.14's overruns 123 KiB when it compiles, 3.15's crashes where little is left."""
    child = run_child(
        """
        import sys
        from cpythonplus.tasklets import run, stack_size, tasklet

        def counts():
            i = 0
            while i < 20_000:
                i += 1
            sys._clear_internal_caches()

        for size_bytes in (64 << 10, 256 << 10):
            try:
                stack_size(size_bytes)
            except ValueError as error:
                print(error)
            tasklet(counts)()
            run()
        print("fine")
        """,
        env={"PYTHON_JIT": "1"},
    )
    refused, fine = child.out.splitlines()
    assert refused == (
        "stack size must be 0 or between 262144 and 1073741824 bytes (the JIT is on), not 65536"
    )
    assert fine == "fine"
