"""What the programs of `tools.pickle_property` are made of.

In a piece `$S` is a stop, `$E` an expression of ints, `$I` an iterable of ints, `$n` a small number,
`$u` a name that nothing else has, and the line BODY other statements. `log`, `x` and `y` are
variables of the function.
"""

# mypy: ignore-errors

import array
import bisect
import calendar
import collections
import contextlib
import csv
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import graphlib
import heapq
import io
import ipaddress
import itertools
import json
import operator
import pathlib
import queue
import random
import re
import string
import struct
import sys
import textwrap
import threading
import types
import typing
import uuid
import weakref
from collections import (
    ChainMap,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    defaultdict,
    deque,
    namedtuple,
)

from cpythonplus.tasklets import channel, locks, schedule_remove
from tools import pickle_fuzz

RESULTS: list = []
_stop_at = _passed = 0


def stop_at(number: int) -> None:
    """Stop at the number-th of the following stops; 0: at none."""
    global _stop_at, _passed
    _stop_at, _passed = number, 0


def passed() -> int:
    return _passed


def S(value=None):  # noqa: N802
    global _passed
    _passed += 1
    if _passed == _stop_at:
        return schedule_remove(value)
    return value


class E(Exception):
    pass


class F(Exception):
    pass


class Told(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code = code


exec(  # the managers and classes that the older programs use  # noqa: S102
    pickle_fuzz.HEAD[pickle_fuzz.HEAD.index("class Manager") :], globals()
)

MISSING = object()
DEFAULT = dataclasses.MISSING


class Nothing:
    __slots__ = ()


NOTHING = Nothing()


class Kept:
    marker = object()
    table: typing.ClassVar = {}

    def __init__(self, value=0):
        self.value = value

    def __iter__(self):
        for each in range(self.value % 4):
            yield each + S(1)

    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index + self.value % 5

    def method(self, *args, **named):
        return self.value % 10 + S(1) + len(args) + len(named)

    @classmethod
    def made(cls, value):
        return cls(S(value))

    @functools.singledispatchmethod
    def kind(self, it):
        return S(1) + len(str(it))

    @kind.register
    def _(self, it: int):
        return S(it) + self.value % 3

    twice = functools.partialmethod(method, 1, named=2)


class Below(Kept):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.extra = S(2)

    def method(self, *args, **named):
        return super().method(*args, **named) + self.extra

    def caller(self, value):
        return (lambda: __class__.__name__)() == "Below" and self.method(value)


class Sequence:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index


class Steps:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n


class Leaves:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append((S("exit"), kind and kind.__name__))
        return self.swallow


@dataclasses.dataclass
class Point:
    a: int
    b: int = 2
    c: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.a + S(self.b) + len(self.c)


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    a: int
    b: int = 3


Pair = namedtuple("Pair", "a b")


class Named(typing.NamedTuple):
    a: int
    b: int = 1

    def total(self):
        return self.a + S(self.b)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **named):
        S("before")
        result = function(*args, **named)
        return S(result)

    return wrapper


def times(n):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **named):
            return sum([function(*args, **named) for _ in range(n)])

        return wrapper

    return decorate


class Counted:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.count = function, 0

    def __call__(self, *args):
        self.count += 1
        return self.function(*args) + S(0)


@logged
def plus(a, b=1):
    return a + S(b)


@times(2)
@logged
def doubled(a):
    return S(a) + 1


@Counted
def counted(a):
    return S(a) + 2


@functools.singledispatch
def by_kind(it):
    return S(1)


@by_kind.register
def _(it: int):
    return S(it) % 7


@by_kind.register(str)
def _of_str(it):
    return S(len(it))


@contextlib.contextmanager
def around(log, name):
    log.append(("in", name))
    try:
        yield S(3)
    except F:
        log.append("F")
    finally:
        S()
        log.append(("out", name))


@around([], "decorator")
def within(a):
    return a + S(1)


def everything(a, /, b=2, *args, c=3, **named):
    return a + S(b) + len(args) + c + len(named)


