"""Pickles of iterators: those of itertools, and others whose `__reduce__` leads to them."""

import copyreg
import gc
import itertools
import sys
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable
from pickle import PicklingError, UnpicklingError
from typing import Any

from cpythonplus import _native
from cpythonplus.tasklets._pickling.wrapping import reduce_as

Wrap = Callable[[Any], Any]
Reduced = tuple[Callable[..., Any], tuple[Any, ...], Any, Callable[[Any, Any], None]]
"""A function and its arguments, which make the iterator; its state or None, and its setter."""


def set_quietly(iterator: Any, state: Any) -> None:
    """Called by pickle with an iterator that was just made; 3.12 and 3.13 warn of the call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        iterator.__setstate__(state)


_DEQUE_REVERSED: Any = type(reversed(deque()))


def make_deque_reversed(over: Any, number: int) -> Any:
    """Pickle calls it for `reversed(deque)`, whose class has no name from 3.12 on."""
    return _DEQUE_REVERSED(over, number)


def _reduced_by_itself(iterator: Any) -> Reduced:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            function, arguments, *state = iterator.__reduce_ex__(4)
        except TypeError as error:
            raise PicklingError(str(error)) from None
    if function is _DEQUE_REVERSED:
        function = make_deque_reversed
    return function, arguments, state[0] if state else None, set_quietly


# ---- itertools without a (correct) __reduce__: all from 3.14 on, four before --------------------

_EMPTY: dict[str, tuple[Any, ...]] = {
    "accumulate": ((),),
    "batched": ((), 1),
    "compress": ((), ()),
    "cycle": ((),),
    "dropwhile": (bool, ()),
    "filterfalse": (bool, ()),
    "groupby": ((),),
    "islice": ((), 0),
    "pairwise": ((),),
    "repeat": (None, 0),
    "starmap": (bool, ()),
    "takewhile": (bool, ()),
    "_tee": ((),),
}
"""Arguments that make an empty iterator, whose fields are set afterwards."""


def make_iterator(name: str, *arguments: Any) -> Any:
    """Called by pickle for an iterator of itertools."""
    return getattr(itertools, name)(*arguments)


def make_longest(iterators: tuple[Any, ...], fill: Any) -> Any:
    """Make a zip_longest of iterators; None stands for an iterator that has ended."""
    return itertools.zip_longest(
        *(() if each is None else each for each in iterators), fillvalue=fill
    )


def set_iterator_state(iterator: Any, fields: Any) -> None:
    """Called by pickle with an iterator of itertools that was just made."""
    try:
        _native.itertools_restore(iterator, fields)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(str(error)) from None


def _reduced_by_fields(iterator: Any) -> Reduced:
    name = type(iterator).__name__
    fields = _native.itertools_capture(iterator)
    arguments = _EMPTY.get(name, ())
    match name, fields:
        case "zip_longest", (_, _, _, iterators, _, fill):
            return make_longest, (iterators, fill), None, set_iterator_state
        case "_tee_dataobject", (_, source, _, running, following, values):
            if running:
                raise PicklingError("an iterator of itertools.tee() is being asked")
            return make_iterator, (name, source, values, following), None, set_iterator_state
        case "_grouper", (_, None, _):
            return iter, ((),), None, set_iterator_state
        case "_grouper", (_, groupby, key):
            return make_iterator, (name, groupby, key), None, set_iterator_state
        case "combinations" | "combinations_with_replacement" | "permutations", (_, pool, *rest):
            arguments = pool, rest[-2]
        case "product", (_, pools, *_):
            arguments = pools
    return make_iterator, (name, *arguments), fields, set_iterator_state


KINDS = frozenset(
    kind
    for kind in vars(itertools).values()
    if isinstance(kind, type) and (hasattr(kind, "__next__") or kind.__name__ == "_tee_dataobject")
)
"""The iterator types of itertools, and the type of the object that iterators of tee() share."""
_LOSSY = frozenset(kind for kind in KINDS if kind.__name__ in ("groupby", "_grouper"))
"""Iterator types whose own `__reduce__` loses the group that is being read."""
_BY_FIELDS = frozenset(
    kind
    for kind in KINDS
    if ("__reduce__" not in vars(kind) or kind in _LOSSY) and _native.itertools_are_known()
)


# ---- values and items of dicts -----------------------------------------------------------------

# Their own `__reduce__` is a list of what is left, with the values of that moment.
_OF_VALUES: dict[type, str] = {
    type(iter({}.values())): "values",
    type(iter({}.items())): "items",
    type(reversed({}.values())): "values",
    type(reversed({}.items())): "items",
}


def make_dict_iterator(mapping: Any, name: str, given: int, *, backwards: bool = False) -> Any:
    """Pickle calls it for an iterator over values or items that has given some."""
    view = getattr(mapping, name)()
    made = reversed(view) if backwards else iter(view)
    for _ in itertools.islice(made, given):
        pass
    return made


def make_reversed_dict_iterator(mapping: Any, name: str, given: int) -> Any:
    """Pickle calls it as make_dict_iterator()."""
    return make_dict_iterator(mapping, name, given, backwards=True)


def reduced(iterator: Any) -> Reduced:
    """Return how an iterator is made again; PicklingError if it cannot."""
    if type(iterator) in _BY_FIELDS:
        return _reduced_by_fields(iterator)
    if type(iterator) in _OF_VALUES:
        plain = _reduced_by_itself(iterator)  # it refuses if the dict has changed its size
        left = len(plain[1][0])
        for mapping in gc.get_referents(iterator):
            if isinstance(mapping, dict) and len(mapping) >= left:
                is_reversed = "reverse" in type(iterator).__name__
                make = make_reversed_dict_iterator if is_reversed else make_dict_iterator
                arguments = mapping, _OF_VALUES[type(iterator)], len(mapping) - left
                return make, arguments, None, set_quietly
        return plain  # at its end it has no dict any more
    if type(iterator) in _LOSSY:
        raise PicklingError("the state of an iterator of itertools.groupby() is not known here")
    return _reduced_by_itself(iterator)


def _reduce(iterator: Any, wrap: Wrap) -> Any:
    function, arguments, state, setter = reduced(iterator)
    made = function, tuple(map(wrap, arguments))
    if state is None:
        return made
    state = tuple(map(wrap, state)) if type(state) is tuple else wrap(state)
    return *made, state, None, None, setter


def _reduce_over_a_tuple(iterator: Any, wrap: Wrap) -> Any:
    """Reduce a chain: its iterables lie in a tuple of its own."""
    function, arguments, state, setter = reduced(iterator)
    made = function, tuple(tuple(map(wrap, each)) for each in arguments)
    return made if state is None else (*made, state, None, None, setter)


def remade(function: Callable[..., Any], arguments: Any, state: Any, setter: Any) -> Any:
    """Called by pickle for an iterator of itertools that it reaches without a wrapper."""
    made = function(*arguments)
    if state is not None:
        setter(made, state)
    return made


def _reduce_for_all(iterator: Any) -> Any:
    return remade, reduced(iterator)


def _always(_: Any) -> bool:
    return True


reduce_as(type(iter(())), _reduce_over_a_tuple, pickled=_always)
# The iterables of these may be iterators or generators, or call a local function.
_OF_CONTAINERS: tuple[Any, ...] = ([], set(), {}, {}.values(), {}.items(), deque(), OrderedDict())
_kind: Any
for _kind in (
    *(enumerate, filter, map, reversed, zip, type(iter(int, 1))),
    *(type(iter(each)) for each in _OF_CONTAINERS),
    *(type(reversed(each)) for each in _OF_CONTAINERS if hasattr(each, "__reversed__")),
):
    by_pickle = None if _kind in (_DEQUE_REVERSED, *_OF_VALUES) else _always
    reduce_as(_kind, _reduce, pickled=by_pickle)
for _kind in KINDS:
    if "__reduce__" in vars(_kind):
        reduce_as(_kind, _reduce, pickled=_always)
        # For all pickles: groupby's own loses elements, and from 3.12 on all of them warn.
        if _kind in _LOSSY or sys.version_info >= (3, 12):
            copyreg.pickle(_kind, _reduce_for_all)
    elif _kind in _BY_FIELDS:
        reduce_as(_kind, _reduce)
