"""Many exceptions at one place are one hoard."""

import pytest

from cpythonplus.memory._cycles.hoards import find_hoards

recent: list[ValueError] = []


def fetch(number: int) -> None:
    body = bytearray(100_000)
    raise ValueError(number, len(body))


# Without a GIL, frozen objects are not seen, and pytest's modules are frozen.
@pytest.mark.needs_gil
def test_exceptions_of_one_list_have_one_holder() -> None:
    for number in range(20):
        try:
            fetch(number)
        except ValueError as e:
            recent.append(e)
    try:
        found = [hoard for hoard in find_hoards() if hoard.place.function == "fetch"]
    finally:
        recent.clear()
    assert [hoard.count for hoard in found] == [20]
    assert found[0].holder.endswith("recent[]")
    assert found[0].size_bytes > 20 * 100_000
