"""The lock's protocol holds in every interleaving, and the walk finds what would break it."""

import pytest

from tests.threads.model_lock import Kind, Model, Mutation, ProtocolError

pytestmark = pytest.mark.any_version

PLAIN, TIMED, HANDLING = Kind.PLAIN, Kind.TIMED, Kind.HANDLING

# A thread without a time-out is in each: it hangs where another would help itself.
CROWDS = [
    (PLAIN, PLAIN, PLAIN),
    (PLAIN, PLAIN, TIMED),
    (PLAIN, TIMED, TIMED),
]
CROWDS_HANDLING = [
    (PLAIN, PLAIN, HANDLING),
    (PLAIN, TIMED, HANDLING),
    (PLAIN, HANDLING, HANDLING),
]


def names(crowd: tuple[Kind, ...]) -> str:
    return "-".join(kind.name.lower() for kind in crowd)


ROUNDS = (2, 1, 1)  # the first one comes back while the others are still at it

LOST = "a wake-up was lost"
NOT_AS_NEW = "not as new"
TWO_OWNERS = "two threads have the lock"
FOUND_WITHOUT_GIL: dict[Mutation, str] = {
    Mutation.RELEASE_IGNORES_SLOW: LOST,
    Mutation.LOOK_BEFORE_GUARD: LOST,
    Mutation.QUEUE_WITHOUT_SLOW: LOST,
    Mutation.SLEEP_UNCHECKED: LOST,
    Mutation.NO_ROUSE: LOST,
    Mutation.TIME_OUT_DROPS_WOKEN: NOT_AS_NEW,
    Mutation.WOKEN_STAYS: NOT_AS_NEW,
    Mutation.SETTLE_IGNORES_QUEUE: LOST,
    Mutation.HAND_OVER_FREES: TWO_OWNERS,
    Mutation.BACK_UNCHECKED: LOST,
}
# A thread with the GIL looks and queues in one, so far as others with the GIL are concerned.
HARMLESS_UNDER_GIL = {Mutation.LOOK_BEFORE_GUARD}
FOUND_WITH_GIL: dict[Mutation, str] = {
    **{m: what for m, what in FOUND_WITHOUT_GIL.items() if m not in HARMLESS_UNDER_GIL},
    Mutation.INTERRUPT_DROPS_WOKEN: NOT_AS_NEW,
    Mutation.INTERRUPT_DROPS_GRANTED: LOST,
    Mutation.QUEUED_WHILE_HANDLING: LOST,
    Mutation.BACK_WITHOUT_SLOW: LOST,
}


@pytest.mark.parametrize("crowd", CROWDS + CROWDS_HANDLING, ids=names)
def test_holds_under_the_gil(crowd: tuple[Kind, ...]) -> None:
    assert Model(crowd, ROUNDS, gil=True).walk() > 10_000


def test_holds_without_a_gil() -> None:
    assert Model(CROWDS[1], ROUNDS, gil=False).walk() > 100_000


@pytest.mark.slow  # up to a million steps each
@pytest.mark.parametrize("crowd", [CROWDS[0], CROWDS[2], CROWDS_HANDLING[0]], ids=names)
def test_other_crowds_hold_without_a_gil(crowd: tuple[Kind, ...]) -> None:
    assert Model(crowd, ROUNDS, gil=False).walk() > 100_000


@pytest.mark.parametrize("mutation", FOUND_WITH_GIL, ids=lambda m: m.name)
def test_finds_under_the_gil(mutation: Mutation) -> None:
    check_found(mutation, FOUND_WITH_GIL[mutation], gil=True)


@pytest.mark.parametrize("mutation", FOUND_WITHOUT_GIL, ids=lambda m: m.name)
def test_finds_without_a_gil(mutation: Mutation) -> None:
    check_found(mutation, FOUND_WITHOUT_GIL[mutation], gil=False)


def check_found(mutation: Mutation, what: str, *, gil: bool) -> None:
    handling = mutation.name.startswith(("INTERRUPT", "QUEUED", "BACK"))
    crowd = (PLAIN, PLAIN, HANDLING if handling else TIMED)
    with pytest.raises(ProtocolError, match=what) as found:
        Model(crowd, ROUNDS, gil=gil, mutation=mutation).walk()
    assert len(found.value.schedule) > 2


def test_no_mutation_is_forgotten() -> None:
    assert FOUND_WITH_GIL.keys() | FOUND_WITHOUT_GIL.keys() == set(Mutation) - {Mutation.NONE}
