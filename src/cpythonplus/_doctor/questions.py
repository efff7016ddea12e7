"""All examinations, in the order of a report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import would weigh in the memory that is examined
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cpythonplus._base.reading import Part
    from cpythonplus._base.text.tables import Layout

_EVERYWHERE = ("run", "pid", "watch")


@dataclass(frozen=True)
class Examination:
    """One part of a report.

    take: examines this process, and returns data or JSON; None: it is made elsewhere. at: the
    occasions: at the end of `doctor run`, by `doctor PID`, at each look of a watch. of_type: `take`
    needs the name of a type, or another word, as its argument; None: optional. layout: turns the
    JSON into lines and tables of so many rows, as for `_base.text.tables`. needs: the part is made
    only in a process that has imported this module, because importing it would add to the examined
    memory; by its name the part can always be had.
    """

    title: str
    take: Callable[..., Any] | None
    at: tuple[str, ...]
    of_type: bool | None = False
    layout: Callable[[Part, int], Layout] | None = None
    needs: str = ""

    @property
    def is_in_use(self) -> bool:
        """Whether it is part of a report of this process."""
        return bool(self.at) and (not self.needs or self.needs in sys.modules)


EXAMINATIONS: dict[str, Examination] = {}


def register(
    name: str,
    title: str,
    take: Callable[..., Any] | None = None,
    at: tuple[str, ...] = _EVERYWHERE,
    *,
    of_type: bool | None = False,
    layout: Callable[[Part, int], Layout] | None = None,
    needs: str = "",
) -> None:
    """Add an examination to each report; without a layout its numbers are a table.

    name: lower-case letters and underscores, at most 32: it can be asked for under this name.
    """
    EXAMINATIONS[name] = Examination(title, take, at, of_type, layout, needs)


def asked(where: str) -> list[str]:
    """Return the names of the examinations for an occasion."""
    return [name for name, each in EXAMINATIONS.items() if where in each.at and each.is_in_use]


def taken(name: str, argument: str = "") -> dict[str, object]:
    """Examine this process, as JSON; raises the exceptions of the examination.

    argument: the type that it is about. LookupError for an unknown name, ValueError for a missing
    or needless argument.
    """
    known = EXAMINATIONS.get(name)
    if known is None or known.take is None:
        raise LookupError(f"no examination has the name {name!r}")
    if known.of_type is not None and known.of_type != bool(argument):
        raise ValueError(f"{name}: {'unexpected' if argument else 'expected the'} name of a type")
    found = known.take(argument) if argument else known.take()
    result: dict[str, object] = found if isinstance(found, dict) else found.as_json()
    return result


def _from(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports its module when it is called."""

    def call(*arguments: Any) -> Any:  # noqa: ANN401  # of each its own
        return getattr(import_module(module), name)(*arguments)

    return call


_EXAMINING = "cpythonplus._doctor.agent.examining"

register("resident", "Resident memory", _from("cpythonplus.memory", "resident"))
register("census", "Objects on the heap", _from("cpythonplus.memory", "census"))
register("difference", "Difference between two censuses", at=())
register("cycles", "Cyclic garbage", at=())
register("watch_cycles", "Cyclic garbage from now on", _from(_EXAMINING, "watch_cycles"), at=())
register("watched_cycles", "Cyclic garbage", _from(_EXAMINING, "watched_cycles"), at=())
register("exceptions", "Exceptions still held", _from(_EXAMINING, "exceptions"), ("pid",))
register("caches", "Caches", _from("cpythonplus.memory", "caches"), ("run", "pid"))
register("key_sharing", "Dicts", _from("cpythonplus.memory", "key_sharing"), ("run", "pid"))
register(
    "owners",
    "Who keeps it",
    _from("cpythonplus.memory", "owners"),
    ("pid",),
    layout=_from("cpythonplus._doctor.report.owners", "owners_layout"),
)
register(
    "mark",
    "A moment to compare with",
    _from("cpythonplus.memory._owners.looking", "mark"),
    at=(),
    of_type=None,
)
for _name, _look in (("growth", "growth_since_mark"), ("growth_so_far", "growth_so_far")):
    register(
        _name,
        "What has grown",
        _from("cpythonplus.memory._owners.looking", _look),
        at=(),
        of_type=None,
        layout=_from("cpythonplus._doctor.report.owners", "growth_layout"),
    )
