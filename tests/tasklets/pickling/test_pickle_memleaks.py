"""Nothing stays behind of tasklets that were pickled and loaded many times."""

import json

import pytest

from tests.leaks import MEASURE
from tests.support import DEBUG, SANITIZED, run_child

SPARE = 50
"""So many blocks or references more or less are caches and the free lists of the interpreter."""
SPARE_BYTES = 100_000
"""Gaps in the C heap; the smallest leak of a hundredth of the short form would be as large."""

PROGRAM = """
import json, pickle
from cpythonplus.tasklets import channel, run, schedule_remove, tasklet

ENDED = [0]


def numbers(n):
    for i in range(n):
        try:
            yield i
        finally:
            i = None


def innermost(gate, add, source):
    try:
        raise KeyError([1])
    except KeyError as error:
        for number in source:
            add(number + gate.receive())
            add(schedule_remove(1))
            add(len(error.args))


def middle(gate, add):
    source = numbers(4)
    next(source)
    innermost(gate, add, source)


def outermost(gate):
    total = 0

    def add(n):
        nonlocal total
        total += n

    middle(gate, add)
    assert total == 1 + 2 + 3 + 3 * (5 + 1 + 1), total
    ENDED[0] += 1


def to_the_end(task, gate):
    while task.alive:
        if task.blocked:
            gate.send(5)
        else:
            task.insert()
            run()


def killed(task, gate):
    task.kill()


def dropped(task, gate):
    pass


def another_hop(task, gate):
    task, gate = pickle.loads(pickle.dumps((task, gate)))
    task.kill()


def raises(task, gate):
    try:
        task.throw(ValueError, [1])
    except ValueError:
        pass


WAYS = to_the_end, killed, dropped, another_hop, raises


def originals():
    gate = channel()
    blocked = tasklet(outermost)(gate)
    run()
    other = channel()
    paused = tasklet(outermost)(other)
    run()
    other.send(5)
    run()
    assert blocked.blocked and paused.paused
    return (blocked, gate), (paused, other)


def round_trips(times):
    both = originals()
    for i in range(times):
        WAYS[i % 5](*pickle.loads(pickle.dumps(both[i // 5 % 2])))
    for task, _ in both:
        task.kill()
    assert ENDED[0] * 5 == times
    ENDED[0] = 0


def references():
    return sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0


round_trips({warm_up})
blocks, octets = used()
counted = references()
round_trips({times})
blocks_then, octets_then = used()
counted = references() - counted
result = [blocks_then - blocks, counted, octets_then - octets]
print(json.dumps(result))
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
@pytest.mark.parametrize("times", [10_000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_round_trips(times: int) -> None:
    """Three frames, a generator, a cell, an exception that is handled, and a channel."""
    child = run_child(MEASURE + PROGRAM.format(times=times, warm_up=2_000), timeout=170)
    blocks, references, octets = json.loads(child.out)
    print(f"{times} round trips: {blocks} blocks, {references} references, {octets} bytes")
    assert abs(blocks) <= SPARE
    assert abs(references) <= SPARE, DEBUG
    assert octets <= SPARE_BYTES
