"""Tasklets that go on from a pickle."""

import contextlib
import contextvars
import copy
import functools
import itertools
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from cpythonplus import _native, tasklets
from cpythonplus.tasklets import bomb, channel, run, tasklet
from cpythonplus.tasklets._pickling import iterators as _iterators
from tests.support import run_child
from tests.tasklets.pickling import pickled
from tests.tasklets.pickling.pickled import CASES, RESULTS, stop

RoundTrip = Callable[[Any], Any]
KEPT: list[tasklet] = []
pytestmark = pytest.mark.filterwarnings("ignore:coroutine 'answer' was never awaited")


def round_trip(it: object) -> Any:  # noqa: ANN401  # what it was
    return pickle.loads(pickle.dumps(it))


def finish(task: tasklet, hop: RoundTrip = lambda it: it) -> int:
    """Let it go on until its end, through `hop` at each stop; return how often it stopped."""
    stops = 0
    while task.alive:
        task = hop(task)
        KEPT.append(task)  # else it would be killed, and its `finally` clauses log something
        task.insert()
        run()
        stops += 1
    return stops


def started(function: Callable[..., object], *args: object) -> tasklet:
    task = tasklet(function)(*args)
    KEPT.append(task)
    run()
    return task


@pytest.fixture(autouse=True)
def _no_results() -> Iterator[None]:
    RESULTS.clear()
    yield
    for task in KEPT:
        while task.alive:  # a `finally` clause may stop once more, and TaskletExit be in a group
            with contextlib.suppress(BaseExceptionGroup):
                task.kill()
    KEPT.clear()
    RESULTS.clear()


HOPS: dict[str, RoundTrip] = {
    "pickle": round_trip,
    "protocol 2": lambda it: pickle.loads(pickle.dumps(it, 2)),
    "Pickler": lambda it: pickle.loads(tasklets.dumps(it)),
    "cloudpickle": lambda it: pickle.loads(cloudpickle.dumps(it)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_goes_on_as_if_nothing_had_been(case: Callable[[Any], None], hop: str) -> None:
    if hop == "copy" and case is pickled.contexts:
        pytest.skip("a copy shares the context managers that are objects")
    stops = finish(started(pickled.program, case, []))
    log = RESULTS.pop()
    assert len(log) > 0
    assert finish(started(pickled.program, case, []), HOPS[hop]) == stops
    assert [log] == RESULTS


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case is not pickled.behind_decorators],  # a lock cannot travel
    ids=lambda case: case.__name__,
)
def test_by_value(case: Callable[[Any], None]) -> None:
    def hop(it: object) -> object:
        with tasklets.pickling(code="value"):
            return round_trip(it)

    finish(started(pickled.program, case, []))
    log = RESULTS.pop()
    finish(started(pickled.program, case, []), hop)
    assert [log] == RESULTS


def test_the_original_goes_on() -> None:
    task = started(pickled.program, pickled.generators, [])
    stops = 1
    while task.alive:
        pickle.dumps(task)
        task.insert()
        run()
        stops += 1
    first = RESULTS.pop()
    finish(started(pickled.program, pickled.generators, []))
    assert [first] == RESULTS


def test_one_snapshot_goes_on_twice() -> None:
    data = pickle.dumps(started(pickled.program, pickled.closures, []))
    finish(pickle.loads(data))
    finish(pickle.loads(data))
    assert len(RESULTS) == 2
    assert RESULTS[0] == RESULTS[1]


