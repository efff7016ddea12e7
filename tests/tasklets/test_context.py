"""The context (contextvars) that a tasklet runs in: inherited, shared, fresh."""

# ruff: noqa: ANN401 (wrong values)
# mypy: disable-error-code="arg-type, unreachable"
# (wrong calls are part of the tests)

import asyncio
import copy
import decimal
import pickle
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import getcurrent, getmain, run, schedule, schedule_remove, tasklet

Log = list[Any]

colour: ContextVar[str] = ContextVar("colour", default="none")


def in_thread(call: Callable[[], object]) -> None:
    """Run it in another thread, and raise the RuntimeError that it raises."""
    errors: list[RuntimeError] = []

    def body() -> None:
        try:
            call()
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def with_colour(value: str) -> Context:
    context = Context()
    context.run(colour.set, value)
    return context


class TestContext:
    def test_one_set_before_the_arguments_are_given(self) -> None:
        log: Log = []
        context = with_colour("red")
        it = tasklet(lambda: log.append(colour.get())).set_context(context)
        assert it.context_id == id(context)
        it()
        assert it.context_id == id(context)
        run()
        assert log == ["red"]
        assert it.context_id is None

    def test_one_set_afterwards(self) -> None:
        log: Log = []
        it = tasklet(lambda: log.append(colour.get()))()
        it.set_context(with_colour("red"))
        run()
        assert log == ["red"]

    def test_a_fresh_one(self) -> None:
        log: Log = []
        token = colour.set("main's")
        tasklet(lambda: log.append(colour.get())).set_context(Context())()
        tasklet(lambda: log.append(colour.get()))()
        run()
        colour.reset(token)
        assert log == ["none", "main's"]

    def test_two_share_one(self) -> None:
        log: Log = []
        context = Context()

        def body(value: str) -> None:
            colour.set(value)
            schedule()
            log.append(colour.get())

        for value in ("red", "blue"):
            tasklet(body).set_context(context)(value)
        run()
        assert log == ["blue", "blue"]
        assert context[colour] == "blue"
        assert colour.get() == "none"

    def test_binding_another_function_forgets_it(self) -> None:
        context = with_colour("red")
        it = tasklet(int).set_context(context)
        it.bind(str)
        assert it.context_id is None
        it.set_context(context).bind(None, ())
        assert it.context_id == id(context)
        it.bind(None)
        assert it.context_id == id(context)

    def test_of_the_current_one(self) -> None:
        def body() -> None:
            me = getcurrent()
            assert colour.get() == "none"
            assert me.set_context(with_colour("red")) is me
            assert colour.get() == "red"
            schedule()
            assert colour.get() == "red"

        tasklet(body)()
        schedule()
        assert colour.get() == "none"
        run()

    def test_of_a_parked_one(self) -> None:
        log: Log = []

        def body() -> None:
            colour.set("own")
            schedule()
            log.append(colour.get())

        it = tasklet(body)()
        schedule()
        it.set_context(with_colour("red"))
        run()
        assert log == ["red"]

    def test_not_while_context_run_is_going_on(self) -> None:
        """Its end would find another context than it has entered."""
        message = "^the current context of the tasklet has been entered$"
        with pytest.raises(RuntimeError, match=message):
            Context().run(getcurrent().set_context, Context())
        it = tasklet(Context().run)(schedule)
        schedule()
        with pytest.raises(RuntimeError, match=message):
            it.set_context(Context())
        run()

    def test_context_run_of_the_one_that_it_has(self) -> None:
        log: Log = []
        context = with_colour("red")

        def inner() -> None:
            schedule()
            colour.set("blue")

        def body() -> None:
            context.run(inner)
            log.append(colour.get())

        for _ in range(2):
            tasklet(body).set_context(context)()
            run()
        assert log == ["blue", "blue"]

    def test_one_that_is_entered_elsewhere_may_be_set(self) -> None:
        """As with Stackless: a tasklet uses its context, but does not enter it."""
        log: Log = []
        context = with_colour("red")

        def body() -> None:
            log.append(colour.get())
            with pytest.raises(RuntimeError, match="is already entered"):
                context.run(int)

        tasklet(body).set_context(context)()
        context.run(run)
        assert log == ["red"]

    @pytest.mark.parametrize("wrong", [None, {}, 5])
    def test_only_a_context(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"must be contextvars\.Context, not "):
            tasklet().set_context(wrong)

    def test_the_default_is_a_copy(self) -> None:
        colour.set("main's")
        it = tasklet(colour.set)("other")
        assert it.context_id not in {None, getmain().context_id}
        run()
        assert colour.get() == "main's"
        colour.set("none")


