"""Functions in pickles: by the name of their code, or with it.

*By name* (the default if possible): module, qualified name and a hash of the code. Loading finds
the function and compares the hash, since an offset means nothing in other code.

*By value*: the code itself, as `marshal` writes it, with the cells of its closure. It is used for
functions that have no name elsewhere (lambdas, local functions, those of `__main__`). Within
`pickling(code="value")` it is used for all functions but the standard library's and this package's:
a job ends with the code that it began with. The globals are those of the module of that name. If
that is `__main__`, or a module that cannot be imported, the pickle also has the globals that the
code refers to, and loading adds those that are missing.

A pickle is a program: loading it executes what its writer wanted.
"""

import builtins
import importlib
import marshal
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from pickle import UnpicklingError
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Literal

VERSION = sys.version_info[:2]

_mode: ContextVar[str] = ContextVar("cpythonplus.tasklets.pickling", default="name")
_digests: dict[int, tuple[weakref.ref[CodeType], bytes]] = {}
_names: dict[int, tuple[weakref.ref[FunctionType], CodeType, tuple[str, str, bytes]]] = {}
_orphans: dict[str, dict[str, Any]] = {}
_OWN = frozenset({*sys.stdlib_module_names, "cpythonplus"})

Wrap = Callable[[Any], Any]


@contextmanager
def pickling(*, code: Literal["name", "value"] = "name") -> Iterator[None]:
    """Within the block, pickle the code of functions by name, or by value.

    By value a tasklet goes on with the code that it began with, even if the module has changed
    since. Blocks may be nested. ValueError for another word.
    """
    if code not in ("name", "value"):
        raise ValueError(f"code is 'name' or 'value', not {code!r}")
    token = _mode.set(code)
    try:
        yield
    finally:
        _mode.reset(token)


def version_text(version: Any) -> str:
    return ".".join(map(str, version)) if isinstance(version, tuple) else repr(version)


# ---- the hash -----------------------------------------------------------------------------------


def _canonical(constant: Any) -> str:
    """Return text that is equal for equal constants in every process; sets are sorted."""
    if isinstance(constant, CodeType):
        return f"code {code_hash(constant).hex()}"
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(_canonical, constant))})"
    if isinstance(constant, tuple):
        return f"({','.join(map(_canonical, constant))})"
    return f"{type(constant).__name__} {constant!r}"


def code_hash(code: CodeType) -> bytes:
    """Return 16 bytes that depend on the instructions and their operands, not on the source."""
    kept = _digests.get(id(code))
    if kept is not None and kept[0]() is code:
        return kept[1]
    digest = blake2b(code.co_code, digest_size=16)
    digest.update(code.co_exceptiontable)
    rest = (code.co_varnames, code.co_cellvars, code.co_freevars, code.co_names, code.co_flags)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    text = f"{rest}{counts}{code.co_stacksize}{_canonical(code.co_consts)}{VERSION}"
    digest.update(text.encode("utf-8", "surrogatepass"))
    key = id(code)
    _digests[key] = weakref.ref(code, lambda _: _digests.pop(key, None)), digest.digest()
    return digest.digest()


# ---- by name ------------------------------------------------------------------------------------


def at_name(module: str, qualname: str) -> Any:
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _behind(found: Any) -> Iterator[FunctionType]:
    """Yield the function that a name finds, or the functions that it wraps."""
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if type(found) is FunctionType:
            yield found
        found = (  # a method's __func__ first: a method passes other attributes on to its function
            getattr(found, "__func__", None)
            or getattr(found, "__wrapped__", None)
            or getattr(found, "fget", None)
        )


def has_name(function: FunctionType) -> bool:
    """Return whether another process finds this function: the first of its code behind its name."""
    module, qualname = function.__module__, function.__qualname__
    if not module or module == "__main__" or "<" in qualname:
        return False
    there = sys.modules.get(module)
    if there is not None and there.__dict__.get(qualname) is function:
        return True
    digest = code_hash(function.__code__)
    try:
        all_of_it = _behind(at_name(module, qualname))
        return next((f for f in all_of_it if code_hash(f.__code__) == digest), None) is function
    except (ImportError, AttributeError):
        return False


def function_by_name(module: str, qualname: str, digest: bytes) -> FunctionType:
    """Called by pickle. UnpicklingError if the function does not exist, or its code differs."""
    there = sys.modules.get(module)
    if there is not None:
        now = there.__dict__.get(qualname)
        if type(now) is FunctionType and code_hash(now.__code__) == digest:
            return now
    now = None
    try:
        for each in _behind(at_name(module, qualname)):
            now = code_hash(each.__code__)
            if now == digest:
                return each
    except (ImportError, AttributeError) as error:
        raise UnpicklingError(f"{module}.{qualname} is not here: {error}") from None
    if now is None:
        raise UnpicklingError(f"{module}.{qualname} is no function any more")
    raise UnpicklingError(
        f"the code of {module}.{qualname} has changed: {digest.hex()} was pickled, "
        f"{now.hex()} is here"
    )


def cell_by_name(module: str, qualname: str, digest: bytes, index: int) -> CellType:
    """Called by pickle for a variable of a decorator; UnpicklingError if it does not exist."""
    try:
        return (function_by_name(module, qualname, digest).__closure__ or ())[index]
    except IndexError:
        raise UnpicklingError(f"{module}.{qualname} has fewer variables") from None


