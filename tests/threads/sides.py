"""The same lines on the standard library's types and on ours, and threads that cannot hang a test.

A case is a few lines of Python that use `Lock`, `Queue` and so on by these names and end with an
expression.  What comes out, be it a value, an exception or warnings, is compared.  Each side runs
in a child process, since a case may crash or hang; ours in one that is patched, as a program of
somebody else's is.
"""

import json
import queue
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpythonplus import threads
from tests.support import Child, finish_child, start_child

LIMIT_S = 60
"""What a thread or a condition gets before it counts as stuck."""

CASES_LIMIT_S = 20
"""What all cases of a file get, which need a second or two; anew after each that hangs."""

LOCKS = ("Lock", "RLock")
CONDITIONED = ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier")
QUEUES = ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue")
NAMES = (*LOCKS, *CONDITIONED, *QUEUES)


@dataclass(frozen=True)
class Side:
    """The types of the standard library, or ours."""

    name: str
    Lock: Any
    RLock: Any
    Condition: Any
    Semaphore: Any
    BoundedSemaphore: Any
    Event: Any
    Barrier: Any
    Queue: Any
    LifoQueue: Any
    PriorityQueue: Any
    SimpleQueue: Any


STOCK = Side(
    "stock",
    *(getattr(threading, name) for name in (*LOCKS, *CONDITIONED)),
    *(getattr(queue, name) for name in QUEUES),
)
NATIVE = Side("native", *(getattr(threads, name) for name in NAMES))

on_both_sides = pytest.mark.parametrize("side", [STOCK, NATIVE], ids=["stock", "native"])

# ---- threads ------------------------------------------------------------------------------------


def until(condition: Callable[..., object], *args: object) -> None:
    """Wait for what other threads do."""
    end = time.monotonic() + LIMIT_S
    while not condition(*args):
        if time.monotonic() > end:
            raise AssertionError(f"not within {LIMIT_S} s")
        time.sleep(0.001)


class Started:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[..., object], *args: object, **kwargs: object) -> None:
        self._call: Callable[[], object] = partial(call, *args, **kwargs)
        self._value: object = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is asked for
            self._error = error

    def result(self) -> object:
        """What the call returned or raised."""
        self.thread.join(LIMIT_S)
        if self.thread.is_alive():
            frame = sys._current_frames().get(self.thread.ident or 0)
            where = "".join(traceback.format_stack(frame))
            pytest.fail(f"a thread is stuck:\n{where}")
        if self._error is not None:
            raise self._error
        return self._value


def until_waited_for(
    thing: Any,  # noqa: ANN401  # of either side
    count: int = 1,
    *,
    timed: Started | None = None,
) -> None:
    """Wait until `count` threads wait, or have waited, for a thing that nobody waited for before.

    timed: the one that waits, where its time may run out before this looks.

    Of the standard library's locks and SimpleQueue that cannot be told: there this only gives the
    threads a chance, and what comes after holds in either case.
    """
    inner = getattr(thing, "_cond", thing)
    conditions = [inner, *(getattr(thing, name, None) for name in QUEUE_CONDITIONS)]
    waiters = [condition for condition in conditions if hasattr(condition, "_waiters")]
    if hasattr(thing, "statistics"):
        until(lambda: thing.statistics().waits >= count)
    elif waiters:
        until(
            lambda: (
                sum(len(condition._waiters) for condition in waiters) >= count
                or (timed is not None and not timed.thread.is_alive())
            )
        )
    else:
        time.sleep(0.01)


QUEUE_CONDITIONS = ("not_empty", "not_full", "all_tasks_done")

# ---- cases --------------------------------------------------------------------------------------

