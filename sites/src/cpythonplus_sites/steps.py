"""What a plan is made of: commands, steps in their order, and what goes with them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from cpythonplus_sites.wanted import File


@dataclass(frozen=True)
class Command:
    """A program to run.  stdin: may hold secrets, so it is never shown.

    tolerated: it may fail, for what it undoes may be undone already.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    tolerated: bool = False

    def __str__(self) -> str:
        return " ".join(self.argv)


@dataclass(frozen=True)
class Step:
    """One change, in one line; a file to write, commands, or both.

    interrupts: packets between sites may be lost while it is done.
    optional: where it fails, that is said, and the rest is done all the same.
    is_quiet: the timer does it again and again, so it is not for the journal.
    """

    description: str
    commands: tuple[Command, ...] = ()
    file: File | None = None
    interrupts: bool = False
    optional: bool = False
    is_quiet: bool = False

    def as_json(self) -> dict[str, Any]:
        """For programs; without what is secret."""
        return {
            "description": self.description,
            "file": None if self.file is None else str(self.file.path),
            "commands": [list(command.argv) for command in self.commands],
            "interrupts": self.interrupts,
        }


@dataclass(frozen=True)
class Plan:
    """steps: what to do, in this order.  obstacles: what is not right and not ours to change.

    notes: what was looked at and left as it is.
    """

    steps: tuple[Step, ...]
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ip(description: str, *words: str, interrupts: bool = False) -> Step:
    """A step of one call of `ip`."""
    return Step(description, (Command(("ip", *words)),), interrupts=interrupts)
