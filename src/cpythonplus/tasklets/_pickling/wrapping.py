"""Wrappers for objects that pickle cannot write: functions without a name, cells, generators.

pickle asks `copyreg` and the class how to write an object; of functions and classes it writes the
name only. A change of that for the whole process would affect programs that have nothing to do with
tasklets. So an object that lies *directly* in a frame, a cell or a generator is put into a wrapper,
whose `__reduce__` gives the object back. An object has one wrapper while that lives, and a pickler
keeps what it has written: so an object that occurs twice in one pickle is one object again when it
is loaded. An object that pickle can write as well, such as an iterator over a list, gets no
wrapper: it may also lie deeper, where pickle finds the object itself, and would write two.

Containers of the language and `functools.partial` are wrapped if such an object lies in one: a list
of lambdas. `Pickler` does the same for objects that lie deeper, without wrappers.
"""

import copy
import copyreg
import functools
import gc
import inspect
import io
import itertools
import pickle
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

from cpythonplus import _native
from cpythonplus.tasklets._pickling import code as _code
from cpythonplus.tasklets._pickling.sentinels import may_be_sentinel, sentinel_reducer

Reduce = Callable[[Any, Callable[[Any], Any]], tuple[Any, ...]]

# Types that pickle writes by itself, without any further check.
PLAIN = frozenset(
    {bool, bytearray, bytes, complex, float, int, range, slice, str}
    | {type(None), type(...), type(NotImplemented)}
)
CONTAINERS: frozenset[type] = frozenset(
    {defaultdict, deque, dict, frozenset, list, OrderedDict, functools.partial, set, tuple}
)
"""Types that are searched: an item of one of these is treated as if a frame had it."""


class _Wrapper:
    """Stands for an object in a pickle."""

    __slots__ = ("__weakref__", "_obj", "_reduce")

    def __init__(self, obj: Any, reduce: Callable[[], tuple[Any, ...]]) -> None:
        self._obj = obj  # so that its id() stays unique
        self._reduce = reduce

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduce()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a copy of the object; `copy` knows no functions that set a state."""
        it = id(self._obj)  # the object may also be reached without the wrapper
        if it in memo:
            return memo[it]
        function, arguments, *rest = self._reduce()
        if function is _code.make_function:  # its code and its globals are here
            obj, closure = self._obj, copy.deepcopy(arguments[-1], memo)
            function = functools.partial(FunctionType, obj.__code__, obj.__globals__)
            arguments = obj.__name__, None, closure
            rest[0] = *rest[0][:-1], {}
        else:
            arguments = copy.deepcopy(arguments, memo)
        made = function(*arguments)
        if it in memo:  # the object refers to itself
            return memo[it]
        memo[it] = made
        state, items, pairs, setter = (*rest, None, None, None, None)[:4]
        if state is not None:
            setter(made, copy.deepcopy(state, memo))
        for each in items or ():
            made.append(copy.deepcopy(each, memo))
        for key, value in pairs or ():
            made[copy.deepcopy(key, memo)] = copy.deepcopy(value, memo)
        return made


_wrappers: WeakValueDictionary[int, _Wrapper] = WeakValueDictionary()
_deep = threading.local()


def _view_of(mapping: Any, name: str) -> Any:
    return getattr(mapping, name)()


def _reduce_view(view: Any, _: Any) -> tuple[Any, ...]:
    # Its own attribute `mapping` is a read-only proxy.
    (mapping,) = (each for each in gc.get_referents(view) if not isinstance(each, type))
    return _view_of, (mapping, type(view).__name__.rpartition("_")[2])


def items_of(container: Any) -> Collection[Any]:
    """Return the objects that one of CONTAINERS refers to."""
    kind = type(container)
    if kind is functools.partial:
        return container.func, *container.args, *container.keywords.values()
    if kind in (dict, OrderedDict):
        return [*container, *container.values()]
    if kind is defaultdict:
        return [container.default_factory, *container, *container.values()]
    return container  # type: ignore[no-any-return]


def make_partial(function: Any, arguments: Any, keywords: Any, attributes: Any) -> Any:
    """Called by pickle for a functools.partial with an object that pickle cannot write."""
    made = functools.partial(function, *arguments, **keywords)
    made.__dict__.update(attributes)
    return made


def remade(container: Any, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return a reduction of one of CONTAINERS, with changed items, in pickle's form."""
    kind = type(container)
    if kind is functools.partial:
        keywords = {name: change(value) for name, value in container.keywords.items()}
        arguments = tuple(map(change, container.args))
        return make_partial, (change(container.func), arguments, keywords, vars(container))
    if kind in (frozenset, set, tuple):
        return kind, (list(map(change, container)),)
    if kind in (deque, list):
        return kind, ((), container.maxlen) if kind is deque else (), None, map(change, container)
    pairs = ((change(key), change(value)) for key, value in container.items())
    made = (change(container.default_factory),) if kind is defaultdict else ()
    return kind, made, None, None, pairs


