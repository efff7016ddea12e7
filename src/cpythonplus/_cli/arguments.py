"""Reads a command line by hand: the parts that the commands share.

Imports next to nothing: argparse costs 5 ms, and each start of `cpythonplus run` pays it.
"""

from cpythonplus._base.text.suggesting import suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cpythonplus._cli.features import Option

HELP_WIDTH = 80
_LONGEST_PID = 19


class UsageError(Exception):
    """A mistake of the caller; its text is the line that is shown."""


def unknown(what: str, word: str, known: list[str], command: str) -> UsageError:
    """Return the error for a word that is none of `known`; what: the kind of word."""
    hint = suggestion(word, [*known, "--help"])
    return UsageError(f"unknown {what} {word!r}{hint}; see {command} --help")


def take_value(flag: str, words: list[str], *, wanted: bool) -> str:
    """Take an option off `words`, and return its value: `--x=value`, or the next word.

    wanted: whether it has a value; the value of a switch is "1". UsageError if that does not fit.
    """
    word = words.pop(0)
    attached = word.startswith(f"{flag}=")
    if not wanted:
        if attached:
            raise UsageError(f"{flag} takes no value")
        return "1"
    if attached:
        return word[len(flag) + 1 :]
    if not words:
        raise UsageError(f"{flag}: expected a value")
    return words.pop(0)


def take_options(
    arguments: "Sequence[str]", options: "Sequence[Option]", command: str
) -> "tuple[dict[str, Any], list[str]]":
    """Read a command line; return the options' values by field, and the operands.

    A switch has "1"; `-h` is `--help`. UsageError for mistakes in it.
    """
    known = {option.flag: option for option in options}
    given: dict[str, Any] = {}
    words, operands = list(arguments), []
    while words:
        if words[0] == "-h":
            words[0] = "--help"
        flag = words[0].partition("=")[0]
        if not flag.startswith("-"):
            operands.append(words.pop(0))
            continue
        if flag not in known:
            raise unknown("option", flag, list(known), command)
        option = known[flag]
        value = take_value(flag, words, wanted=option.metavar is not None)
        try:
            given[option.field] = option.decode(option.check(value))
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from None
    return given, operands


def process_number(text: str) -> int:
    """Return the PID that a text is; UsageError if it is none."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_PID and int(text)):
        raise UsageError(f"expected a PID, got {text!r}")
    return int(text)


def help_line(left: str, right: str, begin: str = "    ", width: int = 23) -> str:
    """Return one option of a help text, in lines of up to 80 columns.

    textwrap would be imported for it at each start of a program.
    """
    line = f"{begin}{left:<{width}} "
    behind = " " * len(line)
    lines = []
    for word in right.split(" "):
        if len(line) + 1 + len(word) > HELP_WIDTH and line != behind:
            lines.append(line)
            line = behind
        line += f" {word}"
    return "\n".join([*lines, line])