# ---- by value -----------------------------------------------------------------------------------


def names_in(code: CodeType) -> set[str]:
    """Return names of globals and attributes that the code may use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def globals_at(module: str | None) -> dict[str, Any]:
    name = module or "__main__"
    try:
        return vars(sys.modules.get(name) or importlib.import_module(name))
    except ImportError:
        new = {"__name__": name, "__builtins__": builtins}
        return _orphans.setdefault(name, new)


def _sum(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()


def load_code(version: Any, data: Any, checksum: Any) -> CodeType:
    """Called by pickle. UnpicklingError for another minor version, and for damaged code."""
    if version != VERSION:
        raise UnpicklingError(
            f"code was pickled by Python {version_text(version)}, and this is Python "
            f"{version_text(VERSION)}"
        )
    if not isinstance(data, bytes) or _sum(data) != checksum:
        raise UnpicklingError("code is damaged")
    try:
        code = marshal.loads(data)  # noqa: S302  # a pickle is a program anyway
    except (ValueError, EOFError, TypeError) as error:
        raise UnpicklingError(f"no code: {error}") from None
    if not isinstance(code, CodeType):
        raise UnpicklingError("no code")
    return code


def make_function(code: CodeType, home: str | None, name: str, closure: Any) -> FunctionType:
    """Pickle calls it; UnpicklingError if the cells do not fit the code."""
    try:
        return FunctionType(code, globals_at(home), name, None, closure)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(f"no function: {error}") from None


def set_function_state(function: FunctionType, state: Any) -> None:
    (module, qualname, doc), defaults, kwdefaults, attributes, names = state
    function.__module__, function.__qualname__, function.__doc__ = module, qualname, doc
    function.__defaults__ = defaults
    function.__kwdefaults__ = kwdefaults
    function.__dict__.update(attributes)
    for name, value in names.items():
        function.__globals__.setdefault(name, value)


def make_cell() -> CellType:
    return CellType()


def set_cell(cell: CellType, state: tuple[Any]) -> None:
    (cell.cell_contents,) = state


def reduce_cell(cell: CellType, wrap: Wrap) -> tuple[Any, ...]:
    try:
        contents = (wrap(cell.cell_contents),)
    except ValueError:  # empty
        return make_cell, ()
    return make_cell, (), contents, None, None, set_cell


def reduce_code(code: CodeType, _: Wrap) -> tuple[Any, ...]:
    data = marshal.dumps(code)
    return load_code, (VERSION, data, _sum(data))


def reduce_module(module: ModuleType, _: Wrap) -> tuple[Any, ...]:
    return importlib.import_module, (module.__name__,)


def _home(function: FunctionType) -> str | None:
    """Return the name of the module of its globals; a wrapper bears that of what it wraps."""
    name = function.__globals__.get("__name__")
    there = sys.modules.get(name) if isinstance(name, str) else None
    return (
        name if there is not None and vars(there) is function.__globals__ else function.__module__
    )


def _travelling(function: FunctionType, home: str | None, wrap: Wrap) -> dict[str, Any]:
    if home not in (None, "__main__"):
        found = sys.modules.get(home)
        if found is not None and vars(found) is function.__globals__ and found.__spec__:
            return {}
    there = function.__globals__
    return {name: wrap(there[name]) for name in names_in(function.__code__) if name in there}


def reduce_function(function: FunctionType, wrap: Wrap) -> tuple[Any, ...]:
    """Reduce by value, or by name if a decorator has hidden the function from pickle."""
    name = name_of(function)
    if name is not None:
        return function_by_name, name
    closure, home = function.__closure__, _home(function)
    arguments = (
        wrap(function.__code__),
        home,
        function.__name__,
        None if closure is None else tuple(map(wrap, closure)),
    )
    defaults, kwdefaults = function.__defaults__, function.__kwdefaults__
    state = (
        (function.__module__, function.__qualname__, function.__doc__),
        None if defaults is None else tuple(map(wrap, defaults)),
        None if kwdefaults is None else {name: wrap(each) for name, each in kwdefaults.items()},
        {name: wrap(each) for name, each in function.__dict__.items()},
        _travelling(function, home, wrap),
    )
    return make_function, arguments, state, None, None, set_function_state


def goes_by_name(function: FunctionType) -> bool:
    """Return whether the function goes by name now, in this context."""
    if _mode.get() != "name" and (function.__module__ or "").partition(".")[0] not in _OWN:
        return False
    return has_name(function)


def pickle_finds(function: FunctionType) -> bool:
    """Return whether the function goes by name, and is found by it: no wrapper has its name."""
    if not goes_by_name(function):
        return False
    return at_name(function.__module__, function.__qualname__) is function


def name_of(function: FunctionType) -> tuple[str, str, bytes] | None:
    """Return the arguments of `function_by_name`; None: the function goes by value."""
    if not goes_by_name(function):
        return None
    kept = _names.get(id(function))
    if kept is not None and kept[0]() is function and kept[1] is function.__code__:
        return kept[2]
    key = id(function)
    name = (function.__module__, function.__qualname__, code_hash(function.__code__))
    _names[key] = weakref.ref(function, lambda _: _names.pop(key, None)), function.__code__, name
    return name
