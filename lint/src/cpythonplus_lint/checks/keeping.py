"""The effects of a function's statements on the exceptions, `exc_info` and functions it keeps.

This is the `Domain` of flow.py. A handler's own variable (`except E as e`) is no hit: it is deleted
at the handler's end. A copy of it is a hit: an exception that was caught here has this frame on its
traceback, so if the frame still holds it at its end, there is a cycle.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from cpythonplus_lint.checks.elsewhere import BREAKERS, REMOVERS
from cpythonplus_lint.checks.flow import Origin, State, join, path_of, without
from cpythonplus_lint.checks.source import FUNCTIONS, FunctionNode, Source, last_name

EXCEPTION = "exception"
INFO = "exc_info"
PART = "part of exc_info"
CONTAINER = "container"
FUNCTION = "function"
FRESH = "new exception"
GIVEN = "exception given to __exit__"
FRAME = "frame"
FUTURE = "future"

ADDERS = {"append", "appendleft", "add", "insert", "setdefault", "extend", "update"}
# `put` is not one of these methods: other code takes the items out of a queue.
_PLAIN_ATTRIBUTES = {"__cause__", "__context__", "__traceback__"}

_CODES = {EXCEPTION: "CYC101", INFO: "CYC102", PART: "CYC102", CONTAINER: "CYC103"}
ENDS_THE_PROCESS = {"_exit", "exit", "abort"}
_FUTURES = {"Future", "create_future"}
_RECORDS = {"LogRecord", "makeLogRecord", "makeRecord"}

INSTANCE_NAME = re.compile(r"(?:^|_)(?:e|ex|err|exc|error|exception)\d?$")
_MAKER_NAME = re.compile(r"^_?[A-Z]\w*[a-z]\w*$|(?:^|_)(?:error|exc|exception)$|^with_traceback$")
_ANNOTATION = re.compile(r"(?:Exception|Error)\w*$")
_TRACE_NAME = re.compile(r"(?:^|_)(?:tb|trace|traceback|tback)$")
_VALUE_NAME = re.compile(r"(?:^|_)(?:v|val|value|e|ex|err|exc|error|exception|inst|instance)$")


@dataclass(frozen=True, slots=True)
class About:
    """The facts about the names in one function that come from the rest of the file."""

    attributes: frozenset[str] = frozenset()
    """Paths, as `self._error`, that hold an exception, if anything."""
    catching: frozenset[str] = frozenset()
    """Paths, as `self.attempt`, of functions that return an exception that they caught."""
    ending: frozenset[str] = frozenset()
    """Functions of the file that end the process."""
    walked: frozenset[str] = frozenset()
    """Variables that move from a frame to its caller."""


@dataclass(slots=True)
class Keeping:
    """The effects of one function's statements."""

    source: Source
    global_names: frozenset[str]
    recursive: dict[FunctionNode | ast.Lambda, str] = field(default_factory=dict)
    """Inner functions that cells of this function lead back to, and their names."""
    about: About = field(default_factory=About)
    handling: int = 0

    # ---- the values that an expression holds ----------------------------------------------------

    def held(self, expression: ast.expr, state: State) -> str:  # noqa: PLR0911  # a table
        """The kind of object that a reference to the expression's value keeps; '' for nothing."""
        match expression:
            case ast.Name() | ast.Attribute(ctx=ast.Load()):
                return self._held_by_path(expression, state)
            case ast.NamedExpr(value=value):
                return self.held(value, state)
            case ast.IfExp(body=body, orelse=orelse):
                return self.held(body, state) or self.held(orelse, state)
            case ast.BoolOp(op=ast.And(), values=[*_, value]):
                return self.held(value, state)
            case ast.BoolOp(values=values):
                return next(filter(None, (self.held(value, state) for value in values)), "")
            case ast.Tuple(elts=values) | ast.List(elts=values) | ast.Set(elts=values):
                return self._held_by_display(values, state)
            case ast.Dict(keys=keys, values=values):
                return self._held_by_display([*filter(None, keys), *values], state)
            case ast.Subscript():
                return self._held_by_item(expression, state)
            case ast.Call():
                return self._held_by_result(expression, state)
            case _:
                return ""

    def _held_by_path(self, expression: ast.expr, state: State) -> str:
        path = path_of(expression).removesuffix(".__traceback__")
        kinds = {origin.kind for origin in state.get(path, ())}
        if not kinds.isdisjoint((EXCEPTION, PART)):
            return EXCEPTION
        return INFO if INFO in kinds and path == path_of(expression) else ""

    def _held_by_display(self, values: list[ast.expr], state: State) -> str:
        return CONTAINER if any(self.held(value, state) for value in values) else ""

    def _held_by_item(self, expression: ast.Subscript, state: State) -> str:
        if self.held(expression.value, state) != INFO:
            return self._held_by_path(expression, state)
        match expression.slice:
            case ast.Constant(value=0) | ast.UnaryOp(operand=ast.Constant(value=3)):
                return ""  # the type
            case ast.Slice(upper=ast.Constant(value=1)):
                return ""
            case ast.Slice():
                return INFO
            case _:
                return PART

    def _held_by_result(self, call: ast.Call, state: State) -> str:
        match call:
            case ast.Call(func=ast.Attribute(value=value, attr="with_traceback"), args=[argument]):
                is_none = isinstance(argument, ast.Constant)
                return "" if is_none else self.held(value, state)
            case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
                return self.held(value, state)
            case ast.Call(func=called) if last_name(called) in _RECORDS:
                return CONTAINER if self._given_info(call, state) else ""
            case ast.Call(func=called) if path_of(called) in self.about.catching:
                return EXCEPTION
        if call.args or call.keywords or not self.handling:
            # If no exception is being handled here, this frame is not on the traceback.
            return ""
        name = self.source.full_name(call.func)
        return {"sys.exc_info": INFO, "sys.exception": EXCEPTION}.get(name, "")

    def _given_info(self, call: ast.Call, state: State) -> bool:
        """Whether a log record is made of the exception that is being handled."""
        given = [*call.args, *(word.value for word in call.keywords)]
        given += [item for one in given if isinstance(one, ast.Dict) for item in one.values]
        return any(self.held(one, state) == INFO for one in given)

    # ---- flow.Domain ----------------------------------------------------------------------------

    def evaluate(self, expression: ast.expr, state: State) -> State:
        """Apply `:=` and the calls that add to containers or empty them."""
        if isinstance(expression, (ast.Name, ast.Constant)):
            return state
        for node in ast.walk(expression):
            if isinstance(node, ast.NamedExpr):
                state = self._assign(node.target, node.value, state, node)
            elif isinstance(node, ast.Call):
                state = self._call(node, state)
        return state

    def execute(self, statement: ast.stmt, state: State) -> State:
        """Apply assignments, deletions and definitions."""
        match statement:
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return self._store(statement, state)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                return self.evaluate(value, state)
            case ast.Raise(exc=ast.expr() as raised):
                return self._raise(statement, self.evaluate(raised, state))
            case ast.Delete(targets=targets):
                for target in targets:
                    state = without(state, path_of(target))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self._define(statement, state)
            case _:
                pass
        return state

    def _store(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, state: State) -> State:
        value = node.value
        if value is None:  # an annotation alone
            return state
        state = before = self.evaluate(value, state)
        if isinstance(node, ast.AugAssign):
            kept = self._is_display_of_held(value, state)
            return self._keep(f"{path_of(node.target)}[]", "CYC103", state, node) if kept else state
        for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
            state = self._assign(target, value, state, node, before)
        return state

    def bind(self, target: ast.expr, state: State) -> State:
        """A loop's variable holds nothing that a rule looks at."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                state = self.bind(part, state)
            return state
        if isinstance(target, ast.Starred):
            return self.bind(target.value, state)
        return without(state, path_of(target))

    def enter_handler(self, handler: ast.ExceptHandler, state: State) -> State:
        """The handler's variable holds the exception."""
        if handler.name is None:
            return state
        origin = Origin("", handler.name, EXCEPTION, handler.body[0])
        return {**without(state, handler.name), handler.name: frozenset({origin})}

    def leave_handler(self, handler: ast.ExceptHandler, state: State) -> State:
        """The handler's variable is deleted."""
        return without(state, handler.name) if handler.name is not None else state

    def ends_the_process(self, called: ast.expr) -> bool:
        """`sys.exit`, `os.abort`, and functions of the file that end with one of them."""
        return last_name(called) in ENDS_THE_PROCESS or path_of(called) in self.about.ending

    # ---- statements -----------------------------------------------------------------------------

    def _define(self, statement: FunctionNode | ast.ClassDef, state: State) -> State:
        state = without(state, statement.name)
        if isinstance(statement, FUNCTIONS) and statement in self.recursive:
            origin = Origin("CYC201", statement.name, FUNCTION, statement)
            state = {**state, statement.name: frozenset({origin})}
        return state

    def _assign(  # noqa: PLR0911  # a table
        self,
        target: ast.expr,
        value: ast.expr,
        state: State,
        node: ast.stmt | ast.expr,
        before: State | None = None,
    ) -> State:
        """`target = value`; `before` is the state that the value was evaluated in."""
        known = state if before is None else before
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._unpack(target.elts, value, state, node, known)
        kind = self.held(value, known)
        path = path_of(target)
        state = without(state, path)
        match target:
            case ast.Name(id=name):
                return self._assign_name(name, value, kind, state, node)
            case ast.Attribute(value=holder, attr=attribute):
                if attribute in ("__traceback__", "exc_info") and not kind:
                    return without(state, path_of(holder))
                if _makes_frame(self.source, value):
                    return self._keep(path, "CYC106", state, node, FRAME)
                given = state.get(path_of(value), ()) if isinstance(value, ast.Name) else ()
                if any(origin.kind == GIVEN for origin in given):
                    return self._keep(path, "CYC104", state, node, EXCEPTION)
                is_last = self.source.full_name(target).startswith("sys.last_")
                if kind and attribute not in _PLAIN_ATTRIBUTES and not is_last:
                    return self._keep(path, "CYC104", state, node, kind)
            case ast.Subscript() if kind:
                return self._keep(path, "CYC103", state, node, kind)
        return state

    def _assign_name(
        self, name: str, value: ast.expr, kind: str, state: State, node: ast.stmt | ast.expr
    ) -> State:
        if isinstance(value, ast.Lambda) and value in self.recursive:
            return {**state, name: frozenset({Origin("CYC201", name, FUNCTION, node)})}
        if not kind:
            origin = self._harmless(name, value, state, node)
            if origin is not None:
                return {**state, name: frozenset({origin})}
            return state
        code = "CYC104" if name in self.global_names else _CODES[kind]
        return self._keep(name, code, state, node, kind)

    def _harmless(
        self, name: str, value: ast.expr, state: State, node: ast.stmt | ast.expr
    ) -> Origin | None:
        """An origin that is not a hit of these rules now, but that later statements need."""
        path = path_of(value) if isinstance(value, ast.Attribute) else ""
        if path in self.about.attributes and path not in state:
            return Origin("", path, FRESH, node)
        if isinstance(value, ast.Call) and last_name(value.func) in _FUTURES:
            return Origin("", name, FUTURE, node)
        if makes_exception(value):
            return Origin("", name, FRESH, node)
        is_frame = _makes_frame(self.source, value)
        if isinstance(value, ast.Name):
            is_frame = any(origin.kind == FRAME for origin in state.get(value.id, ()))
        if is_frame and name not in self.about.walked:
            return Origin("CYC106", name, FRAME, node)
        return None

    def _unpack(
        self,
        targets: list[ast.expr],
        value: ast.expr,
        state: State,
        node: ast.stmt | ast.expr,
        before: State,
    ) -> State:
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets):
            for target, part in zip(targets, value.elts, strict=True):
                state = self._assign(target, part, state, node, before)
            return state
        is_info = self.held(value, before) == INFO
        begins_with_type = not _is_tail(value)
        for place, target in enumerate(targets):
            state = self.bind(target, state)
            is_type = place == 0 and begins_with_type
            if is_info and isinstance(target, ast.Name) and not is_type:
                state = self._keep(target.id, "CYC102", state, node, PART)
        return state

    def _raise(self, node: ast.Raise, state: State) -> State:
        """`raise x` puts this frame, and with it x, on x's own traceback."""
        path = raised_path(node)
        if path in self.about.attributes and path not in state:
            return self._keep(path, "CYC105", state, node, EXCEPTION)
        origins = state.get(path, frozenset()) if path is not None else frozenset()
        if not origins or not {origin.kind for origin in origins} <= {FRESH, GIVEN}:
            return state
        # If `path` is a copy of `self.error`, the attribute holds the exception as well.
        for held in {str(path), *(origin.path for origin in origins)}:
            state = self._keep(held, "CYC105", state, node, EXCEPTION)
        return state

    def _call(self, call: ast.Call, state: State) -> State:
        name = last_name(call.func)
        if name in BREAKERS and len(call.args) == 1:
            return without(state, path_of(call.args[0]))
        if not isinstance(call.func, ast.Attribute):
            return state
        path = container_path(call.func.value)
        if name == "set_exception" and len(call.args) == 1:
            is_new = any(origin.kind == FUTURE for origin in state.get(path, ()))
            kept = is_new and self.held(call.args[0], state) == EXCEPTION
            return self._keep(f"{path}[]", "CYC103", state, call) if kept else state
        if name in REMOVERS:
            emptied = without(state, path)
            # An exception's own attributes are not a container's contents.
            return {**emptied, path: state[path]} if path in state and name != "clear" else emptied
        if name not in ADDERS or not path or path in state:
            return state
        arguments = [*call.args, *(word.value for word in call.keywords)]
        if name in ("extend", "update"):
            kept = any(self._is_display_of_held(one, state) for one in arguments)
        else:
            kept = any(self.held(one, state) for one in arguments)
        return self._keep(f"{path}[]", "CYC103", state, call) if kept else state

    def _is_display_of_held(self, value: ast.expr, state: State) -> bool:
        is_display = isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.Dict))
        return is_display and self.held(value, state) == CONTAINER

    def _keep(
        self,
        path: str,
        code: str,
        state: State,
        node: ast.stmt | ast.expr,
        kind: str = CONTAINER,
    ) -> State:
        if not path or path.startswith("["):
            return state
        origin = Origin(code, path, kind, node)
        together = join(state, {path: frozenset({origin})})
        return together if together is not None else state


