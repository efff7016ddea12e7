"""What a program finds in the module: names, signatures, and refusals of wrong arguments."""

# mypy: disable-error-code="arg-type, call-arg"
# (wrong calls are part of the tests)

import copy
import inspect
import json
import pickle
from collections.abc import Callable, Iterator

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import channel, tasklet
from tests.support import run_child

# Of Stackless 3.8: what `from stackless import *` gives there.
STACKLESS = {
    "atomic",
    "channel",
    "enable_softswitch",
    "get_channel_callback",
    "get_schedule_callback",
    "get_thread_info",
    "getcurrent",
    "getcurrentid",
    "getdebug",
    "getmain",
    "getruncount",
    "getthreads",
    "getuncollectables",
    "pickle_flags",
    "pickle_flags_default",
    "pickle_with_tracing_state",
    "run",
    "schedule",
    "schedule_remove",
    "set_channel_callback",
    "set_error_handler",
    "set_schedule_callback",
    "stackless",
    "switch_trap",
    "tasklet",
}


def functions() -> Iterator[object]:
    """Give each public function and class, and each public method of tasklet and channel."""
    for name in tasklets.__all__:
        if name != "TaskletExit":  # BaseException has none
            yield getattr(tasklets, name)
    for kind in (tasklet, channel):
        for name, method in inspect.getmembers(kind, inspect.isroutine):
            if not name.startswith("_"):
                yield method


class TestStackless:
    def test_the_star(self) -> None:
        code = """\
before = set(globals()) | {"before"}
from cpythonplus.stackless import *
import json
print(json.dumps(sorted(set(globals()) - before - {"json"})))
assert stackless.getthreads() == stackless.threads
assert stackless.dump and stackless.run_for and stackless.bomb
"""
        assert set(json.loads(run_child(code).out)) == STACKLESS | {"TaskletExit"}

    def test_what_is_accepted(self) -> None:
        run_child(
            """
            import threading
            import cpythonplus.stackless as stackless

            assert stackless.enable_softswitch(False) is True
            assert stackless.enable_softswitch(None) is stackless.enable_softswitch(None) is False
            assert stackless.enable_softswitch(True) is False
            assert stackless.getdebug() is stackless.debug is False
            assert stackless.getuncollectables() == stackless.uncollectables == []
            assert stackless.pickle_flags(stackless.PICKLEFLAGS_RESET_AG_FINALIZER) == 0
            assert stackless.pickle_flags(1, mask=1) == 4
            assert stackless.pickle_flags() == 5
            assert stackless.pickle_flags_default() == 0
            assert stackless.pickle_flags(99, mask=2) == 5
            assert stackless.pickle_flags_default(8) == 0
            found = []
            thread = threading.Thread(target=lambda: found.append(stackless.pickle_flags(1)))
            thread.start()
            thread.join()
            assert (found, stackless.pickle_flags()) == ([8], 7)
            for wrong in 99, -2:
                try:
                    stackless.pickle_flags(wrong)
                except ValueError as error:
                    assert str(error) == f"no flags for pickles: {wrong}"
                else:
                    raise AssertionError
            """
        )

    def test_tasklet_exit_is_a_builtin(self) -> None:
        code = """\
import builtins, cpythonplus.tasklets
assert not hasattr(builtins, "TaskletExit")
import cpythonplus.stackless as stackless

def waits():
    try:
        stackless.channel().receive()
    except TaskletExit:
        print("ended")
        raise

it = stackless.tasklet(waits)()
stackless.run()
it.kill()
assert TaskletExit is stackless.TaskletExit
"""
        assert run_child(code).out == "ended\n"


class TestSignatures:
    @pytest.mark.parametrize("function", list(functions()), ids=lambda it: it.__qualname__)
    def test_there_is_one(self, function: Callable[..., object]) -> None:
        inspect.signature(function)  # ValueError if there is none
        assert function.__doc__

    def test_defaults(self) -> None:
        run = inspect.signature(tasklets.run).parameters
        assert [(each.name, each.default) for each in run.values()] == [
            ("timeout", 0),
            ("threadblock", False),
            ("soft", False),
            ("ignore_nesting", False),
            ("totaltimeout", False),
        ]


class Named(channel):
    """A channel with a name."""

    def __init__(self, name: str) -> None:
        self.name = name


class TestArguments:
    @pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("it", [tasklet(), channel(), Named("x"), tasklets.bomb()])
    def test_pickles(self, it: object, protocol: int) -> None:
        again = pickle.loads(pickle.dumps(it, protocol))
        assert type(again) is type(it)
        assert getattr(again, "name", None) == getattr(it, "name", None)
        assert type(copy.copy(it)) is type(it)

    @pytest.mark.parametrize("arguments", [(print,), (1, 2)])
    def test_atomic_is_no_decorator(self, arguments: tuple[object, ...]) -> None:
        with pytest.raises(TypeError, match=r"^atomic\(\) takes no arguments$"):
            tasklets.atomic(*arguments)
        with pytest.raises(TypeError, match=r"^atomic\(\) takes no arguments$"):
            tasklets.atomic(colour=1)

    def test_a_number_that_no_thread_can_have(self) -> None:
        with pytest.raises(OverflowError):
            tasklets.get_thread_info(2**64)
        with pytest.raises(RuntimeError, match=r"^Thread id not found$"):
            tasklets.get_thread_info(-2)
        assert tasklets.get_thread_info(-1) == tasklets.get_thread_info()

    def test_no_error_handler(self) -> None:
        assert tasklets.set_error_handler(print) is None
        assert tasklets.set_error_handler() is print
        assert tasklets.set_error_handler() is None
        with pytest.raises(TypeError, match=r"^error handler must be callable$"):
            tasklets.set_error_handler(5)
