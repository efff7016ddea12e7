# mypy: disable-error-code="possibly-undefined"
"""Exceptions that are kept where their tracebacks lead, and how not to."""

import asyncio
import contextlib
import logging
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tests.memory.cycles.patterns.pattern import Pattern

# ---- in variables -------------------------------------------------------------------------------


def fail(message: str = "refused") -> None:
    raise ConnectionError(message)


def kept_local() -> str:
    try:
        fail()
    except ConnectionError as e:
        last = e  # <- here
    return str(last)


def kept_local_twin() -> str:
    last: ConnectionError | None = None
    try:
        try:
            fail()
        except ConnectionError as e:
            last = e
        return str(last)
    finally:
        del last


def retry_loop() -> None:
    last: ConnectionError | None = None
    for attempt in range(3):
        try:
            return fail(str(attempt))
        except ConnectionError as e:
            last = e  # <- here
    with contextlib.suppress(ConnectionError):
        raise last or ConnectionError


def retry_loop_twin() -> None:
    last = ""
    for attempt in range(3):
        try:
            return fail(str(attempt))
        except ConnectionError as e:
            last = str(e)
    with contextlib.suppress(ConnectionError):
        raise ConnectionError(last)


def two_handlers() -> object:
    try:
        fail()
    except ValueError as e:
        outcome: Exception = e
    except ConnectionError as e:
        outcome = e  # <- here
    return outcome.args[0]


def two_handlers_twin() -> object:
    try:
        fail()
    except (ValueError, ConnectionError) as e:
        outcome = e.with_traceback(None)
    return outcome.args[0]


def parameter() -> None:
    def handle(error: Exception) -> None:
        if error.args:
            raise error  # <- here

    with contextlib.suppress(ConnectionError):
        handle(ConnectionError("refused"))


def parameter_twin() -> None:
    def handle(error: Exception) -> None:
        try:
            raise error
        finally:
            del error

    with contextlib.suppress(ConnectionError):
        handle(ConnectionError("refused"))


def catch() -> Exception | None:
    caught: Exception | None = None
    try:
        fail()
    except ConnectionError as e:
        caught = e
    try:
        return caught
    finally:
        del caught


def in_the_caller() -> str:
    outcome = catch()  # <- here
    return str(outcome)


def in_the_caller_twin() -> str:
    return str(catch())


def free_variable() -> object:
    error = None

    def attempt() -> None:
        nonlocal error
        try:
            fail()
        except ConnectionError as e:
            error = e  # <- here

    attempt()
    return None


def free_variable_twin() -> object:
    error = None

    def attempt() -> None:
        nonlocal error
        try:
            fail()
        except ConnectionError as e:
            error = str(e)

    attempt()
    return error


# ---- sys.exc_info() -----------------------------------------------------------------------------


def exc_info() -> object:
    try:
        fail()
    except ConnectionError:
        info = sys.exc_info()  # <- here
    return info[0]


def exc_info_twin() -> object:
    try:
        fail()
    except ConnectionError:
        info = sys.exc_info()
    try:
        return info[0]
    finally:
        del info


def exc_info_value() -> str:
    try:
        fail()
    except ConnectionError:
        error = sys.exc_info()[1]  # <- here
    return str(error)


def exc_info_value_twin() -> str:
    try:
        fail()
    except ConnectionError:
        return str(sys.exc_info()[1])
    return ""


def exc_info_traceback() -> int:
    try:
        fail()
    except ConnectionError:
        tb = sys.exc_info()[2]  # <- here
    return len(traceback.extract_tb(tb))


def exc_info_traceback_twin() -> int:
    try:
        fail()
    except ConnectionError:
        return len(traceback.extract_tb(sys.exc_info()[2]))
    return 0


def exc_info_unpacked() -> str:
    try:
        fail()
    except ConnectionError:
        kind, value, tb = sys.exc_info()  # <- here
    return f"{kind} {value} {tb}"


def exc_info_unpacked_twin() -> str:
    try:
        fail()
    except ConnectionError:
        kind, value, tb = sys.exc_info()
        try:
            return f"{kind} {value} {tb}"
        finally:
            del kind, value, tb
    return ""


