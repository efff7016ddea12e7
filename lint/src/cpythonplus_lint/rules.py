"""The rules by their codes, and the selection of rules for a run."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "CYC"
SYNTAX_ERROR = "invalid-syntax"
"""The code for a file that cannot be read; no selection leaves it out."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a code."""

    code: str
    name: str
    summary: str
    explanation: str
    on_by_default: bool = True
    fixable: str = ""
    """The condition under which `--fix` fixes a hit; empty for never."""


_FIX = "where the variable is the function's own and no inner function uses it"

RULES = {
    rule.code: rule
    for rule in (
        Rule(
            "CYC101",
            "exception-kept-in-local",
            "exception kept in a local variable",
            """\
The traceback of a caught exception refers to its handler's frame. If a variable of that frame still
holds the exception when the function returns, it is a cycle: exception, traceback, frame, variable.
Everything else that the frames of the traceback hold stays until the garbage collector runs.
Python deletes the variable of `except ... as error` itself; a copy of it is not deleted.

    def fetch(call):
        last = None
        for _ in range(3):
            try:
                return call()
            except OSError as error:
                last = error            # CYC101
        raise last

Clear the variable on every exit path, including that of a second attempt that succeeds:

    def fetch(call):
        last = None
        try:
            for _ in range(3):
                ...
            raise last
        finally:
            del last
""",
            fixable=_FIX,
        ),
        Rule(
            "CYC102",
            "exc-info-kept-in-local",
            "`sys.exc_info()` kept in a local variable",
            """\
The exception and the traceback that `sys.exc_info()` returns in a handler lead back to this frame;
a variable of the frame that holds one of them closes a cycle. The type alone, `sys.exc_info()[0]`,
does not. Where no exception is being handled in the function itself, nothing is reported.

    try:
        work()
    except Exception:
        kind, value, trace = sys.exc_info()     # CYC102, twice
        report(value)

Write `except Exception as error:`, or delete the variables in a `finally`.
""",
            fixable=_FIX + "; variables that are never read are no longer assigned",
        ),
        Rule(
            "CYC103",
            "exception-in-container",
            "exception put into a container that outlives the handler",
            """\
The frame holds the container, the container holds the exception, its traceback holds the frame.

    errors = []
    for call in calls:
        try:
            call()
        except ValueError as error:
            errors.append(error)        # CYC103

Keep what is needed of it (`str(error)`), keep it without its frames (`exceptions.detach(error)` of
`cpythonplus.memory`, `error.with_traceback(None)`), or empty the container on every exit path. What
is put into a queue is not reported.
""",
            fixable=_FIX,
        ),
        Rule(
            "CYC104",
            "exception-on-attribute",
            "exception kept in an attribute or a global variable",
            """\
The object keeps all frames of the traceback, with all their variables, for as long as it keeps the
exception; where one of these frames holds the object, as a method's `self`, it is a cycle too.

    class Connection:
        def read(self):
            try:
                ...
            except OSError as error:
                self.error = error      # CYC104

Keep it without its frames (`exceptions.detach(error)` of `cpythonplus.memory`,
`error.with_traceback(None)`), or clear the attribute after use.

A class of which another method clears the attribute is not reported; nor are
`future.set_exception(error)`, `new.__cause__ = error` and `sys.last_exc = error`.
""",
        ),
        Rule(
            "CYC105",
            "raised-from-local",
            "exception raised from a local variable that still holds it",
            """\
`raise error` puts this frame on the traceback of an exception that this frame's variable holds.

    def refuse(name):
        error = ValueError(name)
        error.name = name
        raise error                     # CYC105

Raise the expression itself, or delete the variable:

        try:
            raise error
        finally:
            del error

It is reported if the variable was assigned a new exception, or is a parameter whose name or
annotation says that it is one; not where it may be an exception's class.

An attribute that holds the exception leads back through its object: `raise self.error` puts the
frame, and with it `self`, on the traceback that `self.error` holds, whether or not a variable had
it in between. There, `finally: del self` is what breaks the cycle.
""",
            fixable=_FIX + "; not for attributes",
        ),
        Rule(
            "CYC106",
            "frame-kept-in-local",
            "frame kept in one of its own variables",
            """\
A frame holds its variables. If one of them still holds the frame when the function is left, that is
a cycle, with everything else that the function had in its variables.

    def where():
        frame = sys._getframe()         # CYC106
        return frame.f_lineno

`inspect.currentframe()` and `inspect.stack()` are the same. Use the expression itself
(`sys._getframe().f_lineno`), ask for the caller's frame, or delete the variable in a `finally`.

A variable that is led from frame to frame (`frame = frame.f_back`) is not reported.
""",
            fixable=_FIX,
        ),
        Rule(
            "CYC201",
            "self-referential-closure",
            "inner function that refers to itself",
            """\
The function holds a cell that holds the function. Each call of the outer function leaves such a
cycle behind, with everything else that the inner function took from the enclosing scopes.

    def depth(tree):
        def walk(node):                 # CYC201
            return 1 + max(map(walk, node), default=0)
        return walk(tree)

Move it to module level, decorate the outer function with
`cpythonplus.memory.closures.closing`, or delete the name on every exit path.

The wrappers of decorators (`functools.wraps`) are not reported: they are created once and kept.
""",
            fixable="where it is only called, and only while the outer function runs",
        ),
        Rule(
            "CYC202",
            "mutually-recursive-closures",
            "inner functions that refer to each other",
            """\
As CYC201, with two functions or more. Deleting one name of the cycle is enough.

    def parse(text):
        def value(): ... pair()
        def pair(): ... value()         # CYC202, for the two of them
        return value()
""",
        ),
        Rule(
            "CYC203",
            "class-in-function",
            "class created in a function",
            """\
Every class is in cycles with its own method resolution order and attributes: each call leaves some
behind. Often a class in a function is meant to stay, so this rule is off unless selected.
`namedtuple(...)`, `type(name, bases, {})` and their like are reported as well.
""",
            on_by_default=False,
        ),
        Rule(
            "CYC204",
            "callback-kept-on-self",
            "what refers to `self` kept on `self`",
            """\
A bound method holds its object. So does a lambda or an inner function that uses `self`, and a
`functools.partial` of one of them. An object that keeps one in an attribute refers to itself: it
lives until the garbage collector runs, with all that it holds.

    class Parser:
        def __init__(self):
            self.handlers = {"a": self.on_a}        # CYC204
            self.callback = lambda: self.done()     # CYC204

Keep the method's name (`getattr(self, name)`), the plain function (`Parser.on_a`, called with
`self`), a `weakref.WeakMethod(self.on_a)`; or clear the attribute when the object is closed. A
class of which another method clears the attribute is not reported; of several assignments to one
attribute the first is.
""",
        ),
        Rule(
            "CYC205",
            "parent-and-child",
            "two objects that refer to each other",
            """\
Parent and child hold each other, and live until the garbage collector runs.

    parent.child = child
    child.parent = parent               # CYC205

    self.cursor = Cursor(self)          # CYC205

Let one of them hold the other weakly (`weakref.ref`, `weakref.proxy`), or take them apart when they
are done with. This is how trees are built, and what a class does with what it is given is not
looked at, so this rule is off unless selected.
""",
            on_by_default=False,
        ),
        Rule(
            "CYC301",
            "layers-of-wrappers",
            "wrappers that pass `*args, **kwargs` to wrappers",
            """\
Each layer packs and unpacks the arguments once more, appears in every traceback, and hides what is
called with what.

    def call_later(function, *args, **kwargs):
        return function(*args, **kwargs)

    def call_timed(function, *args, **kwargs):          # CYC301
        return call_later(function, *args, **kwargs)

Accept a callable without arguments; callers with arguments pass `partial(function, 1, key=2)`. One
layer, as a decorator has it, is not reported. It makes no cycle, so this rule is off unless
selected.
""",
            on_by_default=False,
        ),
        Rule(
            "CYC401",
            "gc-enabled-in-library",
            "`gc.enable()` in a library",
            """\
The application decides whether the garbage collector runs: it may have switched it off to
keep its pauses or its shared pages under control.

Not reported: what a `finally` or an `__exit__` restores, what depends on `gc.isenabled()`, scripts
(with a `#!` line, under `if __name__ == "__main__"`), and tests. It makes no cycle, so this rule is
off unless selected.
""",
            on_by_default=False,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected rules. The longest prefix that fits a code decides, as in ruff."""

    select: tuple[str, ...] = ()
    """Prefixes; empty for the rules that are on by default."""
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def codes(self) -> frozenset[str]:
        """The codes of the selected rules."""
        return frozenset(code for code in RULES if self._has(code))

    def _has(self, code: str) -> bool:
        chosen = max(_length(code, self.select), _length(code, self.extend_select))
        if not self.select and RULES[code].on_by_default:
            chosen = max(chosen, 0)
        return chosen > _length(code, self.ignore)


def _length(code: str, prefixes: tuple[str, ...]) -> int:
    """The length of the longest prefix that fits, -1 for none; `ALL` fits everything."""
    fitting = [0 if one == "ALL" else len(one) for one in prefixes if _fits(code, one)]
    return max(fitting, default=-1)


def _fits(code: str, prefix: str) -> bool:
    return prefix == "ALL" or code.startswith(prefix)


def unknown(prefixes: tuple[str, ...]) -> list[str]:
    """The prefixes that fit no rule."""
    return [one for one in prefixes if not one or not any(_fits(code, one) for code in RULES)]


DEFAULT = Selection()


def package_version() -> str:
    """The version of the rules, which is the distribution's; "0" from a checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cpythonplus-lint")
    except PackageNotFoundError:
        return "0"
