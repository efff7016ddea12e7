"""Random programs: real tasklets do what the slow model of the scheduler says."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.tasklets.model import CHANNELS, OPERATIONS, Program, predict
from tests.tasklets.reality import observe

TASKLETS = 4  # with main
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "tasklet": st.integers(0, TASKLETS - 1),
    "channel": st.integers(0, CHANNELS - 1),
    "flag": st.booleans(),
    "preference": st.integers(-1, 1),
    "value": st.integers(0, 9),
    "length": st.integers(0, 3),
}
# What transfers, and what makes others run, comes more often than the rest.
NAMES = [*OPERATIONS, *["send", "receive"] * 3, *["schedule", "setup", "run_all", "trim"] * 2]


@st.composite
def operations(draw: st.DrawFn) -> tuple[Any, ...]:
    name = draw(st.sampled_from(NAMES))
    return (draw(st.booleans()), name, *[draw(KINDS[kind]) for kind in OPERATIONS[name]])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Each begins with tasklets in the run queue, otherwise little would happen."""
    lists = [draw(st.lists(operations(), min_size=1, max_size=8)) for _ in range(TASKLETS)]
    ready = draw(st.lists(st.integers(1, TASKLETS - 1), unique=True))
    lists[0] = [*((True, "setup", number) for number in ready), *lists[0], (True, "run_all")]
    return lists


@settings(
    max_examples=400,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
@example(
    [
        [(True, "setup", 1), (True, "setup", 2), (True, "receive", 0), (True, "run_all")],
        [(True, "send", 0, 1), (False, "throw", 2, True)],
        [(False, "schedule"), (True, "count")],
        [(True, "count")],
    ]
)
def test_real_tasklets_do_what_the_model_says(program: Program) -> None:
    assert observe(program) == predict(program)


@pytest.mark.parametrize("preference", [-1, 0, 1])
def test_the_model_knows_who_goes_first(preference: int) -> None:
    """A fixed point for the model itself: main sends, 1 waits for that, 2 is ready."""
    program: Program = [
        [
            (True, "setup", 1),
            (True, "schedule"),
            (True, "setup", 2),
            (True, "prefer", 0, preference),
            (True, "send", 0, 7),
            (True, "run_all"),
        ],
        [(True, "receive", 0)],
        [(True, "count")],
    ]
    ends = [event[0] for event in predict(program) if event[2] in {"receive", "count", "send"}]
    assert ends == ([1, 2, 0] if preference < 0 else [0, 2, 1])
