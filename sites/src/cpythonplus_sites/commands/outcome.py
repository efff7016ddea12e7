"""The last lines of apply and down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.commands.plan import remarks

if TYPE_CHECKING:
    from cpythonplus_sites.applying import Outcome

NOT_AS_IT_SHOULD_BE_STATUS = 1


def result(name: str, outcome: Outcome, *, again: str) -> str:
    """The steps done, and the failed one.  again: the command that continues from there."""
    count = len(outcome.done)
    done = f"{count} step{'s' * (count != 1)} done"
    is_idle = not count and not outcome.missed
    lines = [f"{name}: nothing to do" if is_idle else f"{name}: {done}"]
    if outcome.failed is not None:
        lines = [f"{name}: {done}, then stopped", f"  ! {outcome.failed.description}"]
        lines += [f"    {outcome.reason}"]
        lines += [f"  - not done: {step.description}" for step in outcome.left]
        lines += [f"  {again} continues from here."]
    lines += [f"  ! {step.description}: {reason}" for step, reason in outcome.missed]
    return "".join(f"{each}\n" for each in [*lines, *remarks(outcome.obstacles, outcome.notes)])
