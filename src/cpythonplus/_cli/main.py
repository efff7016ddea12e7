"""The entry point of `cpythonplus` and of `python -m cpythonplus`.

Only the chosen command is imported: each start of the user's program pays for the imports of
`cpythonplus run`; argparse alone would cost 5 ms (3.13, 2-core machine; `python -c pass`: 9).
"""

import sys

from cpythonplus._cli.arguments import UsageError, help_line, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "cpythonplus"
GROUPS = {
    "start a program": {
        "run": "start a Python program with its threads scheduled",
        "serve": "serve a WSGI or ASGI application with gunicorn, in workers that share memory",
    },
    "look into running programs": {
        "top": "show what each thread of a process does, and who holds its GIL"
    },
    "examine memory": {
        "doctor": "show what uses a program's memory, and why it stays",
        "lint": "find code that creates reference cycles",
    },
    "measure": {
        "compare": "run your program with and without cpythonplus, and report the differences"
    },
    "look at the interpreter": {
        "facts": "prove what is taken for granted of its private structures"
    },
    "link offices": {
        "sites": "link the networks of several sites",
        "clock": "keep the time of a machine without a clock chip",
    },
}
COMMANDS = [name for commands in GROUPS.values() for name in commands]
"""All commands; command X is `main` of `commands/X.py`, except those in `ELSEWHERE`."""
ELSEWHERE = {
    "lint": "cpythonplus_lint.command",
    "sites": "cpythonplus_sites.commands.sites",
    "clock": "cpythonplus_sites.commands.clock",
}
"""The commands of other distributions, which need not be installed: the module with `main`."""

HELP = """\
usage: cpythonplus COMMAND [options] ...

Runs Python programs as they are, on the installed CPython, with their threads
scheduled.

{commands}

options:
  -h, --help  show this message and exit
  --version   show the version and exit

  cpythonplus run app.py       runs `python app.py` with the GIL scheduled.
  cpythonplus COMMAND --help   describes one command.
"""


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command line `arguments` (default: `sys.argv[1:]`); returns the exit status.

    `run` does not return when it succeeds: the process becomes the user's program.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0] not in COMMANDS:
        return without_command(words)
    if words[0] in ELSEWHERE:
        return call_elsewhere(words[0], words[1:])
    try:
        # importlib would be one more import
        command = __import__(f"cpythonplus._cli.commands.{words[0]}", fromlist=["main"])
        status: int = command.main(words[1:])
    except UsageError as error:
        from cpythonplus._cli.terminal import complain

        return complain(f"cpythonplus {words[0]}", str(error))
    return status


def without_command(words: list[str]) -> int:
    """Show the help or the version, or report the mistake, for words without a command."""
    from cpythonplus._cli.terminal import complain, show

    if not words or words[0] in ("-h", "--help"):
        return show(help_text())
    if words[0] == "--version":
        return show(version_line())
    kind = "option" if words[0].startswith("-") else "command"
    known = [*COMMANDS, "--version"]
    if words[0].endswith(".py"):
        known = [f"run {words[0]}"]
    return complain("cpythonplus", str(unknown(kind, words[0], known, NAME)))


def call_elsewhere(command: str, arguments: list[str]) -> int:
    """Call a command of another distribution, which may not be installed."""
    from importlib import import_module
    from importlib.util import find_spec

    package = ELSEWHERE[command].partition(".")[0]
    if find_spec(package) is None:
        from cpythonplus._cli.terminal import complain

        name = package.replace("_", "-")
        needs = f"cpythonplus {command} needs the distribution {name}"
        return complain(needs, f"pip install {name}")
    status: int = import_module(ELSEWHERE[command]).main(arguments)
    return status


def help_text() -> str:
    """Return the text of `cpythonplus --help`."""
    groups = [
        "\n".join(
            [f"{title}:", *(help_line(name, text, "  ", 10) for name, text in commands.items())]
        )
        for title, commands in GROUPS.items()
    ]
    return HELP.format(commands="\n\n".join(groups))


def version_line() -> str:
    """Return the version and the facts that a problem report needs."""
    from cpythonplus import __version__

    kind = sys.implementation.name
    number = ".".join(map(str, sys.version_info[:3]))
    return f"cpythonplus {__version__} ({kind} {number}, {sys.platform})\n"
