"""Reads the records of memray's tracer: memory that was allocated and not freed meanwhile.

Runs in the doctor, not in the process, because it takes memory and seconds.
"""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_right
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final

from cpythonplus._base.errors import UnsupportedPlatform

_DUMP: Final = "import sys, memray; memray.dump_all_records(sys.argv[1])"
_MOST_STACKS: Final = 2000
"""The stacks that keep most: only their libraries are looked up."""
_MOST_ROWS: Final = 50
_MOST_SYMBOLS: Final = 3
_MOST_FRAMES: Final = 40
_LEAST_SHARE: Final = 0.001
_UNKNOWN: Final = "<unknown>"
_INTERPRETER: Final = ("python3", "libpython3")
_RUNTIME: Final = ("libc.", "libc-", "libpthread", "ld-", "libstdc++", "libgcc", "libm.", "_memray")
"""Libraries that all allocations go through."""
_PACKAGES: Final = ("site-packages", "dist-packages")
_PYTHON: Final = "Python"


def need_memray() -> None:
    """Raise UnsupportedPlatform, with advice, if the doctor cannot read a tracer's file."""
    try:
        import_module("memray")
    except ModuleNotFoundError as error:
        if error.name == "memray":
            raise UnsupportedPlatform(
                "memray is not installed for the doctor:"
                f" {sys.executable} -m pip install 'cpythonplus[native]'"
            ) from None
        raise


@dataclass
class _Row:
    """The memory that one native library keeps for one line."""

    size_bytes: int = 0
    count: int = 0
    natives: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def read(path: str) -> dict[str, object]:
    """Return the memory that was not freed, by library and line, the largest first.

    Raises OSError if the file cannot be read, ValueError if it is not of this memray.
    """
    memray: Any = import_module("memray")
    # All threads together: any thread may free the memory.
    with memray.FileReader(path) as reader:
        metadata = reader.metadata
        records = sorted(
            reader.get_leaked_allocation_records(merge_threads=True), key=lambda each: -each.size
        )
        telling = records[:_MOST_STACKS]
        libraries = _Libraries(path, [each.native_stack_id for each in telling])
        rows: dict[tuple[str, str, int, str, str], _Row] = defaultdict(_Row)
        for record in telling:
            library, native = libraries.of(record)
            called, own = _places(record.stack_trace(_MOST_FRAMES))
            row = rows[library, called[1], called[2], called[0], own]
            row.size_bytes += record.size
            row.count += record.n_allocations
            row.natives[native] += record.size
    kept = sum(each.size for each in records)
    return {
        "allocations": metadata.total_allocations,
        "kept_bytes": kept,
        "rows": [
            {
                "library": library,
                "size_bytes": row.size_bytes,
                "count": row.count,
                "native": max(row.natives, key=lambda name: row.natives[name]),
                "place": {"file": file, "line": line, "function": function},
                "called_from": own,
            }
            for (library, file, line, function, own), row in sorted(
                rows.items(), key=lambda each: -each[1].size_bytes
            )[:_MOST_ROWS]
            if row.size_bytes >= kept * _LEAST_SHARE
        ],
    }


def _places(stack: list[tuple[str, str, int]]) -> tuple[tuple[str, str, int], str]:
    """Return the innermost line of Python, and the program's own line; "" if it is the same."""
    if not stack:
        return ("", "", 0), ""
    own = next((frame for frame in stack if _is_program(frame[1])), stack[0])
    return stack[0], "" if own is stack[0] else f"{own[1]}:{own[2]}"


def _is_program(file: str) -> bool:
    parts = PurePath(file).parts
    is_library = any(each in parts for each in _PACKAGES) or any(
        name == "lib" and after.startswith("python3") for name, after in pairwise(parts)
    )
    return not is_library and not file.startswith("<")


class _Libraries:
    """The library of each native frame: memray reports functions and source lines only."""

    def __init__(self, path: str, wanted: list[int]) -> None:
        """Read as many frames from the file as the `wanted` ones need."""
        self._frames: list[tuple[int, int]] = [(0, 0)]  # from 1 on: address, index of its caller
        self._segments: list[tuple[int, int, str, int]] = []
        last = max(wanted, default=0)
        command = [sys.executable, "-c", _DUMP, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as dump:
            assert dump.stdout is not None  # noqa: S101
            name, base = "", 0
            for line in dump.stdout:
                if line.startswith(b"NATIVE_FRAME_ID "):
                    values = _values(line)
                    self._frames.append((int(values["ip"], 16), int(values["index"])))
                    if len(self._frames) > last:
                        break  # most records are allocations
                elif line.startswith(b"SEGMENT_HEADER "):
                    name = (
                        line.partition(b"filename=")[2]
                        .rpartition(b" num_segments=")[0]
                        .decode(errors="replace")
                    )
                    base = _number(line.rpartition(b"addr=")[2])
                elif line.startswith(b"SEGMENT "):
                    _, offset, length = line.split()
                    start = base + _number(offset)
                    self._segments.append((start, start + int(length, 16), name, base))
            dump.kill()
        self._segments.sort()

    def _library(self, address: int) -> tuple[str, int]:
        at = bisect_right(self._segments, (address, sys.maxsize)) - 1
        if at >= 0 and self._segments[at][0] <= address < self._segments[at][1]:
            return self._segments[at][2], address - self._segments[at][3]
        return "", 0

    def _stack(self, number: int) -> list[tuple[str, int]]:
        """Return library and offset in it, for each frame, innermost first."""
        found: list[tuple[str, int]] = []
        while 0 < number < len(self._frames) and len(found) < _MOST_FRAMES:
            address, number = self._frames[number]
            found.append(self._library(address - 1))
        return found

    def of(self, record: Any) -> tuple[str, str]:  # noqa: ANN401  # memray's
        """Return the library that has allocated the memory, and its functions, innermost first."""
        symbols = [each[0] for each in record.native_stack_trace(_MOST_FRAMES)]
        for file, offset in self._stack(record.native_stack_id):
            name = PurePath(file).name
            if name.startswith(_INTERPRETER):
                return _PYTHON, _named([each for each in symbols if each != _UNKNOWN])
            if name and not name.startswith(_RUNTIME):
                known = [each for each in symbols if each != _UNKNOWN]
                inner = _named(_until_python(known)) or f"{name}+{offset:#x}"
                return _package(file), inner
        return _PYTHON if symbols else "", _named(symbols)


def _values(line: bytes) -> dict[str, str]:
    pairs = (word.partition("=") for word in line.decode(errors="replace").split()[1:])
    return {name: value for name, _, value in pairs}


def _number(text: bytes) -> int:
    """Parse a pointer that C printed: glibc has a word for NULL."""
    with suppress(ValueError):
        return int(text, 16)
    return 0


def _until_python(symbols: list[str]) -> list[str]:
    """Return the functions of the library, which are those before CPython's."""
    for number, name in enumerate(symbols):
        if name.startswith(("_Py", "Py", "method_vectorcall", "cfunction_", "type_call")):
            return symbols[:number]
    return symbols


def _named(symbols: list[str]) -> str:
    return " < ".join(symbols[:_MOST_SYMBOLS])


def _package(file: str) -> str:
    """Return the package of a library, or the library's own name without the version."""
    parts = PurePath(file).parts
    name = parts[-1].partition(".")[0]
    for at, part in enumerate(parts[:-1]):
        if part in _PACKAGES:
            package = parts[at + 1].partition(".")[0]
            return package if at + 2 < len(parts) else name
    return name
