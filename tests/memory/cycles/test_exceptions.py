"""Helpers that keep exceptions, or hand them on, without a cycle."""

# What is tested is what handlers do, right where they are.
# ruff: noqa: ARG005, PT017, TRY301

import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import pytest

from cpythonplus.memory import exceptions
from cpythonplus.memory.exceptions import Outcome, catch, detach, drop, reraise
from tests.memory.cycles.left_over import Payload, collector_off, dead_payloads, garbage, payload


class KeptError(Exception):
    pass


def fail(message: str = "no") -> NoReturn:
    large = payload()
    assert large
    raise KeptError(message)


@pytest.fixture(autouse=True, scope="module")
def _collector_off() -> Iterator[None]:
    with collector_off():
        yield


def expect(call: Callable[[], object], kind: type[BaseException] = KeptError) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError("it did not raise")


# ---- drop ----------------------------------------------------------------------------------------


def keeps(give_up: Callable[[BaseException], object]) -> None:
    kept = None
    try:
        fail()
    except KeptError as e:
        kept = e
    give_up(kept)


def test_drop_breaks_the_cycle_of_a_local() -> None:
    assert garbage(lambda: keeps(lambda e: None)) > 0
    assert garbage(lambda: keeps(drop)) == 0


def test_drop_clears_frames_that_somebody_else_holds() -> None:
    try:
        fail()
    except KeptError as e:
        frame = e.__traceback__.tb_next.tb_frame  # type: ignore[union-attr]
        drop(e)
        assert e.__traceback__ is None
    assert frame.f_locals == {}
    assert "e" not in sys._getframe().f_locals  # this one runs, and was left


def test_drop_goes_along_causes_contexts_and_groups_once_each() -> None:
    def nested() -> NoReturn:
        try:
            fail("inner")
        except KeptError as inner:
            first = inner
            try:
                fail("context")
            except KeptError:
                raise ExceptionGroup("all", [inner, ValueError("bare")]) from first

    try:
        nested()
    except ExceptionGroup as e:
        group: Any = e
    cause, context = group.__cause__, group.__context__
    assert cause.__traceback__
    assert context.__traceback__
    cause.__cause__ = group  # a circle, which ends
    drop(group)
    found = [group, cause, context, *group.exceptions]
    assert [one.__traceback__ for one in found] == [None] * 5
    assert dead_payloads()[-2:] == [True, True]
    cause.__cause__ = None


def test_drop_leaves_what_is_still_handled() -> None:
    try:
        fail("outer")
    except KeptError as outer:
        before = outer.__traceback__
        try:
            fail("inner")
        except KeptError as inner:
            contexts = [inner.__context__]
            drop(inner)
            contexts.append(inner.__context__)
        assert contexts == [outer, None]
        assert outer.__traceback__ is before
        assert before
        assert before.tb_next
        assert before.tb_next.tb_frame.f_locals["message"] == "outer"


def test_drop_leaves_a_generator_that_goes_on() -> None:
    def generator() -> Iterator[object]:
        caught = None
        try:
            yield 1
        except KeptError as e:
            caught = e
        yield caught
        yield "it went on"

    running = generator()
    next(running)
    caught: Any = running.throw(KeptError())  # type: ignore[attr-defined]
    assert caught.__traceback__.tb_frame.f_code.co_name == "generator"
    drop(caught)
    assert next(running) == "it went on"


def test_drop_does_not_ask_the_class() -> None:
    class LyingError(Exception):
        @property
        def __traceback__(self) -> object:  # type: ignore[override]
            raise AssertionError

        __context__ = __cause__ = __traceback__  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

    try:
        raise LyingError
    except LyingError as e:
        kept = e
    assert BaseException.__dict__["__traceback__"].__get__(kept) is not None
    drop(kept)
    assert BaseException.__dict__["__traceback__"].__get__(kept) is None


# ---- detach --------------------------------------------------------------------------------------


def test_detach_breaks_the_cycles_of_what_keeps_it() -> None:
    class Service:
        error: BaseException | None = None

        def run(self, prepare: Callable[[BaseException], BaseException]) -> None:
            errors = []
            try:
                fail()
            except KeptError as e:
                self.error = prepare(e)
                errors.append(prepare(e))

    assert garbage(lambda: Service().run(lambda e: e)) > 0
    assert garbage(lambda: Service().run(detach)) == 0


