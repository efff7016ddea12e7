"""Follows what the variables of one function may hold, along every path out of it.

An abstract interpreter over the statements: a state maps access paths (`last`, `self.error`,
`errors[]`) to the places that may have stored what they hold now; the states of joining branches
are united. Explicit exits count: the end of the function, `return` and `raise`. A call is assumed
to raise only if something inside the function would catch the exception; otherwise hardly any `del`
would ever come early enough.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from cpythonplus_lint.checks.source import FUNCTIONS, TryStar, last_name

_SWALLOWING = {"suppress", "raises", "assertRaises", "assertRaisesRegex"}
_MAX_STEPS = 20_000
"""The most statements visited in one function; nested loops with `finally` multiply visits."""

_PATHS_OF_A_STEP = 100
"""The number of paths in a state that cost one more step: a statement goes over all of them."""


class TooComplexError(Exception):
    """A function whose analysis would take too long."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The code that stored what a path holds."""

    code: str
    """The rule's code; empty if it is no hit in itself, as for a handler's own variable."""
    path: str
    kind: str
    node: ast.stmt | ast.expr


State = dict[str, frozenset[Origin]]
"""The origins by access path. A state is not changed after it was handed on."""


def join(*states: State | None) -> State | None:
    """The union of the states of several branches; None is the state of unreachable code."""
    reached = [state for state in states if state is not None]
    if not reached:
        return None
    result = dict(reached[0])
    for state in reached[1:]:
        for path, origins in state.items():
            result[path] = result.get(path, frozenset()) | origins
    return result


def without(state: State, path: str) -> State:
    """The state without `path` and every path that begins with it."""
    parts = (f"{path}.", f"{path}[")
    if not any(key == path or key.startswith(parts) for key in state):
        return state
    return {
        key: origins for key, origins in state.items() if key != path and not key.startswith(parts)
    }


def path_of(expression: ast.expr) -> str:
    """`self.errors[k]` as an access path; '' if the expression does not begin with a name."""
    parts: list[str] = []
    while not isinstance(expression, ast.Name):
        match expression:
            case ast.Attribute(value=value, attr=name):
                parts.append(f".{name}")
            case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None)):
                pass  # `x[:]` has the items of `x`
            case ast.Subscript(value=value, slice=index):
                parts.append(f"[{ast.unparse(index)}]")
            case _:
                return ""
        expression = value
    return "".join([expression.id, *reversed(parts)])


@dataclass(slots=True)
class Out:
    """The states in which a piece of code may be left, by the kind of exit."""

    normal: State | None = None
    breaks: State | None = None
    continues: State | None = None
    returns: State | None = None
    raises: State | None = None
    """By a `raise` statement."""
    throws: State | None = None
    """By anything that may raise; only exception handlers read this state."""

    def add(self, other: Out) -> None:
        """Unite with the abrupt exits of `other`; `normal` becomes the other's."""
        self.breaks = join(self.breaks, other.breaks)
        self.continues = join(self.continues, other.continues)
        self.returns = join(self.returns, other.returns)
        self.raises = join(self.raises, other.raises)
        self.throws = join(self.throws, other.throws)
        self.normal = other.normal


class Domain(Protocol):
    """The effects of statements on a state; `Flow` itself knows no rules."""

    def evaluate(self, expression: ast.expr, state: State) -> State:
        """The state after an expression."""

    def execute(self, statement: ast.stmt, state: State) -> State:
        """The state after a statement that contains no others, or after a `def` or `class`."""

    def bind(self, target: ast.expr, state: State) -> State:
        """The state after a loop's or a `with` statement's target got something new."""

    def enter_handler(self, handler: ast.ExceptHandler, state: State) -> State:
        """The state at the beginning of a handler."""

    def leave_handler(self, handler: ast.ExceptHandler, state: State) -> State:
        """The state behind a handler, for every kind of exit."""

    def ends_the_process(self, called: ast.expr) -> bool:
        """Whether a function does not return, as `sys.exit`."""

    handling: int
    """How many exceptions are being handled at this place, in this function."""


