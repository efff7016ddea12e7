"""One Python file as the rules see it: text, syntax tree, functions, imports.

Parsing takes most of the time that a run takes, and walking all nodes of a tree would take four
times as much again. So the rules look for words in the text first, and only the statements of a
tree, never all its expressions, are gone through.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cpythonplus.memory._lint.model import Problem, Violation

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_BODIES = ("body", "orelse", "handlers", "finalbody", "cases")
_COOKIE = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t\f]*#.*?coding[:=]", re.MULTILINE)


class UnreadableError(Exception):
    """The file cannot be checked; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file. References lead upwards only: nothing here needs the collector."""

    node: FunctionNode
    outer: Function | None
    """The function around it, classes in between left out."""
    owner: ast.ClassDef | None
    """The class whose method it is."""

    @property
    def is_method(self) -> bool:
        """Whether its first parameter is the object, or the class."""
        return self.owner is not None


@dataclass(frozen=True, slots=True)
class Class:
    """A class statement, and the function that it stands in."""

    node: ast.ClassDef
    outer: Function | None


def decoded(data: bytes) -> str:
    """Return the text of a Python file. Raises UnreadableError."""
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise UnreadableError(Problem(line, 0, "source contains null bytes"))
    head = b"\n".join(data.split(b"\n", 2)[:2])
    try:
        if _COOKIE.search(head):
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            return data.decode(encoding)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"not decodable as {error.encoding}: byte 0x{data[error.start]:02x}"
        raise UnreadableError(Problem(line, 0, message)) from None
    except (SyntaxError, LookupError, UnicodeError) as error:
        raise UnreadableError(Problem(1, 0, str(error))) from None


def parsed(text: str) -> ast.Module:
    """Return the tree of a file. Raises UnreadableError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes: somebody else's business
            return ast.parse(text)
    except SyntaxError as error:
        message = error.msg.replace("\n", " ")
        row, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        raise UnreadableError(Problem(row, column, message)) from None
    except (RecursionError, MemoryError):
        raise UnreadableError(Problem(1, 0, "too deeply nested to be parsed")) from None
    except ValueError as error:
        raise UnreadableError(Problem(1, 0, str(error))) from None


class Source:
    """A file that could be parsed."""

    def __init__(self, text: str, name: str = "<stdin>", tree: ast.Module | None = None) -> None:
        self.text = text
        self.name = name
        self.tree = parsed(text) if tree is None else tree
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.handlers: list[tuple[Function, ast.ExceptHandler]] = []
        """Those that name the exception, with the functions that they stand in."""
        self.raises: list[tuple[Function, ast.Raise]] = []
        self._imports: list[ast.Import | ast.ImportFrom] = []
        self._collect()

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, counted as the parser counts them."""
        return split(self.text)

    def excerpt(self, first: int, last: int) -> str:
        """The lines from `first` to `last`, counted from 1."""
        return "".join(self.lines[first - 1 : last])

    def _collect(self) -> None:
        """Go through all statements once, the outer ones first."""
        stack: list[tuple[ast.AST, Function | None, ast.ClassDef | None]] = [
            (self.tree, None, None)
        ]
        while stack:
            node, outer, owner = stack.pop()
            if isinstance(node, FUNCTIONS):
                outer, owner = Function(node, outer, owner), None
                self.functions.append(outer)
            elif isinstance(node, ast.ClassDef):
                self.classes.append(Class(node, outer))
                owner = node
            for child in statements_in(node):
                if isinstance(child, _PLAIN):
                    continue
                if isinstance(child, (ast.Import, ast.ImportFrom)):
                    self._imports.append(child)
                    continue
                stack.append((child, outer, owner))
                if outer is None:
                    continue
                if isinstance(child, ast.ExceptHandler) and child.name is not None:
                    self.handlers.append((outer, child))
                elif isinstance(child, ast.Raise):
                    self.raises.append((outer, child))

    @cached_property
    def qualified(self) -> dict[str, str]:
        """What imported names stand for: `{"exc_info": "sys.exc_info", "s": "sys"}`."""
        names: dict[str, str] = {}
        for node in self._imports:
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
            for alias in node.names:
                if alias.asname or prefix:
                    names[alias.asname or alias.name] = prefix + alias.name
        return names

    def full_name(self, expression: ast.expr) -> str:
        """The dotted name of an expression with imports resolved, as `sys.exc_info`; else ''."""
        name = dotted(expression)
        first, dot, rest = name.partition(".")
        return self.qualified.get(first, first) + dot + rest

    def lines_with(self, word: str) -> list[int]:
        """The numbers of the lines that have `word` in them, ascending."""
        if word not in self.text:
            return []
        return [number for number, line in enumerate(self.lines, 1) if word in line]


_PLAIN = (ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Pass)


def split(text: str) -> list[str]:
    """The lines of a text with their ends, counted as the parser counts them."""
    return io.StringIO(text, newline="").readlines()


def statements_in(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases that stand directly in a compound statement."""
    return [child for name in _BODIES for child in getattr(node, name, ())]


def own_nodes(
    body: Iterable[ast.AST], is_foreign: Callable[[ast.AST], bool] | None = None
) -> Iterator[ast.AST]:
    """All nodes of a body, but for what is in nodes that are foreign: functions, by default."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not (is_foreign or _is_function)(node):
            stack.extend(ast.iter_child_nodes(node))


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (*FUNCTIONS, ast.Lambda))


def at(node: ast.stmt | ast.expr, code: str, text: str) -> Violation:
    """A hit on a node; on the first line only where the node is a whole definition."""
    row, column = node.lineno, node.col_offset
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        words = 6 if isinstance(node, ast.ClassDef) else 4
        words += 6 if isinstance(node, ast.AsyncFunctionDef) else 0
        return Violation(row, column, code, text, row, column + words + len(node.name.encode()))
    return Violation(row, column, code, text, node.end_lineno or row, node.end_col_offset or column)


def within(lines: list[int], node: ast.stmt) -> bool:
    """Whether one of the ascending `lines` is one of the node's."""
    at = bisect_left(lines, node.lineno)
    return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)


def dotted(expression: ast.expr) -> str:
    """`a.b.c` for names and attributes of names, else ''."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return ""
    return ".".join([expression.id, *reversed(parts)])


def last_name(expression: ast.expr) -> str:
    """`c` for `a.b.c`, `f().c` and `c`, else ''."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""