# ---- in containers ------------------------------------------------------------------------------


def error_list() -> int:
    errors = []
    for attempt in range(3):
        try:
            fail(str(attempt))
        except ConnectionError as e:
            errors.append(e)  # <- here
    return len(errors)


def error_list_twin() -> int:
    errors = []
    for attempt in range(3):
        try:
            fail(str(attempt))
        except ConnectionError as e:
            errors.append(e.with_traceback(None))
    return len(errors)


def error_dict() -> int:
    results: dict[str, object] = {}
    for host in ("a", "b"):
        try:
            fail(host)
        except ConnectionError as e:
            results[host] = e  # <- here
    return len(results)


def error_dict_twin() -> int:
    results: dict[str, object] = {}
    for host in ("a", "b"):
        try:
            fail(host)
        except ConnectionError as e:
            results[host] = str(e)
    return len(results)


def known_key() -> bool:
    state: dict[str, object] = {}
    try:
        fail()
    except ConnectionError as e:
        state["error"] = e  # <- here
    return "error" in state


def known_key_twin() -> bool:
    state: dict[str, object] = {}
    try:
        fail()
    except ConnectionError as e:
        state["error"] = e
    try:
        return "error" in state
    finally:
        state.clear()


def error_set() -> int:
    seen = set()
    try:
        fail()
    except ConnectionError as e:
        seen.add(e)  # <- here
    return len(seen)


def error_set_twin() -> int:
    seen = set()
    try:
        fail()
    except ConnectionError as e:
        seen.add(type(e))
    return len(seen)


def exception_group() -> str:
    errors = []
    for attempt in range(2):
        try:
            fail(str(attempt))
        except ConnectionError as e:
            errors.append(e)
    group = ExceptionGroup("all failed", errors)  # <- here
    errors.clear()
    return str(group)


def exception_group_twin() -> str:
    errors = []
    for attempt in range(2):
        try:
            fail(str(attempt))
        except ConnectionError as e:
            errors.append(e)
    try:
        return str(ExceptionGroup("all failed", errors))
    finally:
        errors.clear()


# ---- in attributes ------------------------------------------------------------------------------


class Client:
    error: Exception | None = None

    def ask(self) -> None:
        try:
            fail()
        except ConnectionError as e:
            self.error = e  # <- here

    def ask_twin(self) -> None:
        try:
            fail()
        except ConnectionError as e:
            self.error = e.with_traceback(None)


def on_self() -> None:
    Client().ask()


def on_self_twin() -> None:
    Client().ask_twin()


class SlottedClient:
    __slots__ = ("error", "name")

    def ask(self) -> None:
        self.error: Exception | None = None
        try:
            fail()
        except ConnectionError as e:
            self.error = e  # <- here

    def ask_twin(self) -> None:
        self.error = None
        try:
            fail()
        except ConnectionError as e:
            self.error = e
        self.error = None


def on_slots() -> None:
    SlottedClient().ask()


def on_slots_twin() -> None:
    SlottedClient().ask_twin()


class Reporter:
    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def run(self, *, keep: bool) -> None:
        try:
            fail()
        except ConnectionError as e:
            if keep:
                self.note(e)

    def note(self, error: Exception) -> None:
        self.errors.append(error)  # <- here


def by_another_method() -> None:
    Reporter().run(keep=True)


def by_another_method_twin() -> None:
    Reporter().run(keep=False)


def on_another_object() -> bool:
    job = Client()
    try:
        fail()
    except ConnectionError as e:
        job.error = e  # <- here
    return job.error is None


def on_another_object_twin() -> bool:
    job = Client()
    try:
        fail()
    except ConnectionError as e:
        job.error = e
    job.error = None
    return True


# ---- chains -------------------------------------------------------------------------------------


def raised_from() -> None:
    cause = None
    try:
        fail()
    except ConnectionError as e:
        cause = e  # <- here
    with contextlib.suppress(RuntimeError):
        raise RuntimeError("gave up") from cause


