"""This process's mappings and their resident bytes, as the kernel tells them."""

from collections.abc import Iterator
from dataclasses import dataclass

from cpythonplus._base.proc import mapping_fields, read_bytes


@dataclass(slots=True)
class Mapping:
    """One mapping: addresses in bytes.

    left_bytes: resident bytes that are not assigned to a part yet. guarded: addresses directly
    below it may not be touched.
    """

    start: int
    end: int
    permissions: str
    path: str
    resident_bytes: int
    left_bytes: int
    guarded: bool = False

    @property
    def is_anonymous(self) -> bool:
        """Whether it belongs to no file, and only to this process."""
        named = self.path and not self.path.startswith("[anon")
        return not named and self.permissions == "rw-p"


def read() -> str:
    """Return the kernel's text about this process."""
    return read_bytes("/proc/self/smaps").decode("utf-8", errors="backslashreplace")


def parse(text: str) -> Iterator[Mapping]:
    """Yield the mappings in the text of ``/proc/PID/smaps``, by rising address."""
    before = None
    for line in text.split("\n"):
        key, _, rest = line.partition(" ")
        if key == "Rss:":
            if before is not None:
                before.resident_bytes = before.left_bytes = 1024 * int(rest.split()[0])
        elif "-" in key and not key.endswith(":"):
            start, end, permissions, _, _, _, path = mapping_fields(line)
            mapping = Mapping(start, end, permissions, path, 0, 0)
            if before is not None:
                yield before
                guard = mapping.start == before.end and before.permissions.startswith("---")
                mapping.guarded = guard
            before = mapping
    if before is not None:
        yield before
