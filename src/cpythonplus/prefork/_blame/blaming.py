"""The pages that a worker has made its own since it was forked, and the reasons.

The kernel names the pages that only the worker maps.  Each is compared, word by word, with the same
page of the process that the worker was forked from; `reasons` explains each changed word.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby, repeat
from operator import ne

from cpythonplus._base.data import Data
from cpythonplus.prefork._blame import pages
from cpythonplus.prefork._blame.blocks import POOL_BYTES
from cpythonplus.prefork._blame.objects import Layout, Objects, Owner
from cpythonplus.prefork._blame.pages import PAGE_BYTES, Memory
from cpythonplus.prefork._blame.reasons import Category, Reader, Stretch, Verdict

_CHARGED_FIRST = {category: i for i, category in enumerate(Category)}
_LARGEST_STACK_BYTES = 1 << 28
_THREAD_HEAP_BYTES = 1 << 26
_NO_NAMES = (
    "only whole pages could be judged: it is not the same interpreter, or one whose objects "
    "cannot be found (free-threaded, debugging allocator)"
)


@dataclass(frozen=True, slots=True)
class CategoryShare:
    """The cost of one kind of change.

    bytes: of the pages charged to it; each page is charged once, to the category on it that comes
    first in `Category`. pages: on which it occurs, alone or with others. alone: pages with this
    kind only. words: 8-byte words that differ from the reference; 0 if no contents are compared.
    """

    category: Category
    bytes: int
    pages: int
    alone: int
    words: int


@dataclass(frozen=True, slots=True)
class OwnerShare:
    """The cost of changes inside the objects of one type, or of the types of one module.

    bytes: each page's bytes divided in proportion to the changed words on it. pages: on which such
    an object was changed. words: changed, in all and by category.
    """

    name: str
    bytes: int
    pages: int
    words: int
    by_category: Mapping[Category, int]


@dataclass(frozen=True, slots=True)
class Blame(Data):
    """The pages of a worker that no other process maps, and why they are its own.

    private_bytes: of all these pages. compared_pages: how many of them were compared with those of
    the reference. unread_pages: how many were gone, or could not be read. by_category: by falling
    bytes; their sum is private_bytes but for the pages not read. by_type, by_module: the most
    expensive ones, by falling bytes; a code object's module is its file. seconds: the time that it
    took. note: what could not be found out, and why; else empty.
    """

    pid: int
    reference: int
    private_bytes: int
    compared_pages: int
    unread_pages: int
    by_category: tuple[CategoryShare, ...]
    by_type: tuple[OwnerShare, ...]
    by_module: tuple[OwnerShare, ...]
    seconds: float
    note: str

    def share(self, category: Category) -> CategoryShare:
        """Return the share of one category, of zeros if nothing belongs to it."""
        nothing = CategoryShare(category, 0, 0, 0, 0)
        return next((each for each in self.by_category if each.category == category), nothing)

    def __str__(self) -> str:
        from cpythonplus.prefork._blame.tables import blame_layout, text

        return text(blame_layout(self.as_json(), max(len(self.by_type), len(self.by_module))))


def blame(pid: int | None = None, *, reference: int | None = None, top: int = 15) -> Blame:
    """Return which pages of the worker ``pid`` (None: this process) are its own, and why.

    reference: the process that it was forked from (None: its parent), whose memory still shows the
    former contents; its own later changes cannot be told from the worker's.  A worker whose parent
    has ended has another by then, mostly process 1, which shows nothing: the note, or the
    PermissionError, says so.
    top: how many types and modules are named.

    Nothing is attached to, stopped or written.  Both processes must belong to the same user; if a
    third process asks, changes by the examination itself are not in the answer.  Types and fields
    are named if both processes run the interpreter that asks; else the note says that only whole
    pages could be judged.

    Raises ProcessLookupError if there is no such process or one of both ends meanwhile,
    PermissionError if its memory may not be read, and ValueError if both are the same one or
    ``top`` is negative.
    """
    worker = os.getpid() if pid is None else pid
    origin = pages.parent_of(worker) if reference is None else reference
    if reference is None and not origin:  # process 1, threads of the kernel, another container's
        raise ProcessLookupError(f"process {worker} has no parent that is visible from here")
    if worker == origin:
        raise ValueError(f"process {worker} cannot be compared with itself")
    if top < 0:
        raise ValueError(f"top must not be negative, not {top}")
    began = time.monotonic()
    with (
        Memory(worker) as now,
        _memory_of_parent(worker, origin) if reference is None else Memory(origin) as then,
    ):
        tally = _Tally()
        note = _compare(now, then, tally)
        for each in (now, then):
            if not each.is_there():  # the contents read since are meaningless
                raise ProcessLookupError(f"process {each.pid} ended while its pages were read")
    return tally.report(worker, origin, top, time.monotonic() - began, note)


def _memory_of_parent(worker: int, parent: int) -> Memory:
    """Open the parent's memory; if that is not allowed, name the other possible cause."""
    try:
        return Memory(parent)
    except PermissionError as error:
        raise PermissionError(
            error.errno,
            f"{error.strerror}; process {parent} is now the parent of process"
            f" {worker}, but if it did not fork "
            "it, the original parent has ended: name another reference",
        ) from error


