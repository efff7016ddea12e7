"""memory.allocators: finding libraries, the environment, and the thread that trims glibc's heap."""

import json
import os
from pathlib import Path

import pytest

from cpythonplus.memory import allocators
from cpythonplus.memory.allocators import AllocatorError
from tests.support import SANITIZED, compile_c, run_child

JEMALLOC = "int mallctl(void) { return 0; }\n"
MIMALLOC = "void mi_collect(_Bool force) { (void)force; }\n"


def library(folder: Path, name: str, source: str) -> str:
    """Return the path of a library that looks like an allocator's, and is none."""
    file = folder / "source.c"
    file.write_text(source)
    return str(compile_c(folder / name, [file], "-shared", "-fPIC"))


@pytest.mark.any_version
def test_what_a_name_means(tmp_path: Path) -> None:
    for kind in allocators.KINDS:
        assert allocators.kind_of(kind) == kind
    assert allocators.kind_of(library(tmp_path, "libodd.so", JEMALLOC)) == "jemalloc"
    assert allocators.kind_of(library(tmp_path, "libother.so", MIMALLOC)) == "mimalloc"
    none = library(tmp_path, "libnone.so", "int nothing;\n")
    foreign = tmp_path / "foreign.so"
    contents = bytearray(Path(none).read_bytes())
    contents[18] ^= 1  # the machine
    foreign.write_bytes(contents)
    for name, message in {
        "tcmalloc": "expected jemalloc, mimalloc, glibc-tuned or a library's path, got 'tcmalloc'",
        none: f"'{none}' is neither jemalloc nor mimalloc",
        str(foreign): f"'{foreign}' is not a shared library for this processor",
        __file__: f"'{__file__}' is not a shared library for this processor",
        f"{tmp_path}/missing.so": f"'{tmp_path}/missing.so' cannot be read: No such file",
        str(tmp_path): f"'{tmp_path}' cannot be read: Is a directory",
    }.items():
        with pytest.raises(AllocatorError) as caught:
            allocators.kind_of(name)
        assert str(caught.value).startswith(message)


@pytest.mark.needs_gil
@pytest.mark.any_version
def test_where_libraries_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "_folders", lambda: iter([str(tmp_path)]))
    with pytest.raises(AllocatorError) as caught:
        allocators.find_library("jemalloc")
    assert str(caught.value).startswith("jemalloc is not installed (Debian, Ubuntu: apt install")
    assert "\n" not in str(caught.value)
    (tmp_path / "libjemalloc.so.2").write_text("no library")
    found = library(tmp_path, "libjemalloc.so", JEMALLOC)
    assert allocators.find_library("jemalloc") == found
    assert allocators.find_library(os.path.relpath(found)) == found


@pytest.mark.any_version
def test_the_usual_folders_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/first::/second")
    folders = list(allocators._folders())
    assert folders[:2] == ["/first", "/second"]
    assert folders[-2:] == ["/usr/lib", "/lib"]


@pytest.mark.needs_gil
@pytest.mark.any_version
def test_the_environment_and_back(tmp_path: Path) -> None:
    path = library(tmp_path, "libjemalloc.so.2", JEMALLOC)
    given = {"LD_PRELOAD": "libx.so:liby.so", "MALLOC_CONF": "narenas:1", "HOME": "/"}
    environment = dict(given)
    added = allocators.apply(path, environment)
    assert environment == {
        "LD_PRELOAD": f"{path}:libx.so:liby.so",
        "MALLOC_CONF": "narenas:1",
        "PYTHONMALLOC": "malloc",
        "HOME": "/",
    }
    assert added == ["LD_PRELOAD", "PYTHONMALLOC"]
    allocators.remove(added, environment)
    assert environment == given

    environment = {}
    added = allocators.apply(path, environment)
    assert environment == {"LD_PRELOAD": path, **allocators.settings("jemalloc")}
    allocators.remove(added, environment)
    assert environment == {}
    assert allocators.settings("mimalloc")["MIMALLOC_PURGE_DELAY"] == "0"

    (tmp_path / "a b").mkdir()
    odd = library(tmp_path / "a b", "libjemalloc.so.2", JEMALLOC)
    with pytest.raises(AllocatorError, match="LD_PRELOAD cannot hold"):
        allocators.apply(odd, environment)


def test_numbers_out_of_range_are_refused() -> None:
    for interval_s in (0, -1, float("nan"), 3601):
        with pytest.raises(ValueError, match="interval_s must be"):
            allocators.trim_regularly(interval_s)
    with pytest.raises(ValueError, match="worth_bytes must be"):
        allocators.trim_regularly(1, 0)


@pytest.mark.needs_gil
@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
def test_glibc_gives_back_by_itself() -> None:
    """Waits for the thread, and fails by the child's time limit: no time is asserted."""
    out = run_child(
        """
        import json, os, signal, threading, time
        from cpythonplus import _native
        from cpythonplus.memory import allocators
        from cpythonplus.memory import _trim as trimming

        def grows_and_shrinks():
            big = [f"{i}".ljust(600) for i in range(50_000)]
            last = "x" * 600
            full = trimming.resident_bytes()
            del big
            while full - trimming.resident_bytes() < 0.9 * 50_000 * 600:
                time.sleep(0.001)
            return last

        assert allocators.trim_regularly(0.01, 1 << 20)
        assert allocators.trim_regularly(0.02, 1 << 20), "again: only the numbers"
        kept = [grows_and_shrinks()]
        child = os.fork()
        if child == 0:
            kept.append(grows_and_shrinks())
            while not _native.memory_trim_count():  # counted when all of it is done
                time.sleep(0.001)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        names = set()
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/comm") as file:
                names.add(file.read().strip())
        print(json.dumps([sorted(names), threading.active_count()]))
        """
    ).out
    names, threads = json.loads(out)
    assert "malloc-trim" in names
    assert threads == 1, "no thread of Python's"
