"""Other allocators for a whole program: finding them, and the settings that give memory back.

Each of these settings was measured: the documentation has the memory that each gave back of 500 MB
of strings, and of small objects of which one in 20,000 lived on.  The environment is for a program
that is going to be started: a running process cannot change its allocator.
"""

# On the way of each `cpythonplus run --malloc`: dataclasses would cost more than all of this.
# ruff: noqa: PTH100, PTH113, PTH118, PTH119, PTH123, PTH207

import os
import sys

from cpythonplus._base.contents import contents, opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

__all__ = [
    "KINDS",
    "AllocatorError",
    "apply",
    "find_library",
    "is_loaded",
    "kind_of",
    "remove",
    "settings",
    "trim_regularly",
]

KINDS = ("jemalloc", "mimalloc", "glibc-tuned")

INTERVAL_S = 2.0
"""How often `glibc-tuned` looks whether there is something to be given back."""
WORTH_BYTES = 16 * 1024 * 1024
"""The least amount that is given back."""

_FILES = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc.so"),
    # Debian's version 2.0 has its minor number in the name.
    "mimalloc": ("libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"),
}
_SYMBOLS = {"jemalloc": b"\0mallctl\0", "mimalloc": b"\0mi_collect\0"}
_PACKAGES = {
    "jemalloc": "Debian, Ubuntu: apt install libjemalloc2; Fedora: dnf install jemalloc;"
    " Alpine: apk add jemalloc; Arch: pacman -S jemalloc",
    "mimalloc": "pip install cmeel-mimalloc; Debian 12: apt install libmimalloc2.0;"
    " Fedora: dnf install mimalloc; Alpine: apk add mimalloc2; Arch: pacman -S mimalloc",
}
_SETTINGS = {
    "jemalloc": {
        "MALLOC_CONF": "background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:2000",
        "PYTHONMALLOC": "malloc",
    },
    "mimalloc": {
        # At once: a delay is only checked when other memory is allocated or freed.
        "MIMALLOC_PURGE_DELAY": "0",
        "MIMALLOC_DECOMMIT_DELAY": "0",  # its name before 2.1
        "MIMALLOC_RESET_DELAY": "0",  # and before 2.0
        "PYTHONMALLOC": "malloc",
    },
    # No tunable gave memory back; `trim_regularly` does, in the program itself.
    "glibc-tuned": {},
}
_PRELOAD = "LD_PRELOAD"
_MOST_BYTES = 256 << 20
_ELF_HEAD = 20  # up to the machine field, included
_IDENTITY = slice(4, 6)  # 32 or 64 bits, byte order
_MACHINE = slice(18, 20)


class AllocatorError(ValueError):
    """There is no such allocator; the message has the advice, in one line."""


def kind_of(name: str) -> str:
    """Return the kind of `name`: one of KINDS, or the kind of the library at that path.

    Raises AllocatorError for any other name, also for a library for another processor.
    """
    if os.sep not in name:
        if name not in KINDS:
            raise AllocatorError(f"expected {', '.join(KINDS)} or a library's path, got {name!r}")
        return name
    try:
        data = contents(name, _MOST_BYTES)
    except OSError as error:
        raise AllocatorError(f"{name!r} cannot be read: {error.strerror}") from None
    if not _fits(data):
        raise AllocatorError(f"{name!r} is not a shared library for this processor")
    for kind, symbol in _SYMBOLS.items():
        if symbol in data:
            return kind
    raise AllocatorError(f"{name!r} is neither jemalloc nor mimalloc")


def find_library(name: str) -> str:
    """Return the path of the library for one of KINDS, or `name` itself if it is one's path.

    Looked for: in LD_LIBRARY_PATH, in this Python's own `lib` (conda) and `cmeel.prefix/lib`
    (pip), where the dynamic linker looks, and in the usual folders.  Empty for `glibc-tuned`.
    Raises AllocatorError, with how to install it; on a free-threaded build, too.
    """
    kind = kind_of(name)
    if kind == "glibc-tuned":
        if not _is_glibc():
            raise AllocatorError("glibc-tuned: this Python's C library is not glibc")
        return ""
    if "t" in sys.abiflags:  # an interpreter with PYTHONMALLOC=malloc would end at its start
        raise AllocatorError(f"{kind}: a free-threaded Python has an allocator of its own")
    if os.sep in name:
        return os.path.abspath(name)
    folders = list(_folders())
    for file in _FILES[kind]:
        for folder in folders:
            path = os.path.join(folder, file)
            if os.path.isfile(path) and _fits_file(path):
                return path
    raise AllocatorError(f"{kind} is not installed ({_PACKAGES[kind]})")


