"""`cpythonplus-clock`: the time of a machine without a clock chip."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import clock, clock_units
from cpythonplus_sites.terminal import (
    Parser,
    UsageError,
    carry_out,
    complain,
    restrain_umask,
    show,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

COMMAND = "cpythonplus-clock"
INITS = ("systemd", "sysv", "cron")
READ_ONLY_HINT = (
    "; make it writable meanwhile, or install into the image it is made from: --root DIR"
)

HELP = """\
usage: cpythonplus-clock ACTION [options]

Keeps the time of a machine without a clock chip in a file: saved every minute
and when the machine goes down, restored at boot.

actions:
  install    install the script and its units on this machine
  uninstall  remove them; the saved time stays
  status     show the times, what is installed, and what else sets the clock
  save, restore, tick
             run by the units; see cpythonplus-clock save --help

  cpythonplus-clock install --help   describes one action.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out `cpythonplus-clock ARGUMENTS` (None: the process's); returns the exit status."""
    return carry_out(COMMAND, call, arguments)


def call(words: list[str]) -> int:
    """Carry out the arguments. Raises UsageError for wrong ones."""
    if not words or words[0] in ("-h", "--help"):
        return show(HELP)
    restrain_umask()
    if words[0] == "install":
        return _install(words[1:])
    if words[0] == "uninstall":
        return _uninstall(words[1:])
    if words[0] == "status":
        return _status(words)
    return clock.main(words)


def _install(words: list[str]) -> int:
    parser = _parser("install", "install the script and its units on a machine")
    add = parser.add_argument
    add("--init", choices=INITS, help="init system (the one of the machine)")
    add(
        "--python",
        default=clock_units.PYTHON,
        metavar="PATH",
        help=f"interpreter that runs the script ({clock_units.PYTHON})",
    )
    add("--dry-run", action="store_true", help="only show what would be written")
    options = parser.parse_args(words)
    root = _root(options)
    if not options.python.startswith("/"):
        raise UsageError(f"--python: expected an absolute path, got {options.python!r}")
    init = options.init or clock_units.init_of(root)
    try:
        place = clock_units.place_for(root)
        wanted = clock_units.files(init, options.python, place)
        clock_units.refuse_others(root, wanted, options.python)
        write = clock_units.not_there if options.dry_run else clock_units.install
        paths = write(root, wanted)
    except OSError as error:
        return _failed(error)
    verb = "would write" if options.dry_run else "wrote"
    lines = [f"{verb} {clock_units.below(root, path)}" for path in paths]
    if place != clock_units.PLACES[0] and paths:
        lines.append(f"the script is in {place}, as {clock_units.PLACES[0]} is read-only")
    lines += [str(conflict) for conflict in clock_units.conflicts(root)]
    lines += _next_steps(root, init) if paths and not options.dry_run else []
    return show(
        "".join(f"{line}\n" for line in lines or ["nothing to do: everything is installed"])
    )


def _next_steps(root: Path, init: str) -> list[str]:
    if root != Path("/"):
        return []
    if init == "systemd":
        start = "systemctl start cpythonplus-clock-save.service cpythonplus-clock-tick.timer"
        return [f"active from the next boot; to start it now: systemctl daemon-reload; {start}"]
    if init == "sysv":
        return ["enable it with: update-rc.d cpythonplus-clock defaults"]
    return []


def _uninstall(words: list[str]) -> int:
    root = _root(_parser("uninstall", "remove what install wrote").parse_args(words))
    try:
        removed = clock_units.uninstall(root)
    except OSError as error:
        return _failed(error)
    lines = [f"removed {clock_units.below(root, path)}" for path in removed]
    if removed and root == Path("/") and clock_units.init_of(root) == "systemd":
        timer = f"systemctl stop {clock_units.NAME}-tick.timer"
        lines.append(f"to stop what still runs: {timer}; systemctl daemon-reload")
    return show("".join(f"{line}\n" for line in lines or ["nothing to do: nothing is installed"]))


def _status(words: list[str]) -> int:
    """Print the script's status, the state of the installation, and conflicts."""
    status = clock.main(words)
    if status == clock.WRONG_USAGE or "--help" in words or "-h" in words:
        return status
    root = Path("/")
    init = clock_units.init_of(root)
    wanted = clock_units.files(init, place=clock_units.place_for(root))
    missing = clock_units.missing(root, wanted)
    if not missing:
        lines = [f"installed for {init}"]
    elif len(missing) == len(wanted):
        lines = ["not installed; run cpythonplus-clock install"]
    else:
        lines = [f"missing: {path}; run cpythonplus-clock install to repair it" for path in missing]
    found = clock_units.conflicts(root)
    lines += [str(conflict) for conflict in found]
    bad = bool(missing) or any(conflict.harmful for conflict in found)
    return show("".join(f"{line}\n" for line in lines)) or status or int(bad)


def _parser(action: str, description: str) -> argparse.ArgumentParser:
    parser = Parser(prog=f"{COMMAND} {action}", description=description, allow_abbrev=False)
    parser.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="root folder of an image to prepare (/)",
    )
    return parser


def _root(options: argparse.Namespace) -> Path:
    try:
        root = Path(options.root).absolute()
        is_folder = root.is_dir()
    except OSError as error:  # permission is denied, or the working folder is gone
        raise UsageError(f"{options.root}: {error.strerror}") from None
    if not is_folder:
        raise UsageError(f"{options.root}: no such folder")
    return root


def _failed(error: OSError) -> int:
    hint = READ_ONLY_HINT if error.errno == errno.EROFS else ""
    complain(COMMAND, f"{error.filename}: {error.strerror}{hint}")
    return 1
