"""Text of unknown origin for a terminal: each character is visible and has no other effect.

The names of a program's files, threads, classes and keys must neither move a cursor, nor change a
title or colours, nor turn the direction of the text.
"""


def visible(text: str) -> str:
    """Return text with unprintable characters replaced by their escapes: backslash n, u202e, ...

    These are lone surrogates, control and direction characters, and separators except the space.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def visible_lines(text: str) -> str:
    """Make a text of several lines visible as `visible` does; line ends and tabs are kept."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
