"""A slow model of Stackless's scheduler: it says which events a small program causes, in order.

A program is a list of operations for each tasklet; number 0 is main.  The model is written from
the documented behaviour, in plain Python, with a list as run queue and generators as tasklets:
where a generator yields, the engine would change stacks.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

Operation = tuple[Any, ...]  # its name, then numbers
Program = list[list[Operation]]  # of each tasklet; of main first
Event = tuple[Any, ...]

CHANNELS = 2
# Finished tasklets can be bound again, so that programs could go on for ever.
MOST_OPERATIONS = 120


class BoomError(Exception):
    """What programs throw."""


class TaskletExit(SystemExit):
    """The model's own; its name alone is compared."""


@dataclass(frozen=True)
class Bomb:
    """An exception on its way to a tasklet."""

    error: BaseException


@dataclass(eq=False)
class Channel:
    """Who waits (a list of tasklets), and whether they send."""

    number: int
    queue: list["Tasklet"] = field(default_factory=list)
    sending: bool = False
    preference: int = -1
    schedule_all: bool = False
    closing: bool = False

    @property
    def balance(self) -> int:
        return len(self.queue) if self.sending else -len(self.queue)


@dataclass(eq=False)
class Tasklet:
    """One tasklet; body: where it goes on, None before it has started."""

    number: int
    tempval: Any = None
    bound: bool = True
    alive: bool = False
    started: bool = False
    block_trap: bool = False
    body: Generator[None, None, None] | None = None
    channel: Channel | None = None


Action = Generator[None, None, Any]


