"""A program's tracer, profiler and coverage do not see what is called at its imports."""

from textwrap import dedent

import pytest

from tests.support import run_child

# It runs before anything has imported `threading` or `queue`, if no .pth file has.
WATCH = """
import sys
from cpythonplus import threads
threads.patch()
seen = set()

def note(frame, event, argument):
    seen.add(frame.f_code.co_filename)
    return note
"""
IMPORTS = """
for name in ("threading", "queue", "this_is_not_there", "colorsys", "antigravity_"):
    sys.modules.pop(name, None)
    try:
        __import__(name)
    except ModuleNotFoundError:
        pass
"""
CHECK = """
ours = {name for name in seen if "/cpythonplus/" in name and "/site-packages/_" not in name}
assert not ours, ours
for name in ("threading.py", "queue.py", "colorsys.py"):
    assert any(each.endswith(name) for each in seen), (name, seen)
import threading
assert isinstance(threading.Lock(), threads.Lock)
"""
TOOLS = {
    "settrace": ("sys.settrace(note)", "sys.settrace(None)"),
    "setprofile": ("sys.setprofile(note)", "sys.setprofile(None)"),
    "monitoring": (
        """
        if sys.version_info < (3, 12):
            sys.settrace(note)
        else:
            tool, events = sys.monitoring, sys.monitoring.events
            tool.use_tool_id(2, "test")
            tool.register_callback(
                2, events.PY_START, lambda code, _: seen.add(code.co_filename) and None)
            tool.set_events(2, events.PY_START)
        """,
        "sys.settrace(None) if sys.version_info < (3, 12) else tool.set_events(2, 0)",
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_our_lines_are_not_seen_and_the_modules_are(tool: str) -> None:
    begin, end = map(dedent, TOOLS[tool])
    run_child(f"{WATCH}\n{begin}\n{IMPORTS}\n{end}\n{CHECK}")


def test_a_module_that_fails_leaves_the_tracer_on() -> None:
    run_child("""
        import sys
        from cpythonplus._base.replacing import unseen_finder, unseen_loader

        seen = []
        def note(frame, event, argument):
            seen.append(frame.f_code.co_name)

        def fails(*_):
            raise KeyError

        def ours(*_):
            pass

        def load(*_):
            pass

        calls = [
            (unseen_loader(fails, load, ours), ["load"], []),
            (unseen_loader(ours, fails, ours), ["ours", "load"], ["fails"]),
            (unseen_loader(ours, load, fails), ["ours", "fails"], ["load"]),
            (unseen_loader(ours, load, ours), ["ours", "fails"], ["load"]),
            (unseen_finder({sys}, fails), ["ours", "load", "fails"], []),
        ]
        for call, unseen, expected in calls:
            seen.clear()
            sys.settrace(note)
            try:
                call(sys)
            except KeyError:
                pass
            (lambda: None)()
            sys.settrace(None)
            assert seen == [*expected, "<lambda>"], (expected, seen)
    """)


def test_other_names_are_not_asked_about() -> None:
    run_child("""
        from cpythonplus._base.replacing import unseen_finder

        names, asked = {"a"}, []
        find = unseen_finder(names, lambda *given, **more: asked.append((given, more)))
        assert [find("a"), find("b"), find("b", None, None), find("c", path=[])] == [None] * 4
        names.add("c")
        assert find("c", path=[1]) is None
        assert asked == [(("a",), {}), (("c",), {"path": [1]})], asked
        for wrong in ((), ([],)):
            try:
                find(*wrong)
            except TypeError:
                continue
            assert asked.pop() == ((), {})
    """)
