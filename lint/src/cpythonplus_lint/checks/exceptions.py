"""CYC101 to CYC105: exceptions that a function still holds when it is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cpythonplus_lint.checks.around import Around
from cpythonplus_lint.checks.elsewhere import Elsewhere
from cpythonplus_lint.checks.flow import Flow, Origin, State, TooComplexError
from cpythonplus_lint.checks.keeping import ADDERS, INFO, PART, Keeping, initial_state, raised_path
from cpythonplus_lint.checks.scopes import names_of
from cpythonplus_lint.checks.source import Function, Source, at, within
from cpythonplus_lint.model import Violation

_KEEPS = re.compile(rf"(?<![=!<>])=(?!=)|\.(?:{'|'.join(sorted({*ADDERS, 'set_exception'}))})\(")

CODES = frozenset({"CYC101", "CYC102", "CYC103", "CYC104", "CYC105", "CYC106"})
_FRAMES = ("_getframe(", "currentframe(", "stack()")


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    around, elsewhere = Around(source), Elsewhere(source)
    for function in candidates(source, around):
        raised: set[int] = set()
        for origin in sorted(kept(source, function, around), key=_place):
            if origin.code == "CYC106" or not elsewhere.clears(function, origin.path):
                # A `raise` may keep several origins (copies of `self.error`): report it once.
                if origin.code != "CYC105" or id(origin.node) not in raised:
                    yield at(origin.node, origin.code, _message(origin))
                raised.add(id(origin.node))


def candidates(source: Source, around: Around) -> list[Function]:
    """The functions that may keep an exception, judged without an analysis of their flow."""
    found = [function for function, handler in source.handlers if _may_keep(source, handler)]
    found += [function for function, node in source.raises if raised_path(node) is not None]
    words = ("exc_info", "exception()", *_FRAMES)
    lines = sorted({line for word in words for line in source.lines_with(word)})
    lines = sorted({*lines, *around.calls_of_returning()})
    found += [one for one in source.functions if one.node.name in ("__exit__", "__aexit__")]
    found += [function for function in source.functions if within(lines, function.node)]
    return list({id(function): function for function in found}.values())


def _may_keep(source: Source, handler: ast.ExceptHandler) -> bool:
    """Whether a handler assigns something, or adds something to a container."""
    last = handler.end_lineno or handler.lineno
    return _KEEPS.search(source.excerpt(handler.body[0].lineno, last)) is not None


def kept(source: Source, function: Function, around: Around) -> set[Origin]:
    """The origins of what a function still holds at its end, on at least one exit path."""
    names = names_of(function.node).global_names if source.says("global") else ()
    about = around.about(function)
    domain = Keeping(source, frozenset(names), about=about)
    try:
        out = Flow(domain).run(function.node.body, initial_state(function.node))
    except TooComplexError:
        return set()
    ways: list[State] = [way for way in (out.normal, out.returns, out.raises) if way is not None]
    found = {origin for way in ways for origins in way.values() for origin in origins}
    return {origin for origin in found if origin.code in CODES}


def _place(origin: Origin) -> tuple[int, int, str]:
    return origin.node.lineno, origin.node.col_offset, origin.path


def _message(origin: Origin) -> str:  # noqa: PLR0911  # a table
    path = origin.path
    what = "`exc_info()`" if origin.kind in (INFO, PART) else "exception"
    match origin.code:
        case "CYC101":
            return f"exception kept in `{path}`, on its own traceback; `finally: del {path}`"
        case "CYC102":
            return f"`exc_info()` kept in `{path}`, on its own traceback; `finally: del {path}`"
        case "CYC103":
            return f"{what} put into `{path.removesuffix('[]')}`, which outlives the handler"
        case "CYC104":
            return f"{what} kept in `{path}` with all frames of its traceback"
        case "CYC106":
            return f"frame kept in `{path}`, one of its own variables; `finally: del {path}`"
        case _ if "." in path:
            holder = path.partition(".")[0]
            return (
                f"`raise {path}` leaves `{holder}` on the traceback that `{path}` holds;"
                f" `finally: del {holder}`"
            )
        case _:
            return f"`raise {path}` leaves `{path}` on its own traceback; `finally: del {path}`"