def _compare(now: Memory, then: Memory, tally: "_Tally") -> str:
    """Judge all pages; return the note."""
    maps = pages.mappings(now.pid)
    pages.mappings(then.pid)  # raises if it has none
    start = now.program_start()
    forked = bool(start) and start == then.program_start()
    # The pages come first: the work below may change them if this process is one of the two.
    found = [(place, *now.own_pages(place.mapping.start, place.mapping.end)) for place in
             _places(maps, pages.stack_pointers(now.pid))]  # fmt: skip
    tally.add_whole(Category.FILE_PAGES, sum(of_files for _, _, of_files in found))
    if not forked:
        tally.add_whole(Category.NEW_PAGES, sum(len(own) for _, own, _ in found))
        return (
            f"process {now.pid} was not forked from process {then.pid}, or has"
            " executed another program "
            "since: there is nothing to compare"
        )
    reader = _reader(now, then, maps)
    for place, own, _ in found:
        old = set(then.present_pages(place.mapping.start, place.mapping.end)) if own else set()
        # A page of a data segment that the reference has never touched is still as in the file.
        new = place.fallback if place.library else Category.NEW_PAGES
        tally.add_whole(new, sum(page not in old for page in own))
        for address, window in _windows(page for page in own if page in old):
            _judge(_Pair(now, then, reader, tally), place, address, window)
    return "" if reader else _NO_NAMES


def _reader(now: Memory, then: Memory, maps: Sequence[pages.Mapping]) -> Reader | None:
    layout = Layout.of(pages.mappings(os.getpid()), maps)
    if layout is None:
        return None
    return Reader(now, then, Objects(now, layout), Objects(then, layout))


# ---- kinds of mappings --------------------------------------------------------------------------


def _places(maps: Sequence[pages.Mapping], stacks: Sequence[int]) -> list[Stretch]:
    found: list[Stretch] = []
    for i, mapping in enumerate(maps):
        before = found[-1] if found and found[-1].mapping.end == mapping.start else None
        after = maps[i + 1] if i + 1 < len(maps) else None
        if mapping.path != "[vsyscall]":  # pagemap does not cover it
            found.append(_place(mapping, before, after, stacks))
    return found


def _place(
    mapping: pages.Mapping,
    before: Stretch | None,
    after: pages.Mapping | None,
    stacks: Sequence[int],
) -> Stretch:
    if mapping.path == "[heap]":
        return Stretch(mapping, Category.C_HEAP)
    if mapping.inode:
        return Stretch(mapping, Category.LIBRARY_DATA, mapping.path)
    small = mapping.end - mapping.start <= _LARGEST_STACK_BYTES
    if mapping.path == "[stack]" or (
        small and any(mapping.start <= pointer < mapping.end for pointer in stacks)
    ):
        return Stretch(mapping, Category.STACKS)
    if before is not None and before.library and "w" in before.mapping.permissions:
        # the part of a data segment beyond its file
        return Stretch(mapping, Category.LIBRARY_DATA, before.library)
    if _is_thread_heap(mapping, after):
        return Stretch(mapping, Category.C_HEAP)
    return Stretch(mapping, Category.UNKNOWN)


def _is_thread_heap(mapping: pages.Mapping, after: pages.Mapping | None) -> bool:
    """Whether malloc keeps a thread's blocks there: 64 MiB, aligned, the end not yet usable."""
    if mapping.start % _THREAD_HEAP_BYTES or after is None or after.start != mapping.end:
        return False
    return after.permissions == "---p" and after.end % _THREAD_HEAP_BYTES == 0


# ---- comparing ----------------------------------------------------------------------------------


