"""The edit that clears variables on every exit path: `del last`, or `try: ... finally: del last`.

If nothing can raise between the assignment of the variables and their last use, a line behind that
use deletes them, or sets them to None if they may be unbound. Otherwise the last statements of a
block go under `try:`, and the line goes under `finally:`. The block is the
innermost one with all uses of the variables. The `try:` takes as few of its statements as suffice
to leave nothing on the exit paths that the rules see. Rejected: a `del` in front of each `return`,
which would miss the exceptions; and fixes that move a loop, or more than _MAX_LINES lines, which
nobody would read.

The new text is parsed, and its tree must differ from the old one by that change only.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cpythonplus_lint.checks.flow import may_raise
from cpythonplus_lint.checks.scopes import parameters
from cpythonplus_lint.checks.source import (
    FunctionNode,
    Source,
    UnreadableError,
    own_nodes,
    parsed,
)
from cpythonplus_lint.model import Edit, Fix

_MAX_LINES = 40
"""The most lines that one fix moves."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def fix(
    source: Source, node: FunctionNode, names: list[str], is_clean: Callable[[], bool]
) -> Fix | None:
    """Return the fix that clears the variables in a function; None if it would not be safe.

    is_clean: whether the rules find no more hits on the variables; asked with the changed tree.
    """
    asked = _Asked(source, node, names, is_clean, _unbound_somewhere(node))
    for block in reversed(_blocks_of(node, set(names))):
        for way in (_plain, _under_try):
            change = way(asked, block)
            if change is None:
                continue
            edit, statements = change
            with _changed(block, statements):
                is_right = _is_text_of(_new_text(source, node, edit), node)
            if is_right:
                text = ", ".join(f"`{name}`" for name in names)
                return Fix(f"Clear {text} on every exit path", edit)
    return None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The variables of a function that a fix is to clear."""

    source: Source
    node: FunctionNode
    names: list[str]
    is_clean: Callable[[], bool]
    unbound: set[str]

    def clearing(self, before: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that clear the variables, behind these statements of their block."""
        return _clearing(self.node, before, self.names, self.unbound)


_Change = tuple[Edit, list[ast.stmt]]
"""An edit, and the block's statements afterwards."""


def _plain(asked: _Asked, block: list[ast.stmt]) -> _Change | None:
    """`del last` behind its last use, if no statement from the assignment to there may raise.

    The statement with the assignment itself may raise: before the assignment, or in a way that a
    `try` behind it would not catch either.
    """
    speaking = [at for at, one in enumerate(block) if _speaks_of(one, set(asked.names))]
    giving = next((at for at in speaking if not _gives_constant(block[at])), len(block))
    if giving == len(block) or any(map(may_raise, block[giving + 1 : speaking[-1] + 1])):
        return None
    place = speaking[-1] + 1
    final = asked.clearing(block[:place])
    statements = [*block[:place], *final, *block[place:]]
    with _changed(block, statements):
        if not asked.is_clean():
            return None
    edit = _line_behind(asked.source, asked.node, block[place - 1], final)
    return (edit, statements) if edit is not None else None


def _gives_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(
        statement.value, ast.Constant
    )


def _under_try(asked: _Asked, block: list[ast.stmt]) -> _Change | None:
    """The block's last statements under `try`, unless that would move a loop."""

    def does(start: int) -> bool:
        with _changed(block, _attempted(block, start, asked.clearing(block[:start]))):
            return asked.is_clean()

    start = _start(block, set(asked.names), does)
    if start is None or any(isinstance(one, _LOOPS) for one in own_nodes(block[start:])):
        return None
    final = asked.clearing(block[:start])
    edit = _edit(asked.source, asked.node, block[start:], final)
    return (edit, _attempted(block, start, final)) if edit is not None else None


def _attempted(block: list[ast.stmt], start: int, final: list[ast.stmt]) -> list[ast.stmt]:
    """The block with its statements from `start` on under `try`."""
    attempt = ast.Try(body=block[start:], handlers=[], orelse=[], finalbody=final)
    return [*block[:start], ast.copy_location(attempt, block[start])]


def _start(block: list[ast.stmt], names: set[str], does: Callable[[int], bool]) -> int | None:
    """The index at which `try` begins, as late as suffices; None if it would move too much.

    The next exit behind the statement that stores into the variable is tried first, because each
    call of `does` analyses the function again.
    """
    speaking = [at for at, one in enumerate(block) if _speaks_of(one, names)]
    later = range(speaking[0] + 1 if speaking else 0, len(block))
    likely = next((at for at in later if _has_way_out(block[at])), len(block) - 1)
    first = _first_allowed(block)
    if first <= likely and does(likely):
        return likely
    return _last_that(does, first, likely if first < likely else len(block))


