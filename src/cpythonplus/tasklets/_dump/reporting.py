"""The state of every tasklet of every thread, as data, and as text that reads like tracebacks.

The data is taken in one call with the GIL held, so it is consistent. The text is made from it
afterwards, which takes longer, and runs no code of the program except the `write` of the file.
"""

import linecache
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus._base.stacks import known_threads
from cpythonplus._base.text.visible import visible_lines

State: TypeAlias = str
"""current, runnable, paused, sending, receiving, in run(), or the words for its wait."""
MOST_ALIKE = 2
"""Limit of listed tasklets that differ only in their names; the others are counted."""
Which = Literal[0, 1, 2]
OWN: Which = 0
ALL: Which = 1
OTHERS: Which = 2

# The tuples of the C half.
RawPlace: TypeAlias = tuple[str, int | None, str]
RawTasklet: TypeAlias = tuple[
    int,  # address
    str,  # name of the type
    bool,  # main
    bool,  # begun
    State,
    str | None,  # function
    RawPlace | None,  # where the function is defined
    tuple[int, RawPlace | None] | None,  # channel: address, made at
    int | None,  # ns for which it has been blocked or paused
    tuple[RawPlace, ...],
]
RawThread: TypeAlias = tuple[
    int,  # identity
    int,  # the kernel's thread id
    bool,  # whether it is the calling thread
    bool,  # waits for another thread
    list[
        tuple[list[RawTasklet], int, int]
    ],  # groups: shown ones, number and longest wait of others
    tuple[RawPlace, ...],
]


class TextFile(Protocol):
    """The file that a dump is written to."""

    def write(self, text: str, /) -> object:
        """Write all of the text."""


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """A channel or lock that a tasklet waits on; made_at is None if no Python code made it."""

    address: int
    made_at: Place | None


@dataclass(frozen=True, slots=True)
class TaskletReport:
    """One tasklet, and how many others are like it.

    address: as in its repr.  function: the one it was made for, None for main; defined_at: its
    place, if it is Python code.  begun: whether it has run yet.  channel: the one it waits on while
    it is sending, receiving or acquiring.  waited_ns: for how long it has been blocked or paused,
    in nanoseconds, accurate to 4 ms.  stack: outermost first.  more: number of tasklets of the same
    thread that are not listed, because they have the same function, state and stack, and wait on
    channels made at the same place; more_waited_ns: the longest wait among those.
    """

    address: int
    type_name: str
    is_main: bool
    begun: bool
    state: State
    function: str | None
    defined_at: Place | None
    channel: ChannelReport | None
    waited_ns: int | None
    stack: tuple[Place, ...]
    more: int = 0
    more_waited_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """One thread.

    ident, native_id: as of threading.get_ident() and get_native_id().  name: None if `threading`
    does not know it.  waits_for_threads: it has no runnable tasklet, and sleeps until another
    thread changes that.  tasklets: the current one, the runnable ones in their order, main, then
    those that are blocked or paused; empty if the thread has never used any.  stack: the thread's
    present stack, outermost first.
    """

    ident: int
    native_id: int
    name: str | None
    waits_for_threads: bool
    tasklets: tuple[TaskletReport, ...]
    stack: tuple[Place, ...]


# ---- data ---------------------------------------------------------------------------------------


def report(*, all_threads: bool = True) -> tuple[ThreadReport, ...]:
    """Return what each thread and each of its tasklets does now, the calling thread first.

    all_threads: False for the calling thread alone. Tasklets that are alike are counted after the
    second (see `TaskletReport.more`). Tasklets that have not begun, in no queue, are not listed.
    For a service's log: `json.dumps([dataclasses.asdict(thread) for thread in report()])`.
    """
    return taken(ALL if all_threads else OWN)


def taken(which: Which) -> tuple[ThreadReport, ...]:
    """Return the report of the calling thread, of all threads or of the others."""
    raw = _native.tasklets_report_raw(which, MOST_ALIKE)
    names = _thread_names()
    return tuple(_thread(each, names) for each in raw)


def _thread_names() -> dict[int, str]:
    """Return the names of the threads by identity."""
    # A subclass may override `name`.
    names = {ident: getattr(thread, "_name", None) for ident, thread in known_threads().items()}
    return {ident: name for ident, name in names.items() if isinstance(name, str)}


def _thread(raw: RawThread, names: dict[int, str]) -> ThreadReport:
    ident, native_id, own, waits, groups, stack = raw
    main = "MainThread" if native_id == os.getpid() else None
    return ThreadReport(
        ident=ident,
        native_id=native_id,
        name=names.get(ident, main),
        waits_for_threads=waits,
        tasklets=tuple(_tasklets(groups, own=own)),
        stack=_stack(stack, own=own),
    )


def _tasklets(
    groups: Iterable[tuple[list[RawTasklet], int, int]], *, own: bool
) -> Iterator[TaskletReport]:
    for shown, more, longest_ns in groups:
        for position, raw in enumerate(shown, start=1):
            last = position == len(shown)
            yield _tasklet(raw, more if last else 0, longest_ns, own=own)