_MAPPINGS: tuple[dict[Any, Any], ...] = {}, OrderedDict()
_VIEWS: list[Any] = [view for it in _MAPPINGS for view in (it.keys(), it.values(), it.items())]
_REDUCERS: dict[type, Reduce] = {
    **dict.fromkeys(CONTAINERS, remade),
    CellType: _code.reduce_cell,
    CodeType: _code.reduce_code,
    FunctionType: _code.reduce_function,
    ModuleType: _code.reduce_module,
    **dict.fromkeys(map(type, _VIEWS), _reduce_view),
}


_PICKLED: dict[type, Callable[[Any], bool]] = {}
"""Whether pickle can write an object, unless it refers to one that pickle cannot write."""


def reduce_as(kind: type, reduce: Reduce, *, pickled: Callable[[Any], bool] | None = None) -> None:
    """Register how objects of exactly this class are written; pickled: whether pickle can."""
    _REDUCERS[kind] = reduce
    if pickled is not None:
        _PICKLED[kind] = pickled


def _is_pickled(value: Any, reduce: Reduce) -> bool:
    """Return whether pickle can write an object, and its parts, by itself."""
    wrappers = 0

    def look(part: Any) -> Any:
        nonlocal wrappers
        found = wrap(part)
        wrappers += found is not part
        return found

    reduce(value, look)
    return not wrappers


# ---- exceptions ---------------------------------------------------------------------------------


def _first_in_c(kind: type, name: str) -> Any:
    """Return the method of the nearest base that is not written in Python."""
    return next(
        vars(base)[name]
        for base in kind.__mro__
        if name in vars(base) and not isinstance(getattr(base, name), FunctionType)
    )


def make_exception(kind: type[BaseException], arguments: Any, attributes: Any) -> BaseException:
    """Called by pickle for an exception whose class does not accept its own `args`."""
    made: BaseException = _first_in_c(kind, "__new__")(kind, *arguments)
    _first_in_c(kind, "__init__")(made, *arguments)
    made.args = arguments
    made.__dict__.update(attributes)
    return made


def _reduce_exception(error: BaseException, _: Any) -> tuple[Any, ...]:
    return make_exception, (type(error), error.args, error.__dict__)


def _is_lossy(error: BaseException) -> bool:
    """Return whether pickle would write an exception in a form that cannot be loaded."""
    kind = type(error)
    if kind.__reduce__ is not BaseException.__reduce__ or kind in copyreg.dispatch_table:
        return False
    if kind.__reduce_ex__ is not object.__reduce_ex__:
        return False
    for method in (kind.__init__, kind.__new__):
        if isinstance(method, FunctionType):
            try:
                inspect.signature(method).bind(kind, *error.args)
            except TypeError:
                return True
    return False


def _reducer(value: Any) -> Reduce | None:
    kind = type(value)
    found = _REDUCERS.get(kind)
    if found is None and isinstance(value, BaseException) and _is_lossy(value):
        return _reduce_exception
    if found is None and may_be_sentinel(kind):
        return sentinel_reducer(value)  # type: ignore[no-any-return]
    return found


def leads(container: Any, is_special: Callable[[Any], bool]) -> bool:
    """Return whether a special object lies in a container, or in a container in it."""
    seen, todo = {id(container)}, [container]
    while todo:
        items = items_of(todo.pop())
        kinds = {kind for kind in set(map(type, items)) - PLAIN if _is_interesting(kind)}
        for each in items if kinds else ():
            kind = type(each)
            if kind not in CONTAINERS:
                if kind in kinds and is_special(each):
                    return True
            elif id(each) not in seen:
                seen.add(id(each))
                todo.append(each)
    return False


def _is_interesting(kind: type) -> bool:
    if kind in _REDUCERS or hasattr(kind, "__next__") or may_be_sentinel(kind):
        return True
    return issubclass(kind, BaseException)


def _is_wrapped_by_now(value: Any) -> bool:
    return wrap(value) is not value


def wrap_as(obj: Any, reduce: Callable[[], tuple[Any, ...]]) -> Any:
    """Return an object that is pickled by `reduce`; wrap() returns it too while it lives."""
    found = _wrappers.get(id(obj))
    if found is None:
        found = _wrappers[id(obj)] = _Wrapper(obj, reduce)
    pickler = getattr(_deep, "pickler", None)
    if pickler is not None:
        pickler.kept.append(found)
    return found