def raised_through_a_closure() -> BaseException:
    outside = "no"

    def inner(value: str) -> None:
        def innermost() -> NoReturn:
            raise KeptError(outside + value)

        try:
            innermost()
        except KeptError as e:
            fail("during " + str(e))

    try:
        inner("body")
    except KeptError as e:
        e.add_note("a note")
        return e
    raise AssertionError


def test_what_is_detached_prints_the_same() -> None:
    e = raised_through_a_closure()
    before = traceback.format_exception(e)
    assert detach(e) is e
    assert traceback.format_exception(e) == before
    assert len(before) > 6
    again = detach(e)
    assert traceback.format_exception(again) == before
    drop(e)


def test_detached_frames_can_be_looked_at() -> None:
    e: Any = detach(raised_through_a_closure())
    for one in (e, e.__context__):
        entry = one.__traceback__
        while entry is not None:
            frame: FrameType = entry.tb_frame
            assert dict(frame.f_locals) == {}
            assert frame.f_back is None
            assert frame.f_globals["__name__"] == __name__
            assert "payload" not in frame.f_globals
            assert frame.f_lineno > 0
            assert repr(frame)
            frame.clear()
            entry = entry.tb_next


def test_a_detached_exception_can_be_raised_again() -> None:
    kept = detach(raised_through_a_closure())
    with pytest.raises(KeptError) as info:
        raise kept
    names = [entry.name for entry in traceback.extract_tb(info.value.__traceback__)]
    assert names == [
        "test_a_detached_exception_can_be_raised_again",
        "raised_through_a_closure",
        "inner",
        "fail",
    ]
    drop(kept)


def test_detach_leaves_what_is_still_handled() -> None:
    try:
        fail("outer")
    except KeptError as outer:
        before = outer.__traceback__
        outcome = catch(fail)
        assert outcome.exception is not None
        assert outcome.exception.__context__ is None
        assert outer.__traceback__ is before


# ---- catch ---------------------------------------------------------------------------------------


def test_catch_returns_a_value() -> None:
    outcome = catch(divmod, args=(7, 2))
    assert outcome.ok
    assert outcome.value == (3, 1)
    assert outcome.exception is None
    assert outcome.trace == ()
    assert outcome.reraise() is None  # type: ignore[func-returns-value]
    assert repr(outcome) == "<Outcome: a value>"
    assert catch(int, args=("ff",), kwargs={"base": 16}).value == 255


def test_catch_returns_an_exception() -> None:
    outcome = catch(fail, kwargs={"message": "why"})
    assert not outcome.ok
    assert isinstance(outcome.exception, KeptError)
    (place,) = outcome.trace
    assert (place.file, place.function) == (__file__, "fail")
    assert place.line == fail.__code__.co_firstlineno + 3
    assert repr(outcome) == "<Outcome: KeptError>"
    printed = "".join(traceback.format_exception(outcome.exception))
    assert "raise KeptError(message)" in printed
    assert "exceptions.py" not in printed.replace("test_exceptions.py", "")


def test_catch_of_c_code_says_where_it_was_called() -> None:
    outcome = catch(int, ValueError, args=("x",))
    (place,) = outcome.trace
    assert place.function == "catch"


def test_catch_catches_only_what_it_is_told_to() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    expect(lambda: catch(fail, ValueError, OSError))
    expect(lambda: catch(interrupt), KeyboardInterrupt)
    assert not catch(interrupt, KeyboardInterrupt).ok
    with pytest.raises(TypeError, match=r"catch\(\) takes classes of exceptions, not int"):
        catch(fail, 1)  # type: ignore[arg-type]


def attempts(attempt: Callable[[], object]) -> None:
    results = [attempt() for _ in range(2)]
    last = results[-1]
    assert last


def caught() -> BaseException:
    try:
        fail()
    except KeptError as e:
        result = e  # stays behind in this frame
        return result  # noqa: RET504
    raise AssertionError


def test_an_outcome_makes_no_cycle() -> None:
    assert garbage(lambda: attempts(caught)) > 0
    assert garbage(lambda: attempts(lambda: catch(fail))) == 0


def test_an_outcome_raises_once() -> None:
    outcome = catch(fail)
    expect(lambda: outcome.value)
    assert not outcome.ok
    assert outcome.exception is None
    assert [place.function for place in outcome.trace] == ["fail"]
    assert repr(outcome) == "<Outcome: raised again>"
    with pytest.raises(RuntimeError, match="has been raised before"):
        reraise(outcome)


# ---- reraise -------------------------------------------------------------------------------------


