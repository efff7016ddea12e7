"""The fixes of hits that can be fixed without changing what the code does."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from cpythonplus_lint.checks import clearing, closures, exceptions
from cpythonplus_lint.checks.around import Around
from cpythonplus_lint.checks.flow import Origin
from cpythonplus_lint.checks.scopes import COMPREHENSIONS, Scope, free_names, names_of, parameters
from cpythonplus_lint.checks.source import Function, FunctionNode, Source, own_nodes
from cpythonplus_lint.model import Edit, Fix, Violation

_LOOKING = {"locals", "vars", "eval", "exec", "dir"}
MAX_ROUNDS = 20


def fixed(source: Source, violations: Iterable[Violation]) -> tuple[str, int]:
    """Return the text with all fixes that do not overlap, and how many hits they fix."""
    edits: dict[Edit, int] = {}
    for hit in violations:
        if hit.fix is not None:
            edits[hit.fix.edit] = edits.get(hit.fix.edit, 0) + 1
    lines = list(source.lines)
    upper = len(lines) + 1
    count = 0
    for edit in sorted(edits, key=lambda one: (-one.last, one.first)):
        if edit.last < upper:
            lines[edit.first - 1 : edit.last] = [edit.text]
            upper = edit.first
            count += edits[edit]
    return "".join(lines), count


def fixes(source: Source, violations: Sequence[Violation]) -> dict[Violation, Fix]:
    """Return the hits that can be fixed, with their fixes."""
    around = Around(source)
    found: dict[Violation, Fix] = {}
    for function, about_it in _by_function(source, violations):
        unread = _fix_unread(source, function, about_it)
        found.update(unread)
        own = [hit for hit in about_it if hit not in unread]
        for codes, fix in (
            (exceptions.CODES, partial(_fix_exceptions, around)),
            (closures.CODES, _fix_closure),
        ):
            hits = [hit for hit in own if hit.code in codes and hit.code != "CYC203"]
            # An edit of the whole function would overlap with that of one line.
            answer = fix(source, function, hits) if hits and not unread else None
            if answer is not None:
                found.update(dict.fromkeys(answer[0], answer[1]))
    return found


def _by_function(
    source: Source, violations: Sequence[Violation]
) -> Iterable[tuple[Function, list[Violation]]]:
    """The hits, grouped by the functions whose variables they concern."""
    later = sorted(source.functions, key=lambda one: -one.node.lineno)
    around: list[Function] = []
    found: dict[int, tuple[Function, list[Violation]]] = {}
    for hit in sorted(violations):
        while later and later[-1].node.lineno <= hit.row:
            _leave(around, later[-1].node.lineno)
            around.append(later.pop())
        _leave(around, hit.row)
        # A hit on a definition concerns a variable of the function that contains the definition.
        for one in reversed(around):
            if (hit.row, hit.column) != (one.node.lineno, one.node.col_offset):
                found.setdefault(id(one), (one, []))[1].append(hit)
                break
    return found.values()


def _leave(around: list[Function], row: int) -> None:
    while around and (around[-1].node.end_lineno or 0) < row:
        around.pop()


# ---- exceptions ---------------------------------------------------------------------------------


def _fix_exceptions(
    around: Around, source: Source, function: Function, hits: list[Violation]
) -> tuple[list[Violation], Fix] | None:
    origins = exceptions.kept(source, function, around)
    # Hits of rules that are not selected, or silenced by a comment, are not fixed.
    asked = {(hit.row, hit.column, hit.code) for hit in hits}
    reported = {_variable(origin) for origin in origins if _place(origin) in asked}
    names = sorted(_clearable(function, origins) & reported)
    if not names:
        return None

    def is_clean() -> bool:
        left = exceptions.kept(source, function, around)
        return not any(_variable(origin) in names for origin in left)

    healed = {_place(origin) for origin in origins if _variable(origin) in names}
    kept = {_place(origin) for origin in origins if _variable(origin) not in names}
    done = [hit for hit in hits if (hit.row, hit.column, hit.code) in healed - kept]
    fix = clearing.fix(source, function.node, names, is_clean) if done else None
    return (done, fix) if fix is not None else None


def _variable(origin: Origin) -> str:
    """The variable that holds the kept object; '' if an attribute or an item holds it."""
    name = origin.path.removesuffix("[]")
    return name if name.isidentifier() else ""


def _place(origin: Origin) -> tuple[int, int, str]:
    return origin.node.lineno, origin.node.col_offset, origin.code


def _clearable(function: Function, origins: set[Origin]) -> set[str]:
    """The variables whose deletion breaks the cycle. A container parameter lives on outside."""
    handed_in = {argument.arg for argument in parameters(function.node.args)}
    lasting = {_variable(origin) for origin in origins if origin.code == "CYC103"} & handed_in
    names = {_variable(origin) for origin in origins} - {""} - lasting
    return names & _own(function.node)


def _own(node: FunctionNode) -> set[str]:
    """The variables that only the function itself can see."""
    names = names_of(node)
    if names.loaded & _LOOKING:
        return set()
    return names.bound.difference(*map(_free, names.inner))


def _free(scope: Scope) -> set[str]:
    """The outer names that an inner scope may still read after its statement has ended."""
    if isinstance(scope, COMPREHENSIONS) and not isinstance(scope, ast.GeneratorExp):
        # The comprehension has ended by then, but a lambda or generator that it made has not.
        names = names_of(scope)
        return set().union(*map(_free, names.inner)) - names.bound
    return free_names(scope)


# ---- unread variables ---------------------------------------------------------------------------


def _fix_unread(source: Source, function: Function, hits: list[Violation]) -> dict[Violation, Fix]:
    """The fixes of `kind, value, trace = sys.exc_info()` if value and trace are not read."""
    found: dict[Violation, Fix] = {}
    places = {(hit.row, hit.column) for hit in hits if hit.code == "CYC102"}
    if not places:
        return found
    read, own = _used(function.node), _own(function.node)
    for node in ast.walk(function.node):
        match node:
            case ast.Assign(
                targets=[
                    ast.Tuple(elts=[ast.Name(id=kind), ast.Name(id=value), ast.Name(id=trace)])
                ],
                value=ast.Call(func=called),
            ) if (node.lineno, node.col_offset) in places:
                unread = {value, trace}.isdisjoint(read) and kind not in (value, trace)
                if not unread or not own >= {value, trace}:
                    continue
                seen = kind in read or kind not in own
                text = f"{kind} = {ast.unparse(called)}()[0]" if seen else "pass"
                edit = clearing.line_edit(source, node, text)
                if edit is not None:
                    fix = Fix("Remove variables that are never read", edit)
                    place = (node.lineno, node.col_offset)
                    found |= {hit: fix for hit in hits if (hit.row, hit.column) == place}
            case _:
                pass
    return found


def _used(node: FunctionNode) -> set[str]:
    """The variables that must have a value because they are read, deleted, or added to."""
    found: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            found.add(one.target.id)
    return found


# ---- closures -----------------------------------------------------------------------------------


def _fix_closure(
    source: Source, function: Function, hits: list[Violation]
) -> tuple[list[Violation], Fix] | None:
    found = closures.inner_functions(function.node)
    in_row: dict[int, closures.Inner] = {}
    for one in found:
        in_row.setdefault(one.lineno, one)
    uses = _Uses(function.node)
    names = []
    done = []
    for hit in hits:
        inner = in_row.get(hit.row)
        if hit.code == "CYC201" and inner is not None and _is_only_called(uses, inner):
            names.append(found[inner])
            done.append(hit)
    if not names:
        return None

    def is_clean() -> bool:
        left = closures.left_over(source, function)
        return not any(origin.path in names for cycle in left for origin in cycle)

    fix = clearing.fix(source, function.node, names, is_clean)
    return None if fix is None else (done, fix)


class _Uses:
    """The uses that a function makes of the names of its inner functions."""

    def __init__(self, node: FunctionNode) -> None:
        names = names_of(node)
        self.looks = bool(names.loaded & _LOOKING) or _is_generator(node)
        """Whether the function may reach the names in another way, or later."""
        self.taken = Counter(name for one in names.inner for name in _free(one))
        """The number of inner scopes that take a name from outside."""
        self.handed_on: Counter[str] = Counter()
        """The number of loads of a name other than for a call."""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
                self.handed_on[one.func.id] -= 1
            elif isinstance(one, ast.Name):
                self.handed_on[one.id] += 1


def _is_only_called(outer: _Uses, inner: ast.AST) -> bool:
    """Whether an inner function is only called by the outer one and by itself, never later.

    A generator or a lambda runs later; a function that is returned or passed on may be called
    later.
    """
    if not isinstance(inner, ast.FunctionDef) or inner.decorator_list:
        return False
    own, name = _Uses(inner), inner.name
    return (
        not (outer.looks or own.looks or outer.handed_on[name] or own.handed_on[name])
        and not own.taken[name]
        and outer.taken[name] == (name in _free(inner))
    )


def _is_generator(function: FunctionNode) -> bool:
    waits = (ast.Yield, ast.YieldFrom, ast.Await)
    is_async = isinstance(function, ast.AsyncFunctionDef)
    return is_async or any(isinstance(node, waits) for node in own_nodes(function.body))
