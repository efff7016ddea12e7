"""Pages of 16 and 64 KiB, which aarch64 may have: nothing takes them to have 4 KiB."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import (
    PYMALLOC,
    SANITIZED,
    SOURCES,
    compile_c,
    is_built,
    run_c_program,
    run_child,
)

HERE = Path(__file__).resolve().parent

# What looks like the size of a page, or a mask or a shift of it, and means something else.
OTHERS = {
    (
        "memory/_trim/c_allocator.c",
        '#define JEMALLOC_ALL_ARENAS "4096" /* MALLCTL_ARENAS_ALL, since 5.0 */',
    ): "a number of an arena",
    ("memory/_resident/pins.c", "#define TYPES_LIMIT 4096u"): "a number of types",
    (
        "memory/_resident/c_heap.c",
        "#define LARGEST_ARENA ((uintptr_t)4096)",
    ): "a structure of glibc",
    (
        "_heap/c_blocks.c",
        "#define HEADS 4096 /* the structures of glibc in front of a heap's chunks are shorter */",
    ): "structures of glibc",
    (
        "_heap/heap_graph.c",
        "#define LARGE_VALUE 4096 /* a value of so many bytes is a node */",
    ): "the size of an object",
    ("_doctor/agent/agent_socket.c", "char entries[4096] __attribute__((aligned(8)));"): "a buffer",
    ("memory/_caches/finding.py", "_TYPE_CACHE: Final = (4096, 3 * 8)"): "entries",
    ("memory/_resident/splitting.py", "_THREAD_BYTES = 4096"): "a structure of glibc",
    ("prefork/_blame/objects.py", "_FLAGS_READY = 1 << 12"): "a bit of a type's flags",
    ("prefork/_blame/objects.py", "_STRING_LIMIT_BYTES = 4096"): "text that is shown",
}

_NUMBER = re.compile(
    r"\b(4096|4095|0x1000|0x0?fff)[uUlL]*\b|(<<|>>) ?12\b|\b4 ?<< ?10\b|\b4 ?\* ?1024\b"
)


def code_lines(path: Path) -> Iterator[str]:
    """Yield a file's lines; of a Python file those that have a number in them, not in a text."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    if path.suffix != ".py":
        yield from lines
        return
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    numbers = {token.start[0] for token in tokens if token.type == tokenize.NUMBER}
    yield from (lines[number - 1] for number in sorted(numbers))


@pytest.mark.any_version
def test_no_size_of_a_page_is_written_down() -> None:
    found = {
        (str(path.relative_to(SOURCES)), line.partition("  #")[0].strip())
        for path in SOURCES.rglob("*.[chp]*")
        if path.suffix in {".c", ".h", ".py"}
        for line in code_lines(path)
        if _NUMBER.search(line)
    }
    assert found == set(OTHERS)


@pytest.fixture(scope="module")
def large_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("kernel") / "large_pages.so"
    return compile_c(library, [HERE / "large_pages.c"], "-shared", "-fPIC")


sizes = pytest.mark.parametrize("page_bytes", [4 << 10, 16 << 10, 64 << 10])
not_sanitized = pytest.mark.skipif(SANITIZED, reason="a sanitizer maps memory by itself")


@pytest.mark.any_version
@is_built
@not_sanitized
@sizes
@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("memory/test_pages", {}),
        ("tasklets/stacks/test_stacks", {}),
        ("tasklets/stacks/test_stacks", {"NO_GUARD_PAGES": "1"}),
    ],
    ids=["pages", "stacks", "stacks before Linux 6.13"],
)
def test_what_counts_in_pages(
    large_pages: Path, page_bytes: int, name: str, kernel: dict[str, str]
) -> None:
    env = {"LD_PRELOAD": str(large_pages), "PAGE_BYTES": str(page_bytes), **kernel}
    run_c_program(name, env)


@pytest.mark.needs_gil
@not_sanitized
@sizes
def test_tasklets(large_pages: Path, page_bytes: int) -> None:
    child = run_child(
        """
        import os, sys
        from cpythonplus import tasklets

        def body(depth, gate):
            if depth:
                return sorted([depth], key=lambda _: body(depth - 1, gate))
            return gate.receive()

        is_jit_on = hasattr(sys, "_jit") and sys._jit.is_enabled()  # wants 256 KiB at least
        for size in (300_000, 8 << 20) if is_jit_on else (64 << 10, 200_000, 8 << 20):
            tasklets.stack_size(size)
            gate = tasklets.channel()
            parked = [tasklets.tasklet(body)(5, gate) for _ in range(100)]
            tasklets.run()
            for each in parked[::2]:
                each.kill()
            tasklets.trim_stacks()
            for i in range(50):
                gate.send(i)
            tasklets.run()
            assert not any(each.alive for each in parked)
        print(os.sysconf("SC_PAGE_SIZE"))
        """,
        env={"LD_PRELOAD": str(large_pages), "PAGE_BYTES": str(page_bytes)},
    )
    assert child.out == f"{page_bytes}\n"


@pytest.mark.needs_gil
@not_sanitized
@sizes
def test_pools_that_a_page_is_as_large_as(large_pages: Path, page_bytes: int) -> None:
    child = run_child(
        """
        from cpythonplus import memory
        print(*(step.note for step in memory.trim().steps if step.name == "pools"))
        """,
        env={"LD_PRELOAD": str(large_pages), "PAGE_BYTES": str(page_bytes)},
    )
    assert "page" in child.out, child


@pytest.mark.needs_gil
@not_sanitized
@sizes
def test_what_is_resident_adds_up(large_pages: Path, page_bytes: int) -> None:
    child = run_child(
        """
        from cpythonplus import memory, prefork

        kept = [(i, str(i)) for i in range(200_000)][::100]
        found = memory.resident()
        assert sum(part.resident_bytes for part in found.parts) == found.rss_bytes
        assert all(part.resident_bytes >= 0 for part in found.parts)
        assert found.part("live_objects") > 2 << 20 and found.part("arena_free") > 4 << 20, found
        assert prefork.prepare().filled_bytes > 1 << 20
        """,
        env={"LD_PRELOAD": str(large_pages), "PAGE_BYTES": str(page_bytes)} | PYMALLOC,
    )
    assert child.err == ""
