"""What `report` and `dump` tell, and what an error that says deadlock carries with it."""

import dataclasses
import functools
import gc
import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from cpythonplus import tasklets
from cpythonplus._base.text.visible import visible
from cpythonplus.tasklets import (
    TaskletReport,
    ThreadReport,
    channel,
    dump,
    report,
    run,
    schedule,
    schedule_remove,
    tasklet,
)
from cpythonplus.tasklets._dump import reporting
from tests.support import SANITIZED, run_child


def own() -> ThreadReport:
    """Return the report of this thread."""
    (thread,) = report(all_threads=False)
    return thread


def reports() -> dict[str, TaskletReport]:
    """Return the reports of this thread's tasklets by function, `main` for main."""
    return {each.function or "main": each for each in own().tasklets}


def functions(each: TaskletReport | ThreadReport) -> list[str]:
    return [place.function for place in each.stack]


def text_of() -> str:
    file = io.StringIO()
    dump(file, all_threads=False)
    return file.getvalue()


@pytest.fixture
def parked() -> Iterator[list[tasklet]]:
    """Return a list of tasklets that are killed at the end."""
    kept: list[tasklet] = []
    yield kept
    for each in kept:
        each.kill()


def receiver(where: channel) -> None:
    where.receive()


def sender(where: channel) -> None:
    where.send(1)


def pauser() -> None:
    schedule_remove()


