"""Programs that patch: each is a process of its own, since what is patched is the process."""

from collections.abc import Mapping
from textwrap import dedent

from tests.support import Child, run_child

# Nothing in here imports `threading`: the program decides whether that comes before the patch.
PRELUDE = '''
import sys
import _thread
from cpythonplus import threads
from cpythonplus.threads import _patching as patching

LOADED = [name for name in patching.NAMES if name in sys.modules]


def public():
    """What threading and queue have under the names in question."""
    import threading, queue

    found = {}
    for module in (threading, queue):
        for name in patching.NAMES[module.__name__]:
            found[name] = getattr(module, name)
    return found


def is_native(value):
    """Whether it is one of our types, or what makes objects of one in the standard library."""
    more = patching.primitives.LockType, patching.primitives.allocate_lock
    if any(value is native for native in (*natives().values(), *more)):
        return True
    if getattr(value, "__name__", "") == "RLock" and not isinstance(value, type):
        return type(value()) is threads.RLock
    if not isinstance(value, type) or value.__module__ not in ("threading", "queue"):
        return False
    native = natives().get(value.__name__)
    return native is not None and type(value(1) if "Barrier" in str(value) else value()) is native


def natives():
    return {name: getattr(threads, name) for names in patching.NAMES.values() for name in names}


def all_native():
    return all(is_native(value) for value in public().values())


def none_native():
    return not any(is_native(value) for value in public().values())
'''


def run(
    program: str, *, env: Mapping[str, str] | None = None, status: int | None = 0, before: str = ""
) -> Child:
    """Run a program with PRELUDE, whatever its indentation."""
    return run_child(dedent(before) + PRELUDE + dedent(program), env=env, status=status)
