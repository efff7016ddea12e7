"""Random steps, with a dict as the model: CompactDict, and dicts that share their keys.

CPYTHONPLUS_DICT_STEPS says how many steps of each; a million take longer than pytest's watchdog
waits:

    export CPYTHONPLUS_DICT_STEPS=1000000
    python -m pytest -o faulthandler_timeout=0 tests/compact/test_compact_dict_model.py
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cpythonplus import memory

pytestmark = [
    pytest.mark.needs_gil,
    # It looks for what refers to its generator; conftest.py has frozen that, and gc finds none.
    pytest.mark.filterwarnings("ignore:It looks like .register_random."),
]

STEPS_OF_ONE = 50
STEPS = int(os.environ.get("CPYTHONPLUS_DICT_STEPS", "5000"))


class Text(str):
    """Equals a string, and is none."""

    __slots__ = ()


class Collides:
    """All have one hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collides) and self.number == other.number

    def __repr__(self) -> str:
        return f"Collides({self.number})"


SIMPLE = st.one_of(
    st.integers(-3, 30),
    st.sampled_from([f"k{number}" for number in range(25)]),
    st.text(max_size=2),
    st.sampled_from([1.0, True, False, None, b"k1", 2**70, -(2**70), 0.5, float(2**70)]),
)
KEYS = st.one_of(
    SIMPLE,
    SIMPLE,
    SIMPLE,
    st.builds(Text, st.sampled_from(["k1", "k2", "x"])),
    st.builds(Collides, st.integers(0, 6)),
    st.tuples(st.integers(0, 3)),
)
VALUES = st.one_of(st.integers(), st.none(), st.lists(st.integers(), max_size=1))


def outcome(call: Any, *args: Any) -> object:  # noqa: ANN401
    """Return what it returns or raises, so that it can be compared."""
    try:
        return call(*args)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        return type(error), error.args


class Machine(RuleBasedStateMachine):
    """Does everything twice."""

    keys: Any = KEYS

    @staticmethod
    def make(model: dict[Any, Any]) -> Any:  # noqa: ANN401
        """Return one of ours with the items of a dict."""
        return memory.CompactDict(model)

    @initialize(start=st.dictionaries(KEYS, VALUES, max_size=40))
    def begin(self, start: dict[Any, Any]) -> None:
        self.model = start
        self.made = self.make(start)

    @rule(key=KEYS, value=VALUES)
    def set(self, key: object, value: object) -> None:
        self.model[key] = value
        self.made[key] = value

    @rule(key=KEYS)
    def delete(self, key: object) -> None:
        assert outcome(self.made.__delitem__, key) == outcome(self.model.__delitem__, key)

    @precondition(lambda self: len(self.model) > 0)
    @rule(data=st.data())
    def delete_one_that_is_there(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(list(self.model)))
        del self.model[key], self.made[key]

    @rule(key=KEYS, value=VALUES)
    def ask(self, key: object, value: object) -> None:
        assert outcome(self.made.__getitem__, key) == outcome(self.model.__getitem__, key)
        assert self.made.get(key, 7) == self.model.get(key, 7)
        assert (key in self.made) == (key in self.model)
        assert outcome(self.made.pop, key) == outcome(self.model.pop, key)
        assert self.made.setdefault(key, value) == self.model.setdefault(key, value)

    @rule()
    def popitem(self) -> None:
        assert outcome(self.made.popitem) == outcome(self.model.popitem)

    @rule(other=st.dictionaries(KEYS, VALUES, max_size=30), way=st.integers(0, 4))
    def update(self, other: dict[Any, Any], way: int) -> None:
        self.model.update(other)
        if way == 0:
            self.made.update(other)
        elif way == 1:
            self.made.update(list(other.items()))
        elif way == 2:
            self.made.update(memory.CompactDict(other))
        elif way == 3:
            self.made |= other
        else:
            self.made = self.make({}) | self.made | other

    @rule(count=st.integers(0, 80))
    def grow(self, count: int) -> None:
        for number in range(count):
            self.model[number * 7] = self.made[number * 7] = number

    @rule(keep=st.integers(0, 4))
    def thin_out(self, keep: int) -> None:
        for number, key in enumerate(list(self.model)):
            if keep == 0 or number % keep:
                del self.model[key], self.made[key]

    @rule()
    def clear(self) -> None:
        self.model.clear()
        self.made.clear()

    @rule()
    def copy(self) -> None:
        self.made = self.made.copy()

    @rule(key=KEYS, position=st.integers(0, 30), delete=st.booleans())
    def change_while_iterating(self, key: object, position: int, delete: bool) -> None:
        """The next step fails alike, unless the table was made anew."""

        def go(mapping: Any) -> object:  # noqa: ANN401
            iterator = iter(mapping.items())
            for _ in range(position):
                next(iterator, None)
            if delete:
                mapping.pop(key, None)
            else:
                mapping[key] = 0
            return outcome(next, iterator, None)

        assert go(self.made) == go(self.model)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "model"):
            return
        assert len(self.made) == len(self.model)
        assert list(self.made.items()) == list(self.model.items())
        assert list(reversed(self.made)) == list(reversed(self.model))
        assert list(self.made.values()) == list(self.model.values())
        assert self.made == self.model
        assert self.model == self.made
        assert [type(key) for key in self.made] == [type(key) for key in self.model]


class Sharing(Machine):
    """The same with a dict behind two that have its keys."""

    @staticmethod
    def make(model: dict[Any, Any]) -> Any:  # noqa: ANN401
        """Return a dict that shares its keys, if it can."""
        made = [next(memory.share_keys([dict(model)])) for _ in range(3)][-1]
        assert type(made) is dict
        return made


@pytest.mark.parametrize("machine", [Machine, Sharing])
def test_a_dict_is_the_model(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(STEPS // STEPS_OF_ONE, 1),
            stateful_step_count=STEPS_OF_ONE,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
