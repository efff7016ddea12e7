"""Output on the terminal, and wrong usage as one line with status 2."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from typing import NoReturn

from cpythonplus_lint.visible import visible, visible_lines

NAME = "cpythonplus-lint"
USAGE_STATUS = 2


class UsageError(Exception):
    """Something that the caller has to put right; its text is the line that is shown."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UsageError: one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(message)


def show(text: str | bytes) -> int:
    """Print on standard output; returns the exit status to end with.

    A closed pipe (`| head`) is no error. Characters of a text that a terminal would take for a
    command, or that the stream's encoding does not have, are escaped. Bytes are the contents of a
    file, and are printed unchanged.
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
        # Python would flush the rest, and fail again, when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            return complain(f"standard output: {error.strerror}")
    return 0


def complain(message: str) -> int:
    """Write one line on standard error; returns the exit status for wrong usage.

    The status reports the error even when standard error is closed or broken.
    """
    if sys.stderr is not None:
        line = visible(" ".join(message.splitlines()))  # a file's name in it may hold anything
        with suppress(OSError, ValueError):
            print(f"{NAME}: {line}", file=sys.stderr, flush=True)
    return USAGE_STATUS