def raised_from_twin() -> None:
    try:
        try:
            fail()
        except ConnectionError as e:
            raise RuntimeError("gave up") from e
    except RuntimeError as outer:
        str(outer)


# ---- what the standard library keeps ------------------------------------------------------------


def log_record() -> str:
    try:
        fail()
    except ConnectionError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})  # <- here
    return record.getMessage()


def log_record_twin() -> str:
    try:
        fail()
    except ConnectionError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    record.exc_info = None
    return record.getMessage()


class KeepingHandler(logging.Handler):
    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.keep = keep

    def emit(self, record: logging.LogRecord) -> None:
        if not self.keep:
            record.exc_info = None
        self.records.append(record)


def handler_list() -> int:
    handler = KeepingHandler(keep=True)
    try:
        fail()
    except ConnectionError:
        record = logging.LogRecord("x", 40, "", 0, "failed", None, sys.exc_info())
        handler.handle(record)  # <- here
        del record
    return len(handler.records)


def handler_list_twin() -> int:
    handler = KeepingHandler(keep=False)
    try:
        fail()
    except ConnectionError:
        handler.handle(logging.LogRecord("x", 40, "", 0, "failed", None, sys.exc_info()))
    return len(handler.records)


def exit_stack() -> None:
    stack = contextlib.ExitStack()
    try:
        fail()
    except ConnectionError as e:
        stack.callback(print, e)  # <- here


def exit_stack_twin() -> None:
    with contextlib.ExitStack() as stack:
        try:
            fail()
        except ConnectionError as e:
            stack.callback(str, e)


@contextlib.contextmanager
def noting(*, keep: bool) -> Iterator[None]:
    try:
        fail()
    except ConnectionError as e:
        problem = e if keep else None  # <- here
        str(problem)
    yield


def context_manager() -> None:
    with noting(keep=True):
        pass


def context_manager_twin() -> None:
    with noting(keep=False):
        pass


def numbers(*, keep: bool) -> Iterator[int]:
    try:
        fail()
    except ConnectionError as e:
        problem = e if keep else None  # <- here
        yield len(str(problem))


def generator() -> None:
    for _ in numbers(keep=True):
        pass


def generator_twin() -> None:
    for _ in numbers(keep=False):
        pass


async def waiting(*, keep: bool) -> None:
    try:
        fail()
    except ConnectionError as e:
        problem = e if keep else None  # <- here
        str(problem)


def coroutine() -> None:
    with contextlib.suppress(StopIteration):
        waiting(keep=True).send(None)


def coroutine_twin() -> None:
    with contextlib.suppress(StopIteration):
        waiting(keep=False).send(None)


async def counting(*, keep: bool) -> AsyncIterator[int]:
    try:
        fail()
    except ConnectionError as e:
        problem = e if keep else None  # <- here
        str(problem)
    if keep:
        return
    yield 1


def asynchronous_generator() -> None:
    with contextlib.suppress(StopAsyncIteration):
        counting(keep=True).asend(None).send(None)  # type: ignore[attr-defined]


def asynchronous_generator_twin() -> None:
    with contextlib.suppress(StopIteration):
        counting(keep=False).asend(None).send(None)  # type: ignore[attr-defined]


def future() -> bool:
    pending: Future[None] = Future()
    try:
        fail()
    except ConnectionError as e:
        pending.set_exception(e)  # <- here
    return pending.done()


def future_twin() -> bool:
    pending: Future[None] = Future()
    try:
        fail()
    except ConnectionError as e:
        pending.set_exception(e.with_traceback(None))
    return pending.done()


def loop_future() -> bool:
    loop = asyncio.new_event_loop()
    pending = loop.create_future()
    loop.close()
    try:
        fail()
    except ConnectionError as e:
        pending.set_exception(e)  # <- here
    pending.exception()
    return pending.done()


def loop_future_twin() -> bool:
    loop = asyncio.new_event_loop()
    pending = loop.create_future()
    loop.close()
    try:
        fail()
    except ConnectionError as e:
        pending.set_exception(e.with_traceback(None))
    pending.exception()
    return pending.done()


async def _failing() -> None:
    raise ConnectionError


