"""What only the interpreter holds is named by the call that has given it."""

import json
import sys
from typing import Final

import pytest

from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.needs_gil

# Each is given a `Big`, in a child of its own.
GIVEN: Final = {
    "fork": "os.register_at_fork(after_in_child=functools.partial(print, Big()))",
    "fork before": "os.register_at_fork(before=Big())",
    "fork parent": "os.register_at_fork(after_in_parent=Big().method)",
    "codec": "codecs.register(Big().method)",
    "codec errors": "codecs.register_error('mine', Big())",
    "audit": "sys.addaudithook(Big().method)",
    "excepthook": "sys.excepthook = Big().method",
    "unraisablehook": "sys.unraisablehook = Big()",
    "displayhook": "sys.displayhook = Big()",
    "signal": "signal.signal(signal.SIGUSR1, Big())",
    "callbacks of gc": "gc.callbacks.append(Big())",
    "profile": "in_thread(lambda: sys.setprofile(Big()))",
    "trace": "sys.settrace(Big())",
    "context": "VARIABLE.set(Big())",
    "context of a thread": "in_thread(lambda: VARIABLE.set(Big()))",
    "local": "in_thread(lambda: setattr(LOCAL, 'data', Big()))",
    "async generators": "sys.set_asyncgen_hooks(firstiter=Big())",
    "exception": "in_thread(raising)",
    "finder": "sys.meta_path.append(Finder())",
    "path hook": "sys.path_hooks.append(Big().method)",
    "exit": "atexit.register(Big().method)",
    "subclasses": "KEPT.extend(type('X', (Base,), {}) for _ in range(2000))",
    "abc": "KEPT.extend(abstract(number) for number in range(2000))",
    "warnings": "warned(5000)",
    "monitoring": "monitored(Big())",
}
NAMED: Final = {
    "fork": "os.register_at_fork(after_in_child)[#].args[#].data",
    "fork before": "os.register_at_fork(before)[#].data",
    "fork parent": "os.register_at_fork(after_in_parent)[#].__self__.data",
    "codec": "codecs.register()[#].__self__.data",
    "codec errors": "codecs.register_error()['mine'].data",
    "audit": "sys.addaudithook().__self__.data",
    "excepthook": "sys.excepthook.__self__.data",
    "unraisablehook": "sys.unraisablehook.data",
    "displayhook": "sys.displayhook.data",
    "signal": "signal.signal(SIGUSR1).data",
    "callbacks of gc": "gc.callbacks[#].data",
    "profile": "sys.setprofile() of worker.data",
    "trace": "sys.settrace() of MainThread.data",
    "context": "context of MainThread[request_data].data",
    "context of a thread": "context of worker[request_data].data",
    "local": "__main__.LOCAL.data.data",
    "async generators": "sys.set_asyncgen_hooks() of MainThread.data",
    "exception": "exception handled by worker[#].data",
    "finder": "sys.meta_path[#].data",
    "path hook": "sys.path_hooks[#].__self__.data",
    "exit": "atexit.register().__self__.data",
    "subclasses": "__main__.Base.__subclasses__()",
    "abc": "__main__.Abstract._abc_impl",
    "warnings": "__main__.__warningregistry__",
    "monitoring": "sys.monitoring.register_callback().data",
}
if sys.version_info >= (3, 14):
    NAMED["context of a thread"] = "threading._active[<int>]._context[request_data].data"
    NAMED["exit"] = "atexit.register()[#][#].__self__.data"

IN_SHORT: Final = ("fork", "codec errors", "audit", "signal", "exit", "profile", "subclasses")
OF_RSS: Final = "a row is a share of what RSS grew by, and the sanitizer's own memory grows by more"