CASES_PROGRAM = r'''
import ast, copy, json, pickle, queue, re, sys, threading, warnings, weakref
from cpythonplus import threads

NAMES = {names!r}
CASES = {cases!r}
nan, inf, huge, pause = float("nan"), float("inf"), 1e100, 0.002
OWN = [(r"_thread\.lock", "Lock"), (r"_thread\.RLock", "RLock"), (r"_queue\.", "")]
OWN += [(r"(?:cpythonplus\.)?threads\.|(?<!\w)threading\.|(?<!\w)queue\.", "")]
OWN += [(r"0x[0-9a-f]+", "ADDRESS"), (r"owner=[1-9]\d*", "owner=SOMEBODY")]
TELLING = (RuntimeError, ValueError, DeprecationWarning)  # the others' messages are the parser's


def plain(value):
    """What is to be equal of a value, as text."""
    text = repr(value)
    for pattern, name in OWN:
        text = re.sub(pattern, name, text)
    return text


def exception(error):
    """Its type, and its message where that is the type's own and not the argument parser's."""
    kind = type(error).__name__
    if isinstance(error, TELLING) and not isinstance(error, UnicodeError):
        return f"{{kind}}: {{plain(str(error))}}"
    return kind


def raised(call, *args, **kwargs):
    """What a call raises, or `returned ...`."""
    try:
        return f"returned {{plain(call(*args, **kwargs))}}"
    except Exception as error:
        return exception(error)


def joined(q):
    """Whether join() returned: ours tells by True."""
    return q.join() in (None, True)


def in_thread(call, *args, **kwargs):
    """What a call in another thread returns or raises."""
    result = []
    body = lambda: result.append(raised(call, *args, **kwargs))
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return result[0]


def run(code, names):
    names = {{**globals(), **names}}
    *body, last = ast.parse(code).body
    exec(compile(ast.Module(body, []), "case", "exec"), names)
    return eval(compile(ast.Expression(last.value), "case", "eval"), names)


def outcome(code, names):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            text = plain(run(code, names))
        except Exception as error:
            text = exception(error)
    told = [exception(warning.message) for warning in told]
    return f"{{text}} {{told}}" if told else text


side, first, path = sys.argv[1:]
if side == "native":
    threads.patch()
names = {{name: getattr(threading, name, None) or getattr(queue, name) for name in NAMES}}
with open(path, "a") as file:
    for code in CASES[int(first):]:
        print(json.dumps(outcome(code, names)), file=file)
        file.flush()
'''


class Outcomes:
    """What came out of the cases of a module on both sides."""

    def __init__(self, cases: Sequence[str]) -> None:
        self._cases = list(dict.fromkeys(cases))
        self._outcomes: dict[str, dict[str, str]] = {case: {} for case in self._cases}
        self._crashes: dict[str, Child] = {}
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.py")
            program.write_text(CASES_PROGRAM.format(names=NAMES, cases=self._cases))
            for side in ("stock", "native"):
                first = 0
                while first < len(self._cases):
                    first += self._go_on(side, program, first)

    def _go_on(self, side: str, program: Path, first: int) -> int:
        """Run what is left in one child; return how many it did, one that ended it among them."""
        results = program.with_name("results")
        results.write_text("")
        child = start_child(program, args=[side, str(first), str(results)])
        try:
            ended = finish_child(child, timeout=CASES_LIMIT_S)
        except pytest.fail.Exception as failure:
            ended = Child(-1, "", str(failure))
        lines = results.read_text().splitlines()
        for case, line in zip(self._cases[first:], lines, strict=False):
            self._outcomes[case][side] = json.loads(line)
        if first + len(lines) < len(self._cases):
            self._crashes[self._cases[first + len(lines)]] = ended
            return len(lines) + 1
        return len(lines)

    def check(self, case: str) -> None:
        """Fail unless ours did what the standard library's did."""
        if case in self._crashes:
            pytest.fail(f"the process ended in this case:\n{case}\n{self._crashes[case]}")
        sides = self._outcomes[case]
        told = f"\n{case}\n  stock:  {sides['stock']}\n  native: {sides['native']}"
        assert sides["native"] == sides["stock"], told
