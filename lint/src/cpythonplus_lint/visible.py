"""Text of unknown origin for a terminal: each of its characters can be seen, none does something.

What a program named its files, threads, classes and keys must neither move a cursor, nor change a
title or colours, nor turn the direction of what is written.
"""

__all__ = ["visible", "visible_lines"]


def visible(text: str) -> str:
    """Return text with what is not printed replaced by its escape: backslash n, u202e, ...

    Lone surrogates, control and direction characters, and separators other than the space.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def visible_lines(text: str) -> str:
    """Do the same for a text of several lines; tabs stay, too."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
