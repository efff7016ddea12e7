"""Read, compute, write back: updates get lost without atomic, and none with it."""

import pytest

from tests.gil.load import STATES, run

pytestmark = pytest.mark.needs_gil

PROGRAM = """
sys.setswitchinterval(1e-6)
if gil.active():
    gil.install(gil.Policy(slice_us=100))
counter = 0


def bump():
    global counter
    seen = counter
    for _ in range(30):
        pass
    counter = seen + 1


def lost(step, times, threads=3):
    global counter
    counter = 0
    together(lambda i: [step() for _ in range(times)] and None, threads)
    return threads * times - counter
"""

SECTIONS = {
    "with": "def safe():\n    with atomic():\n        bump()\n",
    "decorator": "safe = atomic(bump)\n",
    "pair": "def safe():\n    atomic.enter()\n    bump()\n    atomic.leave()\n",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("section", SECTIONS)
def test_updates_are_lost_without_and_none_with(state: str, section: str) -> None:
    run(
        PROGRAM
        + SECTIONS[section]
        + """
# Without: it may take some rounds, but not for ever.
total = 0
while total == 0:
    total += lost(bump, 2000)
assert total > 0
# With: until others have really stood before a section often.
for _ in range(3):
    assert lost(safe, 2000) == 0
while gil.statistics().atomic.contended < 20:
    assert lost(safe, 2000) == 0
# And once more without, so that it was not the sections' hooks that helped.
total = 0
while total == 0:
    total += lost(bump, 2000)
""",
        before=STATES[state],
    )


def test_beside_interactive_threads() -> None:
    run(
        PROGRAM
        + SECTIONS["with"]
        + """
with Load(cpu=1, io=3):
    while lost(bump, 500) == 0:
        pass
    for _ in range(3):
        assert lost(safe, 500) == 0
"""
    )