def test_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "pickle"
    path.write_bytes(pickle.dumps(started(pickled.program, pickled.handlers, [])))
    finish(started(pickled.program, pickled.handlers, []))
    code = (
        "import pickle, sys\n"
        "from cpythonplus.tasklets import run\n"
        "task = pickle.load(open(sys.argv[1], 'rb'))\n"
        "while task.alive:\n"
        "    task.insert(); run()\n"
        "from tests.tasklets.pickling.pickled import RESULTS\n"
        "print(RESULTS)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == repr(RESULTS)


def test_functions_of_main_travel(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import pickle\n"
        "from cpythonplus.tasklets import run, schedule_remove, tasklet\n"
        "FACTOR, MISSING = 3, object()\n"
        "def scaled(n):\n"
        "    return n * FACTOR\n"
        "def work(n, path, given=MISSING):\n"
        "    for i in range(n):\n"
        "        schedule_remove()\n"
        "        total = scaled(i) + (lambda: 1)() + (given is not MISSING)\n"
        "    open(path, 'w').write(str(total))\n"
        f"task = tasklet(work)(3, {str(tmp_path / 'out')!r})\n"
        "run()\n"
        f"open({str(tmp_path / 'pickle')!r}, 'wb').write(pickle.dumps(task))\n"
    )
    subprocess.run([sys.executable, str(program)], check=True)
    program.unlink()
    run_child(
        f"""
        import pickle
        from cpythonplus.tasklets import run
        task = pickle.load(open({str(tmp_path / "pickle")!r}, "rb"))
        while task.alive:
            task.insert()
            run()
        assert open({str(tmp_path / "out")!r}).read() == "7"
        """
    )


def test_a_wrapper_by_value_keeps_the_globals_of_its_module() -> None:
    @contextlib.contextmanager
    def local() -> Iterator[None]:
        yield

    wrapper = tasklets.dumps(local)  # its __module__ is that of what it wraps
    loaded = pickle.loads(wrapper)
    assert loaded.__globals__ is vars(contextlib)
    assert loaded.__module__ == __name__
    with loaded():
        pass


def test_a_sentinel_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled, "GONE", pickled.Empty(), raising=False)
    task = started(lambda gone: (stop(), gone), pickled.GONE)  # type: ignore[attr-defined]
    data = pickle.dumps(task)
    monkeypatch.undo()
    with pytest.raises(pickle.UnpicklingError, match="GONE is not here"):
        pickle.loads(data)


def test_a_deep_copy_shares_globals_that_cannot_be_copied() -> None:
    scope: dict[str, Any] = {"lock": threading.Lock(), "stop": stop, "__name__": "nowhere"}
    exec("def work(log):\n    stop()\n    log.append(lock.locked())", scope)
    log: list[Any] = []
    copied, copied_log = copy.deepcopy((started(scope["work"], log), log))
    scope["lock"].acquire()
    finish(copied)
    assert copied_log == [True]


# ---- states of a tasklet -----------------------------------------------------------------------


def test_new() -> None:
    log: list[Any] = []
    task = round_trip(tasklet(pickled.spins))
    assert not task.alive
    task.setup(2, log)
    run()
    assert log == [3]
    bound = tasklet(pickled.program, (pickled.defaults, []))
    again = round_trip(bound)
    assert (again.alive, again.paused) == (True, True)
    finish(again)
    assert len(RESULTS) == 1


def test_ended() -> None:
    task = started(int)
    assert not round_trip(task).alive


def test_flags_and_attributes() -> None:
    class_ = Named
    task = class_(stop)
    task.name = "x"
    task.setup()
    task.set_atomic(True)
    task.set_ignore_nesting(1)
    task.block_trap = True
    run()
    again = round_trip(task)
    assert (type(again), again.name) == (Named, "x")
    assert (again.atomic, again.ignore_nesting, again.block_trap) == (True, True, True)
    task.kill()


class Named(tasklet):
    """Has an attribute."""

    name = ""


def test_it_can_be_bound_again() -> None:
    task = round_trip(started(stop))
    log: list[Any] = []
    task.bind(pickled.spins, (2, log))
    task.insert()
    run()
    assert log == [3]


def test_it_goes_on_in_another_thread() -> None:
    task = round_trip(started(pickled.program, pickled.matches, []))

    def elsewhere() -> None:
        task.bind_thread()
        finish(task)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(RESULTS) == 1


def test_a_loaded_one_is_pickled_again() -> None:
    task = started(pickled.program, pickled.generators, [])
    task.insert()
    run()
    finish(round_trip(round_trip(round_trip(task))))
    first = RESULTS.pop()
    finish(started(pickled.program, pickled.generators, []))
    assert [first] == RESULTS


def test_killed_its_finally_clauses_run() -> None:
    log: list[Any] = []

    def work() -> None:
        try:
            stop()
        finally:
            log.append("finally")

    original = started(work)
    task = copy.copy(original)
    task.kill()
    assert log == ["finally"]
    assert not task.alive
    assert original.alive