def retries(again: Callable[[BaseException], NoReturn] | None) -> None:
    large = payload()
    last = None
    for _ in range(2):
        try:
            fail()
        except KeptError as e:
            last = e
    assert large
    assert last
    if again is None:
        raise last
    again(last)


def retries_and_reraises() -> None:
    large = payload()
    last = None
    for _ in range(2):
        try:
            fail()
        except KeptError as e:
            last = e
    assert large
    assert last
    reraise(last)


def test_reraise_breaks_the_cycle_of_its_caller() -> None:
    assert garbage(lambda: expect(lambda: retries(None))) > 0
    assert garbage(lambda: expect(retries_and_reraises)) == 0


def test_reraise_keeps_the_traceback() -> None:
    with pytest.raises(KeptError) as info:
        retries_and_reraises()
    names = [entry.name for entry in traceback.extract_tb(info.value.__traceback__)]
    assert names[1:] == ["retries_and_reraises", "retries_and_reraises", "fail"]
    frame = info.traceback[1].frame.raw
    assert frame.f_locals["last"] is None
    assert isinstance(frame.f_locals["large"], Payload)


def test_reraise_forgets_variables_of_enclosing_functions() -> None:
    def outer(raising: Callable[[BaseException], NoReturn] | None) -> None:
        last = None

        def inner() -> None:
            nonlocal last
            try:
                fail()
            except KeptError as e:
                last = e
            if raising is None:
                raise last
            reraise(last)

        inner()

    assert garbage(lambda: expect(lambda: outer(None))) > 0
    assert garbage(lambda: expect(lambda: outer(reraise))) == 0


def test_reraise_after_locals_was_called() -> None:
    def debugged() -> None:
        kept = None
        try:
            fail()
        except KeptError as e:
            kept = e
        assert locals()["kept"] is kept
        reraise(kept)

    assert garbage(lambda: expect(debugged)) == 0


def test_reraise_in_a_handler_in_a_generator_in_a_comprehension() -> None:
    def handler() -> None:
        try:
            fail()
        except KeptError as e:
            reraise(e)

    def generator() -> Iterator[int]:
        last = catch(fail).exception
        yield 1
        reraise(last)  # type: ignore[arg-type]

    def comprehension() -> None:
        errors = [catch(fail).exception]
        assert [reraise(errors.pop()) for _ in range(1)]  # type: ignore[arg-type]

    assert garbage(lambda: expect(handler)) == 0
    assert garbage(lambda: expect(lambda: list(generator()))) == 0
    assert garbage(lambda: expect(comprehension)) == 0


def test_what_was_reraised_can_be_caught_where_it_was() -> None:
    def catching() -> str:
        last = catch(fail).exception
        both = [last, last]
        try:
            reraise(last)  # type: ignore[arg-type]
        except KeptError as e:
            assert e is both.pop()
            both.clear()
        return str(last)

    assert garbage(catching) == 0
    assert catching() == "None"


def test_an_outcome_is_raised_without_a_cycle() -> None:
    def by_function() -> None:
        outcome = catch(fail)
        reraise(outcome)

    def by_method() -> None:
        outcome = catch(fail)
        outcome.reraise()

    def by_value() -> None:
        outcome: Outcome[None] = catch(fail)
        assert outcome.value

    assert garbage(lambda: expect(by_function)) == 0
    assert garbage(lambda: expect(by_method)) == 0
    assert garbage(lambda: expect(by_value)) == 0


def test_reraise_of_a_value_does_nothing() -> None:
    reraise(catch(int))


def test_reraise_sets_the_context_as_raise_does() -> None:
    kept = catch(fail).exception
    assert kept is not None

    def in_a_handler() -> None:
        try:
            raise ValueError
        except ValueError:
            reraise(kept)

    with pytest.raises(KeptError) as info:
        in_a_handler()
    assert type(info.value.__context__) is ValueError
    drop(info.value)


@pytest.mark.parametrize("name", ["drop", "detach", "reraise"])
@pytest.mark.parametrize("wrong", [None, KeptError, "text"])
def test_something_else_is_refused(name: str, wrong: object) -> None:
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=rf"^{name}\(\) takes an exception.*, not {kind}$"):
        getattr(exceptions, name)(wrong)


def test_a_module_s_variables_are_left() -> None:
    names: dict[str, Any] = {"reraise": reraise, "e": KeptError("kept")}
    with pytest.raises(KeptError):
        exec("reraise(e)", names)
    assert isinstance(names["e"], KeptError)
    drop(names["e"])
