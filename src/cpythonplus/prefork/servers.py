"""What the modules for the servers have in common: settings, preparing, and the child's part.

A server's module knows *when* its server forks; this one knows what is to be done then.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name

from cpythonplus.base.sizes import format_size, parse_size
from cpythonplus.prefork.activation import rehearse_gil, schedule_gil, use_native_locks
from cpythonplus.prefork.board import Board, BoardError
from cpythonplus.prefork.preparing import Budget, PrepareReport, statistics
from cpythonplus.prefork.recycling import Recycler

__all__ = ["PREFIX", "SETTINGS", "Parent", "Settings", "tell", "warm_up_of"]

PREFIX = "CPYTHONPLUS_PREFORK_"
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off", ""})
# More workers at a time than this many are served all the same, but not recycled.
_SLOTS = 256

MIN_AGE_S = 10.0
"""For how long a fresh worker is not replaced, however large it is: a limit can be too low."""
INTERVAL_S = 1.0
"""How often a worker looks at its memory at most."""

_log = logging.getLogger("cpythonplus.prefork")


def tell(message: str) -> None:
    """Say in one line what went wrong, where the server writes its warnings."""
    _log.warning("cpythonplus prefork: %s", " ".join(message.split()))


# ---- settings -----------------------------------------------------------------------------------


def _switch(value: object) -> bool:
    text = str(value).strip().lower()
    if text not in _YES | _NO:
        raise ValueError(f"{value!r} is neither on nor off")
    return text in _YES


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server's user may choose."""

    gil: bool = True
    """Whether the workers schedule their GIL."""
    locks: bool = True
    """Whether the workers use the native locks and queues."""
    warm_up: str = ""
    """What the parent loads or calls before its first fork; see `warm_up_of`."""
    max_private_bytes: int = 0
    """From how much private memory on a worker is replaced; 0: never."""
    again_bytes: int | None = 0
    """How much the forks after the first one may make immortal; see `preparing.Budget`."""

    @classmethod
    def read(cls, *sources: Mapping[str, object]) -> "Settings":
        """Return what is set: in `sources` by name, the last one first, else in the environment.

        The variables are CPYTHONPLUS_PREFORK_GIL, _LOCKS, _WARM_UP, _MAX_PRIVATE_MEMORY and
        _PREPARE_AGAIN.  A value that cannot be read is told in one line, and the default holds: a
        service that works must not go down over it.
        """
        values: dict[str, object] = {}
        for name, (field, reader) in _READERS.items():
            value: object = os.environ.get(PREFIX + name.upper())
            for source in sources:
                value = source.get(name, value)
            if value is None:
                continue
            try:
                values[field] = reader(value)
            except ValueError as error:
                tell(f"the setting {name} is left out: {error}")
        return cls(**values)  # type: ignore[arg-type]  # each reader returns its field's type


_READERS: dict[str, tuple[str, Callable[[object], object]]] = {
    "gil": ("gil", _switch),
    "locks": ("locks", _switch),
    "warm_up": ("warm_up", str),
    "max_private_memory": ("max_private_bytes", lambda value: parse_size(str(value))),
    "prepare_again": ("again_bytes", lambda value: parse_size(str(value))),
}
SETTINGS = tuple(_READERS)
"""The names of the settings, as their sources have them."""


def warm_up_of(text: str) -> Callable[[], None] | None:
    """Return what does the warm-up that `text` names, or None when it names nothing.

    text: entries with commas between; ``package.module`` is imported, ``package.module:name`` is
    imported and called without arguments.  What importing or calling raises is the program's own.
    """
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if not entries:
        return None

    def warm_up() -> None:
        for entry in entries:
            module, _, attributes = entry.partition(":")
            if not attributes:
                import_module(module)
                continue
            found = resolve_name(entry)
            if not callable(found):
                raise TypeError(f"{entry} cannot be called")
            found()

    return warm_up


# ---- a process that forks workers ---------------------------------------------------------------


class Parent:
    """A process that forks workers; made in it, used by it and by its children.

    It prepares before the first fork, and again only within `settings.again_bytes`, when its heap
    has grown by some MB: each fork leaves some hundred blocks, which are not worth walking through
    a heap.  Only the thread that forks may call it.

    Attributes:
        budget: what decides; one that replaces it begins anew.
    """

    def __init__(self, settings: Settings, warm_up: Callable[[], object] | None = None) -> None:
        self.pid = os.getpid()
        self.settings = settings
        self.budget = Budget(settings.again_bytes)
        self.board = Board(_SLOTS) if settings.max_private_bytes else None
        self._recycler: Recycler | None = None  # in a worker
        self._rehearsed = self._told_spent = False
        self._asking = threading.Lock()
        self._warm_up = warm_up if warm_up is not None else warm_up_of(settings.warm_up)

    def before_fork(self) -> PrepareReport | None:
        """Prepare if that is worth it; the report, or None.

        Raises nothing: whatever goes wrong is told in one line, and the fork goes on without.
        """
        if self.board is not None:
            with suppress(BoardError):
                self.board.sweep()
        self._warm()
        refused = statistics().refused
        try:
            report = self.budget.prepare()
        except Exception as error:  # noqa: BLE001  # whatever it is: stock workers are better than none
            tell(f"not prepared: {type(error).__name__}: {error}")
            return None
        if report is not None:
            _log.info("%s", report)
        elif statistics().refused > refused and not self._told_spent:
            self._told_spent = True
            _log.info(
                "the heap has grown since it was prepared, and is not prepared again: what is new "
                "is not shared (prepare_again)"
            )
        return report

    def start_worker(self) -> None:
        """Do a worker's part, in the worker: its GIL, its locks, its place among the others.

        Not its end: `prefork.child` is for those that end as Python programs do.
        """
        self.activate()
        if self.board is None:
            return
        # Before it may be due itself: a turn that another one has ends with this.
        with suppress(BoardError):
            self.board.claim(os.getpid()).ready()
        self._asking = threading.Lock()
        self._recycler = Recycler(
            self.settings.max_private_bytes, self.board, interval_s=INTERVAL_S, min_age_s=MIN_AGE_S
        )
        self._recycler.poll()

    def activate(self) -> None:
        """Schedule the GIL and patch the locks of this process, as far as that is wanted."""
        wanted = (
            (self.settings.gil, schedule_gil),
            (self.settings.locks, use_native_locks),
        )
        for switch, step in wanted:
            why_not = step() if switch else ""
            if why_not:
                tell(why_not)

    def worker_is_due(self) -> bool:
        """Whether this worker has to be replaced for its private memory, and now is its turn.

        Asked between two requests or tasks; True only once, so the worker has to end then.
        """
        if self._recycler is None or not self._asking.acquire(blocking=False):
            return False  # another thread of this worker is asking
        try:
            if not self._recycler.poll():
                return False
        finally:
            self._asking.release()
        limit = format_size(self.settings.max_private_bytes)
        tell(f"worker {os.getpid()} has more than {limit} of private memory and is replaced")
        return True

    def _warm(self) -> None:
        """Do the warm-up, once; one that fails must not keep the server from starting."""
        if self.settings.gil and not self._rehearsed:
            self._rehearsed = True
            rehearse_gil()
        warm_up, self._warm_up = self._warm_up, None
        if warm_up is None:
            return
        try:
            warm_up()
        except Exception as error:  # noqa: BLE001  # the user's code
            tell(f"the warm-up failed: {type(error).__name__}: {error}")
