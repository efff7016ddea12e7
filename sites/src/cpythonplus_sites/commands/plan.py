"""`cpythonplus-sites plan`: the difference between the file and this gateway."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cpythonplus_sites.commands import options as common
from cpythonplus_sites.commands.gateway import (
    add_no_systemd,
    add_tune,
    find,
    need_root,
    need_trusted_program,
    plain_errors,
)
from cpythonplus_sites.live import look
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.planning import plan
from cpythonplus_sites.terminal import show

if TYPE_CHECKING:
    import argparse

    from cpythonplus_sites.steps import Plan, Step

DIFFERENT_STATUS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action's arguments to a parser."""
    common.add_common(parser)
    add_tune(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the output (text)"
    )
    add_no_systemd(parser)


def run(options: argparse.Namespace) -> int:
    """Show what `apply` would do; returns 1 if there is a step or an obstacle."""
    with plain_errors():
        gateway = find(options)
        need_root("plan")
        need_trusted_program(Machine(), options)
        live = look(Machine(), gateway.wanted, systemd=not options.no_systemd)
        found = plan(gateway.wanted, live)
    if options.format == "json":
        show(json.dumps({"site": gateway.site.name, **as_json(found)}, indent=2) + "\n")
    else:
        show(text(gateway.site.name, found))
    return DIFFERENT_STATUS if found.steps or found.obstacles else 0


def as_json(found: Plan) -> dict[str, object]:
    """A plan for programs; it has no secrets."""
    return {
        "steps": [step.as_json() for step in found.steps],
        "obstacles": list(found.obstacles),
        "notes": list(found.notes),
    }


def text(site: str, found: Plan) -> str:
    """A plan for people."""
    count = len(found.steps)
    lines = [f"{site}: {count} step{'s' * (count != 1)}" if count else f"{site}: nothing to do"]
    for number, step in enumerate(found.steps, 1):
        lines.append(f"{number:3}. {line(step)}")
        lines += [f"       {command}" for command in step.commands]
    lines += remarks(found.obstacles, found.notes)
    return "".join(f"{each}\n" for each in lines)


def line(step: Step) -> str:
    """One step in one line."""
    return f"{step.description}{' (interrupts traffic)' * step.interrupts}"


def remarks(obstacles: tuple[str, ...], notes: tuple[str, ...]) -> list[str]:
    """The lines for obstacles, which are not ours to change, and for notes."""
    return [*(f"  ! {each}" for each in obstacles), *(f"  - {each}" for each in notes)]
