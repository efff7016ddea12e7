"""The entry point of `cpythonplus` and of `python -m cpythonplus`.

Nothing but the chosen command is imported: `cpythonplus run` is on the way of every start of the
user's program, and argparse alone would cost it 5 ms (3.13, 2-core machine; `python -c pass`: 9).
"""

import sys

from cpythonplus.cli.usage import UsageError, complain, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

COMMANDS = {
    "run": "start a Python program with its threads scheduled",
    "serve": "serve a WSGI or ASGI application with gunicorn, its workers sharing their memory",
    "doctor": "find out what keeps a program's memory",
    "lint": "find code that makes reference cycles",
    "compare": "run your program with cpythonplus and without it, and tell what differs",
    "sites": "link the networks of several sites",
    "clock": "keep the time of a machine without a clock chip",
}

HELP = """\
usage: cpythonplus COMMAND [options] ...

Runs unmodified Python programs with scheduled threads, on the interpreter that is installed.

commands:
{commands}

options:
  -h, --help  show this and end
  --version   show the version and end

  cpythonplus COMMAND --help   tells more about one command.
  cpythonplus run app.py       is `python app.py`, with the GIL scheduled.
"""


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command line `arguments` (default: `sys.argv[1:]`); returns the exit status.

    `run` does not return when it succeeds: the process becomes the user's program.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        commands = "\n".join(f"  {name:<10}  {text}" for name, text in COMMANDS.items())
        return show(HELP.format(commands=commands))
    if words[0] == "--version":
        return show(version_line())
    if words[0] not in COMMANDS:
        kind = "option" if words[0].startswith("-") else "command"
        hint = suggestion(words[0], [*COMMANDS, "--help", "--version"])
        return complain("cpythonplus", f"unknown {kind} {words[0]!r}{hint}; see cpythonplus --help")
    try:
        return call(words[0], words[1:])
    except UsageError as error:
        return complain(f"cpythonplus {words[0]}", str(error))


def call(command: str, arguments: list[str]) -> int:
    """Import and call one of COMMANDS; returns its exit status."""
    if command == "run":
        from cpythonplus.cli.commands import run

        return run.main(arguments)
    if command == "serve":
        from cpythonplus.cli.commands import serve

        return serve.main(arguments)
    if command == "doctor":
        from cpythonplus.cli.commands import doctor

        return doctor.main(arguments)
    if command == "lint":
        from cpythonplus.cli.commands import lint

        return lint.main(arguments)
    if command == "compare":
        from cpythonplus.cli.commands import compare

        return compare.main(arguments)
    return call_of_sites(command, arguments)


def call_of_sites(command: str, arguments: list[str]) -> int:
    """Do as `call`, for the commands of another distribution, which need not be installed."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("cpythonplus_sites") is None:
        needs = f"cpythonplus {command} needs the distribution cpythonplus-sites"
        return complain(needs, "pip install cpythonplus-sites")
    status: int = import_module(f"cpythonplus_sites.commands.{command}").main(arguments)
    return status


def version_line() -> str:
    """Return the version with what else matters in a problem report."""
    from cpythonplus import __version__

    kind = sys.implementation.name
    number = ".".join(map(str, sys.version_info[:3]))
    return f"cpythonplus {__version__} ({kind} {number}, {sys.platform})\n"


def show(text: str | bytes, *, styled: bool = False) -> int:
    """Print on standard output; a reader that has gone away (`| head`) is no error.

    What a terminal would take for a command is escaped in a text, whoever put it there: JSON has
    none of it, and stays as it is. Bytes are a file's, and not changed. styled: the text has
    colours of ours, and nothing of unknown origin.
    """
    stream = sys.stdout
    if stream is None:
        return 0
    try:
        if isinstance(text, str):
            from cpythonplus.base.visible import visible_lines

            _write(stream, text if styled else visible_lines(text))
        else:
            stream.buffer.write(text)
        stream.flush()
    except OSError as error:
        import os

        # The rest would be flushed, and fail, again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            return complain("cpythonplus", f"standard output: {error.strerror}")
    return 0


def _write(stream: "TextIO", text: str) -> None:
    """Write a text; what the stream's encoding does not have is escaped, as on standard error."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