PROGRAM: Final = """
    import abc, atexit, codecs, contextvars, functools, gc, json, os, re, signal, sys
    import threading, warnings
    from cpythonplus import memory

    class Big:
        def __init__(self):
            self.data = [[number] for number in range(3000)]
        def __call__(self, *args, **more):
            return None
        def method(self, *args):
            return None

    class Base: pass
    class Abstract(abc.ABC): pass
    class Finder(Big):
        def find_spec(self, *args):
            return None

    VARIABLE = contextvars.ContextVar("request_data")
    LOCAL = threading.local()
    KEPT = []

    def in_thread(work):
        done, end = threading.Event(), threading.Event()
        threading.Thread(target=run, args=(work, done, end), name="worker", daemon=True).start()
        done.wait()

    def run(work, done, end):
        if work is raising:
            try:
                raise ValueError(Big())
            except ValueError:
                done.set()
                end.wait()
        work()
        done.set()
        end.wait()

    def raising(): pass

    def abstract(number):
        made = type(f"Y{number}", (), {})
        issubclass(made, Abstract)
        return made

    def warned(count):
        for number in range(count):
            warnings.warn_explicit(f"{number} " + "x" * 50, UserWarning, "f", number,
                                   registry=globals().setdefault("__warningregistry__", {}))

    def monitored(function):
        sys.monitoring.use_tool_id(3, "tool")
        sys.monitoring.register_callback(3, sys.monitoring.events.LINE, function)

    def told(code):
        with memory.growth() as found:
            exec(code)
        sys.settrace(None)
        return [re.sub(r"\\[\\d+\\]", "[#]", each.name) for each in found.result.owners]

    warnings.simplefilter("default")
    warnings.showwarning = lambda *args, **more: None
    for name, code in GIVEN.items():
        if not os.fork():
            print(json.dumps([name, told(code)]), flush=True)
            os._exit(0)
        os.wait()
"""


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    given = {name: code for name, code in GIVEN.items() if can_be(name)}
    out = run_child(PROGRAM.replace("GIVEN", repr(given))).out
    return dict(json.loads(line) for line in out.splitlines())


def can_be(name: str) -> bool:
    """Whether there is such a thing; the sanitizer's looks take seconds each."""
    if SANITIZED and name not in IN_SHORT:
        return False
    return name != "monitoring" or sys.version_info >= (3, 12)


@pytest.mark.parametrize("name", [name for name in GIVEN if can_be(name)])
def test_what_has_been_given(name: str, told: dict[str, list[str]]) -> None:
    if SANITIZED:
        pytest.skip(OF_RSS)  # nothing was reported
    assert NAMED[name] in told[name][:3]


def test_a_list_that_is_full_and_one_that_is_not() -> None:
    """Each number of them, as a list has room for more than it has."""
    out = run_child(
        """
        import codecs, os
        from cpythonplus import memory

        class Hook:
            def __init__(self):
                self.data = [0.5 + number for number in range(3000)]
            def __call__(self, *args):
                return None

        for number in range(1, 21):
            os.register_at_fork(before=Hook())
            codecs.register(Hook())
            names = [each.name for each in memory.owners().owners]
            names = {name.partition("[")[0].removesuffix(".data") for name in names}
            print(number, names >= {"os.register_at_fork(before)", "codecs.register()"})
        """
    ).out
    assert out == "".join(f"{number} True\n" for number in range(1, 21))


@pytest.mark.skipif(SANITIZED, reason=OF_RSS)
def test_many_callbacks_of_the_end_are_one_row() -> None:
    out = run_child(
        """
        import atexit
        from cpythonplus import memory

        class Client:
            def __init__(self):
                self.data = [1] * 30
            def close(self):
                return None

        with memory.growth() as found:
            for _ in range(2000):
                atexit.register(Client().close)
        print(found.result.owners[0].name, found.result.owners[0].entries)
        atexit._clear()
        """
    ).out
    wanted = "2,000 x method Client.close(), by atexit.register() 2000"
    if sys.version_info >= (3, 14):
        wanted = "atexit.register() 2000"
    assert out == f"{wanted}\n"


def test_a_path_begins_at_the_call() -> None:
    out = run_child(
        """
        import os
        from cpythonplus import memory
        from cpythonplus._doctor.agent import examining
        from cpythonplus._doctor.report.text import part_text

        class Pool:
            def reset(self):
                return None

        for _ in range(5):
            os.register_at_fork(after_in_child=Pool().reset)
        print(part_text("path", examining.path("__main__.Pool")))
        """
    ).out
    assert "os.register_at_fork(after_in_child) -> (list) -> [" in out
    assert "5 of 5 objects: os.register_at_fork(after_in_child)[...].__self__" in out


@pytest.mark.skipif(SANITIZED, reason=OF_RSS)
def test_words_that_are_interned_are_whole_and_others_are_not() -> None:
    out = run_child(
        """
        from cpythonplus import memory

        FIRST, SECOND = {}, {}
        with memory.growth() as found:
            FIRST["a_word_of_the_program"] = [[number] for number in range(3000)]
            SECOND["-".join(["secret", "session"])] = [[number] for number in range(3000)]
        print(*sorted(each.name for each in found.result.owners[:2]))
        """
    ).out
    assert out == "__main__.FIRST['a_word_of_the_program'] __main__.SECOND['secr...]\n"
