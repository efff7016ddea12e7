"""The walk over the heap: each object once, also those that the collector does not list."""

import gc
from dataclasses import dataclass

import pytest

from cpythonplus import _native
from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.needs_gil


@dataclass
class Counts:
    listed: int
    frozen: int
    referred: int
    in_frames: int
    types: int
    extra_bytes: int


def counts() -> Counts:
    objects, _, extra_bytes = _native.memory_heap_counts()
    return Counts(*objects, extra_bytes)


def test_the_collectors_objects_are_those_that_it_tells() -> None:
    gc.collect()
    told = len(gc.get_objects())
    # The list of them, what this test makes meanwhile, and hypothesis' or pytest's own.
    assert abs(counts().listed - told) < 50


def test_frozen_objects_are_walked_over() -> None:
    run_child(
        """
        import gc
        from cpythonplus import _native

        kept = [[str(i)] for i in range(5000)]
        before, _, _ = _native.memory_heap_counts()
        gc.freeze()
        after, _, _ = _native.memory_heap_counts()
        assert after[1] == gc.get_freeze_count() >= 5000 and after[0] < 50, after
        # The strings in the lists are met all the same.
        assert abs(sum(after) - sum(before)) < 50, (before, after)
        gc.unfreeze()
        again, _, _ = _native.memory_heap_counts()
        assert again[1] == 0 and abs(sum(again) - sum(after)) < 50, (after, again)
        """
    )


def test_what_the_collector_does_not_know_is_met_once() -> None:
    before = counts()
    text = "x" * 50
    kept = [text] * 1000 + [str(i) * 3 for i in range(2000)]
    after = counts()
    assert 2000 <= after.referred - before.referred < 2050
    del kept


def test_variables_of_executing_functions_are_met() -> None:
    def inner() -> int:
        return counts().in_frames

    def outer() -> int:
        texts = (("a" * 30) + str(counts), ("b" * 30) + str(inner))
        first, second = texts
        del texts
        found = inner()
        assert first != second
        return found

    assert outer() - inner() == 2


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator puts objects far apart")
def test_it_takes_little_memory_for_itself() -> None:
    kept = [[] for _ in range(100_000)]  # type: list[list[object]]
    assert counts().extra_bytes < 2_000_000
    del kept


def test_a_list_of_lists_does_not_contain_itself() -> None:
    found = _native.memory_gc_objects_of((list,))
    assert all(each is not found for each in found)


def test_what_is_borrowed_may_go_while_a_result_is_made() -> None:
    """On 3.11 a collection starts with the tuple or the list that is made."""
    run_child(
        """
        import gc
        from cpythonplus import _native

        holder, target, targets, others = {}, [], [], [[] for _ in range(100)]
        armed = False

        def callback(*_):
            if armed:
                holder.clear()
                targets.extend(others)

        gc.callbacks.append(callback)
        for i in range(1, 20):
            for ask in (
                lambda: _native.memory_reference_label(holder, target),
                lambda: _native.memory_referrers_among([others], targets),
            ):
                targets[:] = [target]
                holder["key %d" % i] = target
                gc.collect()
                gc.set_threshold(i)
                armed = True
                try:
                    got = ask()
                    assert type(got) is list or got == ("", None) or got[1].startswith("key ")
                except RuntimeError as error:
                    assert "changed" in str(error)
                armed = False
                gc.set_threshold(0)
        """,
        env={"PYTHONMALLOC": "debug"},
    )