class TestReport:
    def test_main_alone(self) -> None:
        tasklets.getmain()
        thread = own()
        (main,) = thread.tasklets
        assert (main.is_main, main.begun, main.state, main.more) == (True, True, "current", 0)
        assert (main.function, main.defined_at, main.channel, main.waited_ns) == (None,) * 4
        assert functions(main)[-2:] == ["test_main_alone", "own"]
        assert main.stack == thread.stack
        assert (thread.ident, thread.name) == (threading.get_ident(), "MainThread")
        assert not thread.waits_for_threads

    def test_states(self, parked: list[tasklet]) -> None:
        here, there = channel(), channel()
        parked += [tasklet(pauser)(), tasklet(receiver)(here), tasklet(sender)(there)]
        run()
        parked.append(tasklet(run)())
        found = reports()
        assert {name: each.state for name, each in found.items()} == {
            "main": "current",
            "run": "runnable",
            "pauser": "paused",
            "receiver": "receiving",
            "sender": "sending",
        }
        assert [each.begun for each in found.values()] == [True, False, True, True, True]
        assert [functions(found[name]) for name in ("run", "pauser", "receiver")] == [
            [],
            ["pauser"],
            ["receiver"],
        ]
        assert [each.waited_ns is None for each in found.values()] == [True, True] + [False] * 3

    def test_what_it_waits_for(self, parked: list[tasklet]) -> None:
        where = channel()
        parked.append(tasklet(receiver)(where))
        run()
        found = reports()["receiver"]
        assert found.channel is not None
        assert found.channel.made_at is not None
        made_at = found.channel.made_at
        assert (made_at.file, made_at.line, made_at.function) == where.made_at
        assert f"0x{found.channel.address:x}" in repr(where)
        assert f"0x{found.address:x}" in repr(parked[0])
        first, second = found.waited_ns, reports()["receiver"].waited_ns
        assert first is not None
        assert second is not None
        assert 0 <= first <= second

    def test_cold_ones(self, parked: list[tasklet]) -> None:
        parked += [tasklet(receiver)(channel()), tasklet(pauser)()]
        run()
        warm = {name: each.stack for name, each in reports().items()}
        assert tasklets.trim_stacks() >= 2
        cold = {name: each.stack for name, each in reports().items()}
        assert [cold[name] for name in ("receiver", "pauser")] == [
            warm[name] for name in ("receiver", "pauser")
        ]

    def test_place_of_a_parked_one(self, parked: list[tasklet]) -> None:
        parked.append(tasklet(pauser)())
        run()
        (place,) = reports()["pauser"].stack
        assert place.file == __file__
        assert place.line == pauser.__code__.co_firstlineno + 1

    def test_the_queue_comes_in_its_order(self) -> None:
        waiting = [tasklet(print)(1), tasklet(ascii)(1), tasklet(bool)(1)]
        assert list(reports()) == ["main", "print", "ascii", "bool"]
        for each in waiting:
            each.remove()

    def test_main_that_has_called_run(self) -> None:
        found: list[TaskletReport] = []

        def looks() -> None:
            found.extend(own().tasklets)

        tasklet(looks)()
        run()
        assert [(each.is_main, each.state) for each in found] == [
            (False, "current"),
            (True, "in run()"),
        ]
        assert functions(found[1])[-1] == "test_main_that_has_called_run"

    def test_the_current_one_of_a_caller_that_blocks(self) -> None:
        """Main is parked in a channel, with frames."""
        where = channel()
        found: list[TaskletReport] = []

        def looks() -> None:
            found.extend(own().tasklets)
            where.send(1)

        tasklet(looks)()
        where.receive()
        assert [(each.is_main, each.state) for each in found] == [
            (False, "current"),
            (True, "receiving"),
        ]
        run()

    def test_those_that_are_alike_are_counted(self, parked: list[tasklet]) -> None:
        def elsewhere(where: channel) -> None:
            where.receive()

        where = [channel() for _ in range(6)]
        parked += [tasklet(receiver)(each) for each in where]
        parked += [tasklet(elsewhere)(where[0])]
        parked += [tasklet(receiver)(channel())]
        run()
        shown = [each for each in own().tasklets if each.function == "receiver"]
        shown.sort(key=lambda each: each.more)  # they come as their stacks lie
        assert [each.more for each in shown] == [0, 0, 4]
        assert [each.more_waited_ns is None for each in shown] == [True, True, False]
        assert sum(1 + each.more for each in own().tasklets) == 9

    def test_other_lines_are_not_alike(self, parked: list[tasklet]) -> None:
        def two(first: bool) -> None:
            if first:
                schedule_remove()
            schedule_remove()

        parked += [tasklet(two)(each) for each in (True, True, True, False, False, False)]
        run()
        counts = sorted(each.more for each in own().tasklets if each.function is not None)
        assert counts == [0, 0, 1, 1]

    @pytest.mark.parametrize(
        ("make", "name", "defined"),
        [
            (lambda: print, "print", False),
            (lambda: [].append, "append", False),
            (lambda: list, "list", False),
            (lambda: functools.partial(print), "partial", False),
            (lambda: io.StringIO("").read, "read", False),
            (lambda: pauser, "pauser", True),
            (lambda: TestReport().method, "TestReport.method", True),
        ],
    )
    def test_names_of_functions(
        self, make: Callable[[], Callable[..., object]], name: str, defined: bool
    ) -> None:
        waiting = tasklet(make())()
        found = own().tasklets[1]
        waiting.remove()
        assert (found.function, found.begun) == (name, False)
        assert (found.defined_at is not None) == defined

    def method(self) -> None:
        """Bind me."""

    def test_nothing_of_the_program_is_called(self, parked: list[tasklet]) -> None:
        called = []

        class Curious(tasklet):
            def __repr__(self) -> str:
                called.append("repr")
                return ""

        class Work:
            def __getattribute__(self, name: str) -> object:
                called.append(name)
                return object.__getattribute__(self, name)

            def __call__(self) -> None:
                schedule_remove()

        parked.append(Curious(Work())())
        run()
        called.clear()
        tasklets.set_schedule_callback(lambda *_: called.append("switch"))
        text_of()
        tasklets.set_schedule_callback(None)
        assert called == []
        (found,) = [each for each in own().tasklets if each.function is not None]
        assert (found.type_name, found.function) == ("Curious", "Work")

    def test_generators_and_c_functions_on_the_way(self, parked: list[tasklet]) -> None:
        def values() -> Iterator[int]:
            yield 1
            schedule_remove()

        def consumer() -> None:
            sorted(values(), key=lambda value: value)

        parked.append(tasklet(consumer)())
        run()
        (found,) = [each for each in own().tasklets if each.function is not None]
        assert functions(found) == ["consumer", "values"]

    def test_it_makes_no_frame_objects(self, parked: list[tasklet]) -> None:
        parked.append(tasklet(pauser)())
        run()
        before = sum(type(each).__name__ == "frame" for each in gc.get_objects())
        report()
        assert sum(type(each).__name__ == "frame" for each in gc.get_objects()) == before

    @pytest.mark.parametrize("enabled", [True, False])
    def test_the_collector_is_left_as_it_was(self, enabled: bool) -> None:
        before = gc.isenabled()
        (gc.enable if enabled else gc.disable)()
        report()
        after = gc.isenabled()
        (gc.enable if before else gc.disable)()
        assert after == enabled

    def test_it_can_be_logged(self, parked: list[tasklet]) -> None:
        parked.append(tasklet(receiver)(channel()))
        run()
        (thread,) = json.loads(json.dumps([dataclasses.asdict(each) for each in [own()]]))
        assert [each["state"] for each in thread["tasklets"]] == ["current", "receiving"]

    def test_wrong_arguments(self) -> None:
        with pytest.raises(TypeError):
            report(True)  # type: ignore[call-arg]


