"""The parts of a plan: commands, steps in their order, obstacles and notes. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from cpythonplus_sites.wanted import File


@dataclass(frozen=True)
class Command:
    """A program to run.  stdin: may hold secrets, so it is never shown.

    tolerated: it may fail, as the thing that it removes may be gone already.
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
    optional: a failure is reported, and the other steps are still done.
    is_quiet: the timer repeats it, so it is not reported in the journal.
    """

    description: str
    commands: tuple[Command, ...] = ()
    file: File | None = None
    interrupts: bool = False
    optional: bool = False
    is_quiet: bool = False

    def as_json(self) -> dict[str, Any]:
        """The step for programs, without secrets."""
        return {
            "description": self.description,
            "file": None if self.file is None else str(self.file.path),
            "commands": [list(command.argv) for command in self.commands],
            "interrupts": self.interrupts,
        }


@dataclass(frozen=True)
class Plan:
    """The steps, in their order.  obstacles: faults that are not ours to change.

    notes: things that were checked and left as they are.
    """

    steps: tuple[Step, ...]
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ip(description: str, *words: str, interrupts: bool = False) -> Step:
    """A step of one call of `ip`."""
    return Step(description, (Command(("ip", *words)),), interrupts=interrupts)
