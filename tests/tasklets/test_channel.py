"""Channels: who waits, who goes first, what arrives, and what is refused."""

# ruff: noqa: ANN401 (anything goes through channels)
# mypy: disable-error-code="arg-type, assignment, attr-defined, call-arg, func-returns-value"
# mypy: disable-error-code="union-attr, unreachable, possibly-undefined"
# (wrong calls are part of the tests)

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import channel, run, schedule, tasklet

Log = list[Any]


def receiver(log: Log, name: str, source: channel) -> None:
    log.append((name, source.receive()))


def sender(log: Log, name: str, target: channel, value: Any) -> None:
    target.send(value)
    log.append((name, "sent"))


class TestTransfer:
    def test_a_new_channel_is_open_and_empty(self) -> None:
        it = channel()
        assert (it.balance, it.queue, it.closing, it.closed) == (0, None, False, False)
        assert (it.preference, it.schedule_all) == (-1, False)

    def test_send_returns_none_and_receive_the_value(self) -> None:
        it = channel()
        log: Log = []
        tasklet(receiver)(log, "a", it)
        schedule()
        assert it.send([1]) is None
        assert log == [("a", [1])]

    def test_the_value_itself_arrives(self) -> None:
        it, value = channel(), object()
        log: Log = []
        tasklet(sender)(log, "a", it, value)
        assert it.receive() is value
        run()
        assert log == [("a", "sent")]

    def test_waiting_receivers_are_served_in_order(self) -> None:
        it = channel()
        log: Log = []
        for name in "abc":
            tasklet(receiver)(log, name, it)
        run()
        assert it.balance == -3
        for value in range(3):
            it.send(value)
        assert log == [("a", 0), ("b", 1), ("c", 2)]
        assert it.balance == 0

    def test_waiting_senders_are_served_in_order(self) -> None:
        it = channel()
        log: Log = []
        for number, name in enumerate("abc"):
            tasklet(sender)(log, name, it, number)
        run()
        assert it.balance == 3
        assert [it.receive() for _ in range(3)] == [0, 1, 2]
        assert log == []  # the default preference: the receiver goes on
        run()
        assert log == [("a", "sent"), ("b", "sent"), ("c", "sent")]

    def test_queue_is_the_first_of_those_who_wait(self) -> None:
        it = channel()
        first, second = tasklet(it.receive)(), tasklet(it.receive)()
        run()
        assert it.queue is first
        assert first.next is second
        it.send(1)
        assert it.queue is second
        it.send(2)
        assert it.queue is None

    def test_one_that_is_ended_leaves_the_queue(self) -> None:
        it = channel()
        log: Log = []
        waiting = [tasklet(receiver)(log, name, it) for name in "abc"]
        run()
        waiting[1].kill()
        assert it.balance == -2
        it.send(1)
        it.send(2)
        assert log == [("a", 1), ("c", 2)]

    def test_tempval_is_what_a_waiting_sender_offers(self) -> None:
        it = channel()
        waiting = tasklet(it.send)(5)
        run()
        assert waiting.tempval == 5
        assert it.receive() == 5
        run()

    def test_a_channel_in_use_survives_its_last_name(self) -> None:
        log: Log = []
        waiting = tasklet(lambda: receiver(log, "a", channel()))()
        run()
        assert waiting.blocked
        waiting._channel.send(1)
        assert log == [("a", 1)]


class TestWhoGoesFirst:
    """A partner (r or s) waits, x is runnable, main acts; then all run."""

    @pytest.mark.parametrize(
        ("preference", "schedule_all", "order"),
        [
            (-1, False, ["r", "x", "main"]),
            (0, False, ["main", "x", "r"]),
            (1, False, ["main", "x", "r"]),
            (-1, True, ["x", "r", "main"]),
            (0, True, ["x", "r", "main"]),
            (1, True, ["x", "r", "main"]),
        ],
    )
    def test_of_sending(self, preference: int, schedule_all: bool, order: list[str]) -> None:
        assert self.order(preference, schedule_all, main_sends=True) == order

    @pytest.mark.parametrize(
        ("preference", "schedule_all", "order"),
        [
            (-1, False, ["main", "x", "s"]),
            (0, False, ["main", "x", "s"]),
            (1, False, ["s", "x", "main"]),
            (-1, True, ["x", "s", "main"]),
            (0, True, ["x", "s", "main"]),
            (1, True, ["x", "s", "main"]),
        ],
    )
    def test_of_receiving(self, preference: int, schedule_all: bool, order: list[str]) -> None:
        assert self.order(preference, schedule_all, main_sends=False) == order

    def order(self, preference: int, schedule_all: bool, *, main_sends: bool) -> list[str]:
        it = channel()
        it.preference, it.schedule_all = preference, schedule_all
        log: list[str] = []

        def partner() -> None:
            if main_sends:
                it.receive()
                log.append("r")
            else:
                it.send(1)
                log.append("s")

        tasklet(partner)()
        run()
        tasklet(log.append)("x")
        if main_sends:
            it.send(1)
        else:
            it.receive()
        log.append("main")
        run()
        return log

    @pytest.mark.parametrize(("given", "kept"), [(5, 1), (0, 0), (-7, -1), (True, 1)])
    def test_preference_is_a_sign(self, given: int, kept: int) -> None:
        it = channel()
        it.preference = given
        assert it.preference == kept

    @pytest.mark.parametrize(("given", "kept"), [(5, True), (0, False), (True, True)])
    def test_schedule_all_is_a_flag(self, given: int, kept: bool) -> None:
        it = channel()
        it.schedule_all = given
        assert it.schedule_all == kept


