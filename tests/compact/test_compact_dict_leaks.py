"""Nothing stays behind, whatever of a CompactDict and its views is called how often."""

import json

import pytest

from cpythonplus import _native
from cpythonplus.memory import CompactDict
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

pytestmark = pytest.mark.needs_gil

# For each method what is done with `made`, which has `key` and not `new`.
CALLS = {
    "__class_getitem__": "CompactDict[str, int]",
    "__contains__": "key in made; new in made; refused(TypeError, made.__contains__, [])",
    "__delitem__": "del made[key]; refused(KeyError, made.__delitem__, new)",
    "__doc__": "CompactDict.__doc__",
    "__eq__": "made == dict(made); made == made.copy(); made == 5; made == Odd(made)",
    "__ge__": "refused(TypeError, lambda: made >= made)",
    "__getitem__": (
        "made[key]; refused(KeyError, made.__getitem__, new); Odd()[new]\n"
        "refused((KeyError, ZeroDivisionError), made.__getitem__, Angry(hash(key)))"
    ),
    "__gt__": "refused(TypeError, lambda: made > made)",
    "__hash__": "refused(TypeError, hash, made)",
    "__init__": (
        "made.__init__(made, a=1); refused(TypeError, CompactDict, 5); CompactDict(a=made)\n"
        "refused(TypeError, CompactDict, made, made); refused(TypeError, CompactDict, [5])\n"
        "refused(ValueError, CompactDict, [(key, 1), (1, 2, 3)]); CompactDict(list(made.items()))\n"
        "refused(TypeError, CompactDict, [(key, 1), ([], 2)]); Odd(made, a=1)\n"
        "CompactDict(Odd(made))\n"
        "refused(ZeroDivisionError, CompactDict, Angry(0)); CompactDict(Mapped())"
    ),
    "__ior__": "made |= {new: 1}; made |= made; refused(TypeError, made.__ior__, 5)",
    "__iter__": "list(made); it = iter(made); next(it); it.__length_hint__(); it.__reduce__()",
    "__le__": "refused(TypeError, lambda: made <= made)",
    "__len__": "len(made)",
    "__lt__": "refused(TypeError, lambda: made < made)",
    "__ne__": "made != {}; made != dict(made); made != 5",
    "__new__": "CompactDict.__new__(CompactDict, 1); Odd.__new__(Odd)",
    "__or__": "made | made; made | {new: 1}; refused(TypeError, lambda: made | 5)",
    "__reduce__": "made.__reduce__(); Odd(made).__reduce__(); pickle.loads(pickle.dumps(made))",
    "__repr__": "repr(made); made[key] = made; repr(made); repr(Odd(made))",
    "__reversed__": "list(reversed(made)); next(reversed(made))",
    "__ror__": "{new: 1} | made; refused(TypeError, lambda: 5 | made)",
    "__setitem__": (
        "made[key] = made\nmade[new] = [made]; refused(TypeError, made.__setitem__, [], 1)"
    ),
    "__sizeof__": "made.__sizeof__()",
    "clear": "made.clear(); made.clear()",
    "copy": "made.copy(); copy.copy(made); copy.deepcopy(made)",
    "fromkeys": (
        "CompactDict.fromkeys(made, made); Odd.fromkeys(made); refused(TypeError, made.fromkeys)\n"
        "refused(TypeError, made.fromkeys, 5); refused(TypeError, made.fromkeys, [1, []])"
    ),
    "get": (
        "made.get(key); made.get(new, [5])\n"
        "refused(TypeError, made.get); refused(TypeError, made.get, [])"
    ),
    "items": "made.items()",
    "keys": "made.keys()",
    "pop": (
        "made.pop(key); made.pop(new, 1)\n"
        "refused(KeyError, made.pop, new); refused(TypeError, made.pop)"
    ),
    "popitem": "made.popitem(); made.clear(); refused(KeyError, made.popitem)",
    "setdefault": (
        "made.setdefault(new, [])\nmade.setdefault(key, []); refused(TypeError, made.setdefault)"
    ),
    "update": (
        "made.update({new: 1}, a=2); made.update(made.copy()); refused(TypeError, made.update, 5)\n"
        "refused(TypeError, made.update, 1, 2); made.update(Mapped())"
    ),
    "values": "made.values()",
}