def apply(name: str, environment: "MutableMapping[str, str]") -> list[str]:
    """Set the variables in `environment` that start a program under an allocator.

    name: as in `find_library`. Existing settings are kept: libraries in LD_PRELOAD come after the
    allocator, and a setting of the same name is the user's own choice. Returns the names that were
    set, as `remove` expects them. Raises AllocatorError.
    """
    library = find_library(name)
    added = []
    if library:
        if any(character in library for character in ": "):
            raise AllocatorError(
                f"LD_PRELOAD cannot hold {library!r}: it contains a space or colon"
            )
        earlier = environment.get(_PRELOAD)
        environment[_PRELOAD] = f"{library}:{earlier}" if earlier else library
        added.append(_PRELOAD)
    for variable, value in _SETTINGS[kind_of(name)].items():
        if variable not in environment:
            environment[variable] = value
            added.append(variable)
    return added


def remove(added: "list[str]", environment: "MutableMapping[str, str]") -> None:
    """Undo `apply` in `environment`; missing settings are no error."""
    for variable in added:
        value = environment.pop(variable, "")
        _, _, earlier = value.partition(":")
        if variable == _PRELOAD and earlier:
            environment[_PRELOAD] = earlier


def is_loaded(library: str) -> bool:
    """Return whether a library is part of this process: preloading a wrong one is not an error."""
    real = os.path.realpath(library)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        return any(line.rstrip("\n").endswith((library, real)) for line in file)


def trim_regularly(interval_s: float = INTERVAL_S, worth_bytes: int = WORTH_BYTES) -> bool:
    """Start a thread that trims glibc's heap at intervals, without the GIL.

    It looks each `interval_s` seconds, at most a fiftieth of the time, and not while the process
    sleeps. If `worth_bytes` more are free in the heap, or resident, than after the last trim, it
    calls `malloc_trim`.  Calling this again changes the numbers.  Forked children have it, too.

    Returns False, and does nothing, if malloc is not glibc's.  Raises ValueError for numbers
    out of range.
    """
    if not 0.01 <= interval_s <= 3600:  # noqa: PLR2004  # an hour
        raise ValueError(f"interval_s must be from 0.01 to 3600, not {interval_s!r}")
    if worth_bytes < 1:
        raise ValueError(f"worth_bytes must be positive, not {worth_bytes!r}")
    from cpythonplus import _native

    if not _native.memory_trim_regularly(round(interval_s * 1000), worth_bytes):
        return False
    if not _registered:
        # CPython warns about a fork with other threads; and the child would not have the thread.
        os.register_at_fork(
            before=_native.memory_trim_pause,
            after_in_parent=_native.memory_trim_resume,
            after_in_child=_native.memory_trim_resume,
        )
        _registered.append(True)
    return True


_registered: "list[bool]" = []


def _is_glibc() -> bool:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") is not None
    except (ValueError, OSError):
        return False


def _folders() -> "Iterator[str]":
    """Yield the folders that may have libraries, the most specific first."""
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    yield os.path.join(sys.prefix, "lib")
    for entry in sys.path:
        if os.path.basename(entry) in ("site-packages", "dist-packages"):
            yield os.path.join(entry, "cmeel.prefix", "lib")
    yield from _linker_folders()
    machine = os.uname().machine
    for folder in (f"lib/{machine}-linux-gnu", "lib64", "lib"):
        yield f"/usr/local/{folder}"
        yield f"/usr/{folder}"
        yield f"/{folder}"


def _linker_folders() -> "Iterator[str]":
    """Yield the folders in /etc/ld.so.conf, without other settings in it."""
    from glob import glob

    files = ["/etc/ld.so.conf", *sorted(glob("/etc/ld.so.conf.d/*.conf"))]
    for name in files:
        try:
            with open(name, encoding="utf-8", errors="surrogateescape") as file:
                lines = [line.strip() for line in file]
        except OSError:
            continue
        yield from (line for line in lines if line.startswith("/"))


def _fits_file(path: str) -> bool:
    try:
        with opened(path) as file:
            return _fits(file.read(_ELF_HEAD))
    except OSError:
        return False


def _fits(data: bytes) -> bool:
    """Whether it begins like a library that this interpreter can load."""
    with open("/proc/self/exe", "rb") as file:
        own = file.read(_ELF_HEAD)
    return (
        data[:4] == b"\x7fELF"
        and data[_IDENTITY] == own[_IDENTITY]
        and data[_MACHINE] == own[_MACHINE]
    )


def settings(kind: str) -> "Mapping[str, str]":
    """Return the environment variables of one of KINDS, without LD_PRELOAD."""
    return dict(_SETTINGS[kind])