def test_an_exception_is_raised_in_it() -> None:
    def work(log: list[Any]) -> None:
        try:
            stop()
        except KeyError as error:
            log.append(error.args)

    log: list[Any] = []
    original = started(work, log)
    task = copy.copy(original)
    task.throw(KeyError, "x")
    assert log == [("x",)]


def test_dropped_it_does_not_run() -> None:
    log: list[Any] = []

    def work() -> None:
        try:
            for _ in pickled.numbers(2, log):
                pass
        finally:
            log.append("finally")

    original = started(work)
    task = copy.copy(original)
    del task
    assert log == []
    assert original.alive


def test_restorable() -> None:
    task = started(stop)
    assert task.restorable
    inside = started(functools.partial(max, [1], key=stop))
    assert not inside.restorable
    assert not tasklets.getmain().restorable
    assert tasklet(stop).restorable
    task.kill()
    inside.kill()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="refused there")
def test_interrupted_by_a_watchdog() -> None:
    log: Any = []
    task = tasklet(pickled.spins)(3000, log)
    times = 0
    while (victim := run(500)) is not None:
        task = round_trip(victim) if times == 0 else copy.copy(victim)
        if times == 0:
            log = task.__reduce__()[2][4][0][3][1]  # the copy of the list that it has
        task.insert()
        times += 1
    assert times == 6
    assert log == [sum(range(3000)) + 3000]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="refused there")
def test_interrupted_at_a_long_jump() -> None:
    expected: list[Any] = []
    pickled.spins_far(300, expected)
    log: list[Any] = []
    tasklet(pickled.spins_far)(300, log)
    times = 0
    while (victim := run(7)) is not None:
        KEPT.append(victim)
        copy.copy(victim).insert()
        times += 1
    assert times > 40
    assert log == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="refused there")
def test_an_exception_at_an_interruption() -> None:
    def work(log: list[Any]) -> None:
        try:
            while True:
                log.count(1)
        except KeyError:
            log.append("caught")

    log: list[Any] = []
    tasklet(work)(log)
    victim = run(200)
    assert victim is not None
    task = copy.copy(victim)
    task.throw(KeyError)
    assert log == ["caught"]
    victim.kill()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it can be")
def test_interrupted_ones_are_refused_before_3_12() -> None:
    tasklet(pickled.spins)(3000, [])
    victim = run(500)
    with pytest.raises(pickle.PicklingError, match=r"from 3\.12 on"):
        pickle.dumps(victim)
    assert victim is not None
    victim.kill()


# ---- iterators ---------------------------------------------------------------------------------

GARBAGE: tuple[Any, ...] = (None, -1, 0, 1, 1000, 2**63, "x", (), (5, 5, 5), [], iter(()), max)