class TestThreads:
    def test_a_thread_without_tasklets(self) -> None:
        started, end = threading.Event(), threading.Event()

        def waits() -> None:
            started.set()
            end.wait()

        thread = threading.Thread(target=waits, name="the other")
        thread.start()
        started.wait()
        found = {each.name: each for each in report()}
        end.set()
        thread.join()
        assert found["the other"].ident == thread.ident
        assert found["the other"].native_id == thread.native_id
        assert found["the other"].tasklets == ()
        assert "waits" in functions(found["the other"])
        assert report()[0].name == "MainThread"

    def test_tasklets_of_another_thread(self) -> None:
        started, end = threading.Event(), threading.Event()
        where = channel()

        def runs() -> None:
            tasklet(receiver)(where)
            tasklet(pauser)().run()
            schedule()
            started.set()
            end.wait()

        thread = threading.Thread(target=runs, name="the other")
        thread.start()
        started.wait()
        found = {each.name: each for each in report()}["the other"]
        alone = report(all_threads=False)
        end.set()
        thread.join()
        assert found.tasklets[0].state == "current"
        assert {each.state for each in found.tasklets[1:]} == {"receiving", "paused"}
        assert found.tasklets[0].stack == found.stack
        assert "runs" in functions(found)
        assert [each.name for each in alone] == ["MainThread"]

    def test_a_thread_that_waits_for_others(self) -> None:
        """Nobody of it is current: main is the one that runs, and is blocked."""
        where = channel()
        thread = threading.Thread(target=where.receive, name="the other")
        thread.start()
        while True:
            found = {each.name: each for each in report()}.get("the other")
            if found is not None and found.waits_for_threads:
                break
        where.send(1)
        thread.join()
        (main,) = found.tasklets
        assert (main.is_main, main.state) == (True, "receiving")
        assert main.stack == found.stack
        assert functions(main)[-1] == "run"


