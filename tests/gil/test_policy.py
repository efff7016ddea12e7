"""The policy as a value."""

from dataclasses import FrozenInstanceError, asdict
from itertools import product

import pytest

from cpythonplus.gil import Policy
from cpythonplus.gil._limits import LIMITS, Limit

WRONG: list[tuple[str, object]] = [
    *((limit.name, limit.least - 1) for limit in LIMITS),
    *((limit.name, limit.greatest + 1) for limit in LIMITS),
    *product((limit.name for limit in LIMITS), (None, "5", True, [], float("nan"))),
    *((limit.name, 12.5) for limit in LIMITS if isinstance(limit.default, int)),
    ("batch_share", float("inf")),
    ("batch_share", 1.0),
    ("spin_us", 10**30),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_a_wrong_value_names_its_field(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        Policy(**{name: value})  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert not any(limit.name in message for limit in LIMITS if limit.name != name)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_bounds_themselves_are_fine(limit: Limit) -> None:
    for bound in (limit.least, limit.greatest):
        policy = Policy(**{limit.name: bound})  # type: ignore[arg-type]
        assert getattr(policy, limit.name) == bound


def test_defaults() -> None:
    assert asdict(Policy()) == {
        "slice_us": 10_000,
        "batch_share": 0.05,
        "spin_us": 20,
    }
    assert Policy() == Policy(slice_us=10_000)
    assert hash(Policy()) == hash(Policy())
    assert Policy(spin_us=0) != Policy()


def test_frozen_and_by_keyword_only() -> None:
    policy = Policy()
    with pytest.raises(FrozenInstanceError):
        policy.slice_us = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        Policy(5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="slice_ms"):
        Policy(slice_ms=5)  # type: ignore[call-arg]
    assert not hasattr(policy, "__dict__")
