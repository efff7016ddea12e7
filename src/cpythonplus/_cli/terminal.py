"""What the commands write on the terminal: text that is safe to show, one line on what is wrong."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

USAGE_STATUS = 2
"""The exit status for everything that is wrong before the program starts, as with `python`."""

PLAIN_WIDTH = 132
"""Width of tables where there is no terminal that says how wide it is."""

LEAST_WIDTH, UNLIMITED_WIDTH = 100, 100_000


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
            from cpythonplus._base.text.visible import visible_lines

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


def complain(command: str, message: str) -> int:
    """Write `command: message` as one line on standard error; returns the exit status to end with.

    A missing or broken standard error is survived: there is nobody left to tell.
    """
    stream = sys.stderr
    if stream is not None:
        from cpythonplus._base.text.visible import visible  # names of files in it may hold anything

        line = visible(" ".join(message.splitlines()))
        try:
            stream.write(f"{command}: {line}\n")
            stream.flush()
        except (OSError, ValueError):
            pass
    return USAGE_STATUS


def table_width(*, to_file: bool = False) -> int:
    """Return how wide tables of names may be: as the terminal; a pipe or a file takes all."""
    import os

    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdecimal() and 0 < len(told) < 6:  # noqa: PLR2004
        width = int(told)
    elif to_file or sys.stdout is None or not sys.stdout.isatty():
        return UNLIMITED_WIDTH
    else:
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    return max(width, LEAST_WIDTH)


def console(stream: "TextIO | None" = None) -> "Console":
    """Return the console for tables on `stream` (standard output by default)."""
    from rich.console import Console  # it takes longer to import than a start may take

    found = Console(file=stream, highlight=False)
    if not found.is_terminal:
        found.width = PLAIN_WIDTH
    return found