register(
    "native",
    "Memory that native code has taken and not freed",
    _from("cpythonplus._doctor.native_traces.tracing", "trace"),
    at=(),
    of_type=True,
    layout=_from("cpythonplus._doctor.report.native", "native_layout"),
)
register(
    "native_ready", "memray", _from("cpythonplus._doctor.native_traces.tracing", "ready"), at=()
)
register(
    "native_forget", "memray", _from("cpythonplus._doctor.native_traces.tracing", "forget"), at=()
)
register(
    "forget_mark",
    "A moment to compare with",
    _from("cpythonplus.memory._owners.looking", "forget_mark"),
    at=(),
    of_type=True,
)
register(
    "attributed",
    "Which task or route it came with",
    _from("cpythonplus.memory._attribution.asking", "attributed_now"),
    layout=_from("cpythonplus._doctor.report.attributed", "attributed_layout"),
    needs="cpythonplus.memory._attribution.recording",
)
register("gil", "The GIL", _from("cpythonplus.gil", "statistics"))
register("threads", "Threads", _from(_EXAMINING, "threads"), ("run", "pid"))
register("stalls", "Stalls of the GIL", _from(_EXAMINING, "stalls"), at=())
register(
    "deadlock",
    "Threads that wait",
    _from(_EXAMINING, "deadlock"),
    at=(),
    layout=_from("cpythonplus._doctor.report.deadlocks", "deadlock_layout"),
)
register("tasks", "Tasks", _from(_EXAMINING, "tasks"), ("run", "pid"), needs="asyncio")
register("workers", "Workers", _from(_EXAMINING, "workers"), ("pid",))
register(
    "sharing",
    "Memory shared with its children",
    _from("cpythonplus.prefork", "sharing"),
    ("pid",),
    layout=_from("cpythonplus.prefork._blame.tables", "sharing_layout"),
    needs="cpythonplus.prefork",
)
register(
    "generations",
    "Workers of this server",
    _from("cpythonplus.prefork._blame.generations", "generations"),
    ("pid",),
    layout=_from("cpythonplus.prefork._blame.generations", "layout"),
    needs="cpythonplus.prefork._gunicorn.service",
)
register(
    "blame",
    "Private pages and their causes",
    _from("cpythonplus.prefork", "blame"),
    at=(),
    layout=_from("cpythonplus.prefork._blame.tables", "blame_layout"),
)
register("trim", "Memory given back", _from("cpythonplus.memory", "trim"), at=())
register("referrers", "What refers to it", _from(_EXAMINING, "referrers"), at=(), of_type=True)
register("path", "What keeps it alive", _from(_EXAMINING, "path"), at=(), of_type=True)
register("path_keys", "What keeps it alive", _from(_EXAMINING, "path_keys"), at=(), of_type=True)
_TOP = "cpythonplus._doctor.top.answering"
register("top", "Threads now", _from(_TOP, "top"), at=())
register("stack", "The stack of a thread", _from(_TOP, "stack"), at=(), of_type=True)
register("tasklets", "Tasklets", _from(_TOP, "tasklets"), at=())
_GIL_PROFILE = "cpythonplus._doctor.gil_profile.recording"
register("gil_profile", "Where the GIL goes", _from(_GIL_PROFILE, "largest"), at=())
register("gil_profile_end", "Where the GIL goes", _from(_GIL_PROFILE, "end"), at=())
register("hello", "The process", _from(_EXAMINING, "hello"), at=())
register("samples", "While watched", at=())
