"""Sleeping, timers, time limits and waiting for descriptors; no test measures a time."""

# The body of a `with timeout()` is what is tested, so it is more than one line.
# ruff: noqa: PT012

import errno
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from cpythonplus.tasklets import (
    TaskletExit,
    channel,
    getcurrent,
    getmain,
    run,
    schedule,
    schedule_remove,
    tasklet,
)
from cpythonplus.tasklets.io import (
    Timer,
    call_later,
    sleep,
    timeout,
    wait_readable,
    wait_writable,
)

SOON = 0.001
NEVER = 1000.0


class TestSleep:
    def test_the_earlier_ones_wake_first(self) -> None:
        """However much later another one has begun to sleep."""
        log: list[int] = []
        began = time.monotonic()

        def body(number: int) -> None:
            sleep(began + 0.2 + 0.05 * number - time.monotonic())
            log.append(number)

        for number in (3, 1, 2):
            tasklet(body)(number)
        run()
        assert log == [1, 2, 3]

    def test_run_waits_for_sleepers(self) -> None:
        task = tasklet(sleep)(SOON)
        run()
        assert not task.alive

    def test_zero_lets_the_others_run(self) -> None:
        log: list[int] = []
        tasklet(log.append)(1)
        sleep(0)
        assert log == [1]

    def test_a_killed_one_leaves_no_timer(self) -> None:
        task = tasklet(sleep)(NEVER)
        task.run()
        task.kill()
        run()  # would take 1000 seconds
        assert not task.alive

    @pytest.mark.parametrize(
        ("seconds", "error"),
        [(-1, ValueError), (math.nan, ValueError), (math.inf, OverflowError), ("1", TypeError)],
    )
    def test_refused(self, seconds: float, error: type[Exception]) -> None:
        with pytest.raises(error):
            sleep(seconds)


class TestCallLater:
    def test_in_a_tasklet_of_its_own(self) -> None:
        log: list[object] = []
        timer = call_later(
            SOON, lambda *args: log.extend((args, getcurrent() is getmain(), timer.active)), 1, 2
        )
        assert timer.active
        run()
        assert log == [(1, 2), False, False]

    def test_cancelled(self) -> None:
        log: list[int] = []
        timer = call_later(SOON, log.append, 1)
        timer.cancel()
        timer.cancel()
        run()
        assert (log, timer.active) == ([], False)

    def test_cancelled_by_another_one_of_the_same_time(self) -> None:
        log: list[int] = []
        timers: list[Timer] = []

        def cancel() -> None:
            timers[1].cancel()

        timers += [call_later(-1, cancel), call_later(-1, log.append, 1)]
        run()
        assert log == []

    def test_cancelled_by_another_thread(self) -> None:
        log: list[int] = []
        timer = call_later(NEVER, log.append, 1)
        thread = threading.Thread(target=timer.cancel)
        thread.start()
        thread.join()
        run()
        assert (log, timer.active) == ([], False)

    def test_many(self) -> None:
        log: list[int] = []
        order = [number * 7919 % 200 for number in range(200)]
        timers = [call_later(number * SOON / 50, log.append, number) for number in order]
        for timer, number in zip(timers, order, strict=True):
            if number % 3 == 0:
                timer.cancel()
        run()
        assert sorted(log) == [number for number in range(200) if number % 3]

    def test_refused(self) -> None:
        with pytest.raises(TypeError):
            call_later(SOON, 5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="NaN"):
            call_later(math.nan, print)


def blocked_in_a_channel() -> None:
    channel().receive()


def blocked_in_sleep() -> None:
    sleep(NEVER)


def paused() -> None:
    schedule_remove(None)


def blocked_in_a_socket() -> None:
    left, right = socket.socketpair()
    with left, right:
        wait_readable(left)


def never_blocked() -> None:
    while True:
        schedule()


