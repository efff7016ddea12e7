"""The threads of a process, and the libraries that they are in.

A fork copies the thread that forks and no other.  Python lists its own threads only; those of C
libraries are in /proc.  A thread's library is read from its stack: the kernel says where the stack
begins, and the first return address outside of the C library and the interpreter is the library's.
A return address follows a call instruction; a saved register or a function pointer seldom does.

This is an estimate.  An old return address may be left on the stack, and a thread that runs at that
moment has no stack that can be read.  It is for a message or a refusal, not for anything that must
be right.
"""

import os
import re
import struct
import sys
import threading
import time
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cpythonplus._base.stacks import frames_of_threads

_MOST_THREADS = 256
_STACK_BYTES = 64 << 10
_LARGEST_STACK_BYTES = 1 << 30
_WORD = struct.calcsize("P")
_RUNNING = b"running"
_AGAIN_S = 0.001
_MOST_TRIES = 100
_ANYWHERE = re.compile(r"(lib(c|m|dl|rt|pthread|python[\d.]+\w*|stdc\+\+|gcc_s)|ld)[.-].*\.?so")
"""Libraries that are on every stack, by the names of their files."""
_OURS = re.compile(r"_native(\.[\w-]+)?\.so")
_CALL_BYTES = 7  # of the longest call instruction
_STUB_BYTES = 16
_JUMP = b"\xff\x25"  # through a table
_CALLS = {
    # E8 with an offset; or FF with 2 as the middle digit of the next byte, and up to five more.
    "x86_64": rb"..\xe8(....)|.*\xff[\x10-\x17\x50-\x57\x90-\x97\xd0-\xd7](?:|.|..|....|.....)",
    "aarch64": rb".*(?:[\x94-\x97]|\x3f\xd6)()",  # BL; BLR with a register in its lower half
}
_CALL = re.compile(_CALLS.get(os.uname().machine, b".*()"), re.DOTALL)
"""Matches bytes that end with a call; its group is the offset, if there is one."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a process.

    tid: the kernel's number. name: its name in Python, else in the kernel. library: the name of the
    file whose code it executes; empty if that is Python or unknown. path: of that file. is_python:
    whether it runs Python code.
    """

    tid: int
    name: str
    library: str
    path: str
    is_python: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.library})" if self.library else self.name


def threads_of(pid: int = 0) -> list[Thread]:
    """Return the threads of a process by their number: at most 256 of them.

    pid: 0 for this process, and then the calling thread is left out.  In another process, whose
    memory this one must be allowed to read, Python's threads are recognised by their stacks.

    Raises nothing; an unreadable thread is left out.  Takes about a millisecond for each thread,
    and at most 100 ms more if threads run.
    """
    process = Path("/proc", str(pid or os.getpid()))
    try:
        tids = sorted(int(each.name) for each in (process / "task").iterdir())
    except (OSError, ValueError):
        return []
    own = pid in {0, os.getpid()}
    if own:
        tids = [tid for tid in tids if tid != threading.get_native_id()]
    return _read(process, tids[:_MOST_THREADS], own=own) if tids else []


def loaded_libraries(pid: int = 0) -> list[str]:
    """Return the paths of the files whose code a process has loaded.  Raises nothing."""
    mappings = _mappings(Path("/proc", str(pid or "self")))
    return list(dict.fromkeys(each.path for each in mappings if each.path))


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A part of a process' memory.  path: of the file whose code it is, or empty."""

    start: int
    end: int
    path: str