def _first_allowed(block: list[ast.stmt]) -> int:
    """The first statement from which at most _MAX_LINES lines are moved."""
    end = block[-1].end_lineno or 0
    fitting = (at for at, one in enumerate(block) if end - one.lineno < _MAX_LINES)
    return next(fitting, len(block))


def _last_that(does: Callable[[int], bool], first: int, end: int) -> int | None:
    """The last place before `end` for which `does` is true; None if it is false for `first`.

    `does` must be true for every place before one for which it is true.
    """
    found = bisect_left(range(end), True, lo=first, key=lambda at: not does(at)) - 1  # noqa: FBT003
    return found if found >= first else None


def _has_way_out(statement: ast.stmt) -> bool:
    """Whether a statement may leave the block; functions defined in it are not looked into."""
    ways = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(isinstance(one, ways) for one in own_nodes([statement]))


@contextmanager
def _changed(block: list[ast.stmt], statements: list[ast.stmt]) -> Iterator[None]:
    """Replace the statements of a block for the time of the context."""
    before = list(block)
    block[:] = statements
    try:
        yield
    finally:
        block[:] = before


# ---- the block ----------------------------------------------------------------------------------


def _blocks_of(node: FunctionNode, names: set[str]) -> list[list[ast.stmt]]:
    """The blocks with all uses of the variables, from the function's own inwards.

    An inner block counts only if its first statement that uses the variables assigns them:
    otherwise the next iteration of a loop might read what the last one left.
    """
    found, block = [node.body], node.body
    while True:
        speaking = [one for one in block if _speaks_of(one, names)]
        if len(speaking) != 1 or _head_speaks(speaking[0], names):
            return found
        blocks = [
            inner
            for inner in _blocks_in(speaking[0])
            if any(_speaks_of(one, names) for one in inner)
        ]
        if len(blocks) != 1:
            return found
        block = blocks[0]
        first = next(one for one in block if _speaks_of(one, names))
        if _gives_all(first, names):
            found.append(block)


def _speaks_of(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in names)
        or (getattr(one, "name", None) in names)
        or (isinstance(one, (ast.Global, ast.Nonlocal)) and not names.isdisjoint(one.names))
        for one in ast.walk(node)
    )