def _windows(own: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Group rising pages by the aligned stretch, as large as a pool, that contains them."""
    for address, group in groupby(own, key=lambda page: page - page % POOL_BYTES):
        yield address, list(group)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The arguments of `_judge`."""

    now: Memory
    then: Memory
    reader: Reader | None
    tally: "_Tally"


def _judge(pair: _Pair, place: Stretch, address: int, own: Sequence[int]) -> None:
    """Compare pages of one stretch and judge the differences."""
    now, then = pair.now.read(address, POOL_BYTES), pair.then.read(address, POOL_BYTES)
    if now and then:
        _judge_stretch(pair, place, address, (now, then), own)
        return
    for page in own:  # at the end of a mapping
        now, then = pair.now.read(page, PAGE_BYTES), pair.then.read(page, PAGE_BYTES)
        if now and then:
            _judge_stretch(pair, place, page, (now, then), [page])
        else:
            pair.tally.unread_pages += 1


def _judge_stretch(
    pair: _Pair, place: Stretch, address: int, contents: tuple[bytes, bytes], own: Sequence[int]
) -> None:
    now, then = (memoryview(each).cast("Q") for each in contents)
    at: list[int] = []
    for page in own:
        first = (page - address) // 8
        words = range(first, first + PAGE_BYTES // 8)
        at += compress(words, map(ne, now[first : words.stop], then[first : words.stop]))
    changed: defaultdict[int, Counter[Verdict]] = defaultdict(Counter)
    if pair.reader is None:
        verdicts: Iterable[Verdict] = repeat((place.fallback, Owner("", place.library)))
    else:
        verdicts = pair.reader.explain(place, address, now, then, at)
    for i, verdict in zip(at, verdicts, strict=False):
        changed[address + 8 * i & -PAGE_BYTES][verdict] += 1
    for page in own:
        pair.tally.add_compared(changed.get(page))


# ---- adding up ----------------------------------------------------------------------------------


class _Share:
    """The growing form of a share."""

    __slots__ = ("alone", "by_category", "bytes", "pages")

    def __init__(self) -> None:
        self.bytes = 0.0
        self.pages = 0
        self.alone = 0
        self.by_category: Counter[Category] = Counter()


class _Tally:
    """Adds pages up."""

    __slots__ = ("_categories", "_modules", "_types", "compared_pages", "pages", "unread_pages")

    def __init__(self) -> None:
        self.pages = 0
        self.compared_pages = 0
        self.unread_pages = 0
        self._categories: defaultdict[Category, _Share] = defaultdict(_Share)
        self._types: defaultdict[str, _Share] = defaultdict(_Share)
        self._modules: defaultdict[str, _Share] = defaultdict(_Share)

    def add_whole(self, category: Category, pages_count: int) -> None:
        """Add pages that are all of one category, without comparing their words."""
        if pages_count:
            self.pages += pages_count
            share = self._categories[category]
            share.bytes += pages_count * PAGE_BYTES
            share.pages += pages_count
            share.alone += pages_count

    def add_compared(self, changed: "Counter[Verdict] | None") -> None:
        """Add a page by how many of its words were changed, and in which way."""
        self.compared_pages += 1
        if not changed:
            self.add_whole(Category.RESTORED, 1)
            return
        self.pages += 1
        words: Counter[Category] = Counter()
        for (category, _), count in changed.items():
            words[category] += count
        self._categories[min(words, key=_CHARGED_FIRST.__getitem__)].bytes += PAGE_BYTES
        for category, count in words.items():
            share = self._categories[category]
            share.pages += 1
            share.alone += len(words) == 1
            share.by_category[category] += count
        items = changed.items()
        _divide(self._types, [(owner.name, category, count) for (category, owner), count in items])
        _divide(
            self._modules, [(owner.module, category, count) for (category, owner), count in items]
        )

    def report(self, pid: int, reference: int, top: int, seconds: float, note: str) -> Blame:
        categories = [
            CategoryShare(
                each, int(share.bytes), share.pages, share.alone, share.by_category.total()
            )
            for each, share in self._categories.items()
        ]
        return Blame(
            pid=pid,
            reference=reference,
            private_bytes=(self.pages + self.unread_pages) * PAGE_BYTES,
            compared_pages=self.compared_pages,
            unread_pages=self.unread_pages,
            by_category=tuple(sorted(categories, key=lambda each: (-each.bytes, -each.pages))),
            by_type=_largest(self._types, top),
            by_module=_largest(self._modules, top),
            seconds=seconds,
            note=note,
        )


def _divide(
    shares: "defaultdict[str, _Share]", changed: Iterable[tuple[str, Category, int]]
) -> None:
    """Divide a page among the names of its changed words; words without a name keep their part."""
    words: Counter[str] = Counter()
    for name, category, count in changed:
        words[name] += count
        if name:
            shares[name].by_category[category] += count
    for name, count in words.items():
        if name:
            shares[name].bytes += PAGE_BYTES * count / words.total()
            shares[name].pages += 1


def _largest(shares: Mapping[str, _Share], top: int) -> tuple[OwnerShare, ...]:
    rows = [
        OwnerShare(
            name, round(each.bytes), each.pages, each.by_category.total(), dict(each.by_category)
        )
        for name, each in shares.items()
    ]
    return tuple(sorted(rows, key=lambda each: (-each.bytes, each.name))[:top])
