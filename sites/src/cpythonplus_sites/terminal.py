"""The common part of the commands: output, and wrong input as one line with status 2."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from cpythonplus_sites.visible import visible, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_STATUS = 2

ROOT_UMASK = 0o022


class UsageError(Exception):
    """Something that the caller has to put right; its text is the line that is shown."""


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong input in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of ending the process."""
        raise UsageError(message)


def carry_out(
    command: str, call: Callable[[list[str]], int], arguments: Sequence[str] | None
) -> int:
    """Call a command with its arguments (None: those of the process); returns the exit status."""
    try:
        return call(list(sys.argv[1:] if arguments is None else arguments))
    except UsageError as error:
        return complain(command, str(error))


def complain(command: str, message: str) -> int:
    """Write `command: message` as one line on standard error; returns the exit status to end with.

    A missing or broken standard error is ignored.
    """
    if sys.stderr is not None:
        # The message may contain names of files, with any characters.
        line = visible(" ".join(message.splitlines()))
        with suppress(OSError, ValueError):
            print(f"{command}: {line}", file=sys.stderr, flush=True)
    return USAGE_STATUS


def show(text: str | bytes) -> int:
    """Print on standard output; a closed pipe (`| head`) is no error.

    In a text, characters that a terminal would take for a command are escaped, and so are those
    that the stream's encoding does not have. Bytes are the contents of a file, and not changed.
    """
    stream = sys.stdout
    if stream is None:
        return 0
    try:
        if isinstance(text, bytes):
            stream.buffer.write(text)
        else:
            encoding = stream.encoding or "utf-8"  # io.StringIO has none
            shown = visible_lines(text).encode(encoding, "backslashreplace")
            stream.write(shown.decode(encoding))
        stream.flush()
    except OSError as error:
        # Redirect to /dev/null: else the interpreter flushes the rest at its end, and fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            return complain("cpythonplus-sites", f"standard output: {error.strerror}")
    return 0


def restrain_umask() -> None:
    """Set root's umask so that others cannot change the files that it and its programs make.

    Files that are trusted later have an explicit mode as well. Other users keep their umask.
    """
    if os.geteuid() == 0:
        os.umask(ROOT_UMASK)


def suggestion(word: str, known: list[str]) -> str:
    """` (did you mean X?)` if one of the `known` words is similar, else nothing."""
    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