class Model:
    """Runs a program; `events` is what happened."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.events: list[Event] = []
        self.tasklets = [Tasklet(number) for number in range(len(program))]
        self.channels = [Channel(number) for number in range(CHANNELS)]
        self.main = self.tasklets[0]
        self.main.alive = self.main.started = True
        self.current = self.main
        self.queue = [self.main]  # of runnable ones; the current one first, if it is among them
        self.watchdogs: list[Tasklet] = []
        self.operations = 0

    def run(self) -> list[Event]:
        """Return the events of the whole program."""
        self.main.body = self.interpret(self.main)
        while True:
            task = self.current
            assert task.body is not None
            try:
                next(task.body)
            except StopIteration:
                if task is self.main:
                    return self.events
                self.end(task, None)
            except BaseException as error:  # noqa: BLE001
                self.end(task, error)

    def interpret(self, task: Tasklet) -> Generator[None, None, None]:
        """Do the operations of one tasklet, as tests.tasklets.test_model does with real ones."""
        if task is not self.main:
            self.claim(task)  # a bomb, where it was thrown before it started
        for index, (catches, name, *arguments) in enumerate(self.program[task.number]):
            self.operations += 1
            if self.operations > MOST_OPERATIONS:
                return
            where = (task.number, index, name)
            try:
                result = yield from getattr(self, name)(*arguments)
            except (Exception, TaskletExit) as error:
                self.events.append((*where, type(error).__name__, str(error)))
                if not catches and task is not self.main:
                    raise
            else:
                self.events.append((*where, result))

    # The run queue.

    def scheduled(self, task: Tasklet) -> bool:
        return task in self.queue or task.channel is not None

    def insert_last(self, task: Tasklet) -> None:
        self.queue.append(task)

    def unblock(self, task: Tasklet) -> None:
        assert task.channel is not None
        task.channel.queue.remove(task)
        task.channel = None

    def claim(self, task: Tasklet) -> object:
        """Take what it was given; an exception is raised."""
        value, task.tempval = task.tempval, None
        if isinstance(value, Bomb):
            raise value.error
        return value

    def innermost(self) -> Tasklet:
        """Whom to wake when nobody is left: the last caller of run(), or main."""
        return self.watchdogs[-1] if self.watchdogs else self.main

    def make_current(self, task: Tasklet) -> None:
        """Switch to it: it comes to the front of the circle, whose order stays."""
        if task.channel is not None:
            self.unblock(task)
        if task not in self.queue:
            self.insert_last(task)
        place = self.queue.index(task)
        self.queue = self.queue[place:] + self.queue[:place]
        if self.current is not task:
            self.events.append(("switch", self.current.number, task.number))
        self.current = task
        if task.body is None:
            task.started = True
            task.body = self.interpret(task)

    def switch(self, task: Tasklet | None) -> Action:
        """Go to a tasklet, None: nobody is runnable; return what this one is given later."""
        here = self.current
        if task is None:
            task = self.revived(here)
        self.make_current(task)
        if task is not here:
            yield
        return self.claim(here)

    def revived(self, here: Tasklet) -> Tasklet:
        """Who goes on when the last runnable one blocks or leaves; a deadlock is its own error."""
        wakeup = self.innermost()
        if not self.scheduled(wakeup):
            if isinstance(here.tempval, Bomb):
                wakeup.tempval = here.tempval
            return wakeup
        text = "Deadlock: the last runnable tasklet cannot be blocked."
        here.tempval = Bomb(RuntimeError(text))
        return here

    def end(self, task: Tasklet, error: BaseException | None) -> None:
        """A tasklet has returned or raised; TaskletExit is no error."""
        bomb = None if error is None or isinstance(error, TaskletExit) else Bomb(error)
        task.alive = task.started = task.bound = False
        task.body, task.tempval = None, None
        self.queue.remove(task)
        wakeup = self.innermost()
        if not self.queue and wakeup.channel is not None and bomb is None:
            text = (
                "the main tasklet is sending without a receiver available."
                if wakeup.channel.sending
                else "the main tasklet is receiving without a sender available."
            )
            bomb = Bomb(RuntimeError(text))
        following = self.queue[0] if self.queue else wakeup
        if bomb is not None:
            following = wakeup
            following.tempval = bomb
        self.make_current(following)

    # The operations: of the module.

    def schedule(self) -> Action:
        here = self.current
        here.tempval = here.number
        return (yield from self.switch(self.queue[1] if len(self.queue) > 1 else here))

    def schedule_remove(self) -> Action:
        here = self.current
        here.tempval = here.number
        self.queue.remove(here)
        return (yield from self.switch(self.queue[0] if self.queue else None))

    def run_all(self) -> Action:
        here = self.current
        self.watchdogs.append(here)
        self.queue.remove(here)
        try:
            yield from self.switch(self.queue[0] if self.queue else None)
        finally:
            while here in self.watchdogs:
                popped = self.watchdogs.pop()
                if not self.scheduled(popped):
                    self.insert_last(popped)

    def count(self) -> Action:
        yield from ()
        return len(self.queue)

    def trim(self) -> Action:
        """Where a tasklet is kept makes no difference."""
        yield from ()

    # Of tasklets.

    def insert(self, number: int) -> Action:
        yield from ()
        self.make_runnable(self.tasklets[number])

    def make_runnable(self, task: Tasklet) -> None:
        if task.channel is not None:
            raise RuntimeError("You cannot run a blocked tasklet")
        if task in self.queue:
            return
        if not task.alive:
            raise RuntimeError("You cannot run an unbound(dead) tasklet")
        self.insert_last(task)

    def remove(self, number: int) -> Action:
        yield from ()
        task = self.tasklets[number]
        if task.channel is not None:
            raise RuntimeError("You cannot remove a blocked tasklet.")
        if task is self.current:
            raise RuntimeError("The current tasklet cannot be removed.")
        if task in self.queue:
            self.queue.remove(task)

    def run_tasklet(self, number: int) -> Action:
        task = self.tasklets[number]
        self.make_runnable(task)
        return (yield from self.switch(task))

    def switch_to(self, number: int) -> Action:
        task = self.tasklets[number]
        self.make_runnable(task)
        if task is not self.current:
            self.queue.remove(self.current)
        return (yield from self.switch(task))

    def kill(self, number: int, pending: bool) -> Action:
        yield from self.explode(self.tasklets[number], TaskletExit(), pending)

    def throw(self, number: int, pending: bool) -> Action:
        yield from self.explode(self.tasklets[number], BoomError("thrown"), pending)

    def raise_exception(self, number: int) -> Action:
        yield from self.explode(self.tasklets[number], BoomError("raised"), pending=False)

    def explode(self, task: Tasklet, error: BaseException, pending: bool) -> Action:
        if task is self.current:
            raise error
        if not task.alive:
            if isinstance(error, TaskletExit):
                return
            raise RuntimeError("You cannot throw to a dead tasklet")
        task.tempval = Bomb(error)
        if not pending:
            yield from self.switch(task)
            return
        if task.channel is not None:
            self.unblock(task)
        self.make_runnable(task)

    def setup(self, number: int) -> Action:
        yield from ()
        task = self.tasklets[number]
        if task.alive:
            raise RuntimeError("tasklet is alive")
        if not task.bound:
            raise RuntimeError("the tasklet was not bound to a function")
        task.alive, task.bound, task.tempval = True, False, None
        self.insert_last(task)

    def bind(self, number: int) -> Action:
        yield from ()
        task = self.tasklets[number]
        if task is self.current:
            raise RuntimeError("can't (re)bind the current tasklet")
        if self.scheduled(task):
            raise RuntimeError("tasklet is scheduled")
        if task.started:
            raise RuntimeError("tasklet has C state on its stack")
        task.alive, task.bound, task.tempval = False, True, None

    def state(self, number: int) -> Action:
        yield from ()
        task = self.tasklets[number]
        return (
            task.alive,
            task.alive and not self.scheduled(task),
            task.channel is not None,
            self.scheduled(task),
            task is self.current,
        )

    def trap(self, flag: bool) -> Action:
        yield from ()
        self.current.block_trap = flag

    # Of channels.

    def send(self, number: int, value: int) -> Action:
        return (yield from self.transfer(self.channels[number], value, sending=True))

    def send_exception(self, number: int) -> Action:
        bomb = Bomb(BoomError("sent"))
        return (yield from self.transfer(self.channels[number], bomb, sending=True))

    def send_sequence(self, number: int, length: int) -> Action:
        for value in range(length):
            yield from self.transfer(self.channels[number], value, sending=True)
        return length

    def receive(self, number: int) -> Action:
        return (yield from self.transfer(self.channels[number], None, sending=False))

    def iterate(self, number: int) -> Action:
        channel = self.channels[number]
        if channel.closing and channel.balance <= 0:
            return "end"
        return (yield from self.transfer(channel, None, sending=False))

    def transfer(self, channel: Channel, value: object, *, sending: bool) -> Action:
        here = self.current
        can = bool(channel.queue) and channel.sending is not sending
        self.events.append(("channel", channel.number, here.number, sending, not can))
        if not can:
            return (yield from self.block(channel, value, sending=sending))
        partner = channel.queue[0]
        self.unblock(partner)
        here.tempval, partner.tempval = partner.tempval, value
        following = here
        if channel.schedule_all:
            self.insert_last(partner)
            following = self.queue[1]
        elif channel.preference == (-1 if sending else 1):
            self.queue.insert(1, partner)
            following = partner
        else:
            self.insert_last(partner)
        return (yield from self.switch(following))

    def block(self, channel: Channel, value: object, *, sending: bool) -> Action:
        here = self.current
        if here.block_trap:
            raise RuntimeError("this tasklet does not like to be blocked.")
        if channel.closing:
            raise ValueError("Send/receive operation on a closed channel")
        here.tempval = value
        self.queue.remove(here)
        channel.queue.append(here)
        channel.sending = sending
        here.channel = channel
        return (yield from self.switch(self.queue[0] if self.queue else None))

    def close(self, number: int) -> Action:
        yield from ()
        self.channels[number].closing = True

    def open(self, number: int) -> Action:
        yield from ()
        self.channels[number].closing = False

    def prefer(self, number: int, preference: int) -> Action:
        yield from ()
        self.channels[number].preference = preference

    def all_scheduled(self, number: int, flag: bool) -> Action:
        yield from ()
        self.channels[number].schedule_all = flag

    def look(self, number: int) -> Action:
        yield from ()
        channel = self.channels[number]
        first = channel.queue[0].number if channel.queue else None
        closed = channel.closing and not channel.queue
        return channel.balance, first, channel.closing, closed


def predict(program: Program) -> list[Event]:
    """Return the events that a program must cause."""
    return Model(program).run()


# What a program can consist of: the name, and for each argument one of
# "tasklet", "channel", "flag", "preference", "value", "length".
OPERATIONS: dict[str, tuple[str, ...]] = {
    "schedule": (),
    "schedule_remove": (),
    "run_all": (),
    "count": (),
    "trim": (),
    "insert": ("tasklet",),
    "remove": ("tasklet",),
    "run_tasklet": ("tasklet",),
    "switch_to": ("tasklet",),
    "kill": ("tasklet", "flag"),
    "throw": ("tasklet", "flag"),
    "raise_exception": ("tasklet",),
    "setup": ("tasklet",),
    "bind": ("tasklet",),
    "state": ("tasklet",),
    "trap": ("flag",),
    "send": ("channel", "value"),
    "send_exception": ("channel",),
    "send_sequence": ("channel", "length"),
    "receive": ("channel",),
    "iterate": ("channel",),
    "close": ("channel",),
    "open": ("channel",),
    "prefer": ("channel", "preference"),
    "all_scheduled": ("channel", "flag"),
    "look": ("channel",),
}