def _tasklet(raw: RawTasklet, more: int, longest_ns: int, *, own: bool) -> TaskletReport:
    defined_at, channel, waited_ns, stack = raw[6:]
    return TaskletReport(
        *raw[:6],
        _place(defined_at),
        None if channel is None else ChannelReport(channel[0], _place(channel[1])),
        waited_ns,
        _stack(stack, own=own),
        more,
        more_waited_ns=longest_ns if more and waited_ns is not None else None,
    )


def _place(raw: RawPlace | None) -> Place | None:
    return None if raw is None else Place(raw[0], raw[1] or 0, raw[2])


def _stack(raw: Sequence[RawPlace], *, own: bool) -> tuple[Place, ...]:
    """Return the stack; for the calling thread, without the frames that make this report."""
    end = len(raw)
    while own and end and raw[end - 1][0] == _OWN_FILE:
        end -= 1
    return tuple(Place(file, line or 0, function) for file, line, function in raw[:end])


_OWN_FILE = report.__code__.co_filename


# ---- text ---------------------------------------------------------------------------------------


def dump(file: TextFile | None = None, *, all_threads: bool = True) -> None:
    """Print what each thread and each of its tasklets does, with their stacks.

    file: default sys.stderr. all_threads: False for the calling thread alone. Nothing is switched;
    exceptions of `file.write` are passed on. `report` tells which tasklets are listed.
    """
    write(text(report(all_threads=all_threads)), file)


def write(output: str, file: TextFile | None) -> None:
    """Write to `file`, or to sys.stderr if there is one; escape what it cannot encode."""
    stream: TextFile | None = sys.stderr if file is None else file
    if stream is None:
        return
    try:
        stream.write(output)
    except UnicodeEncodeError as error:
        stream.write(output.encode(error.encoding, "backslashreplace").decode(error.encoding))
    flush = getattr(stream, "flush", None)
    if flush is not None:
        flush()


def note() -> str:
    """Return the note of a deadlock error."""
    return f"What waits for what:\n{text(report())}".rstrip("\n")


def text(threads: Iterable[ThreadReport]) -> str:
    """Return the report as `dump` prints it; terminal control characters in names are escaped."""
    threads = tuple(threads)
    stacks = [thread.stack for thread in threads]
    stacks += [each.stack for thread in threads for each in thread.tasklets]
    for file in {place.file for stack in stacks for place in stack}:
        with suppress(Exception):
            linecache.checkcache(file)
    lines = (visible_lines(line) for thread in threads for line in _thread_lines(thread))
    return "".join(f"{line}\n" for line in lines)


def _thread_lines(thread: ThreadReport) -> Iterator[str]:
    name = "" if thread.name is None else f" {thread.name}"
    count = sum(1 + each.more for each in thread.tasklets)
    heading = f"Thread{name} (0x{thread.ident:x})"
    if count:
        heading += f", {count:,} {'tasklet' if count == 1 else 'tasklets'}"
    if thread.waits_for_threads:
        heading += ", waits for other threads"
    yield f"{heading}:"
    if not thread.tasklets:
        yield from _stack_lines(thread.stack, "  ")
    for each in thread.tasklets:
        yield from _tasklet_lines(each)


def _tasklet_lines(each: TaskletReport) -> Iterator[str]:
    main = ", main" if each.is_main else ""
    function = "" if each.function is None else f" of {each.function}"
    yield f"  <{each.type_name} at 0x{each.address:x}{main}>{function}: {_doing(each)}"
    yield from _stack_lines(each.stack, "    ")
    if each.more:
        longest = "" if each.more_waited_ns is None else f", for up to {_time(each.more_waited_ns)}"
        yield f"  and {each.more:,} more like this{longest}"


def _doing(each: TaskletReport) -> str:
    words: str = each.state
    if not each.begun:
        words += ", not started"
        if each.defined_at is not None:
            words += f', defined at File "{each.defined_at.file}", line {each.defined_at.line}'
    if each.waited_ns is not None:
        words += f" for {_time(each.waited_ns)}"
    if each.channel is not None:
        kind = "lock" if str(each.state) == "acquiring" else "channel"
        words += f" on <{kind} at 0x{each.channel.address:x}>"
        made_at = each.channel.made_at
        if made_at is not None:
            words += f' made at File "{made_at.file}", line {made_at.line}, in {made_at.function}'
    return words


def _time(duration_ns: int) -> str:
    return f"{duration_ns / 1e9:,.2f} s"


def _source(place: Place) -> str:
    # For example, a name that no system call accepts is a ValueError.
    with suppress(Exception):
        return linecache.getline(place.file, place.line)
    return ""


def _stack_lines(stack: Sequence[Place], indent: str) -> Iterator[str]:
    frames = [
        traceback.FrameSummary(each.file, each.line or None, each.function, line=_source(each))
        for each in stack
    ]
    for item in traceback.StackSummary.from_list(frames).format():
        yield from (indent + line for line in item.removeprefix("  ").rstrip("\n").split("\n  "))