class TestExceptions:
    def test_send_exception_raises_in_the_receiver(self) -> None:
        it = channel()
        log: Log = []

        def body() -> None:
            try:
                it.receive()
            except KeyError as error:
                log.append(error.args)

        tasklet(body)()
        run()
        assert it.send_exception(KeyError, 1, 2) is None
        assert log == [(1, 2)]

    def test_an_exception_waits_like_a_value(self) -> None:
        it = channel()
        log: Log = []
        tasklet(lambda: log.append(it.send_exception(KeyError, 1)))()
        schedule()
        assert it.balance == 1
        with pytest.raises(KeyError):
            it.receive()
        run()
        assert log == [None]

    def test_send_throw_keeps_instance_and_traceback(self) -> None:
        it = channel()

        def inner() -> None:
            raise KeyError(1)

        def body() -> None:
            try:
                inner()
            except KeyError as error:
                it.send_throw(KeyError, error, error.__traceback__)

        tasklet(body)()
        schedule()
        with pytest.raises(KeyError) as caught:
            it.receive()
        assert caught.value.args == (1,)
        assert caught.traceback[-1].name == "inner"
        run()

    def test_send_throw_of_an_instance(self) -> None:
        it, error = channel(), KeyError(1)
        tasklet(it.send_throw)(error)
        schedule()
        with pytest.raises(KeyError) as caught:
            it.receive()
        assert caught.value is error
        run()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((5,), "exceptions must be classes, or instances, not int"),
            ((KeyError(1), 2), "instance exception may not have a separate value"),
            ((KeyError, 1, 2), "third argument must be a traceback object"),
        ],
    )
    def test_send_throw_refuses(self, arguments: tuple[Any, ...], message: str) -> None:
        it = channel()
        with pytest.raises(TypeError, match=rf"^{message}$"):
            it.send_throw(*arguments)
        assert it.balance == 0

    def test_send_exception_refuses_what_is_no_exception(self) -> None:
        with pytest.raises(TypeError, match=r"^channel\.send_exception needs Exception"):
            channel().send_exception(int)
        with pytest.raises(TypeError, match=r"at least (1|one) argument"):
            channel().send_exception()


class TestSequences:
    def test_send_sequence_and_iteration(self) -> None:
        it = channel()
        log: Log = []

        def produce() -> None:
            log.append(it.send_sequence(value * 10 for value in range(3)))
            it.close()

        tasklet(produce)()
        # Closing wakes nobody, so the loop must not already wait when it happens.
        it.preference = 1
        assert list(it) == [0, 10, 20]
        run()
        assert log == [3]

    def test_the_iterator_of_a_channel_is_itself(self) -> None:
        it = channel()
        assert iter(it) is it

    def test_iteration_over_a_closed_channel_ends(self) -> None:
        it = channel()
        it.close()
        assert list(it) == []

    def test_iteration_empties_a_closing_channel(self) -> None:
        it = channel()
        for value in range(3):
            tasklet(it.send)(value)
        run()
        it.close()
        assert list(it) == [0, 1, 2]
        run()

    def test_an_error_of_the_sequence_goes_to_its_sender(self) -> None:
        it = channel()
        log: Log = []

        def broken() -> Any:
            yield 1
            raise KeyError(2)

        def produce() -> None:
            with pytest.raises(KeyError):
                it.send_sequence(broken())
            log.append("raised")

        tasklet(produce)()
        assert it.receive() == 1
        run()
        assert log == ["raised"]

    def test_what_cannot_be_iterated_is_refused(self) -> None:
        with pytest.raises(TypeError, match="'int' object is not iterable"):
            channel().send_sequence(5)

    def test_an_empty_sequence_sends_nothing(self) -> None:
        assert channel().send_sequence([]) == 0