class TestTimeout:
    @pytest.mark.parametrize(
        "body",
        [blocked_in_a_channel, blocked_in_sleep, paused, blocked_in_a_socket, never_blocked],
    )
    def test_wherever_the_tasklet_is(self, body: Callable[[], None]) -> None:
        log: list[str] = []

        def limited() -> None:
            limit = timeout(SOON)
            try:
                with limit:
                    body()
            except TimeoutError as error:
                log.append(f"{limit.expired()} {error.__cause__!r}")

        tasklet(limited)()
        run()
        assert log == ["True _Expired()"]

    @pytest.mark.parametrize("body", [blocked_in_a_channel, blocked_in_sleep, never_blocked])
    def test_the_main_tasklet(self, body: Callable[[], None]) -> None:
        with pytest.raises(TimeoutError), timeout(SOON):
            body()

    def test_run(self) -> None:
        task = tasklet(sleep)(NEVER)
        with pytest.raises(TimeoutError), timeout(SOON):
            run()
        task.kill()

    def test_in_time(self) -> None:
        with timeout(NEVER) as limit:
            sleep(0)
        assert not limit.expired()
        run()  # no timer is left

    def test_none_is_no_limit(self) -> None:
        with timeout(None) as limit:
            sleep(SOON)
        assert not limit.expired()

    @pytest.mark.parametrize("seconds", [0, -1])
    def test_over_from_the_start(self, seconds: float) -> None:
        log: list[int] = []
        with pytest.raises(TimeoutError), timeout(seconds):
            log.append(1)
            sleep(NEVER)
        assert log == [1]

    def test_a_body_that_does_not_wait_is_not_touched(self) -> None:
        with timeout(0) as limit:
            pass
        assert limit.expired()
        schedule()
        sleep(0)

    def test_a_signal_handler_that_raises_at_its_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(_: timeout) -> None:
            raise KeyError

        with pytest.raises(KeyError), timeout(SOON):
            monkeypatch.setattr(timeout, "_stop", interrupted)
        sleep(2 * SOON)  # the time is over meanwhile

    def test_no_exception_that_a_body_catches(self) -> None:
        log: list[str] = []
        with pytest.raises(TimeoutError), timeout(SOON):
            try:
                sleep(NEVER)
            except Exception:  # noqa: BLE001
                log.append("caught")
            finally:
                log.append("finally")
        assert log == ["finally"]

    def test_a_body_that_catches_all(self) -> None:
        with timeout(SOON) as limit:
            try:
                sleep(NEVER)
            except BaseException:  # noqa: BLE001
                sleep(SOON)
        assert limit.expired()

    def test_another_exception(self) -> None:
        with pytest.raises(KeyError) as caught, timeout(SOON):
            try:
                sleep(NEVER)
            finally:
                raise KeyError
        assert caught.value.__context__ is not None

    def test_the_outer_one_is_not_taken_by_an_inner(self) -> None:
        with pytest.raises(TimeoutError), timeout(SOON) as outer:
            try:
                with timeout(NEVER) as inner:
                    sleep(NEVER)
            except TimeoutError:
                pytest.fail("taken")
        assert (outer.expired(), inner.expired()) == (True, False)

    def test_the_inner_one(self) -> None:
        with timeout(NEVER) as outer:
            with pytest.raises(TimeoutError), timeout(SOON) as inner:
                sleep(NEVER)
            sleep(0)
        assert (outer.expired(), inner.expired()) == (False, True)

    @pytest.mark.parametrize("seconds", [(0, 0), (SOON, SOON), (0, SOON), (SOON, 0)])
    def test_both_over(self, seconds: tuple[float, float]) -> None:
        """Whichever comes first; nothing of the other comes after the `with`."""
        with pytest.raises(TimeoutError), timeout(seconds[0]), timeout(seconds[1]):
            sleep(NEVER)
        for _ in range(20):
            sleep(0)

    def test_the_outer_one_comes_after_the_inner_one_was_caught(self) -> None:
        log: list[str] = []
        with pytest.raises(TimeoutError), timeout(SOON) as outer:
            try:
                with timeout(0):
                    sleep(NEVER)
            except TimeoutError:
                log.append("inner")
            sleep(NEVER)
        assert (log, outer.expired()) == (["inner"], True)

    def test_what_was_received_is_not_lost(self) -> None:
        """The time is over after something was sent, and before the receiver runs."""
        log: list[object] = []
        gate, it = channel(), channel()
        it.preference = 1  # the sender runs on

        def receiver() -> None:
            with timeout(NEVER) as limit:
                gate.send(limit)
                log.append(it.receive())
            log.append(limit.expired())

        task = tasklet(receiver)()
        limit: timeout = gate.receive()
        schedule()
        it.send("item")
        assert task.scheduled
        limit.reschedule(0)
        run()
        assert log == ["item", True]

    def test_it_comes_at_the_next_wait_then(self) -> None:
        log: list[object] = []
        gate, it = channel(), channel()
        it.preference = 1

        def receiver() -> None:
            try:
                with timeout(NEVER) as limit:
                    gate.send(limit)
                    while True:
                        log.append(it.receive())
            except TimeoutError:
                log.append("over")

        tasklet(receiver)()
        limit: timeout = gate.receive()
        schedule()
        it.send("item")
        limit.reschedule(0)
        run()
        assert log == ["item", "over"]
        assert it.balance == 0

    def test_put_off(self) -> None:
        with timeout(SOON) as limit:
            limit.reschedule(NEVER)
            sleep(5 * SOON)
            limit.reschedule(None)
        assert not limit.expired()

    def test_brought_forward(self) -> None:
        with pytest.raises(TimeoutError), timeout(None) as limit:
            limit.reschedule(SOON)
            sleep(NEVER)

    def test_killed_within(self) -> None:
        log: list[str] = []

        def body() -> None:
            try:
                with timeout(NEVER):
                    sleep(NEVER)
            except TaskletExit:
                log.append("killed")
                raise

        task = tasklet(body)()
        schedule()
        task.kill()
        run()
        assert log == ["killed"]

    def test_a_body_that_has_ended_and_not_left_it(self) -> None:
        """A signal handler that raises at the wrong instruction does that."""
        tasklet(timeout(0.001).__enter__)()
        run()

    def test_misuse(self) -> None:
        limit = timeout(NEVER)
        with pytest.raises(RuntimeError, match="not active"):
            limit.reschedule(1)
        with limit:
            pass
        with pytest.raises(RuntimeError, match="one `with`"), limit:
            pass
        with pytest.raises(RuntimeError, match="not active"):
            limit.reschedule(1)
        with pytest.raises(ValueError, match="NaN"):
            timeout(math.nan)
        with pytest.raises(TypeError):
            timeout("1")  # type: ignore[arg-type]


