"""The frames of threads that run meanwhile, and a collector whose finalizers let them run."""

import sys

import pytest

from cpythonplus._base.stacks import known_threads, outwards, without_collection
from tests.support import run_child

# Up to 3.11 any allocation may collect.  With sys._current_frames(), f_back, f_locals or a copy of
# threading._active in place of ours, plain Python 3.11.7 crashes or hangs.
LOOKS = """
    import gc, sys, threading, time
    from cpythonplus._base.stacks import *

    class Cycle:
        def __init__(self):
            self.itself = self
        def __del__(self):
            time.sleep(0)  # another thread runs
    def deeper(depth):
        here = depth
        return deeper(depth - 1) if depth else here
    def calls():
        for _ in range(20):
            deeper(20)
    def threads():
        while not ended:
            some = [threading.Thread(target=calls) for _ in range(3)]
            for each in some:
                each.start()
            for each in some:
                each.join()
    ended, looks = [], 0
    sys.setswitchinterval(1e-5)
    gc.set_threshold(20)
    thread = threading.Thread(target=threads)
    thread.start()
    while looks < 1000:
        for _ in range(10):
            Cycle()
        known = known_threads()
        assert len([*known.items()]) == len(known)
        for frame in frames_of_threads().values():
            for each in outwards(frame):
                assert type(each.f_code) is type(calls.__code__)
                variables_of(each)
        looks += 1
    ended.append(True)
    thread.join()
"""


@pytest.mark.needs_gil
def test_threads_run_on_while_their_frames_are_read() -> None:
    run_child(LOOKS)


def test_a_stack_is_listed_outwards() -> None:
    frame = sys._getframe()
    found = outwards(frame)
    assert found[0] is frame
    assert found[1] is frame.f_back
    assert found[-1].f_back is None
    assert outwards(None) == []
    with pytest.raises(TypeError, match="a frame or None, not int"):
        outwards(1)  # type: ignore[arg-type]


def test_known_threads_are_a_copy() -> None:
    assert known_threads() == known_threads()
    assert known_threads() is not known_threads()


def test_the_collector_is_as_before() -> None:
    with pytest.raises(ZeroDivisionError):
        without_collection(divmod, 1, 0)
    assert without_collection(divmod, 7, 4) == (1, 3)
    with pytest.raises(TypeError, match="a function is missing"):
        without_collection()  # type: ignore[call-arg]


@pytest.mark.parametrize("collects", [True, False])
def test_a_collector_that_is_off_stays_off(collects: bool) -> None:
    run_child(
        f"""
        import gc, sys
        from cpythonplus._base.stacks import *
        gc.enable() if {collects} else gc.disable()
        assert not without_collection(gc.isenabled)
        outwards(sys._getframe())
        assert gc.isenabled() == {collects}
        """
    )