class Flow:
    """Runs statements on states."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._steps = 0

    def run(self, body: Sequence[ast.stmt], state: State) -> Out:
        """Run a function's body. Raises TooComplexError."""
        return self._block(body, state)

    def _block(self, statements: Sequence[ast.stmt], state: State | None) -> Out:
        out = Out(normal=state)
        for statement in statements:
            if out.normal is None:
                break
            self._steps += 1 + len(out.normal) // _PATHS_OF_A_STEP
            if self._steps > _MAX_STEPS:
                raise TooComplexError
            out.add(self._statement(statement, out.normal))
        return out

    def _statement(self, node: ast.stmt, state: State) -> Out:
        match node:
            case ast.If():
                return self._if(node, state)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, state)
            case ast.Try() | TryStar():
                return self._try(node, state)
            case ast.With() | ast.AsyncWith():
                return self._with(node, state)
            case ast.Match():
                return self._match(node, state)
            case _:
                return self._simple(node, state)

    def _simple(self, node: ast.stmt, state: State) -> Out:  # noqa: PLR0911  # a table
        after = self._domain.execute(node, state)
        throws = state if may_raise(node) else None
        match node:
            case ast.Return():
                return Out(returns=after, throws=throws)
            case ast.Raise():
                return Out(raises=after, throws=after)
            case ast.Break():
                return Out(breaks=after)
            case ast.Continue():
                return Out(continues=after)
            case ast.Expr(value=ast.Call(func=called)) if self._domain.ends_the_process(called):
                return Out(throws=throws)
            case ast.Assert(test=ast.Constant(value=False)):
                return Out(throws=throws)
            case ast.Assert(test=test):
                return Out(normal=refine(after, test, truth=True), throws=throws)
            case _:
                return Out(normal=after, throws=throws)

    def _if(self, node: ast.If, state: State) -> Out:
        """Run an `if`. A chain of `elif` is iterated over: it may be too long for recursion."""
        out = Out()
        ends: list[State | None] = []
        rest: State | None = state
        while rest is not None:
            rest = self._domain.evaluate(node.test, rest)
            out.throws = join(out.throws, rest)
            out.add(self._block(node.body, refine(rest, node.test, truth=True)))
            ends.append(out.normal)
            rest = refine(rest, node.test, truth=False)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                out.add(self._block(node.orelse, rest))
                ends.append(out.normal)
                break
            node = node.orelse[0]
        out.normal = join(*ends)
        return out

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> Out:
        head = node.test if isinstance(node, ast.While) else node.iter
        first = self._domain.evaluate(head, state)
        out = Out(throws=state)
        at_head: State | None = first
        while True:
            body = self._turn(node, at_head)
            united = join(first, at_head, body.normal, body.continues)
            if united == at_head:
                break
            at_head = united
        out.add(Out(returns=body.returns, raises=body.raises, throws=body.throws))
        exhausted = at_head
        if isinstance(node, ast.While):
            exhausted = refine(at_head, node.test, truth=False)
        out.add(self._block(node.orelse, exhausted))
        out.normal = join(out.normal, body.breaks)
        return out

    def _turn(self, node: ast.For | ast.AsyncFor | ast.While, state: State | None) -> Out:
        if state is None:
            return Out()
        if isinstance(node, ast.While):
            tested = self._domain.evaluate(node.test, state)
            return self._block(node.body, refine(tested, node.test, truth=True))
        return self._block(node.body, self._domain.bind(node.target, state))

    def _with(self, node: ast.With | ast.AsyncWith, state: State) -> Out:
        entered, swallows = state, False
        for item in node.items:
            entered = self._domain.evaluate(item.context_expr, entered)
            if item.optional_vars is not None:
                entered = self._domain.bind(item.optional_vars, entered)
            call = item.context_expr
            swallows |= isinstance(call, ast.Call) and last_name(call.func) in _SWALLOWING
        out = Out(throws=state)
        out.add(self._block(node.body, entered))
        if swallows:
            out.normal = join(out.normal, out.throws, out.raises)
            out.raises = None
        return out

    def _match(self, node: ast.Match, state: State) -> Out:
        rest: State | None = self._domain.evaluate(node.subject, state)
        out = Out(throws=state)
        ends: list[State | None] = []
        for case in node.cases:
            guarded = rest
            if case.guard is not None and rest is not None:
                guarded = self._domain.evaluate(case.guard, rest)
            out.add(self._block(case.body, guarded))
            ends.append(out.normal)
            match case:
                case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
                    rest = None
        out.normal = join(rest, *ends)
        return out

    def _try(self, node: ast.Try | TryStar, state: State) -> Out:
        body = self._block(node.body, state)
        out = Out(
            breaks=body.breaks, continues=body.continues, returns=body.returns, throws=body.throws
        )
        thrown = join(body.throws, body.raises)
        out.raises = body.raises
        if _catches_all(node.handlers):
            out.raises = out.throws = None
        out.add(self._block(node.orelse, body.normal))
        ends = [out.normal]
        for handler in node.handlers:
            out.add(self._handler(handler, thrown, body.raises))
            ends.append(out.normal)
        out.normal = join(*ends)
        return self._finally(node.finalbody, out) if node.finalbody else out

    def _handler(
        self, handler: ast.ExceptHandler, thrown: State | None, raised: State | None
    ) -> Out:
        """Run a handler. If it ends in `raise`, drop what is held only because a call may raise."""
        if thrown is None:
            return Out()
        domain = self._domain
        domain.handling += 1
        out = self._block(handler.body, domain.enter_handler(handler, thrown))
        domain.handling -= 1
        if raised is not thrown and _passes_on(handler):
            out.raises = _but_for(out.raises, thrown, raised)
        for way in _WAYS:
            state = getattr(out, way)
            if state is not None:
                setattr(out, way, domain.leave_handler(handler, state))
        return out

    def _finally(self, body: Sequence[ast.stmt], before: Out) -> Out:
        """Run `finally` once for each kind of exit into it; each continues as that exit."""
        out = Out()
        ends: dict[str, State | None] = {}
        for way in _WAYS:
            with_exception = way in ("raises", "throws")
            self._domain.handling += with_exception
            out.add(self._block(body, getattr(before, way)))
            self._domain.handling -= with_exception
            ends[way] = out.normal
        out.normal = None
        out.add(Out(**ends))
        return out


