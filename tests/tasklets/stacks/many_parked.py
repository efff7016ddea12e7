"""A program of test_cold.py: so many tasklets wait that some of them go cold by themselves."""

import time

from cpythonplus.tasklets import channel, run, stack_size, tasklet, trim_stacks

COUNT = 135_000
gate = channel()
woken: list[None] = []


def body() -> None:
    """Wait."""
    woken.append(gate.receive())


stack_size(64 << 10)
for _ in range(130_000):
    tasklet(body)()
run()
parked = time.monotonic()
while time.monotonic() < parked + 0.5:  # longer than those have to wait that go by themselves
    time.sleep(0.1)
for _ in range(COUNT - 130_000):
    tasklet(body)()
run()
print("go cold:", COUNT - trim_stacks() > 3_000)
for _ in range(COUNT):
    gate.send(None)
run()
assert len(woken) == COUNT