def garbled(fields: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for place in range(len(fields)):
        for other in GARBAGE:
            yield (*fields[:place], other, *fields[place + 1 :])
    yield fields[1:]
    yield (*fields, 0)


def states_of_iterators() -> Iterator[tuple[Any, Any, Any]]:
    """(function, arguments, fields) of iterators that have begun, where fields are what is set."""
    iterators = [*pickled.of_itertools(), *itertools.tee("abc"), itertools.groupby("aab")]
    for each in iterators:
        next(each, None)
        reduced = _iterators.reduced(each)
        if reduced[3] is _iterators.set_iterator_state and reduced[2] is not None:
            yield reduced[:3]


def test_fields_that_do_not_fit_leave_an_iterator_as_it_was() -> None:
    refused = accepted = 0
    for function, arguments, fields in states_of_iterators():
        for other in garbled(fields):
            made, fresh = function(*arguments), function(*arguments)
            try:
                _iterators.set_iterator_state(made, other)
            except pickle.UnpicklingError:
                refused += 1
                assert list(itertools.islice(made, 5)) == list(itertools.islice(fresh, 5))
            else:
                accepted += 1  # it fits, though it is another state
                with contextlib.suppress(TypeError, ValueError):
                    list(itertools.islice(made, 5))
    assert min(refused, accepted) > 20
    with pytest.raises(pickle.UnpicklingError, match="not the state of this iterator"):
        _iterators.set_iterator_state(iter("abc"), (0,))


def test_a_class_with_the_name_and_size_of_an_iterator() -> None:
    words = (itertools.pairwise.__basicsize__ - object.__basicsize__) // 8
    other = type("itertools.pairwise", (), {"__slots__": [f"slot{i}" for i in range(words)]})
    with pytest.raises(TypeError, match="object is not known"):
        _native.itertools_capture(other())


def test_iterators_that_lead_to_themselves() -> None:
    held: dict[str, Any] = {}
    held["pairs"] = itertools.pairwise([1, 2, held])
    assert next(held["pairs"]) == (1, 2)
    again = pickle.loads(tasklets.dumps(held))
    (two, same) = next(again["pairs"])
    assert two == 2
    assert same is again


# ---- what belongs together ---------------------------------------------------------------------


def test_identity_within_one_pickle() -> None:
    shared: list[Any] = []

    def work(mine: list[Any]) -> None:
        value = 0

        def add() -> int:
            nonlocal value
            value += 1
            return value

        same = add
        stop()
        mine.append((same is add, same(), add(), value))
        RESULTS.append(mine)

    one, two = started(work, shared), started(work, shared)
    first, second, again = round_trip([one, two, one])
    assert first is again
    finish(first)
    finish(second)
    assert RESULTS[0] is RESULTS[1]
    assert RESULTS[0] == [(True, 1, 2, 2)] * 2
    assert shared == []


def test_shared_objects() -> None:
    gate = channel()
    log: list[Any] = []
    tasks = [started(pickled.receives, gate, log) for _ in range(2)]
    (a, b), other_gate, other_log = round_trip((tasks, gate, log))
    assert (other_gate.balance, a.blocked, b.blocked) == (-2, True, True)
    other_gate.send(1)
    other_gate.send(2)
    assert (log, other_log) == ([], [1, 2])
    gate.send(3)
    gate.send(4)
    assert log == [3, 4]


def test_a_channel_brings_those_that_wait_in_it() -> None:
    gate = channel()
    for value in "abc":
        started(pickled.sends, gate, value)
    gate.preference, gate.schedule_all = 1, 1
    again = round_trip(gate)
    assert (again.balance, again.preference, again.schedule_all) == (3, 1, 1)
    assert [again.receive() for _ in "abc"] == list("abc")
    assert [gate.receive() for _ in "abc"] == list("abc")
    gate.close()
    assert round_trip(gate).closing


@pytest.mark.parametrize("n", [0, 2])
def test_iteration_over_a_channel_ends(n: int) -> None:
    gate = channel()
    log: list[Any] = []
    started(pickled.iterates, gate, log)
    gate, log = round_trip((gate, log))
    for i in range(n):
        gate.send(i)
    gate.send_exception(StopIteration)
    assert log == [*range(n), "end"]


def test_bombs() -> None:
    again = round_trip(bomb(KeyError, KeyError(1)))
    assert (again.type, again.value.args, again.traceback) == (KeyError, (1,), None)
    task = started(stop)
    task.tempval = bomb(KeyError, KeyError(1))
    task = round_trip(task)
    task.insert()
    with pytest.raises(KeyError):
        run()


def test_a_traceback_stays_behind_and_is_there() -> None:
    def work(log: list[Any]) -> None:
        made = ValueError("never raised")
        try:
            int("x")
        except ValueError as error:
            stop()
            there = error.__traceback__
            log += [made.__traceback__, there and there.tb_frame.f_code.co_name]
        RESULTS.append(log)

    finish(round_trip(started(work, [])))
    assert RESULTS == [[None, "raised_before_it_was_pickled"]]


@pytest.mark.parametrize("dumps", [pickle.dumps, tasklets.dumps])
def test_a_traceback_in_a_tuple(dumps: Callable[[object], bytes]) -> None:
    def work() -> None:
        found: Any = None
        try:
            int("x")
        except ValueError:
            found = sys.exc_info()
        stop()
        RESULTS.append([found[0], found[2] and found[2].tb_frame.f_code.co_name])

    task = started(work)
    finish(pickle.loads(dumps(task)))
    assert RESULTS.pop() == [ValueError, "raised_before_it_was_pickled"]


class Holder:
    """Has what pickle alone cannot write."""

    many: list[Callable[[], int]]


class Calls:
    """What its class is called for ends in its own `__exit__`, by way of C code."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        stop()

    __call__ = functools.partialmethod(__exit__, None, None, None)


def test_leaving_by_way_of_other_c_code_is_refused() -> None:
    def work() -> None:
        Calls()(None, None)

    task = started(work)
    with pytest.raises(
        pickle.PicklingError, match=r"^Calls\(\) \(C function\) is in the middle of"
    ):
        pickle.dumps(task)
    assert finish(task) == 1


def test_recursion_depth_of_a_loaded_one() -> None:
    task = round_trip(started(pickled.deep, 5))
    assert (task.recursion_depth, round_trip(tasklet(stop)).recursion_depth) == (7, 0)
    assert finish(task) == 1
    assert task.recursion_depth == 0


def test_a_copy_has_its_own_variables() -> None:
    log: list[Any] = []

    def search() -> None:
        total = 0

        def add(n: int) -> None:
            nonlocal total
            total += n

        left = iter([1, 2, 3])
        for i in left:
            add(i)
            for _ in pickled.plain_numbers(1):
                stop()
        log.append(total)

    task = started(search)
    copies = [copy.copy(task) for _ in range(3)]
    for each in (*copies, task):
        finish(each)
    assert log == [6] * 4


@pytest.mark.parametrize("hop", ["pickle", "Pickler", "deepcopy"])
def test_it_may_lead_to_itself(hop: str) -> None:
    log: list[Any] = []
    task = started(pickled.program, pickled.about_itself, log)
    finish(HOPS[hop](task))
    assert RESULTS == [[True]]


def test_dropped_in_a_cycle_nobody_is_told_of_its_generators() -> None:
    child = run_child(
        f"""
        import gc, pickle, sys
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from cpythonplus.tasklets import getcurrent, run, tasklet
        from tests.tasklets.pickling import pickled
        def work():
            me = getcurrent()
            for _ in pickled.numbers(2, []):
                pass
        task = tasklet(work)()
        run()
        data = pickle.dumps(task)
        for _ in range(100):
            pickle.loads(data)
        gc.collect()
        task.kill()
        """
    )
    assert child.err == ""


# ---- what is refused ---------------------------------------------------------------------------


def holds_lock() -> None:
    lock = threading.Lock()
    with lock:
        stop()


def holds_file() -> None:
    with tempfile.TemporaryFile() as file:
        stop(file)


def holds_view() -> None:
    view = memoryview(b"x")
    stop(len(view))


def around_a_lock() -> Callable[[], None]:
    lock = threading.Lock()

    def inner() -> None:
        with lock:
            pass
        stop()

    return inner


def holds_around_lock() -> None:
    inner = around_a_lock()
    stop()
    inner()


def calls_around_lock() -> None:
    around_a_lock()()


def in_max() -> None:
    max([1], key=stop)


def in_context() -> None:
    """Up to 3.12 the function lies where the partial was, which calls C code with it."""
    run_there: Any = contextvars.copy_context().run
    functools.partial(run_there, pickled.takes_all)(1)


class Stops:
    def __call__(self, _: object) -> None:
        stop()


def in_context_too() -> None:
    called = Stops()
    run_there: Any = contextvars.copy_context().run
    call = functools.partial(run_there, called)
    call(1)


def in_property() -> int:
    class Some:
        @property
        def attribute(self) -> int:
            stop()
            return 1

    return Some().attribute


def in_class_body() -> None:
    class Some:
        value = stop()

    Some()


def in_exec() -> None:
    exec("stop()", {"stop": stop})


REFUSED: dict[Callable[[], object], str] = {
    holds_lock: r"local 'lock' of holds_lock\(\) line \d+: cannot pickle '_thread\.lock' object",
    holds_file: r"local 'file' of holds_file\(\) line \d+: cannot pickle",
    holds_view: r"local 'view' of holds_view\(\) line \d+: cannot pickle memoryview objects",
    in_context: r"(functools.partial\(\) \(C function\)|C code) is in the middle of in_context",
    in_context_too: r"is in the middle of in_context_too\(\) line",
    holds_around_lock: r"local 'inner' of holds_around_lock\(\) .*: variable 'lock' of .*inner",
    calls_around_lock: r"local 'lock' of .*inner\(\) line \d+: cannot pickle '_thread\.lock'",
    in_max: r"max\(\) \(C function\) is in the middle of in_max\(\) line \d+",
    in_property: r"C code \(an operator or attribute\) is in the middle of in_property\(\) line",
    in_class_body: r"a module or a class is being executed",
    in_exec: r"a module or a class is being executed",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda it: it.__name__)
def test_refused_by_name(function: Callable[[], object]) -> None:
    task = started(function)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(pickle.PicklingError, match=REFUSED[function]):
            attempt(task)
    assert finish(task) > 0


def test_the_running_one_is_refused() -> None:
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(pickle.PicklingError, match="main tasklet"):
            attempt(tasklets.getmain())
    log: list[Any] = []

    def work() -> None:
        with pytest.raises(pickle.PicklingError, match="is running"):
            pickle.dumps(tasklets.getcurrent())
        log.append("refused")

    started(work)
    assert log == ["refused"]


def test_one_that_sleeps_is_refused() -> None:
    from cpythonplus.tasklets.io import sleep

    task = tasklet(sleep)(10)
    tasklets.schedule()
    with pytest.raises(pickle.PicklingError, match="something outside"):
        pickle.dumps(task)
    task.kill()


def test_a_generator_that_is_being_executed_is_refused_without_its_tasklet() -> None:
    log: list[Any] = []
    generator = pickled.numbers(1, log)

    def work() -> None:
        for _ in generator:
            pass

    task = started(work)
    with pytest.raises(pickle.PicklingError, match="is being executed"):
        tasklets.dumps(generator)
    task.kill()


# ---- what is loaded ----------------------------------------------------------------------------


def test_code_that_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "changing_module.py"
    text = (
        "from cpythonplus.tasklets import schedule_remove\n"
        "def work(log):\n    schedule_remove()\n    {}\n"
    )
    path.write_text(text.format("log.append('old')"))
    import changing_module  # type: ignore[import-not-found]

    task = started(changing_module.work, [])
    by_name = pickle.dumps(task)
    with tasklets.pickling(code="value"):
        by_value = pickle.dumps(task)
    task.kill()
    names: dict[str, Any] = {}
    exec(text.format("log.append('new')"), names)
    changing_module.work.__code__ = names["work"].__code__
    message = (
        r"the code of changing_module\.work has changed: [0-9a-f]{32} was pickled, [0-9a-f]{32}"
    )
    with pytest.raises(pickle.UnpicklingError, match=message):
        pickle.loads(by_name)
    again = pickle.loads(by_value)
    log = again.__reduce__()[2][4][0][3][0]
    finish(again)
    assert log == ["old"]
    del changing_module.work
    with pytest.raises(pickle.UnpicklingError, match="is not here"):
        pickle.loads(by_name)


@pytest.mark.parametrize("killed", [False, True])
def test_code_that_changes_after_loading(killed: bool) -> None:
    """A reloader gives functions other code: what has begun goes on with what it began with."""
    log: list[Any] = []

    def work(log: list[Any]) -> None:
        x = len(log)
        try:
            for i in values(log):
                y = stop(i)
                log.append([x, i, y])
        finally:
            log.append("finally")

    def values(log: list[Any]) -> Iterator[int]:
        try:
            yield stop(1)
        finally:
            log.append("values")

    def other(log: list[Any]) -> None:
        a = b = c = d = log
        print(a, b, c, d, stop(1), values)

    def others(log: list[Any]) -> Iterator[int]:
        a = b = c = d = log
        yield from (len(each) for each in (a, b, c, d, [stop(1)]))

    original = started(work, log)
    task, unpickled = copy.copy(original), copy.copy(original)
    work.__code__, values.__code__ = other.__code__, others.__code__
    with pytest.raises(pickle.PicklingError, match=r"work\(\) has other code than when"):
        pickle.dumps(unpickled)
    if killed:
        task.kill()
        assert log == ["values", "finally"]
    else:
        finish(task)
        assert log == [[0, 1, 1], "values", "finally"]


def test_code_by_value_that_is_damaged() -> None:
    def work() -> None:
        stop(len("a constant"))

    task = started(work)
    data = pickle.dumps(task)
    assert data.count(b"a constant") == 1
    with pytest.raises(pickle.UnpicklingError, match="code is damaged"):
        pickle.loads(data.replace(b"a constant", b"a constanu"))
    finish(task)


def test_generators_that_do_not_fit() -> None:
    begun = pickled.plain_numbers(2)
    next(begun)
    for generator in (pickled.plain_numbers(2), begun):
        captured = _native.generator_capture(generator, ValueError)
        offset, kinds, values, handled, state = captured
        function = _native.generator_function(generator)
        for wrong in (
            *((offset + by, kinds, values, handled, state) for by in (-200, -2, -1, 1, 2, 4)),
            (offset, kinds + b"n", values, handled, state),
            *((offset, kinds, values, handled, state + by) for by in (-1, 1, 2)),
            (offset, kinds, values, 5, state),
        ):
            with pytest.raises(ValueError, match="not the frames of a tasklet"):
                _native.generator_restore(_native.generator_make(function), wrong)
        again = _native.generator_make(function)
        _native.generator_restore(again, captured)
        assert len(list(again)) == (2 if generator is begun else 3)


def test_another_minor_version() -> None:
    task = started(stop)
    function, arguments, state = task.__reduce__()
    state = (state[0], (3, 99), *state[2:])
    new = function(*arguments)
    with pytest.raises(
        pickle.UnpicklingError, match=r"pickled by Python 3\.99, and this is Python"
    ):
        new.__setstate__(state)
    assert not new.alive
    task.kill()


@pytest.mark.parametrize("state", [None, (), (1,) * 10, "x", (0,) * 10])
def test_no_state(state: object) -> None:
    new: tasklet | channel
    for new in (tasklet(), channel()):
        with pytest.raises(pickle.UnpicklingError):
            new.__setstate__(state)
    assert not tasklet().alive


def test_frames_that_do_not_fit() -> None:
    task = started(pickled.program, pickled.generators, [])
    function, arguments, state = task.__reduce__()
    frames = state[4]
    outermost, *rest = frames
    for broken in (
        (),
        (*rest, outermost),
        ((*outermost[:1], 1, *outermost[2:]), *rest),
        ((*outermost[:1], -1, *outermost[2:]), *rest),
        ((*outermost[:2], b"", *outermost[3:]), *rest),
        ((*outermost[:2], outermost[2] + b"o", *outermost[3:]), *rest),
        ((*outermost[:2], b"x" * len(outermost[2]), *outermost[3:]), *rest),
        ((*outermost[:3], (), None), *rest),
        ((int, *outermost[1:]), *rest),
        (5,),
        None,
    ):
        new = function(*arguments)
        with pytest.raises(pickle.UnpicklingError):
            new.__setstate__((*state[:4], broken if broken is not None else 5, *state[5:]))
        assert not new.alive
    finish(task)


def test_garbage_does_not_crash() -> None:
    run_child(
        f"""
        import pickle, random, sys
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from tests.tasklets.pickling import pickled
        from tests.tasklets.pickling.test_pickle import started
        data = pickle.dumps(started(pickled.program, pickled.closures, []))
        random.seed(1)
        for _ in range(3000):
            garbled = bytearray(data)
            for _ in range(random.randint(1, 3)):
                garbled[random.randrange(len(garbled))] = random.randrange(256)
            try:
                pickle.loads(bytes(garbled[:random.randint(1, len(garbled))]))
            except Exception:
                pass
        """
    )


def test_words() -> None:
    unknown = tasklets.pickling(code="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'name' or 'value', not 'both'"), unknown:
        pass
    with tasklets.pickling(code="value"), tasklets.pickling(code="name"):
        pass


class Nested:
    """Has a pickle in its pickle."""

    def __init__(self, task: tasklet) -> None:
        self.task = task

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (pickle.dumps(self.task),)


def test_a_pickle_within_one_of_the_pickler() -> None:
    def work(more: object) -> None:
        def local() -> int:
            return 5

        stop()
        RESULTS.append([local(), more])

    inner = started(work, 1)
    outer = started(work, Nested(inner))
    for data in (tasklets.dumps([Nested(inner)]), tasklets.dumps([Nested(outer)])):
        (task,) = pickle.loads(data)
        finish(task)
    assert RESULTS[0] == [5, 1]
    finish(RESULTS[1][1])
    assert RESULTS[2] == [5, 1]


def test_lambdas_in_attributes_need_the_pickler() -> None:
    def work() -> None:
        holder = Holder()
        holder.many = [lambda: 1, lambda: 2]
        stop()
        RESULTS.append([each() for each in holder.many])

    task = started(work)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(task)
    finish(pickle.loads(tasklets.dumps(task)))
    assert RESULTS == [[1, 2]]
    assert finish(task) == 1