def container_path(expression: ast.expr) -> str:
    """The path of the container: `d` for `d[k]` and for `d.setdefault(k, [])`."""
    while True:
        match expression:
            case ast.Subscript(value=value):
                expression = value
            case ast.Call(func=ast.Attribute(value=value, attr="setdefault")):
                expression = value
            case _:
                return path_of(expression)


def raised_path(node: ast.Raise) -> str | None:
    """The path that is raised by `raise x`, `raise x.with_traceback(...)` or `raise self.x`."""
    raised = node.exc
    match raised:
        case ast.Call(func=ast.Attribute(value=value, attr="with_traceback")):
            raised = value
        case _:
            pass
    match raised:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=holder), attr=name):
            return f"{holder}.{name}"
        case _:
            return None


def _is_tail(value: ast.expr) -> bool:
    """Whether a value is a part of a sequence without its first item: `info[1:]`, `info[1]`."""
    match value:
        case ast.Subscript(slice=ast.Slice(lower=None | ast.Constant(value=0))):
            return False
        case _:
            return isinstance(value, ast.Subscript)


def _makes_frame(source: Source, value: ast.expr) -> bool:
    """Whether a value is, or holds, the frame of the function that it stands in."""
    match value:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            return source.full_name(call.func) == "inspect.stack"
        case ast.Call(func=called, args=[] | [ast.Constant(value=0)]):
            name = source.full_name(called)
            if name == "sys._getframe":
                return True
            return name in ("inspect.currentframe", "inspect.stack") and not value.args
        case _:
            return False