class TestContextRun:
    def test_in_that_of_another(self) -> None:
        context = with_colour("red")
        it = tasklet().set_context(context)
        before = getcurrent().context_id
        assert it.context_run(colour.get) == "red"
        assert it.context_run(lambda: getcurrent().context_id) == id(context)
        assert it.context_run(colour.get, "default") == "red"
        assert it.context_run(dict, colour="blue") == {"colour": "blue"}
        assert getcurrent().context_id == before
        assert colour.get() == "none"

    def test_makes_one_where_there_is_none(self) -> None:
        it = tasklet()
        assert it.context_id is None
        it.context_run(colour.set, "red")
        assert it.context_run(colour.get) == "red"
        assert it.context_run(lambda: getcurrent().context_id) == it.context_id
        assert colour.get() == "none"

    def test_in_that_of_a_parked_one(self) -> None:
        log: Log = []

        def body() -> None:
            colour.set("own")
            schedule()
            log.append(colour.get())

        it = tasklet(body)()
        schedule()
        assert it.context_run(colour.get) == "own"
        it.context_run(colour.set, "red")
        run()
        assert log == ["red"]

    def test_in_one_s_own(self) -> None:
        assert getcurrent().context_run(colour.get) == "none"

    def test_it_may_switch(self) -> None:
        log: Log = []
        other = tasklet(schedule)()
        schedule()

        def inner() -> None:
            colour.set("inside")
            schedule()
            log.append(colour.get())

        def body() -> None:
            colour.set("outside")
            other.context_run(inner)
            log.append(colour.get())

        tasklet(body)()
        schedule()
        assert colour.get() == "none"
        run()
        assert log == ["inside", "outside"]

    def test_an_exception_restores_too(self) -> None:
        it = tasklet().set_context(with_colour("red"))
        with pytest.raises(KeyError):
            it.context_run({}.__getitem__, 1)
        assert colour.get() == "none"

    def test_the_running_one_s_context_changed_inside(self) -> None:
        it = tasklet().set_context(with_colour("red"))
        before = getcurrent().context_id
        it.context_run(lambda: getcurrent().set_context(with_colour("blue")))
        assert getcurrent().context_id == before

    def test_within_an_entered_one(self) -> None:
        it = tasklet().set_context(with_colour("red"))
        assert with_colour("blue").run(lambda: (it.context_run(colour.get), colour.get())) == (
            "red",
            "blue",
        )

    def test_needs_something_to_call(self) -> None:
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            tasklet().context_run()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="not callable"):
            tasklet().context_run(5)


class TestContextThreads:
    def test_one_of_another_thread_may_be_set_while_it_floats(self) -> None:
        log: Log = []
        it = tasklet(lambda: log.append(colour.get())).bind(None, ())
        in_thread(lambda: it.set_context(with_colour("red")))
        it.insert()
        run()
        assert log == ["red"]

    def test_but_not_while_it_is_current_or_scheduled(self) -> None:
        it = tasklet(int)()
        for task in (it, getcurrent()):
            with pytest.raises(RuntimeError, match=r"^tasklet belongs to a different thread$"):
                in_thread(partial(task.set_context, Context()))
        with pytest.raises(RuntimeError, match=r"^tasklet belongs to a different thread$"):
            in_thread(lambda: getmain_of_this().context_run(int))
        run()


def getmain_of_this() -> tasklet:
    return tasklets.get_thread_info(threading.main_thread().ident)[0]


class TestAsyncio:
    def test_a_loop_in_a_tasklet_and_tasks_that_switch(self) -> None:
        log: Log = []

        async def part(value: str) -> None:
            colour.set(value)
            schedule()
            await asyncio.sleep(0)
            log.append((value, colour.get()))

        async def whole() -> None:
            await asyncio.gather(part("red"), part("blue"))

        def body(value: str) -> None:
            colour.set(value)
            asyncio.run(whole())
            log.append(colour.get())

        tasklet(body)("outside")
        run()
        assert log == [("red", "red"), ("blue", "blue"), "outside"]

    def test_a_callback_s_context_is_its_own(self) -> None:
        log: Log = []

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            for context in (with_colour("red"), with_colour("blue")):
                loop.call_soon(lambda: log.append(colour.get()), context=context)
            await asyncio.sleep(0)

        tasklet(asyncio.run)(whole())
        run()
        assert log == ["red", "blue"]


# ---- copies ------------------------------------------------------------------------------------


class Settings:
    value = 0


settings: ContextVar[Settings] = ContextVar("settings")


def uses_context(log: Log) -> None:
    mine = Settings()
    settings.set(mine)
    colour.set("red")
    with decimal.localcontext() as context:
        context.prec = 6
        schedule_remove()
        log.append((colour.get(), settings.get() is mine, str(decimal.Decimal(1) / 3)))
        colour.set("blue")
    schedule_remove()
    log.append((colour.get(), str(decimal.Decimal(1) / 3)[:9]))


class TestCopies:
    @pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
    def test_a_copy_goes_on_with_the_values(self, how: Callable[[Any], Any]) -> None:
        log: Log = []
        # The list is shared, as it is to be looked at.
        task = tasklet(uses_context)(log)
        run()
        memo = {id(log): log}
        made = how(task) if how is copy.copy else copy.deepcopy(task, memo)
        made.insert()
        run()
        assert log == [("red", True, "0.333333")]
        again = copy.copy(made)  # the values of the copy, not of the original
        for each in (again, task):
            each.insert()
            run()
        assert log[1:] == [("blue", "0.3333333"), ("red", True, "0.333333")]
        made.kill()
        task.kill()

    def test_a_copy_has_a_context_of_its_own(self) -> None:
        def work() -> None:
            colour.set("red")
            schedule_remove()

        task = tasklet(work)()
        run()
        made = copy.copy(task)
        made.context_run(colour.set, "blue")
        assert task.context_run(colour.get) == "red"
        begun_never = tasklet(colour.get, ())
        begun_never.context_run(colour.set, "green")
        assert copy.copy(begun_never).context_run(colour.get) == "green"
        for each in (task, made, begun_never):
            each.kill()

    def test_a_token_is_refused(self) -> None:
        def work() -> None:
            token = colour.set("red")
            schedule_remove()
            colour.reset(token)
            schedule_remove()

        task = tasklet(work)()
        run()
        for how in (copy.copy, copy.deepcopy):
            with pytest.raises(pickle.PicklingError, match=r"local 'token' of .*work\(\) line"):
                how(task)
        task.insert()
        run()
        copy.copy(task).kill()  # it has been used
        task.kill()