class TestDump:
    def test_text(self, parked: list[tasklet]) -> None:
        where = channel()
        parked += [tasklet(receiver)(where) for _ in range(4)]
        run()
        output = text_of()
        at = receiver.__code__.co_firstlineno + 1
        place = f'    File "{__file__}", line {at}, in receiver\n      where.receive()\n'
        assert f"Thread MainThread (0x{threading.get_ident():x}), 5 tasklets:\n" in output
        assert output.count("> of receiver: receiving for ") == 2
        assert output.count(place) == 2
        assert f'made at File "{__file__}", line {where.made_at[1]}, in test_text\n' in output  # type: ignore[index]
        assert "\n  and 2 more like this, for up to 0." in output
        assert sum(f"<tasklet at {hex(id(each))}> of receiver" in output for each in parked) == 2
        assert ", main>: current\n" in output

    def test_one_that_has_not_begun(self) -> None:
        waiting = tasklet(pauser)()
        output = text_of()
        waiting.remove()
        line = pauser.__code__.co_firstlineno
        assert (
            f'pauser: runnable, not started, defined at File "{__file__}", line {line}\n' in output
        )

    def test_recursion_is_shortened(self, parked: list[tasklet]) -> None:
        def down(levels: int) -> None:
            if levels:
                down(levels - 1)
            else:
                schedule_remove()

        parked.append(tasklet(down)(50))
        run()
        assert "    [Previous line repeated 47 more times]\n" in text_of()

    def test_standard_error(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dump()
        assert "in test_standard_error\n      dump()\n" in capsys.readouterr().err
        monkeypatch.setattr(sys, "stderr", None)
        dump()

    def test_a_file_that_cannot_encode_it(self, parked: list[tasklet]) -> None:
        parked.append(tasklet(pauser)())
        pauser.__qualname__, before = "pa\u03a9ser", pauser.__qualname__
        data = io.BytesIO()
        file = io.TextIOWrapper(data, "ascii", write_through=True)
        dump(file, all_threads=False)
        pauser.__qualname__ = before
        run()
        assert rb"of pa\u03a9ser: runnable" in data.getvalue()

    @pytest.mark.parametrize("name", ["no\0such", "\ud800", "<string>", "/no/such.py", ""])
    def test_a_function_without_a_source(self, name: str, parked: list[tasklet]) -> None:
        def work() -> None:
            schedule_remove()

        work.__code__ = work.__code__.replace(co_filename=name)
        parked.append(tasklet(work)())
        run()
        line = work.__code__.co_firstlineno + 1
        assert f'    File "{visible(name)}", line {line}, in work\n' in text_of()

    def test_a_file_that_fails(self) -> None:
        class Full:
            def write(self, _: str) -> None:
                raise OSError("full")

        with pytest.raises(OSError, match="full"):
            dump(Full())

    def test_a_tasklet_may_dump_into_a_channel(self) -> None:
        """The data is complete before the first line is written."""
        where = channel()

        class File:
            def write(self, text: str) -> None:
                where.send(text)

        tasklet(dump)(File(), all_threads=False)
        assert "> of dump: current\n" in where.receive()
        run()

    def test_many(self) -> None:
        """Ten thousand: in the list once, with none left behind."""
        many = 1_000 if SANITIZED else 10_000
        waiting = [tasklet(receiver)(where) for where in [channel()] for _ in range(many)]
        run()
        output = text_of()
        for each in waiting:
            each.kill()
        assert f"\n  and {many - 2:,} more like this, for up to " in output
        assert len(output) < 10_000


class TestDeadlock:
    def test_a_blocked_main(self) -> None:
        with pytest.raises(RuntimeError) as caught:
            channel().receive()
        assert str(caught.value) == "Deadlock: the last runnable tasklet cannot be blocked."
        (note,) = caught.value.__notes__
        assert note.startswith("What waits for what:\nThread MainThread")
        assert re.search(r"main>: receiving for \d+\.\d", note), note
        assert "in test_a_blocked_main\n      channel().receive()" in note
        assert "reporting.py" not in note

    @pytest.mark.parametrize(
        ("act", "text"),
        [
            ("receive", "the main tasklet is receiving without a sender available."),
            ("send", "the main tasklet is sending without a receiver available."),
        ],
    )
    def test_the_last_one_ends(self, act: str, text: str, parked: list[tasklet]) -> None:
        where = channel()
        parked.append(tasklet(receiver)(channel()))
        run()
        tasklet(pauser)
        tasklet(str)()
        with pytest.raises(RuntimeError) as caught:
            where.receive() if act == "receive" else where.send(1)
        assert str(caught.value) == text
        (note,) = caught.value.__notes__
        assert "> of receiver: receiving for " in note
        assert re.search(rf"main>: {act.removesuffix('e')}ing for \d+\.\d", note), note
        assert "2 tasklets:" in note

    @pytest.mark.parametrize("error", [ValueError, MemoryError, RecursionError])
    def test_a_report_that_fails(
        self, error: type[Exception], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails() -> str:
            raise error

        monkeypatch.setattr(reporting, "note", fails)
        with pytest.raises(RuntimeError, match="Deadlock") as caught:
            channel().receive()
        assert not hasattr(caught.value, "__notes__")
        assert caught.value.__context__ is None

    def test_an_interrupt_during_the_report_comes_later(self) -> None:
        run_child(
            """
            from cpythonplus import tasklets
            from cpythonplus.tasklets._dump import reporting

            def interrupted():
                raise KeyboardInterrupt

            reporting.note = interrupted
            told = []
            try:
                try:
                    tasklets.channel().receive()
                except RuntimeError as error:
                    told.append(str(error))
                while True:
                    pass
            except KeyboardInterrupt:
                told.append("interrupted")
            assert told[-1] == "interrupted", told
            """
        )

    def test_somebody_becomes_runnable_during_the_report(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = channel()

        def wakes() -> str:
            tasklet(where.send)(5)
            return ""

        monkeypatch.setattr(reporting, "note", wakes)
        assert where.receive() == 5
        run()

    def test_somebody_becomes_runnable_when_the_last_one_ends(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        where = channel()

        def wakes() -> str:
            tasklet(where.send)(5)
            return ""

        monkeypatch.setattr(reporting, "note", wakes)
        tasklet(str)()
        assert where.receive() == 5
        run()

    def test_nothing_is_switched_during_the_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        refused = []

        def switches() -> str:
            with pytest.raises(RuntimeError, match="Recursive") as caught:
                schedule()
            refused.append(str(caught.value))
            return "a note"

        monkeypatch.setattr(reporting, "note", switches)
        with pytest.raises(RuntimeError, match="Deadlock") as caught:
            channel().receive()
        assert caught.value.__notes__ == ["a note"]
        assert refused == ["Recursive scheduler call due to callbacks!"]
        schedule()

    def test_no_debugger_sees_the_report(self) -> None:
        seen = set()
        before = sys.gettrace()
        sys.settrace(lambda frame, *_: seen.add(frame.f_code.co_name))
        try:
            with pytest.raises(RuntimeError):
                channel().receive()
        finally:
            sys.settrace(before)
        assert "note" not in seen