def makes_exception(value: ast.expr) -> bool:
    """Whether a value is an exception that was not raised yet, judged by its name."""
    return isinstance(value, ast.Call) and bool(_MAKER_NAME.search(last_name(value.func)))


def initial_state(node: FunctionNode) -> State:
    """The state at a function's start: parameters that are exceptions, by their names and types."""
    state: State = {}
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    types, values = _of_triples(arguments)
    is_exit = node.name in ("__exit__", "__aexit__")
    for argument in arguments:
        name = argument.arg
        if name not in types and (name in values or is_exception(argument)):
            kind = GIVEN if is_exit else FRESH
            state[name] = frozenset({Origin("", name, kind, node)})
    return state


def _of_triples(arguments: list[ast.arg]) -> tuple[set[str], set[str]]:
    """The parameters that are a type, and an exception, in `(type, value, traceback)`."""
    types: set[str] = set()
    values: set[str] = set()
    for kind, value, trace in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if _TRACE_NAME.search(trace.arg) and _VALUE_NAME.search(value.arg):
            types.add(kind.arg)
            values.add(value.arg)
    return types, values


def is_exception(argument: ast.arg) -> bool:
    """Whether a parameter is an exception, judged by its name and type."""
    if argument.annotation is None:
        return bool(INSTANCE_NAME.search(argument.arg))
    return is_exception_type(argument.annotation)


def is_exception_type(annotation: ast.expr) -> bool:
    """Whether an annotation is the class of an exception, or None."""
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    if not isinstance(text, str) or "type[" in text.lower():
        return False
    text = text.removeprefix("typing.").removeprefix("Optional[").removesuffix("]")
    return any(_ANNOTATION.search(part.strip()) for part in text.split("|"))
