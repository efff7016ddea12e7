"""The other side of model.py: the same programs with real tasklets."""

# mypy: disable-error-code="func-returns-value"

from cpythonplus import tasklets
from tests.tasklets.model import CHANNELS, MOST_OPERATIONS, BoomError, Event, Program


class Reality:
    """Runs a program with real tasklets; its methods are named like the model's."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.events: list[Event] = []
        self.operations = 0
        self.over = False
        self.tasklets = [tasklets.getmain()]
        self.tasklets += [tasklets.tasklet(self.interpret) for _ in program[1:]]
        self.channels = [tasklets.channel() for _ in range(CHANNELS)]

    def run(self) -> list[Event]:
        """Return the events; whatever the program leaves behind is ended."""
        channel_hook = tasklets.set_channel_callback(self.on_channel)
        schedule_hook = tasklets.set_schedule_callback(self.on_switch)
        try:
            self.interpret(0)
            return list(self.events)
        finally:
            self.over = True
            tasklets.set_channel_callback(channel_hook)
            tasklets.set_schedule_callback(schedule_hook)
            self.tidy_up()

    def tidy_up(self) -> None:
        """End every tasklet; what it raises on its way is nobody's concern."""
        tasklets.getmain().block_trap = False
        for task in self.tasklets[1:]:
            while task.alive:
                try:
                    task.kill()
                except (Exception, SystemExit):  # noqa: BLE001
                    continue

    def number(self, task: object) -> object:
        """Say which tasklet it is; another value is its own name."""
        return self.tasklets.index(task) if isinstance(task, tasklets.tasklet) else task

    def on_channel(
        self,
        channel: tasklets.channel,
        task: tasklets.tasklet,
        sending: int,
        will_block: int,
    ) -> None:
        which = self.channels.index(channel)
        event = ("channel", which, self.number(task), bool(sending), bool(will_block))
        self.events.append(event)

    def on_switch(self, before: object, after: object) -> None:
        self.events.append(("switch", self.number(before), self.number(after)))

    def interpret(self, number: int) -> None:
        for index, (catches, name, *arguments) in enumerate(self.program[number]):
            self.operations += 1
            if self.operations > MOST_OPERATIONS:
                return
            where = (number, index, name)
            try:
                result = getattr(self, name)(*arguments)
            except (Exception, tasklets.TaskletExit) as error:
                self.events.append((*where, type(error).__name__, str(error)))
                if self.over or (not catches and number):
                    raise
            else:
                self.events.append((*where, result))
            if self.over:
                return

    def schedule(self) -> object:
        return self.number(tasklets.schedule())

    def schedule_remove(self) -> object:
        return self.number(tasklets.schedule_remove())

    def run_all(self) -> object:
        return tasklets.run()

    def count(self) -> object:
        return tasklets.getruncount()

    def trim(self) -> None:
        tasklets.trim_stacks()

    def insert(self, number: int) -> None:
        task = self.tasklets[number]
        assert task.insert() is task

    def remove(self, number: int) -> None:
        task = self.tasklets[number]
        assert task.remove() is task

    def run_tasklet(self, number: int) -> object:
        return self.tasklets[number].run()

    def switch_to(self, number: int) -> object:
        return self.tasklets[number].switch()

    def kill(self, number: int, pending: bool) -> object:
        return self.tasklets[number].kill(pending=pending)

    def throw(self, number: int, pending: bool) -> object:
        return self.tasklets[number].throw(BoomError, "thrown", pending=pending)

    def raise_exception(self, number: int) -> object:
        return self.tasklets[number].raise_exception(BoomError, "raised")

    def setup(self, number: int) -> None:
        task = self.tasklets[number]
        assert task.setup(number) is task

    def bind(self, number: int) -> None:
        task = self.tasklets[number]
        assert task.bind(self.interpret) is task

    def state(self, number: int) -> object:
        task = self.tasklets[number]
        return task.alive, task.paused, task.blocked, task.scheduled, task.is_current

    def trap(self, flag: bool) -> None:
        tasklets.getcurrent().block_trap = flag

    def send(self, number: int, value: int) -> object:
        return self.channels[number].send(value)

    def send_exception(self, number: int) -> object:
        return self.channels[number].send_exception(BoomError, "sent")

    def send_sequence(self, number: int, length: int) -> object:
        return self.channels[number].send_sequence(range(length))

    def receive(self, number: int) -> object:
        return self.channels[number].receive()

    def iterate(self, number: int) -> object:
        return next(iter(self.channels[number]), "end")

    def close(self, number: int) -> object:
        return self.channels[number].close()

    def open(self, number: int) -> object:
        return self.channels[number].open()

    def prefer(self, number: int, preference: int) -> None:
        self.channels[number].preference = preference

    def all_scheduled(self, number: int, flag: bool) -> None:
        self.channels[number].schedule_all = flag

    def look(self, number: int) -> object:
        channel = self.channels[number]
        return channel.balance, self.number(channel.queue), channel.closing, channel.closed


def observe(program: Program) -> list[Event]:
    """Return the events that a program causes."""
    return Reality(program).run()