def _read(process: Path, tids: list[int], *, own: bool) -> list[Thread]:
    mappings = _mappings(process)
    interpreter = _interpreter(process)
    names = {each.native_id: each.name for each in threading.enumerate()} if own else {}
    places = _places(process, tids)
    python = _pythons(places) if own else set()
    found = []
    memory = -1
    with suppress(OSError):
        memory = os.open(process / "mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for tid, (name, instruction, pointer) in places.items():
            stack = _at(pointer, mappings)
            end = stack.end if stack is not None else pointer
            addresses = (instruction, *_words(memory, pointer, end)) if pointer else ()
            path, in_python = _innermost(memory, addresses, mappings, interpreter)
            if own:
                in_python = tid in names or tid in python
            found.append(Thread(tid, names.get(tid, name), _name(path), path, in_python))
    finally:
        if memory >= 0:
            os.close(memory)
    return found


def _places(process: Path, tids: list[int]) -> dict[int, tuple[str, int, int]]:
    """Return the name, the instruction's address and the stack pointer of each thread."""
    places, tries = {}, _MOST_TRIES
    for tid in tids:
        task = process / "task" / str(tid)
        try:
            name = (task / "comm").read_text(errors="replace").strip()
        except OSError:  # it has ended
            continue
        instruction, pointer, tried = _place(task, tries)
        tries -= tried
        places[tid] = name, instruction, pointer
    return places


def _pythons(places: dict[int, tuple[str, int, int]]) -> set[int]:
    """Return those of these threads that run Python, even if `threading` does not know them.

    Python's identifier of a thread is an address at the upper end of its stack, with glibc and
    musl.  It belongs to the thread with the closest stack pointer below: stacks may lie side by
    side in one mapping.
    """
    pointers = sorted((pointer, tid) for tid, (_, _, pointer) in places.items() if pointer)
    ends = set(frames_of_threads()) - {threading.get_ident()}
    below = [(end, bisect_right(pointers, (end, 0)) - 1) for end in ends]
    return {
        pointers[place][1]
        for end, place in below
        if place >= 0 and end - pointers[place][0] < _LARGEST_STACK_BYTES
    }


def _mappings(process: Path) -> list[_Mapping]:
    """Return the parts of a process' memory by address; empty if they cannot be read."""
    found = []
    with suppress(OSError, ValueError):
        for line in (process / "maps").read_text(errors="surrogateescape").splitlines():
            # address, permissions, offset, device, inode, path
            place, permissions, _, _, _, *path = line.split(maxsplit=5)
            start, _, end = place.partition("-")
            is_code = "x" in permissions and path and path[0].startswith("/")
            found.append(_Mapping(int(start, 16), int(end, 16), path[0] if is_code else ""))
    return found


def _at(address: int, mappings: list[_Mapping]) -> _Mapping | None:
    place = bisect_right(mappings, address, key=lambda each: each.start) - 1
    return mappings[place] if place >= 0 and address < mappings[place].end else None


def _interpreter(process: Path) -> str:
    with suppress(OSError):
        return os.readlink(process / "exe")  # noqa: PTH115
    return os.path.realpath(sys.executable)


def _place(task: Path, tries: int) -> tuple[int, int, int]:
    """Return a thread's instruction address and stack pointer, or zeros; and the failed tries.

    tries: the number of further tries for a thread that runs.
    """
    tried = 0
    with suppress(OSError, ValueError, IndexError):
        words = (task / "syscall").read_bytes().split()
        while words[:1] == [_RUNNING] and tried < tries:
            tried += 1
            time.sleep(_AGAIN_S)
            words = (task / "syscall").read_bytes().split()
        # The call and its arguments, or -1; then the stack pointer, and the instruction's address.
        pointer = int(words[-2], 16)
        return int(words[-1], 16), pointer - pointer % _WORD, tried
    return 0, 0, tried


def _words(memory: int, start: int, end: int) -> tuple[int, ...]:
    with suppress(OSError, OverflowError):
        data = os.pread(memory, min(_STACK_BYTES, end - start), start)
        return struct.unpack_from(f"{len(data) // _WORD}P", data)
    return ()


def _innermost(
    memory: int, addresses: tuple[int, ...], mappings: list[_Mapping], interpreter: str
) -> tuple[str, bool]:
    """Return the library that is called last, and whether the interpreter is on the stack."""
    code = [each for each in mappings if each.path]
    if not code:
        return "", False
    lowest, highest = code[0].start, code[-1].end
    library = inner = ""
    for place, address in enumerate(addresses):
        found = _at(address, code) if lowest <= address < highest else None
        # The first one is the instruction that runs.
        if found is None or (place and not _returns(memory, address, within=inner == found.path)):
            continue
        inner = found.path
        name = _name(inner)
        if inner == interpreter or name.startswith("libpython"):
            return library, True
        if not library and not _ANYWHERE.match(name) and not _OURS.fullmatch(name):
            library = inner
    return library, False


def _returns(memory: int, address: int, *, within: bool) -> bool:
    """Return whether a function can return to an address: a call instruction ends there.

    within: whether the function is in the same file.
    """
    with suppress(OSError):
        code = os.pread(memory, _CALL_BYTES, address - _CALL_BYTES)
        call = _CALL.fullmatch(code)
        if call is None or within or not call[1]:
            return call is not None
        # A call with an offset leaves its file through one of the linker's stubs alone.
        stub = address + int.from_bytes(call[1], "little", signed=True)
        return _JUMP in os.pread(memory, _STUB_BYTES, stub)
    return False


def _name(path: str) -> str:
    return os.path.basename(path)  # noqa: PTH119  # a name, not a file
