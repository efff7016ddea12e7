"""Reads the options of the commands that look at other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpythonplus._cli.arguments import UsageError, take_value, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus._cli.features import Option


def take_options(
    arguments: Sequence[str], options: Sequence[Option], command: str
) -> tuple[dict[str, Any], list[str]]:
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