VIEW_CALLS = {
    "__and__": (
        "view & [key]\n"
        "refused(TypeError, lambda: view & 5); refused(TypeError, lambda: view & [[]])"
    ),
    "__contains__": (
        "key in view; (key, 1) in view; (new, 1) in view; refused(TypeError, lambda: [] in keys)\n"
        "refused(TypeError, lambda: ([], 1) in items)"
    ),
    "__eq__": "view == set(view); view == 5",
    "__ge__": "view >= set(); refused(TypeError, lambda: view >= 5)",
    "__gt__": "view > set()",
    "__iter__": (
        "it = iter(view); next(it); it.__reduce__(); list(it); list(it); it.__reduce__()\n"
        "it = iter(view); next(it); made.clear(); refused(RuntimeError, next, it)\n"
        # A cycle of an iterator and its last item alone.
        "made[key] = None; it = iter(made.items()); made[key] = (it,); next(it); next(it, None)"
    ),
    "__le__": "view <= set(view)",
    "__len__": "len(view)",
    "__lt__": "view < {1}",
    "__ne__": "view != set(view)",
    "__or__": "view | [key]; refused(TypeError, lambda: view | 5)",
    "__rand__": "[key] & view; refused(TypeError, lambda: 5 & view)",
    "__repr__": "repr(view); made[key] = made.values(); repr(view)",
    "__reversed__": "list(reversed(view))",
    "__ror__": "[key] | view",
    "__rsub__": "[key] - view",
    "__rxor__": "[key] ^ view",
    "__sub__": "view - [key]; refused(TypeError, lambda: view - [[]])",
    "__xor__": "view ^ [key]; refused(TypeError, lambda: view ^ 5)",
    "isdisjoint": (
        "view.isdisjoint([new])\nview.isdisjoint(view); refused(TypeError, view.isdisjoint, 5)"
    ),
    "mapping": "view.mapping[key]",
}

PROGRAM = (
    MEASURE
    + """
import copy, json, pickle
from cpythonplus.memory import CompactDict


class Odd(CompactDict):
    def __missing__(self, key):
        return [key]


class Angry:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        raise ZeroDivisionError

    def keys(self):
        raise ZeroDivisionError


class Mapped:
    def keys(self):
        return iter("ab")

    def __getitem__(self, key):
        return [key]


def refused(error, call, *args):
    try:
        call(*args)
    except error:
        return
    raise AssertionError(f"{error} expected")


class Tuple:  # has its own equality
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number % 5

    def __eq__(self, other):
        return isinstance(other, Tuple) and self.number == other.number


KEYS = [([f"key {i}" for i in range(3)]), list(range(1000, 1040)), [Tuple(i) for i in range(20)]]
found = []
calls, view_calls, times = json.loads(sys.argv[1])
for keys in KEYS:
    new = Tuple(-1) if isinstance(keys[0], Tuple) else f"{keys[-1]} new"
    names = {**globals(), "key": keys[0], "new": new, "source": dict.fromkeys(keys, 1)}
    for name, line in calls.items():
        line = "made = CompactDict(source)\\n" + line
        found.append((name, leaks(line, names, times)))
    for name, line in view_calls.items():
        for part in ("keys", "items", "values"):
            kind = type(getattr(CompactDict(), part)())
            if name not in vars(kind):
                continue
            one = (
                "made = CompactDict(source); keys, items = made.keys(), made.items()\\n"
                f"view = made.{part}()\\n{line}"
            )
            found.append((f"{part} {name}", leaks(one, names, times)))
print(json.dumps([each for each in found if each[1]]))
"""
)


def test_nothing_stays_behind() -> None:
    child = run_child(
        PROGRAM, args=[json.dumps([CALLS, VIEW_CALLS, 20 if SANITIZED else 60])], timeout=300
    )
    assert json.loads(child.out.splitlines()[-1]) == []


def test_each_method_is_called() -> None:
    """A new one comes with its line."""
    assert {name for name in vars(CompactDict) if name != "__module__"} == set(CALLS)
    views = (_native.CompactKeys, _native.CompactItems, _native.CompactValues)
    own = set().union(*(vars(view) for view in views)) - {"__module__", "__doc__", "__hash__"}
    assert own == set(VIEW_CALLS)
