"""What caches hold: counted, named, cleared, and nothing else touched."""

import functools
import gc
import json
import linecache
import os
import re
import sys
import tracemalloc
from typing import Any

import pytest

from cpythonplus import _native
from cpythonplus.memory import caches
from cpythonplus.memory._caches import Cache, Caches
from cpythonplus.memory._caches.finding import find_rows
from tests.memory.rebuilding import rebuilt
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

SIZE = 1000


def row(name: str) -> Cache | None:
    end = f".{name.removeprefix('.')}"
    return next((each for each in find_rows()[0] if f".{each.name}".endswith(end)), None)


@functools.lru_cache(maxsize=64)
def limited(key: object) -> bytes:
    return bytes(SIZE)


@functools.cache
def unlimited(key: object) -> bytes:
    return bytes(SIZE)


@functools.cache
def dict_of(key: object) -> dict[str, bytes]:
    return {"x": bytes(SIZE)}


def told_and_freed(function: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return what is told of a cache with 500 entries, and what clearing it freed."""
    tracemalloc.start()
    try:
        for i in range(500):
            function(f"a key {i}")
        found = row(f".{function.__wrapped__.__qualname__}")
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        function.cache_clear()
        gc.collect()
        freed = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        function.cache_clear()
    assert found is not None
    return found.size_bytes, freed


@pytest.mark.parametrize("function", [limited, unlimited, dict_of])
def test_clearing_gives_back_what_was_told(function: Any) -> None:  # noqa: ANN401
    # Several times: other threads of a test run allocate now and then, too.
    differences = [freed / told - 1 for told, freed in map(told_and_freed, [function] * 3)]
    assert min(map(abs, differences)) < 0.01, differences


def test_the_standard_librarys_caches() -> None:
    re.purge()
    assert row("re") is None
    re.compile("a pattern( of|)+ this test")
    compiled = row("re")
    assert compiled is not None
    assert compiled.size_bytes >= 500
    before = row("linecache")
    assert linecache.getline(__file__, 1)
    after = row("linecache")
    assert after is not None
    assert after.size_bytes - (before.size_bytes if before else 0) > 5000
    assert row("import paths") is not None
    freed = caches().clear("re", "linecache")
    assert freed["re"] >= compiled.size_bytes
    assert freed["linecache"] > 5000
    assert row("linecache") is None


def test_free_lists_are_counted_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    gc.collect()
    before = row("free list: floats")
    numbers = [float(i) for i in range(60)]
    del numbers
    after = row("free list: floats")
    assert after is not None
    assert after.entries - (before.entries if before else 0) >= 30
    assert after.size_bytes == after.entries * sys.getsizeof(1.5)
    os.write(2, b"still here\n")
    assert capfd.readouterr() == ("", "still here\n")


def test_free_lists_of_containers_have_their_headers() -> None:
    gc.collect()
    lists: list[list[int]] = [[] for _ in range(40)]
    del lists
    found = row("free list: lists")
    assert found is not None
    assert found.size_bytes == found.entries * _native.memory_object_bytes([])


def test_fixed_costs_grow_by_what_is_defined() -> None:
    def fixed() -> dict[str, tuple[int, int]]:
        return {cost.name: (cost.objects, cost.size_bytes) for cost in caches().fixed}

    before = fixed()
    doc = "d" * 500
    source = "\n".join(
        f"def function_{i}(a: int, b: int) -> int:\n    '{doc}{i:03}'\n    return a + {i * 1000}\n"
        for i in range(200)
    )
    source += f"class Documented:\n    '{doc}'\n"
    names: dict[str, Any] = {}
    exec(compile(source, "generated", "exec"), names)
    after = fixed()
    code, docstrings = (
        (after[name][0] - before[name][0], after[name][1] - before[name][1])
        for name in ("code", "docstrings")
    )
    annotated = 200 if sys.version_info < (3, 14) else 0
    assert code[0] in (200, 400), code  # from 3.14 on annotations are functions
    assert 200 * 150 < code[1] < code[0] * 600
    assert docstrings[0] == 201
    assert 201 * 540 <= docstrings[1] <= 201 * 560
    assert after["annotations"][0] - before["annotations"][0] >= annotated
    assert after["interned strings"][0] - before["interned strings"][0] >= 200


def test_no_code_of_the_program_runs() -> None:
    class Loud:
        def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            if armed:
                raise AssertionError(other)
            return self is other

        def __hash__(self) -> int:
            if armed:
                raise AssertionError
            return 5

    armed = False
    wrapper = functools.lru_cache(maxsize=None)(Loud)
    keys = [Loud(), Loud()]
    try:
        for key in keys:
            unlimited(key)
        armed = True
        found = row("unlimited")
        assert found is not None
        assert found.entries == 2
    finally:
        armed = False
        unlimited.cache_clear()
        del wrapper


def test_the_collectors_objects_are_listed_without_the_list() -> None:
    kept = [[1], [2]]
    every = _native.memory_gc_objects_of(None)
    assert not any(each is every for each in every)
    assert any(each is kept for each in every)
    error = KeyboardInterrupt()
    errors = _native.memory_gc_objects_of(BaseException)
    assert any(each is error for each in errors)
    assert all(isinstance(each, BaseException) for each in errors)
    lists = _native.memory_gc_objects_of((list,))
    assert len(lists) > 10
    assert {type(each) for each in lists} == {list}


def test_names_of_what_is_no_function() -> None:
    of_class = functools.lru_cache(maxsize=None)(int)
    of_partial = functools.lru_cache(maxsize=None)(functools.partial(max, 1))
    of_class(5)
    of_partial(5)
    names = {each.name for each in caches().rows}
    assert {"lru_cache builtins.int", "lru_cache of a partial"} <= names


def test_forms() -> None:
    found = caches()
    assert rebuilt(Caches, json.loads(json.dumps(found.as_json()))) == found
    assert str(found) == found.text()
    assert f"and {len(found.rows) - 1} more" in found.text(top=1)
    assert found.size_bytes == sum(each.size_bytes for each in found.rows)
    assert list(found.rows) == sorted(found.rows, key=lambda each: -each.size_bytes)
    assert "docstrings" in found.text()
    assert found.left_out == ()


def test_what_cannot_be_cleared_is_refused() -> None:
    found = caches()
    with pytest.raises(ValueError, match="unknown cache 'nothing'"):
        found.clear("nothing")
    assert found.clear("zip directories", "filecmp").keys() == {"zip directories", "filecmp"}
    with pytest.raises(ValueError, match="cannot be cleared"):
        found.clear("abstract base classes")
    other = Caches(found.rows, (), (), os.getpid() + 1)
    with pytest.raises(RuntimeError, match="not of this one"):
        other.clear()


def test_all_can_be_cleared_and_what_other_threads_print_arrives() -> None:
    child = run_child(
        """
        import functools, gc, sys, threading, warnings, zipimport, encodings, filecmp, _strptime
        import time
        from ctypes import CDLL, c_char_p, c_void_p
        from cpythonplus import _native
        from cpythonplus.memory import caches

        functools.lru_cache()(str)(5)
        warnings.warn("shown once", stacklevel=1)
        time.strptime("2026", "%Y")
        gc.freeze()
        library = CDLL(None)
        fputs, stream = library.fputs, c_void_p.in_dll(library, "stderr")
        stop, written = threading.Event(), []

        def write():  # without the GIL, to wherever the C library's standard error goes now
            while not stop.is_set():
                fputs(b"x", c_void_p.in_dll(library, "stderr"))
                written.append(1)

        thread = threading.Thread(target=write)
        thread.start()
        before = stream.value
        for _ in range(20):
            assert " free Py" in _native.memory_free_lists_text()
        stop.set()
        thread.join()
        assert stream.value == before
        print(len(written))
        found = caches()
        names = [row.name for row in found.rows if row.clear]
        assert list(found.clear(*names)) == names
        assert "warnings shown" in {row.name for row in found.rows}
        left = {row.name: row.entries for row in caches().rows if row.clear}
        assert not any(n.startswith("lru_cache") for n in left) and "strptime" not in left, left
        import json  # imports go on working
        """
    )
    lines = [line for line in child.err.splitlines() if "shown once" not in line]
    # Newer interpreters show the line of the warning as well.
    assert set("".join(lines)) == {"x"}, child.err[:500]
    assert "".join(lines) == "x" * int(child.out)  # none is lost


def test_another_function_in_its_place_is_not_called() -> None:
    """Ours would call itself, and one that lets go of the GIL would let a second caller in."""
    child = run_child(
        """
        import sys, threading
        from cpythonplus import _native

        own = sys._debugmallocstats
        lock = threading.Lock()
        for other in (_native.memory_free_lists_text, lock.acquire, lock.locked, print):
            sys._debugmallocstats = other
            assert _native.memory_free_lists_text() is None, other
            assert not lock.locked()
        sys._debugmallocstats = own
        assert " free Py" in _native.memory_free_lists_text()
        """
    )
    assert child.err == ""


def test_what_cannot_be_read_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("not as they are known")

    monkeypatch.setattr(_native, "memory_free_lists_text", lambda: None)
    monkeypatch.setattr(_native, "memory_gc_objects_of", refuse)
    monkeypatch.setattr(_native, "memory_fixed_costs", refuse)
    found = caches()
    assert [said.partition(":")[0] for said in found.left_out] == [
        "Free lists",
        "Functions under lru_cache",
        "Code and docstrings",
    ]
    assert not any(each.name.startswith(("free list", "lru_cache")) for each in found.rows)
    assert all(said in found.text() for said in found.left_out)