def is_wrapped(value: Any) -> bool:
    """Return whether the value has a wrapper at the moment."""
    return id(value) in _wrappers


def wrap(value: Any) -> Any:
    """Return the value, or its wrapper if pickle needs one."""
    kind = type(value)
    if kind in PLAIN or getattr(_deep, "pickler", None) is not None:
        return value
    reduce = _reducer(value)
    if reduce is None:
        return value
    found = _wrappers.get(id(value))
    if found is None:
        if kind is FunctionType and _code.pickle_finds(value):
            return value
        if kind in CONTAINERS:
            if not leads(value, _is_wrapped_by_now):
                return value
        elif kind in _PICKLED and _PICKLED[kind](value) and _is_pickled(value, reduce):
            return value
        found = _wrappers[id(value)] = _Wrapper(value, lambda: reduce(value, wrap))
    return found


def are_plain(values: tuple[Any, ...]) -> bool:
    """Return whether pickle can write all these values by itself; False may be wrong."""
    kinds = set(map(type, values)) - PLAIN
    if not kinds:
        return True
    return CONTAINERS.issuperset(kinds) and not leads(list(values), _is_wrapped_by_now)


def wrapped(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return wrap() of each of them."""
    return values if PLAIN.issuperset(map(type, values)) else tuple(map(wrap, values))


def _needs_asking(kind: type) -> bool:
    """Return False for plain classes of `class` statements: pickle writes their attributes."""
    for name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        if getattr(kind, name) is not getattr(object, name):
            return True
    return not all("__dict__" in vars(each) for each in kind.__mro__[:-1])


def refusal(value: Any) -> str | None:
    """Return why pickle cannot write an object; None: it can, as far as the object itself tells.

    The object's `__reduce_ex__` is called, as pickle does; objects that it refers to are not.
    """
    kind = type(value)
    if kind in PLAIN or kind in _REDUCERS or kind in copyreg.dispatch_table:
        return None
    if isinstance(value, type) or not _needs_asking(kind):
        return None
    if sys.version_info < (3, 14) and isinstance(value, itertools.groupby):
        return "of a subclass of itertools.groupby not all of the state is known"
    if isinstance(value, (_native.tasklet, _native.channel)):
        return None  # pickling it checks this itself, and may lead back here
    outer = getattr(_deep, "pickler", None)
    _deep.pickler = None  # the object may begin a pickle of its own
    try:
        value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    except (TypeError, pickle.PicklingError) as error:
        return str(error)
    finally:
        _deep.pickler = outer
    return None


def wrap_owner(function: FunctionType) -> Any:
    """Return wrap() of a frame's function, whose code must be the same; by name: a tuple.

    `owner` reverses this when the pickle is loaded.
    """
    name = _code.name_of(function)
    return wrap(function) if name is None else name


def owner(loaded: Any) -> Any:
    """Return the function of a loaded frame; UnpicklingError if its code has changed."""
    return _code.function_by_name(*loaded) if type(loaded) is tuple else loaded


class Pickler(pickle.Pickler):
    """A `pickle.Pickler` that writes functions, generators and cells wherever they lie.

    Its pickles are read by `pickle.loads`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: list[_Wrapper] = []  # wrappers of objects that are parts of a tasklet

    def reducer_override(self, obj: Any) -> Any:
        """Called by pickle for each object."""
        if isinstance(obj, (_native.tasklet, _native.channel)):
            return self._deeply(obj.__reduce_ex__, pickle.DEFAULT_PROTOCOL)
        reduce = _reducer(obj)
        if reduce is None or type(obj) in CONTAINERS:
            return NotImplemented
        if type(obj) is FunctionType and _code.pickle_finds(obj):
            return NotImplemented
        found = _wrappers.get(id(obj))
        return self._deeply(reduce, obj, wrap) if found is None else found.__reduce__()

    def _deeply(self, reduce: Callable[..., Any], *args: Any) -> Any:
        """Return reduce(*args) without wrappers; objects may begin pickles of their own in it."""
        outer = getattr(_deep, "pickler", None)
        _deep.pickler = self
        try:
            return reduce(*args)
        finally:
            _deep.pickler = outer

    def dump(self, obj: Any, /) -> None:
        """Write a pickle of the object."""
        try:
            super().dump(obj)
        finally:
            self.kept.clear()


def dumps(obj: Any, protocol: int | None = None) -> bytes:
    """Return a pickle of an object in which functions, generators and cells may lie anywhere.

    PicklingError or TypeError, as pickle's, for what cannot be pickled.
    """
    out = io.BytesIO()
    Pickler(out, protocol).dump(obj)
    return out.getvalue()
