"""What records hold is found, although the collector does not see them."""

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory import Record
from tests.support import run_child

pytestmark = pytest.mark.needs_gil


class Target:
    """Held by a record and by nothing else."""


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside: object) -> None:
        self.inside = inside


class Row(Record):
    text: object
    target: object = None


def test_the_census_counts_what_only_records_hold() -> None:
    run_child(
        """
        import gc
        from cpythonplus import memory

        class Row(memory.Record):
            text: str
            inner: object = None
            tags: tuple = ()

        def counted():
            return {row.name: row for row in memory.census().by_type}

        gc.disable()
        number = 5000
        counted()
        before = counted()
        kept = [Row(f"text {i}", Row("x", i / 3), (str(i),)) for i in range(number)]
        after = counted()
        for name, more in [
            ("__main__.Row", 2 * number), ("str", 2 * number), ("float", number), ("tuple", number),
        ]:
            grown = after[name].objects - (before[name].objects if name in before else 0)
            assert more <= grown <= more + 500, (name, grown)
        assert after["__main__.Row"].size_bytes == 2 * number * 40, after["__main__.Row"]
        """
    )


def test_referrers_and_paths_name_the_field() -> None:
    kept = [Row("text", Target()), Row(Target())]
    taken = memory.census()
    found = {row.name: row.references for row in taken.referrers(Target).rows}
    assert found == {
        f"{__name__}.Row (attribute target)": 1,
        f"{__name__}.Row (attribute text)": 1,
    }
    path = str(taken.path(Target))
    assert "Row" in path
    assert kept


def test_what_goes_with_an_object_includes_what_its_records_hold() -> None:
    holder = Slotted(Row(["x" * len(__name__) * 1000, Target()]))
    objects, size_bytes = _native.memory_exclusively_held((holder,), ())
    assert objects >= 4
    assert size_bytes > 1000


def test_owners_count_what_records_hold() -> None:
    run_child(
        """
        from cpythonplus import memory

        class Row(memory.Record):
            text: str
            next: object = None

        class Shop:
            def __init__(self):
                self.rows = [Row("x" * 1000 + str(i), Row(str(i) * 500)) for i in range(3000)]

        SHOP = Shop()
        found = memory.owners()
        kept = [row for row in found.owners if "SHOP" in row.name]
        assert kept and kept[0].kept_bytes > 3000 * 1500, found
        """,
    )