def _blocks_in(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement; none of a function or class definition."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    parts = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    found = [getattr(part, name, []) for part in parts for name in ("body", "orelse", "finalbody")]
    return [block for block in found if block]


def _head_speaks(node: ast.stmt, names: set[str]) -> bool:
    """Whether a statement uses the names outside of its blocks."""
    inside = {id(one) for block in _blocks_in(node) for one in block}
    bound = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
    return any(
        (isinstance(one, ast.Name) and one.id in names)
        or (isinstance(one, bound) and one.name in names)
        for one in own_nodes([node], lambda one: id(one) in inside)
    )


def _gives_all(statement: ast.stmt, names: set[str]) -> bool:
    match statement:
        case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
            return names <= _bound_by(statement) and not _speaks_of(value, names)
        case _:
            return False


def _names_in(targets: Sequence[ast.expr]) -> set[str]:
    """The names among the targets of an assignment, those of tuples too."""
    found: set[str] = set()
    for target in targets:
        if isinstance(target, ast.Tuple):
            found |= _names_in(target.elts)
        elif isinstance(target, ast.Name):
            found.add(target.id)
    return found


# ---- the clearing statements --------------------------------------------------------------------


def _clearing(
    node: FunctionNode, before: list[ast.stmt], names: list[str], unbound: set[str]
) -> list[ast.stmt]:
    """`del` of the variables that are surely bound; the others are set to None."""
    sure = {argument.arg for argument in parameters(node.args)}
    sure |= {name for one in before for name in _bound_by(one)}
    sure -= unbound
    deleted = [name for name in names if name in sure]
    others = [name for name in names if name not in sure]
    lines = [f"del {', '.join(deleted)}"] if deleted else []
    lines += [" = ".join([*others, "None"])] if others else []
    return ast.parse("\n".join(lines)).body


def _bound_by(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            return _names_in(targets)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return {name}
        case ast.FunctionDef(name=name):
            return {name}
        case _:
            return set()


def _unbound_somewhere(node: FunctionNode) -> set[str]:
    """The variables that a function unbinds, by `del` or at the end of a handler."""
    found: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Delete):
            found |= _names_in(one.targets)
        elif isinstance(one, ast.ExceptHandler) and one.name is not None:
            found.add(one.name)
    return found


# ---- the edit -----------------------------------------------------------------------------------


def _edit(
    source: Source, node: FunctionNode, statements: list[ast.stmt], final: list[ast.stmt]
) -> Edit | None:
    """The edit that indents the statements once more; None if their lines hold other code."""
    first, last = first_line(statements[0]), statements[-1].end_lineno or 0
    lines = source.lines[first - 1 : last]
    indent = _indentation(lines[0])
    unit = _unit(source, node)
    if not unit or not _stand_alone(source, statements, first, last):
        return None
    ending = "\r\n" if source.lines[0].endswith("\r\n") else "\n"
    quoted = any(mark in line for line in lines for mark in ('"""', "'''", "\\"))
    kept = source.lines_in_strings if quoted else set()
    result = [f"{indent}try:{ending}"]
    for number, line in enumerate(lines, first):
        moved = number not in kept and line.startswith(indent) and line.strip()
        result.append(f"{unit}{line}" if moved else line)
    if not result[-1].endswith(("\n", "\r")):
        result[-1] += ending
    result.append(f"{indent}finally:{ending}")
    result += [f"{indent}{unit}{ast.unparse(one)}{ending}" for one in final]
    return Edit(first, last, "".join(result))


def _line_behind(
    source: Source, node: FunctionNode, statement: ast.stmt, final: list[ast.stmt]
) -> Edit | None:
    """The edit that adds statements behind another one; None if its last line holds other code."""
    first, last = first_line(statement), statement.end_lineno or 0
    if not _unit(source, node) or not _stand_alone(source, [statement], first, last):
        return None
    indent = _indentation(source.lines[first - 1])
    line = source.lines[last - 1]
    ending = "\r\n" if source.lines[0].endswith("\r\n") else "\n"
    if not line.endswith(("\n", "\r")):
        line += ending
    return Edit(last, last, line + "".join(f"{indent}{ast.unparse(one)}{ending}" for one in final))


def first_line(statement: ast.stmt) -> int:
    """The line that a statement begins in, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(source: Source, node: FunctionNode) -> str:
    """The indentation of the function's body; '' if it does not begin with the function's own."""
    outer = _indentation(source.lines[node.lineno - 1])
    inner = _indentation(source.lines[first_line(node.body[0]) - 1])
    return inner[len(outer) :] if inner.startswith(outer) else ""


def _stand_alone(source: Source, statements: list[ast.stmt], first: int, last: int) -> bool:
    """Whether the lines hold nothing but the statements, and perhaps a comment behind them."""
    head = source.lines[first - 1].encode()
    tail = source.lines[last - 1].encode()[statements[-1].end_col_offset :].decode().strip()
    begins = first < statements[0].lineno or not head[: statements[0].col_offset].strip()
    continued = first > 1 and source.lines[first - 2].rstrip("\r\n").endswith("\\")
    return begins and not continued and (not tail or tail.startswith("#"))


# ---- the check of the new text ------------------------------------------------------------------


def _new_text(source: Source, node: FunctionNode, edit: Edit) -> str:
    """The function's text after the edit."""
    first, last = first_line(node), node.end_lineno or 0
    lines = source.lines
    text = "".join([*lines[first - 1 : edit.first - 1], edit.text, *lines[edit.last : last]])
    return f"if True:\n{text}" if _indentation(lines[first - 1]) else text


def _is_text_of(text: str, node: FunctionNode) -> bool:
    try:
        found: ast.stmt = parsed(text).body[0]
    except UnreadableError:
        return False
    if isinstance(found, ast.If):
        found = found.body[0]
    return same([found], [node])


def same(left: Sequence[ast.stmt], right: Sequence[ast.stmt]) -> bool:
    """Whether two trees are equal but for positions. `ast.dump` would leave cycles (CYC201)."""
    todo: list[tuple[object, object]] = [(list(left), list(right))]
    while todo:
        one, other = todo.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, ast.AST):
            todo.extend((getattr(one, f, None), getattr(other, f, None)) for f in one._fields)
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            todo.extend(zip(one, other, strict=True))
        elif repr(one) != repr(other):  # as 0.0 and -0.0
            return False
    return True


def line_edit(source: Source, node: ast.stmt, text: str) -> Edit | None:
    """The edit that writes `text` in place of a statement; None if the line has other code."""
    line = source.lines[node.lineno - 1].encode()
    before, after = line[: node.col_offset].decode(), line[node.end_col_offset :].decode()
    alone = not before.strip() and (not after.strip() or after.lstrip().startswith("#"))
    if node.end_lineno != node.lineno or not alone:
        return None
    return Edit(node.lineno, node.lineno, before + text + after)
