"""`cpythonplus top PID`: what each thread of a running process does, as htop shows processes."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from cpythonplus._cli.arguments import UsageError, process_number, take_options
from cpythonplus._cli.commands.run import option_lines
from cpythonplus._cli.features import HELP_OPTION, Option, format_option, number
from cpythonplus._cli.terminal import complain, show, table_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus._doctor.top.looking import Top

COMMAND = "cpythonplus top"
FAILED_STATUS = 1
INTERRUPTED_STATUS = 130
_ONCE_S = 1.0
_LIVE_S = 0.5
_SHORTEST_S, _LONGEST_S = 0.1, 3600.0

HELP = """\
usage: cpythonplus top [options] PID

Shows what each thread of a process does: its share of the GIL, its waits for it, what it waits for
now, its line. The PID of a server's master shows its workers, too.

options:
{options}

keys:
  s r        sort by the next column, reverse
  /          show only threads with this text in their name, state, function or file
  up down    choose a thread; Enter shows its stack
  a          tasks of asyncio and tasklets, by function
  g          who holds the GIL and who waits for it, by stack, counted from now on
  space      hold the picture
  Esc        back to the threads
  q          quit

  The process must have been started by `cpythonplus run` or `serve`. Python 3.14 and later do not
  need that if this is the same version; then there are lines and processor times, but no GIL.
"""


def _seconds(text: str) -> str:
    """Check an option that takes a time between two looks."""
    if not _SHORTEST_S <= float(number(text)) <= _LONGEST_S:
        raise ValueError(f"expected {_SHORTEST_S} to {_LONGEST_S:g} seconds, got {text!r}")
    return text


OPTIONS = (
    Option("--once", "once", "look twice, print, and exit; without a terminal it always does"),
    Option(
        "--interval", "interval", f"seconds between two looks ({_LIVE_S:g})", "S", _seconds, float
    ),
    format_option("text", "json"),
    HELP_OPTION,
)


def main(arguments: Sequence[str]) -> int:
    """Show the process that the arguments name; returns the exit status."""
    pid, given = _parse(arguments)
    if "help" in given:
        return show(help_text())
    from cpythonplus._doctor.agent.client import AskError, connect
    from cpythonplus._doctor.agent.finding import Unreachable
    from cpythonplus._doctor.top.looking import Top

    is_json = given.get("format") == "json"
    once = "once" in given or is_json or not (sys.stdout.isatty() and sys.stdin.isatty())
    interval_s = given.get("interval", _ONCE_S if once else _LIVE_S)
    try:
        with connect(pid) as client:
            top = Top(client, interval_s)
            try:
                if once:
                    return _tell(top, interval_s, is_json=is_json)
                from cpythonplus._cli.top_screen import Screen

                return Screen(top, interval_s).show()
            finally:
                top.stop()
    except (Unreachable, AskError) as error:
        complain(COMMAND, str(error))
        return FAILED_STATUS
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS


def help_text() -> str:
    """Return the text of `cpythonplus top --help`."""
    return HELP.format(options=option_lines(OPTIONS))


def _parse(arguments: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Return the PID and the options' values; UsageError for mistakes."""
    given, operands = take_options(arguments, OPTIONS, COMMAND)
    if "help" in given:
        return 0, given
    if len(operands) != 1:
        raise UsageError("expected one PID; `cpythonplus doctor list` shows the processes")
    return process_number(operands[0]), given


def _tell(top: Top, interval_s: float, *, is_json: bool) -> int:
    """Print what happened between two looks."""
    from cpythonplus._doctor.agent.finding import Unreachable
    from cpythonplus._doctor.top.tables import process_lines

    top.want_tasks()
    top.rows()  # processor times count from here
    time.sleep(interval_s)
    top.wait_for_looks(2)
    if top.first.is_over:
        raise Unreachable(top.first.problem)
    rows, tasks = top.rows(), top.tasks()
    if is_json:
        content = {"interval_s": interval_s, "processes": [each.as_json() for each in rows]}
        content["tasks"] = [each.as_json() for each in tasks]
        text = json.dumps(content, indent=2).replace("\x7f", "\\u007f") + "\n"
    else:
        text = "".join(f"{line}\n" for line in process_lines(rows, tasks, table_width(least=1)))
    show(text)
    return FAILED_STATUS if any(each.problem for each in rows[:1]) else 0
