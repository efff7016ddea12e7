"""The names of eventlet and gevent that a source file uses, found in its syntax tree."""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from cpythonplus.tasklets.migrate._names import LIBRARIES, STAYS, WRITE, Advice, advice

_OPTION = re.compile(r"(?:-k|--worker-class|worker_class)[ =:'\"]+(eventlet|gevent)\b")
_REQUIREMENT = re.compile(r"^[\s\"'-]*(eventlet|gevent)\b\s*(?:$|[\[<>=~!;,\"'#])")
_WORKER = "cpythonplus.tasklets.gunicorn.Worker"
_OPTION_TEXT = Advice(WRITE, f"what the option has for threads; as a worker class {_WORKER}")


class Use(NamedTuple):
    """One place."""

    line: int
    name: str
    advice: Advice


def _is_optional(node: ast.AST) -> bool:
    """Return whether a `try` goes on without what it imports."""
    return isinstance(node, ast.Try) and any(
        handler.type is None
        or "ImportError" in ast.dump(handler.type)
        or "ModuleNotFoundError" in ast.dump(handler.type)
        for handler in node.handlers
    )


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        """The dotted name of each name that an import has bound, in the whole file."""
        self.imports: dict[tuple[int, str], bool] = {}
        """The imported names, each with its line; whether the program goes on without it."""
        self.used: set[str] = set()
        self.uses: set[Use] = set()
        self._optional = 0

    def visit_Try(self, node: ast.Try) -> None:
        optional = _is_optional(node)
        self._optional += optional
        for each in node.body:
            self.visit(each)
        self._optional -= optional
        for rest in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(rest)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            library = alias.name.partition(".")[0]
            if library in LIBRARIES:
                self.bound[alias.asname or library] = alias.name if alias.asname else library
                self.imports[node.lineno, alias.name] = bool(self._optional)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.partition(".")[0] not in LIBRARIES:
            return
        for alias in node.names:
            name = module if alias.name == "*" else f"{module}.{alias.name}"
            self.bound[alias.asname or alias.name] = name
            self.imports[node.lineno, name] = bool(self._optional)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.bound:
            self._use(node.lineno, ".".join([self.bound[inner.id], *reversed(parts)]))
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.bound:
            self._use(node.lineno, self.bound[node.id])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and re.fullmatch(r"(eventlet|gevent)(\.\w+)*", node.value):
            said = _OPTION_TEXT if node.value in LIBRARIES else advice(node.value)
            self.uses.add(Use(node.lineno, repr(node.value), said))

    def _use(self, line: int, name: str) -> None:
        self.used.add(name)
        if name not in LIBRARIES or name == "greenlet":
            self.uses.add(Use(line, name, advice(name)))


def python_uses(source: str | bytes) -> list[Use]:
    """Return the uses in Python source, by lines; raises what ast.parse() raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    finder = _Finder()
    for node in ast.walk(tree):  # a function may use what the module imports below it
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            finder.visit(node)
    finder.imports.clear()
    finder.visit(tree)
    for (line, name), optional in finder.imports.items():
        if optional:
            text = "the program goes on without it"
            finder.uses.add(Use(line, f"import {name}", Advice(STAYS, text)))
        elif not any(each == name or each.startswith(name + ".") for each in finder.used):
            said = advice(name) if name not in LIBRARIES else Advice(WRITE, "no import")
            finder.uses.add(Use(line, f"import {name}", said))
    return sorted(finder.uses)


def text_uses(text: str) -> Iterator[Use]:
    """Yield the uses in a configuration, a list of requirements or a script."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _OPTION.search(line):
            yield Use(number, found[0], Advice(WRITE, f"--worker-class {_WORKER}"))
        elif found := _REQUIREMENT.search(line):
            yield Use(number, found[1], Advice(WRITE, "cpythonplus"))
