"""Wrong input at the command line: one line on standard error, exit status 2."""

import sys

USAGE_STATUS = 2
"""The exit status for everything that is wrong before the program starts, as with `python`."""


class UsageError(Exception):
    """Something that the caller has to put right; its text is the line that is shown."""


def complain(command: str, message: str) -> int:
    """Write `command: message` as one line on standard error; returns the exit status to end with.

    A missing or broken standard error is survived: there is nobody left to tell.
    """
    stream = sys.stderr
    if stream is not None:
        # On the way to an error only, as below. Names of files in it may hold anything.
        from cpythonplus.base.visible import visible

        line = visible(" ".join(message.splitlines()))
        try:
            stream.write(f"{command}: {line}\n")
            stream.flush()
        except (OSError, ValueError):
            pass
    return USAGE_STATUS


def suggestion(word: str, known: list[str]) -> str:
    """` (did you mean X?)` where one of the `known` words is close, else nothing."""
    from difflib import get_close_matches  # on the way to an error only: it costs milliseconds

    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