class TestClosing:
    def test_close_and_open(self) -> None:
        it = channel()
        assert it.close() is None
        assert (it.closing, it.closed) == (True, True)
        assert it.open() is None
        assert (it.closing, it.closed) == (False, False)

    def test_a_closing_channel_is_closed_when_it_is_empty(self) -> None:
        it = channel()
        tasklet(it.send)(1)
        run()
        it.close()
        assert (it.closing, it.closed) == (True, False)
        assert it.receive() == 1
        assert (it.closing, it.closed) == (True, True)
        run()

    @pytest.mark.parametrize(
        "act",
        [lambda it: it.send(1), lambda it: it.receive(), lambda it: it.send_exception(KeyError)],
    )
    def test_nobody_may_begin_to_wait_on_it(self, act: Callable[[channel], object]) -> None:
        it = channel()
        it.close()
        with pytest.raises(ValueError, match=r"^Send/receive operation on a closed channel"):
            act(it)
        assert (it.balance, tasklets.getruncount()) == (0, 1)


class TestBlockTrap:
    def test_who_may_not_block_gets_an_error(self) -> None:
        it = channel()
        tasklets.getcurrent().block_trap = True
        with pytest.raises(RuntimeError, match=r"^this tasklet does not like to be blocked\."):
            it.receive()
        with pytest.raises(RuntimeError, match=r"^this tasklet does not like to be blocked\."):
            it.send(1)
        assert it.balance == 0

    def test_it_may_transfer_where_somebody_waits(self) -> None:
        it = channel()
        tasklet(it.send)(1)
        run()
        tasklets.getcurrent().block_trap = True
        assert it.receive() == 1
        tasklets.getcurrent().block_trap = False
        run()


class TestDeadlock:
    def test_the_last_runnable_one_cannot_block(self) -> None:
        it = channel()
        with pytest.raises(RuntimeError) as caught:
            it.receive()
        assert str(caught.value) == "Deadlock: the last runnable tasklet cannot be blocked."
        assert (it.balance, tasklets.getruncount()) == (0, 1)

    @pytest.mark.parametrize(
        ("act", "text"),
        [
            ("receive", "the main tasklet is receiving without a sender available."),
            ("send", "the main tasklet is sending without a receiver available."),
        ],
    )
    def test_main_waits_for_one_that_ends(self, act: str, text: str) -> None:
        it = channel()
        log: Log = []
        tasklet(log.append)("x")
        with pytest.raises(RuntimeError) as caught:
            it.receive() if act == "receive" else it.send(1)
        assert str(caught.value) == text
        assert (it.balance, log) == (0, ["x"])

    def test_the_other_one_blocks_while_main_does(self) -> None:
        """The error is raised in the one that blocks last, and passes from there to main."""
        first, second = channel(), channel()
        log: Log = []

        def body() -> None:
            try:
                second.receive()
            except RuntimeError as error:
                log.append(str(error))
                raise

        tasklet(body)()
        with pytest.raises(RuntimeError, match=r"^Deadlock: the last runnable"):
            first.receive()
        assert len(log) == 1
        assert (first.balance, second.balance) == (0, 0)


class TestObject:
    def test_weak_reference(self) -> None:
        it = channel()
        reference = weakref.ref(it)
        assert reference() is it
        del it
        assert reference() is None

    def test_subclass_with_attributes(self) -> None:
        class Own(channel):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.name = name

            def send(self, value: Any) -> None:
                super().send((self.name, value))

        it = Own("mine")
        tasklet(it.send)(1)
        assert it.receive() == ("mine", 1)
        assert it.name == "mine"
        run()

    def test_no_attributes_of_one_s_own(self) -> None:
        with pytest.raises(AttributeError):
            channel().colour = 1

    @pytest.mark.parametrize("name", ["balance", "queue", "closing", "closed"])
    def test_read_only(self, name: str) -> None:
        with pytest.raises(AttributeError):
            setattr(channel(), name, 1)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("preference", "preference must be set to an integer"),
            ("schedule_all", "must be set to a bool or integer"),
        ],
    )
    def test_wrong_types(self, name: str, message: str) -> None:
        it = channel()
        with pytest.raises(TypeError, match=message):
            setattr(it, name, "x")
        with pytest.raises((TypeError, AttributeError)):
            delattr(it, name)
        assert (it.preference, it.schedule_all) == (-1, False)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda it: it.send(), r"send\(\) takes exactly one argument \(0 given\)"),
            (lambda it: it.send(1, 2), r"send\(\) takes exactly one argument \(2 given\)"),
            (lambda it: it.receive(1), r"receive\(\) takes no arguments \(1 given\)"),
            (lambda it: it.close(1), r"close\(\) takes no arguments \(1 given\)"),
            (lambda it: it.open(1), r"open\(\) takes no arguments \(1 given\)"),
            (lambda it: it.send_sequence(), r"send_sequence\(\) takes exactly one argument"),
            (lambda it: it.send_throw(), r"send_throw"),
            (lambda it: it.send(value=1), r"send\(\) takes no keyword arguments"),
        ],
    )
    def test_wrong_arguments(self, call: Callable[[Any], object], message: str) -> None:
        with pytest.raises(TypeError, match=message):
            call(channel())