async def _awaiting(*, keep: bool) -> None:
    task = asyncio.create_task(_failing())  # <- here
    try:
        await task
    except ConnectionError:
        if not keep:
            del task


def kept_task() -> None:
    asyncio.run(_awaiting(keep=True))


def kept_task_twin() -> None:
    asyncio.run(_awaiting(keep=False))


def worker_result() -> None:
    with ThreadPoolExecutor(1) as workers:
        done = workers.submit(fail)  # <- here
        with contextlib.suppress(ConnectionError):
            done.result()


def worker_result_twin() -> None:
    with ThreadPoolExecutor(1) as workers, contextlib.suppress(ConnectionError):
        workers.submit(fail).result()


PATTERNS = [
    *(
        Pattern(name, leak, twin, "exception", function, variable, marked)
        for name, leak, twin, function, variable, marked in (
            ("kept local", kept_local, kept_local_twin, "kept_local", "last", None),
            ("retry loop", retry_loop, retry_loop_twin, "retry_loop", "last", None),
            ("two handlers", two_handlers, two_handlers_twin, "two_handlers", "outcome", None),
            (
                "parameter",
                parameter,
                parameter_twin,
                "parameter.<locals>.handle",
                "error",
                None,
            ),
            ("caller", in_the_caller, in_the_caller_twin, "in_the_caller", "outcome", None),
            (
                "free variable",
                free_variable,
                free_variable_twin,
                "free_variable.<locals>.attempt",
                "error",
                None,
            ),
            ("exc_info", exc_info, exc_info_twin, "exc_info", "info[1]", None),
            ("exc_info()[1]", exc_info_value, exc_info_value_twin, "exc_info_value", "error", None),
            (
                "exc_info()[2]",
                exc_info_traceback,
                exc_info_traceback_twin,
                "exc_info_traceback",
                "tb",
                None,
            ),
            (
                "exc_info unpacked",
                exc_info_unpacked,
                exc_info_unpacked_twin,
                "exc_info_unpacked",
                "value",
                None,
            ),
            ("list", error_list, error_list_twin, "error_list", "errors[]", None),
            ("dict", error_dict, error_dict_twin, "error_dict", "results[]", None),
            ("dict, literal key", known_key, known_key_twin, "known_key", "state['error']", None),
            ("set", error_set, error_set_twin, "error_set", "seen[]", None),
            ("group", exception_group, exception_group_twin, "exception_group", "group", None),
            ("on self", on_self, on_self_twin, "Client.ask", "self.error", Client.ask),
            (
                "slots",
                on_slots,
                on_slots_twin,
                "SlottedClient.ask",
                "self.error",
                SlottedClient.ask,
            ),
            (
                "by another method",
                by_another_method,
                by_another_method_twin,
                "Reporter.note",
                "self.errors[]",
                Reporter.note,
            ),
            (
                "on another object",
                on_another_object,
                on_another_object_twin,
                "on_another_object",
                "job.error",
                None,
            ),
            ("raise from", raised_from, raised_from_twin, "raised_from", "cause", None),
            ("log record", log_record, log_record_twin, "log_record", "record.exc_info[1]", None),
            ("handler", handler_list, handler_list_twin, "handler_list", "handler.records", None),
            ("ExitStack", exit_stack, exit_stack_twin, "exit_stack", "stack._exit_callbacks", None),
            ("contextmanager", context_manager, context_manager_twin, "noting", "problem", noting),
            ("generator", generator, generator_twin, "numbers", "problem", numbers),
            ("coroutine", coroutine, coroutine_twin, "waiting", "problem", waiting),
            (
                "asynchronous generator",
                asynchronous_generator,
                asynchronous_generator_twin,
                "counting",
                "problem",
                counting,
            ),
            ("future", future, future_twin, "future", "pending._exception", None),
            ("task", kept_task, kept_task_twin, "_awaiting", "task", _awaiting),
            (
                "worker's result",
                worker_result,
                worker_result_twin,
                "worker_result",
                "done._exception",
                None,
            ),
            ("loop's future", loop_future, loop_future_twin, "loop_future", "pending", None),
        )
    ),
]
