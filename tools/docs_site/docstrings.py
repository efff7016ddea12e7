"""Turns the package's docstrings, plain prose with backticks, into what Sphinx reads."""

import re
from functools import cache
from importlib import import_module
from typing import Protocol

from tools import reference
from tools.docs_site import modules

# Code, and an emphasised *word*.
_MARKED = re.compile(r"(`[^`\n]+`|(?<![\w*])\*\w+\*(?![\w*]))")
_BLOCK = re.compile(r"```text\n(.*?)\n```", re.DOTALL)


class Environment(Protocol):
    """What is used of Sphinx's: the page that is being read."""

    docname: str


class Application(Protocol):
    """What is used of Sphinx's."""

    env: Environment

    def connect(self, event: str, callback: object) -> int:
        """Have `callback` called."""


def process(
    _app: object, _what: str, _name: str, obj: object, _options: object, lines: list[str]
) -> None:
    """Replace the lines of a docstring: fields become a list, nothing but code is marked up."""
    names = reference.fields_of(obj)
    lines[:] = restructured(reference.markdown("\n".join(lines), names)).splitlines()


def is_left_out(
    app: Application,
    _what: str,
    _name: str,
    obj: object,
    _skip: bool,  # noqa: FBT001
    _options: object,
) -> bool | None:
    """True for what is the standard library's, or has its page already; None: Sphinx decides."""
    module = getattr(obj, "__module__", None)
    if isinstance(module, str) and not module.startswith("cpythonplus"):
        return True
    here = app.env.docname.removeprefix("api/")
    return True if isinstance(obj, type) and homes().get(obj, here) != here else None


@cache
def homes() -> dict[type, str]:
    """Return the module on whose page each class of a private module stands: the first one.

    Up to Python 3.12 `ShutDown` is a class of ours, which two modules give.
    """
    found: dict[type, str] = {}
    for name in modules.described_modules()[0]:
        module = import_module(name)
        for each in (getattr(module, public) for public in getattr(module, "__all__", ())):
            if isinstance(each, type) and "._" in each.__module__:
                found.setdefault(each, name)
    return found


def restructured(markdown: str) -> str:
    """Return as reStructuredText what `reference.markdown` makes of a docstring."""

    def block(match: re.Match[str]) -> str:
        return ".. code-block:: text\n\n" + re.sub(r"^", "   ", match[1], flags=re.MULTILINE)

    parts = []
    for paragraph in markdown.split("\n\n"):
        if _BLOCK.fullmatch(paragraph):
            parts.append(_BLOCK.sub(block, paragraph))
            continue
        pieces = _MARKED.split(paragraph)
        pieces[::2] = [re.sub(r"([\\*|_])", r"\\\1", piece) for piece in pieces[::2]]
        # A letter directly behind code ("`f()`d") would not end it.
        pieces[1::2] = [f"`{each}`\\ " if each[0] == "`" else each for each in pieces[1::2]]
        # An entry of a list, or the first one behind a sentence, needs a line of its own.
        parts.append(re.sub(r"\n(?=- )", "\n\n", "".join(pieces)))
    return "\n\n".join(parts)