def gen(n):
    got = 0
    for i in range(n):
        got = (yield i + got) or 0
    return n


def walks(depth):
    yield depth
    if depth:
        yield from walks(depth - 1)
        yield S(depth)


async def waits(n):
    return n + S(1)


async def chain_of(n):
    return await waits(n) + (await chain_of(n - 1) if n else 0)


async def counts_up(n):
    for i in range(n):
        yield i


def driven(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


def awaiting(coroutine):
    return (yield from coroutine.__await__())


def small(v):
    return v < 3


def names():
    found, error = [], sys.exc_info()[1]
    while error is not None and len(found) < 5:
        found.append((type(error).__name__, len(getattr(error, "__notes__", ()))))
        error = error.__cause__ or error.__context__
    return found


EXPRESSIONS = (
    "everything($E, $S, 1, 2, c=$S, d=$E)",
    "everything(*[$E, $S], *(1, $S), **{'c': $S}, **dict(z=$E))",
    "plus($E, b=$S)",
    "doubled($E)",
    "counted($E)",
    "by_kind($E) + by_kind('ab')",
    "within($E)",
    "Kept($E).method($S, k=$S)",
    "Below($E).method(*[$S])",
    "Below(value=$E).caller($S)",
    "Kept.made($E).value",
    "Kept($E).kind($S) + Kept(1).kind('ab')",
    "Kept($E).twice($S)",
    "Point($E, c=[$S, $S]).total()",
    "dataclasses.replace(Fixed($S), b=$E).b",
    "Named($S, b=$E).total()",
    "Pair($S, $S)._replace(a=$E).a",
    "Color(1 + $E % 2).value + $S",
    "int(Level($S % 2 + 1) is Level.LOW) + $S",
    "(Flags.A | (Flags.B if $S else Flags.A)).value",
    "functools.partial(everything, 1, c=$S)($E, k=$S)",
    "functools.partial(functools.partial(everything, $S), 1)(2)",
    "functools.reduce(operator.add, [$S, $E, 1])",
    "sum(gen($n)) + $S",
    "sum(v + $S for v in range(2))",
    "sum([v * w + $S for v in range(2) for w in $I if v != w])",
    "len({v % 5: $S for v in $I})",
    "[*range($n), $S, *$I][0]",
    "len([$S, *$I, $E])",
    "(lambda *a, **k: len(a) + len(k) + $S)(*range($n), k=$S)",
    "(lambda f: f(f, 3))(lambda f, n: n and n + f(f, n - $S * 0 - 1))",
    "len(f'{$S!r:>{$S + 3}}{x}{[$S]}')",
    "len('%s-%s' % ($S, $E))",
    "[1, 2, 3, 4][$S % 2:$E % 4 + 1][0:1] and 1",
    "{1: $S, **{2: $S}}[1]",
    "(a := $S) + a",
    "(1 if $S < $E <= 9 else 2) + $S",
    "not $S or $E and $S",
    "int(decimal.Decimal($E) / 7 * 1000)",
    "int(fractions.Fraction($S, 3).numerator)",
    "operator.itemgetter(0)([$E])",
    "json.loads(json.dumps([$S]))[0]",
    "len(list(walks($n))) + $S",
    "ord('a') + -$S ** 2 % 5",
    "max([$S, $E], key=lambda v: -v)",
    "sorted([3, $S], key=small)[0]",
    "sorted([3, 1], key=lambda v: v + S(1))[0]",
    "sum(map(lambda v: v + S(1), [1, 2]))",
    "next(iter([$E, $S]))",
    "types.SimpleNamespace(a=$S).a",
)

ITERABLES = (
    "range($n, 9, 3)",
    "range(10**20, 10**20 + $n)",
    "iter([1, 2, $n])",
    "Kept($n)",
    "Sequence()",
    "iter(Sequence())",
    "Steps($n)",
    "gen($n)",
    "walks($n)",
    "(v + $S for v in $I)",
    "(lambda: (yield from [1, $S, 3]))()",
    "map(operator.add, [1, $n], [3, 4])",
    "map(lambda v: v + $n, [1, 2])",
    "filter(lambda v: v > 1, [1, $n, 3])",
    "map(len, ['a', 'bc'])",
    "map(sum, zip([1, 2], [$n, 3], strict=True))",
    "map(sum, enumerate([1, 2], $n))",
    "reversed(range($n))",
    "reversed({1: 2, $n: 3, 5: 6})",
    "reversed({1: 2, $n: 3}.values())",
    "reversed(deque([1, 2, $n]))",
    "reversed(OrderedDict([(1, 2), ($n + 1, 3)]))",
    "OrderedDict([(1, 2), ($n + 1, 3)]).values()",
    "iter(functools.partial(next, iter([1, 2, $n, 7, 7])), 7)",
    "iter(iter([4, $n, 9, 0]).__next__, 9)",
    "iter(lambda: x % 3, x % 3)",
    "frozenset([$n])",
    "iter({$n, $n + 1})",
    "{3: 1, $n: 2}.keys()",
    "iter({3: 1, 4: $n}.values())",
    "map(operator.itemgetter(1), {3: 1, 4: $n}.items())",
    "ChainMap({1: 2}, {$n: 3})",
    "Counter([1, 1, $n]).elements()",
    "defaultdict(int, {$n: 4})",
    "UserList([1, $n])",
    "array.array('i', [1, $n, 3])",
    "memoryview(b'abc')",
    "b'abc'",
    "map(ord, 'a\\u00e9\\u4e2d')",
    "map(int, io.StringIO('1\\n2\\n3\\n'))",
    "map(len, io.BytesIO(b'1\\n23\\n'))",
    "map(int, csv.reader(['1', '2']).__next__())",
    "map(len, csv.DictReader(['a,b', '1,2']))",
    "map(re.Match.start, re.finditer('a', 'aba'))",
    "map(len, string.Formatter().parse('a{b}'))",
    "map(sum, struct.iter_unpack('BB', b'abcd'))",
    "heapq.merge([1, 4], [2, $n])",
    "map(len, textwrap.wrap('one two three', 5))",
    "graphlib.TopologicalSorter({1: [2], 2: [$n + 2]}).static_order()",
    "calendar.Calendar().itermonthdays(2024, $n)",
    "map(int, ipaddress.ip_network('10.0.0.0/30').hosts())",
    "itertools.islice(itertools.count($n), 2)",
    "itertools.chain($I, $I)",
    "itertools.chain.from_iterable([$I, [1]])",
    "itertools.chain.from_iterable(range(v) for v in $I)",
    "itertools.islice($I, 2)",
    "itertools.islice(itertools.cycle($I), $n)",
    "itertools.accumulate($I, lambda a, b: (a + b) % 50)",
    "itertools.accumulate($I, initial=$n)",
    "itertools.takewhile(lambda v: v < 40, $I)",
    "itertools.dropwhile(small, $I)",
    "itertools.filterfalse(small, $I)",
    "itertools.compress($I, itertools.cycle([1, 0]))",
    "itertools.starmap(operator.mul, zip($I, [1, 2]))",
    "itertools.starmap(max, [(1, $n), (2, 3)])",
    "map(sum, itertools.pairwise($I))",
    "map(sum, itertools.zip_longest($I, [1, 2, 3], fillvalue=$n))",
    "map(sum, itertools.product(itertools.islice($I, 2), [1, $n]))",
    "map(sum, itertools.permutations(range(3), 2))",
    "map(sum, itertools.combinations_with_replacement([1, 2], 2))",
    "itertools.repeat($n, 2)",
    "itertools.tee($I)[0]",
    "itertools.tee($I, 3)[2]",
    "map(operator.itemgetter(0), itertools.groupby($I, small))",
    "(len(list(g)) for _, g in itertools.groupby([1, 1, 2, $n, 5], small))",
    *(["map(sum, itertools.batched($I, 2))"] if sys.version_info >= (3, 12) else []),
)

STATEMENTS = (
    # ---- values that lie in variables ----
    "it$u = iter($I)\nlog.append(next(it$u, 0))\nx += $S\nlog.append(list(itertools.islice(it$u, 9)))",
    "a$u = b$u = iter($I)\nnext(a$u, 0)\ny += $S\nlog.append((next(b$u, 0), a$u is b$u, next(a$u, 0)))",
    "l$u = [iter($I)]\nk$u = {'i': l$u, 'j': l$u[0]}\nx += $S\n"
    "log.append((next(k$u['j'], 0), next(l$u[0], 0), k$u['i'] is l$u))",
    "for q$u in $I:\n    x += q$u + $S\n    BODY\n    if q$u > 30: break\nelse:\n    log.append('else')",
    "for q$u, w$u in zip($I, $I):\n    log.append((q$u, w$u, $S))",
    "for k$u, g$u in itertools.groupby($I, small):\n    for q$u in g$u:\n        log.append((k$u, q$u, $S))\n        if q$u == 2: break",
    "one$u, two$u = itertools.tee($I)\nlog.append(next(one$u, 0))\nx += $S\nlog.append((list(itertools.islice(two$u, 9)), list(itertools.islice(one$u, 9))))",
    "add$u = (items$u := [1, x]).append\nx += $S\nadd$u($E)\nlog.append(items$u)",
    "step$u = (nums$u := iter($I)).__next__\ny += $S\nwith contextlib.suppress(StopIteration):\n    log.append((step$u(), next(nums$u, 0)))",
    "get$u = (d$u := {1: x}).get\nx += $S\nd$u[2] = 5\nlog.append((get$u(1), get$u(2, $S)))",
    "send$u = (g$u := gen(4)).send\nsend$u(None)\nx += $S\nlog.append((send$u(3), next(g$u, None)))",
    "g$u = gen(3)\nlog.append(next(g$u))\ny += $S\ntry:\n    log.append(g$u.throw(E(1)))\nexcept E:\n    log.append(list(g$u))",
    "g$u = walks($n)\nnext(g$u)\nx += $S\ng$u.close()\nlog.append(list(g$u))",
    "same$u = [MISSING, DEFAULT, Kept.marker, NOTHING, dataclasses.MISSING]\nm$u = MISSING\nx += $S\n"
    "log.append([m$u is MISSING, same$u[0] is MISSING, same$u[1] is dataclasses.MISSING, same$u[2] is Kept.marker, same$u[3] is NOTHING])",
    "def f$u(a=MISSING, *, b=DEFAULT):\n    x = $S\n    return (a is MISSING, b is dataclasses.MISSING)\nlog.append(f$u())",
    "own$u = object()\nboth$u = [own$u]\nx += $S\nlog.append((both$u[0] is own$u, own$u is MISSING))",
    "c$u = Color.RED\nf$u = Flags.A | Flags.B\nl$u = Level.HIGH\nx += $S\nlog.append((c$u is Color.RED, f$u is Flags(3), l$u is Level.HIGH))",
    "for c$u in Color:\n    log.append((c$u.name, $S))",
    "p$u = Point($S, $S, [1])\nq$u = p$u.c\nfixed$u = Fixed($S)\nx += $S\nq$u.append(2)\nlog.append((p$u, fixed$u, p$u.c is q$u))",
    "d$u = decimal.Decimal($S) / 3\nt$u = datetime.timedelta(days=$n)\nx += $S\nlog.append((str(d$u), t$u.days))",
    "with decimal.localcontext() as c$u:\n    c$u.prec = $n + 2\n    x += $S\n    log.append(str(decimal.Decimal(1) / 7))\n    c$u.prec += 1\n    log.append(str(decimal.Decimal(1) / 7))\nlog.append(str(decimal.Decimal(1) / 7))",
    "decimal.getcontext().prec = 9\ny += $S\nlog.append(str(decimal.Decimal(1) / 3))\ndecimal.getcontext().prec = 28",
    "r$u = random.Random($n)\nr$u.random()\nx += $S\nlog.append(r$u.randrange(100))",
    "m$u = re.compile('a+')\nb$u = io.StringIO('a\\nb\\nc')\nb$u.readline()\nx += $S\nlog.append((m$u.match('aab').end(), b$u.readline()))",
    "k$u = Kept($n)\nk$u.it = iter([1, 2, 3])\nnext(k$u.it)\nx += $S\nlog.append(list(k$u.it))",
    "k$u = Below($n)\nm$u = k$u.method\nk$u.value += $S\nlog.append(m$u($S))\nm$u = Below.made\nlog.append(m$u($S).value)",
    "e$u = E('kept')\ne$u.add_note('note')\ne$u.me = [e$u]\nx += $S\nlog.append((e$u.args, e$u.__notes__, e$u.me[0] is e$u))",
    "l$u = [1]\nl$u.append(l$u)\nt$u = (l$u, {'l': l$u})\nx += $S\nlog.append((l$u[1] is l$u, t$u[1]['l'] is l$u))",
    "fs$u = [lambda v=i: v + x for i in range(2)]\nfs$u.append(lambda: fs$u[0]())\nx += $S\nlog.append([f() for f in fs$u])",
    "v$u = {1: 2, 3: 4}\nk$u, w$u = v$u.keys(), v$u.items()\nx += $S\nv$u[5] = 6\nlog.append((list(k$u), len(w$u)))",
    "n$u = types.SimpleNamespace(a=$S, f=len)\nx += $S\nlog.append((n$u.a, n$u.f([1])))",
    "p$u = functools.partial(plus, b=$S)\nk$u = functools.partial(p$u, 4)\nx += $S\nlog.append((p$u(1), k$u(), k$u.func is plus))",
    "g$u = operator.attrgetter('value')\nc$u = operator.methodcaller('method', 1)\nx += $S\nlog.append(g$u(Kept(3)))",
    "s$u = super(Below, Below(1)).method\nlog.append(s$u($S))",
    "u$u = uuid.UUID(int=$n)\na$u = pathlib.PurePath('a', 'b')\nx += $S\nlog.append((u$u.int, str(a$u)))",
    "c$u = Counter('aab')\no$u = OrderedDict(a=1)\nq$u = deque([1, 2], 2)\nx += $S\nq$u.append(3)\nlog.append((c$u['a'], list(o$u), list(q$u)))",
    "d$u = defaultdict(lambda: [x])\nd$u[1].append($S)\nlog.append(d$u[2] + d$u[1])",
    "i$u = int | str\nl$u = list[int]\nx += $S\nlog.append((str(i$u), str(l$u)))",
    "b$u = bytearray(b'ab')\nx += $S\nb$u += b'c'\nlog.append(bytes(b$u))",
    "d$u = {1: 2, 3: 4, 5: 6}\nfor k$u, v$u in d$u.items():\n    log.append((k$u, v$u, $S))\n    d$u[5] += v$u",
    "lo$u = locals\nx += $S\nlog.append(sorted(lo$u())[:1])",
    "k$u = Kept\nx += $S\nlog.append(k$u is Kept)",
    # ---- what cannot be pickled has to be refused ----
    "o$u = Kept(1)\nw$u = weakref.ref(o$u)\nx += $S\nlog.append(w$u() is o$u)",
    "o$u = Kept(1)\nw$u = weakref.WeakValueDictionary(a=o$u)\nx += $S\nlog.append(len(w$u))",
    "o$u = Kept(1)\nw$u = weakref.WeakMethod(o$u.method)\nx += $S\nlog.append(w$u() is not None)",
    "l$u = locks.Lock()\nwith l$u:\n    x += $S\nlog.append(l$u.locked())",
    "l$u = locks.RLock()\nx += $S\nwith l$u:\n    y += 1",
    "q$u = queue.Queue()\nq$u.put(1)\nx += $S\nlog.append(q$u.get())",
    "h$u = channel()\nx += $S\nlog.append(h$u.balance)",
    "a$u = counts_up($n)\nwith contextlib.suppress(StopIteration, StopAsyncIteration):\n    a$u.__anext__().send(None)\nx += $S\nlog.append(1)",
    "for m$u in re.finditer('a', 'aa'):\n    log.append((m$u.start(), $S))",
    "for r$u in csv.reader(['1,2', '3']):\n    log.append((r$u, $S))",
    "class Local$u:\n    def method(self): return $S\nlog.append(Local$u().method())",
    "class Body$u:\n    a = $S\nlog.append(Body$u.a)",
    "log.append(eval('S(3)'))",
    "f$u = sys._getframe()\nx += $S\ndel f$u",
    # ---- with ----
    "with contextlib.ExitStack() as st$u:\n    st$u.callback(log.append, 'called')\n    st$u.enter_context(Leaves(log, True))\n    v$u = st$u.enter_context(around(log, 'st'))\n    x += $S + v$u\n    BODY\n    if x % 2: raise F(1)",
    "with contextlib.ExitStack() as st$u:\n    st$u.push(lambda *a: log.append(a[0] and a[0].__name__))\n    with st$u.pop_all() as other$u:\n        x += $S\n    log.append($S)",
    "st$u = contextlib.ExitStack()\nst$u.enter_context(contextlib.suppress(E))\nst$u.callback(lambda: log.append('end'))\nx += $S\nst$u.close()",
    "with contextlib.closing(gen(3)) as g$u:\n    log.append(next(g$u))\n    x += $S\n    log.append(next(g$u))",
    "with contextlib.nullcontext(lambda: x) as n$u, Leaves(log, False):\n    y += $S\n    log.append(n$u())",
    "with contextlib.suppress(E), around(log, 1) as a$u, Leaves(log, False):\n    x += a$u + $S\n    BODY\n    if x % 3 == 0: raise E(2)",
    "m$u = around(log, 'later')\ny += $S\nwith m$u as v$u:\n    x += v$u + $S",
    "with Leaves(log, True) as same$u:\n    x += $S\n    raise F(2)\nlog.append(same$u.swallow)",
    "@around(log, 'deco')\ndef f$u(v):\n    return v + $S\nlog.append((f$u(1), f$u(2)))",
    "for i$u in range(2):\n    with around(log, i$u):\n        if i$u == 0: continue\n        x += $S\n        break",
    # ---- functions ----
    "def f$u(v, *a, k=$n, **n):\n    x = v + $S\n    return (x, a, k, sorted(n))\nlog.append(f$u(1, *[2, $S], **{'z': $S}))",
    "@logged\n@times(2)\ndef f$u(v):\n    return v + $S + x\nlog.append(f$u($E))",
    "@functools.singledispatch\ndef f$u(v):\n    return $S\n@f$u.register\ndef _(v: int):\n    return v + $S\nlog.append((f$u(1), f$u('a')))",
    "@functools.lru_cache\ndef f$u(v):\n    return v + $S\nlog.append((f$u(1), f$u(1)))",
    "@functools.wraps(plus)\ndef f$u(*a):\n    return plus(*a) + $S\nlog.append((f$u(2), f$u.__name__))",
    "n$u = 0\ndef up$u():\n    nonlocal x\n    x += $S\n    def inner():\n        nonlocal x\n        x += 1\n        return $S\n    return inner\nlog.append((up$u()(), x))",
    "def fib$u(v):\n    return v if v < 2 else fib$u(v - 1) + fib$u(v - 2) + $S * 0\nlog.append(fib$u(4))",
    "def g$u(v):\n    try:\n        while True:\n            got = yield v\n            v += (got or 1) + $S\n            if v > 9: return v\n    finally:\n        log.append('closed')\nfor i$u in g$u(1):\n    log.append((i$u, $S))",
    "def d$u():\n    r = yield from gen(2)\n    log.append(r)\n    try:\n        yield from walks(1)\n    except E:\n        yield 5\nfor i$u in d$u():\n    x += i$u + $S",
    "def early$u():\n    for i in range(3):\n        try:\n            if i == 1: return $S\n        finally:\n            log.append((i, $S))\nlog.append(early$u())",
    "c$u = waits($n)\nx += $S\nlog.append(driven(c$u))",
    "log.append(driven(chain_of($n)))",
    "for i$u in awaiting(chain_of(1)):\n    pass\nx += $S",
    "a$u = awaiting(waits(2))\ny += $S\nlog.append(list(a$u))",
    "async def co$u():\n    return [i async for i in counts_up(2)] + [$S]\nlog.append(driven(co$u()))",
    "(lambda: log.append($S))()",
    "f$u = lambda v: (lambda: v + x + $S)\nlog.append(f$u(2)())",
    "log.append([(i, j, $S) for i in range(2) for j in $I if j < 5])",
    "log.append([f() for f in [lambda: i + $S for i in range(2)]])",
    "log.append(sorted({i % 4: [$S for _ in range(i % 2)] for i in $I}))",
    "log.append(sum(i + $S for i in $I))",
    # ---- statements ----
    "a$u, *b$u = $S, *$I, $S\nlog.append((a$u, b$u))",
    "l$u = [1, 2, 3]\nl$u[$S % 3] += $S\nl$u[$S % 2:2] = [$S, $S]\nlog.append(l$u)",
    "k$u = Kept(1)\nk$u.value += $S\nk$u.value -= (k$u.value > $S)\nlog.append(k$u.value)",
    "d$u = {}\nd$u[$S], d$u['b'] = $S, $S\ndel d$u['b']\nlog.append(sorted(d$u.values()))",
    "assert $S + 20, $S",
    "match {'k': $S, 'rest': [1, $S]}:\n    case {'k': 0}:\n        log.append($S)\n    case {'k': int(v$u), **r$u} if v$u + $S >= 0:\n        log.append((v$u, r$u))\n    case _:\n        log.append('no')",
    "match Point($S, 2):\n    case Point(a=0 | 1, b=v$u):\n        log.append((v$u, $S))\n    case Point(a=v$u) if $S:\n        log.append(v$u)\n    case other$u:\n        log.append($S)",
    "match [*$I]:\n    case [] | [_]:\n        log.append($S)\n    case [a$u, *r$u]:\n        log.append((a$u, len(r$u), $S))",
    "match Color.RED, $S:\n    case (Color.RED, int() as v$u):\n        log.append(v$u)",
    "try:\n    BODY\n    if $S % 2: raise E($S)\nexcept E as e$u:\n    e$u.add_note('n')\n    x += $S\n    log.append(names())\n    try:\n        raise F(2) from e$u\n    except F:\n        y += $S\n        log.append(names())\nelse:\n    log.append($S)\nfinally:\n    x += $S",
    "try:\n    try:\n        raise Told($S, 'text')\n    finally:\n        x += $S\n        log.append(names())\nexcept Told as e$u:\n    y += $S\n    log.append((e$u.code, e$u.args))",
    "try:\n    raise ExceptionGroup('g', [E($S), F(1), ExceptionGroup('h', [E(2)])])\nexcept* E as g$u:\n    x += $S\n    log.append(len(g$u.exceptions))\nexcept* F:\n    log.append($S)",
    "for i$u in range(3):\n    try:\n        if i$u == 1: continue\n        x += $S\n        if x % 5 == 1: break\n    finally:\n        log.append((i$u, $S))\nelse:\n    log.append('else')",
    "while True:\n    x += $S * 0 + 1\n    try:\n        if x % 2: break\n    finally:\n        y += 1",
    "e$u = None\ntry:\n    raise E(1)\nexcept E as error:\n    e$u = error\nx += $S\nlog.append((e$u.args, e$u.__traceback__ is not None))",
    "try:\n    int('x')\nexcept ValueError as e$u:\n    k$u = sys.exc_info()\n    x += $S\n    log.append((k$u[0].__name__, k$u[1] is e$u))\n    del k$u",
    "import math\nx += math.floor(2.5) + $S",
    "from os import path as p$u\nx += $S\nlog.append(p$u.basename('a/b'))",
    "global COUNT$u\nCOUNT$u = $S\nCOUNT$u += $S\nlog.append(COUNT$u)",
)
