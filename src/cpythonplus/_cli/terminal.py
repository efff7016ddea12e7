"""The output of the commands on the terminal: text that is safe to show, and one-line errors."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

USAGE_STATUS = 2
"""The exit status for all mistakes before the program starts, as with `python`."""

PLAIN_WIDTH = 132
"""The width of tables if the width of the terminal is unknown."""

LEAST_WIDTH, UNLIMITED_WIDTH = 100, 100_000


def show(text: str | bytes, *, styled: bool = False) -> int:
    """Print on standard output; a reader that has gone away (`| head`) is no error.

    Terminal commands in a text are escaped, whatever their origin; JSON has none and is unchanged.
    Bytes are a file's, and not changed. styled: the text has colours of ours, and nothing of
    unknown origin.
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

        # The rest would be flushed, and fail, again at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            return complain("cpythonplus", f"standard output: {error.strerror}")
    return 0


def _write(stream: "TextIO", text: str) -> None:
    """Write a text; escape characters outside of the stream's encoding, as standard error does."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def complain(command: str, message: str) -> int:
    """Write `command: message` as one line on standard error; returns the exit status to end with.

    A missing or broken standard error is ignored.
    """
    stream = sys.stderr
    if stream is not None:
        from cpythonplus._base.text.visible import visible  # file names may have any characters

        line = visible(" ".join(message.splitlines()))
        try:
            stream.write(f"{command}: {line}\n")
            stream.flush()
        except (OSError, ValueError):
            pass
    return USAGE_STATUS


def table_width(*, to_file: bool = False, least: int = LEAST_WIDTH) -> int:
    """Return the width for tables: that of the terminal; unlimited for a pipe or a file."""
    import os

    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdecimal() and 0 < len(told) < 6:  # noqa: PLR2004
        width = int(told)
    elif to_file or sys.stdout is None or not sys.stdout.isatty():
        return UNLIMITED_WIDTH
    else:
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    return max(width, least)


def console(stream: "TextIO | None" = None) -> "Console":
    """Return the console for tables on `stream` (standard output by default)."""
    from rich.console import Console  # too slow to import at each start

    found = Console(file=stream, highlight=False)
    if not found.is_terminal:
        found.width = PLAIN_WIDTH
    return found