_WAYS = tuple(one.name for one in fields(Out))


def _passes_on(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _but_for(state: State | None, thrown: State | None, raised: State | None) -> State | None:
    """A state without what is held only because any call in the `try` may raise."""
    if state is None or thrown is None:
        return state
    believed = raised or {}
    return {
        path: left
        for path, origins in state.items()
        if (left := origins - (thrown.get(path, frozenset()) - believed.get(path, frozenset())))
    }


def _catches_all(handlers: Iterable[ast.ExceptHandler]) -> bool:
    return any(
        handler.type is None or last_name(handler.type) in ("BaseException", "Exception")
        for handler in handlers
    )


def may_raise(node: ast.stmt) -> bool:
    """Whether a statement does more than move names and constants."""
    match node:
        case ast.Assign(value=ast.Name() | ast.Constant(), targets=targets):
            return not all(isinstance(target, ast.Name) for target in targets)
        case ast.Return(value=None | ast.Name() | ast.Constant()) | ast.Expr(value=ast.Constant()):
            return False
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal():
            return False
        case ast.Delete(targets=targets):
            return not all(isinstance(target, ast.Name) for target in targets)
        case _:
            return not isinstance(node, FUNCTIONS)


def refine(  # noqa: PLR0911  # a table
    state: State | None, test: ast.expr, *, truth: bool
) -> State | None:
    """The state if `test` is `truth`: a path that is None or empty holds nothing."""
    if state is None:
        return None
    match test:
        case ast.Constant(value=value):
            return state if bool(value) == truth else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return refine(state, operand, truth=not truth)
        case ast.BoolOp(op=operator, values=values):
            return _refine_all(state, values, truth=truth, is_and=isinstance(operator, ast.And))
        case ast.Compare(
            left=left,
            ops=[ast.Is() | ast.Eq() | ast.IsNot() | ast.NotEq() as operator],
            comparators=[ast.Constant(value=None)],
        ):
            is_none = truth == isinstance(operator, (ast.Is, ast.Eq))
            return without(state, path_of(left)) if is_none else state
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len")) as left, ops=[operator], comparators=[right]
        ):
            return _refine_length(state, left, operator, right, truth=truth)
        case ast.Call(func=ast.Name(id="len" | "bool"), args=[operand]):
            return refine(state, operand, truth=truth)
        case ast.NamedExpr(target=target):
            return refine(state, target, truth=truth)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return state if truth else without(state, path_of(test))
        case _:
            return state


def _refine_length(
    state: State, length: ast.expr, operator: ast.cmpop, right: ast.expr, *, truth: bool
) -> State | None:
    """The state after `len(x) > 0`, `len(x) == 0` and the like, which say if x is empty."""
    match operator, right:
        case (ast.Gt() | ast.NotEq(), ast.Constant(value=0)) | (ast.GtE(), ast.Constant(value=1)):
            return refine(state, length, truth=truth)
        case (ast.Eq() | ast.LtE(), ast.Constant(value=0)) | (ast.Lt(), ast.Constant(value=1)):
            return refine(state, length, truth=not truth)
        case _:
            return state


def _refine_all(
    state: State, values: Sequence[ast.expr], *, truth: bool, is_and: bool
) -> State | None:
    """The state after `and` or `or`: an operand is evaluated if those before did not decide."""
    decided: list[State | None] = []
    reached: State | None = state
    for value in values:
        decided.append(refine(reached, value, truth=not is_and))
        reached = refine(reached, value, truth=is_and)
    return reached if truth == is_and else join(*decided)