class TestDescriptors:
    def test_a_pipe(self) -> None:
        reading, writing = os.pipe()
        log: list[bytes] = []

        def reader() -> None:
            wait_readable(reading)
            log.append(os.read(reading, 10))

        tasklet(reader)()
        schedule()
        os.write(writing, b"x")
        run()
        os.close(reading)
        os.close(writing)
        assert log == [b"x"]

    def test_both_directions_of_one_socket(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            while True:
                try:
                    left.send(bytes(65536))
                except BlockingIOError:
                    break
            log: list[str] = []

            def wait(call: Callable[[socket.socket], None], name: str) -> None:
                call(left)
                log.append(name)

            tasklet(wait)(wait_readable, "readable")
            tasklet(wait)(wait_writable, "writable")
            sleep(0)
            assert log == []
            right.send(b"x")
            with timeout(NEVER):
                while not log:
                    sleep(0)
            assert log == ["readable"]
            right.setblocking(False)
            while len(log) < 2:
                with suppress(BlockingIOError):
                    right.recv(65536)
                sleep(0)
            assert log == ["readable", "writable"]

    def test_several_wait_for_one(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            tasks = [tasklet(wait_readable)(left) for _ in range(5)]
            schedule()
            right.send(b"x")
            run()
            assert not any(task.alive for task in tasks)

    @pytest.mark.parametrize("seconds", [0, SOON])
    def test_time_over(self, seconds: float) -> None:
        left, right = socket.socketpair()
        with left, right, pytest.raises(TimeoutError):
            wait_readable(left, seconds)

    def test_looking_at_a_ready_one(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            right.send(b"x")
            for _ in range(3):
                wait_readable(left, 0)

    def test_the_end_of_the_other_side(self) -> None:
        left, right = socket.socketpair()
        with left:
            tasklet(right.close)()
            wait_readable(left)
            wait_writable(left)

    def test_a_killed_one_leaves_nothing(self) -> None:
        left, right = socket.socketpair()
        with left, right:
            task = tasklet(wait_readable)(left)
            schedule()
            task.kill()
            run()
            right.send(b"x")
            wait_readable(left)

    def test_a_number_that_comes_to_mean_another_file(self) -> None:
        for _ in range(3):
            left, right = socket.socketpair()
            with left, right:
                task = tasklet(wait_readable)(left.fileno())
                schedule()
                task.kill()
                right.send(b"x")
                wait_readable(left.fileno(), NEVER)

    def test_refused(self) -> None:
        with pytest.raises(ValueError, match="negative"):
            wait_readable(-1)
        with pytest.raises((TypeError, AttributeError)):
            wait_readable("1")  # type: ignore[arg-type]
        with open(__file__) as file, pytest.raises(OSError) as caught:  # noqa: PT011, PTH123
            wait_readable(file)
        assert str(errno.EPERM) in str(caught.value)
        reading, writing = os.pipe()
        os.close(reading)
        os.close(writing)
        with pytest.raises(OSError, match="Bad file"):
            wait_readable(reading)
