"""`cpythonplus-sites`: offices linked by tunnels, from one file."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from cpythonplus_sites.problems import SiteFileError
from cpythonplus_sites.terminal import (
    USAGE_STATUS,
    Parser,
    UsageError,
    carry_out,
    restrain_umask,
    show,
    suggestion,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ACTIONS: dict[str, str] = {
    "init": "write a site file to fill in",
    "check": "report everything that is wrong with a site file",
    "keygen": "create the keys of this host",
    "render": "write the files of a gateway below a folder",
    "plan": "show the differences between the file and this gateway",
    "apply": "configure this gateway as described in the file",
    "confirm": "keep what apply --confirm has applied on trial",
    "down": "take this gateway's links down until the next apply",
    "status": "show whether the other sites are reachable",
    "rotate": "change this gateway's key without loss",
    "diagram": "draw the sites and their links",
    "inventory": "print the gateways as an Ansible inventory",
    "tune": "print kernel parameters for faster streams over long distances",
}
"""The actions, in the order of use; action `X` is in the module `X` beside this one."""

INTERRUPTED_STATUS = 130
COMMAND = "cpythonplus-sites"
CLOCK = "clock"
"""The other command of this package: a zipapp has one entry point."""

HELP = """\
usage: cpythonplus-sites ACTION [options] ...

Links the networks of several sites by WireGuard or ssh, as described in one
file, sites.toml.

actions:
{actions}

  cpythonplus-sites ACTION --help   describes one action.
  cpythonplus-sites clock           is the command cpythonplus-clock.
  cpythonplus-sites --version       shows the version.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out `cpythonplus-sites ARGUMENTS` (None: the process's); returns the exit status."""
    return carry_out(COMMAND, call, arguments)


def call(words: list[str]) -> int:
    """Carry out the arguments. Raises UsageError for wrong ones."""
    if not words or words[0] in ("-h", "--help"):
        return show(HELP.format(actions="\n".join(f"  {n:<10}{t}" for n, t in ACTIONS.items())))
    if words[0] == "--version":
        return show(f"{COMMAND} {_version()}\n")
    if words[0] == CLOCK:
        from cpythonplus_sites.commands import clock

        return clock.main(words[1:])
    if words[0] not in ACTIONS:
        hint = suggestion(words[0], [*ACTIONS, CLOCK])
        raise UsageError(f"unknown action {words[0]!r}{hint}; see cpythonplus-sites --help")
    restrain_umask()
    return _carry_out(words[0], words[1:])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(COMMAND)
    except PackageNotFoundError:  # the package was copied, not installed
        return "of an unknown version"


def _carry_out(action: str, arguments: list[str]) -> int:
    try:
        module = import_module(f"cpythonplus_sites.commands.{action}")
        parser = Parser(
            prog=f"cpythonplus-sites {action}", description=ACTIONS[action], allow_abbrev=False
        )
        module.add_arguments(parser)
        status: int = module.run(parser.parse_args(arguments))
    except SiteFileError as error:
        print(error, file=sys.stderr)
        return USAGE_STATUS
    except ModuleNotFoundError as error:
        if error.name != "tomli":  # a dependency only before Python 3.11
            raise
        raise UsageError("requires tomli before Python 3.11; pip install tomli") from None
    except KeyboardInterrupt:
        again = "; the same command continues from there" * (action in ("apply", "down", "rotate"))
        print(f"cpythonplus-sites {action}: interrupted{again}", file=sys.stderr)
        return INTERRUPTED_STATUS
    return status
