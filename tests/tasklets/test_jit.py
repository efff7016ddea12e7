"""Code that the JIT has compiled (PYTHON_JIT=1), and tasklets that are parked in it."""

import pytest

from tests.support import HAS_JIT, run_child
from tests.tasklets.engines import own_stacks

pytestmark = pytest.mark.skipif(not HAS_JIT, reason="this interpreter has no JIT")


@own_stacks
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
