"""Replacing objects by others: in their modules, and in all modules that imported them.

Each global of a loaded module is replaced if it *is* the object of a home module that has a
replacement.  A home module that is not loaded yet gets its replacements as soon as it is imported,
by a finder in front of `sys.meta_path`.  References in class attributes, default arguments and
containers stay as they are, and so do the modules of this package.

On the start-up path of `run`: it imports only modules that each interpreter loads anyway.
"""

# ruff: noqa: PTH119, PTH120, PTH121

import _thread
import os
import sys

try:
    from cpythonplus._native import unseen_finder, unseen_loader
except ImportError:  # the program's tracer sees these calls

    def unseen_finder(
        names: "set[str]", function: "Callable[..., ModuleSpec | None]", /
    ) -> "Callable[..., ModuleSpec | None]":
        """Return a finder's find_spec: that function for the names of a set, else None."""
        return lambda name, *rest: function(name, *rest) if name in names else None

    def unseen_loader(
        before: "Callable[[ModuleType], object]",
        load: "Callable[[ModuleType], object]",
        after: "Callable[[ModuleType], object]",
        /,
    ) -> "Callable[[ModuleType], object]":
        """Return a loader's exec_module, which calls the three with the module."""
        return lambda module: (before(module), load(module), after(module))


TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Pairs = Iterable[tuple[object, object]]

MISSING = object()
"""The old value of a name that did not exist."""

# The import system depends on these.
_LEFT_ALONE = frozenset({"_thread", "_queue", "_frozen_importlib", "_frozen_importlib_external"})
_replacers: "list[Replacer]" = []  # those that have replaced objects


class Replacer:
    """The replacements of one `patch()`, done and to be done.

    Any thread may use it at any time.  Replacers that replace each other's objects share their
    lock; they may be stopped in any order.

    Args:
        lock: guards it; re-entrant, and free in a forked child whose parent's other thread had it.
        homes: the modules whose names are to be replaced, as far as known before `start`.
        others: modules whose imports are reported to `about_to_import`.
    """

    def __init__(
        self,
        lock: "AbstractContextManager[Any]",
        homes: "Iterable[str]" = (),
        others: "Iterable[str]" = (),
    ) -> None:
        self.active = False
        # By home module and name; nothing is imported while the lock is held.
        self.replacements: dict[str, dict[str, object]] = {home: {} for home in homes}
        self.heeded = {*self.replacements, *others}
        """The module names that the watcher reacts to."""
        # Namespace, name, old, new.
        self.changes: list[tuple[dict[str, Any], str, object, object]] = []
        self._lock = lock
        self.watcher = _Watcher(self)

    def start(self, replacements: "Mapping[str, Mapping[str, object]]") -> None:
        """Replace, now and in home modules that are imported later.

        May be called again: new replacements are added, also in modules that were loaded without
        the watcher's notice.

        Args:
            replacements: new objects by the home module's name and the name there. A name that the
                module does not have is left out.
        """
        with self._lock:
            for home, names in replacements.items():
                self.replacements.setdefault(home, {}).update(names)
                self.heeded.add(home)
            self.active = True
            if self not in _replacers:
                _replacers.append(self)
            if self.watcher not in sys.meta_path:
                sys.meta_path.insert(0, self.watcher)
        for home in list(self.replacements):
            if sys.modules.get(home) is not None:
                __import__(home)  # waits for another thread that is importing it
        with self._lock:
            if self.active:
                self.switched(on=True)
                self._replace_everywhere()

    def stop(self) -> None:
        """Restore each global that was not changed since; does nothing when not active."""
        with self._lock:
            self.active = False
            self.switched(on=False)
            if self.watcher in sys.meta_path:
                sys.meta_path.remove(self.watcher)
            if self in _replacers:
                _replacers.remove(self)
            while self.changes:
                _undo(*self.changes.pop())

    # ---- for subclasses; called with the lock held, except `about_to_import` ---------------------

    def switched(self, *, on: bool) -> None:
        """Called at each start and stop."""

    def is_stock(self, value: object) -> bool:
        """Return whether an object may be replaced in any module."""
        return callable(value)

    def further(self) -> "Pairs":
        """Return further pairs of old and new objects, replaced in any module."""
        return ()

    def finish(self, home: str, namespace: "dict[str, Any]") -> None:
        """Make further changes in a home module."""

    def about_to_import(self, name: str) -> None:
        """Called at each import of one of the others that is not loaded."""

    def is_of_another(self, value: object) -> bool:
        """Return whether another replacer has put the object into a module."""
        others = (replacer for replacer in _replacers if replacer is not self)
        return any(change[3] is value for replacer in others for change in replacer.changes)

    # ---- replacing ------------------------------------------------------------------------------

    def change(self, namespace: "dict[str, Any]", name: str, new: object) -> None:
        """Set a global, until `stop`."""
        old = namespace.get(name, MISSING)
        namespace[name] = new
        self.changes.append((namespace, name, old, new))

    def replace_in(self, module: "ModuleType") -> None:
        """Make the replacements in a module that was just loaded, before others import from it."""
        with self._lock:
            home, space = module.__name__, namespace_of(module)
            if self.active and _is_standard(module) and not _is_green(space):
                self._replace(space, self._substitutes({home: space}))
                self._replace_at_home(home, space)

    def _replace_everywhere(self) -> None:
        # Objects in sys.modules that are no modules have no globals.  (Not isinstance(): it would
        # ask such an object for its class.)
        modules = {
            name: module
            for name, module in sys.modules.copy().items()
            if issubclass(type(module), type(sys))
        }
        homes = {
            name: namespace_of(modules[name])
            for name in self.replacements
            if name in modules and _is_standard(modules[name])
        }
        substitutes = self._substitutes(homes)
        for name, module in modules.items():
            if not _is_left_alone(name):
                self._replace(namespace_of(module), substitutes)
        for name, namespace in homes.items():
            self._replace_at_home(name, namespace)

    def _substitutes(
        self, homes: "Mapping[str, dict[str, Any]]"
    ) -> "dict[int, tuple[object, object]]":
        """Return old and new objects, by the old one's id."""
        pairs: list[tuple[object, object]] = list(self.further())
        for home, namespace in homes.items():
            names = self.replacements[home]
            pairs += [(namespace[name], new) for name, new in names.items() if name in namespace]
        return {id(old): (old, new) for old, new in pairs if old is not new and self.is_stock(old)}

    def _replace(
        self, namespace: "dict[str, Any]", substitutes: "dict[int, tuple[object, object]]"
    ) -> None:
        for name, value in namespace.copy().items():
            pair = substitutes.get(id(value))
            if pair is not None:
                self.change(namespace, name, pair[1])

    def _replace_at_home(self, home: str, namespace: "dict[str, Any]") -> None:
        """Replace constants, which are not searched for in other modules."""
        for name, new in self.replacements[home].items():
            old = namespace.get(name, MISSING)
            if old is not MISSING and old is not new and not callable(old):
                self.change(namespace, name, new)
        self.finish(home, namespace)


def when_loaded(name: str, call: "Callable[[], object]") -> None:
    """Call a function, without arguments, as soon as a module is loaded.

    It is called at once if the module is loaded already, else when its import has succeeded, before
    other code gets the module; in rare cases twice, if another thread imports it at this moment.
    """
    awaited = _Awaited(name, call)
    sys.meta_path.insert(0, awaited.watcher)
    if sys.modules.get(name) is not None:
        __import__(name)  # waits for another thread that is importing it
        awaited.replace_in(sys.modules[name])


class _Awaited(Replacer):
    """A module in which nothing is replaced; its watcher is removed when it is loaded."""

    def __init__(self, name: str, call: "Callable[[], object]") -> None:
        super().__init__(_thread.allocate_lock(), (name,))
        self._call = call

    def replace_in(self, module: "ModuleType") -> None:  # noqa: ARG002
        if self.watcher in sys.meta_path:
            sys.meta_path.remove(self.watcher)
        self._call()


def original(module: "ModuleType", name: str) -> object:
    """Return the value of a global without replacers; KeyError if the module has no such name."""
    namespace = namespace_of(module)
    found = namespace[name]
    changes = [
        change
        for replacer in _replacers
        for change in replacer.changes
        if change[0] is namespace and change[1] == name
    ]
    while changes:
        at = next((i for i, change in enumerate(changes) if change[3] is found), None)
        if at is None:
            break
        found = changes.pop(at)[2]
    return found


def everybodys(module: "ModuleType", name: str) -> "list[object]":
    """Return a global's present value and those before each change; empty if there is none."""
    namespace = namespace_of(module)
    found = [namespace[name]] if name in namespace else []
    for replacer in _replacers:
        found += [
            old
            for space, key, old, _ in replacer.changes
            if space is namespace and key == name and old is not MISSING
        ]
    return found


def namespace_of(module: "ModuleType") -> "dict[str, Any]":
    """Return a module's globals.

    Not vars(): it would load a lazy module (importlib.util.LazyLoader).
    """
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


def _undo(namespace: "dict[str, Any]", name: str, old: object, new: object) -> None:
    if namespace.get(name) is not new:
        _undo_below(namespace, name, old, new)
    elif old is MISSING:
        del namespace[name]
    else:
        namespace[name] = old


def _undo_below(namespace: "dict[str, Any]", name: str, old: object, new: object) -> None:
    """Make another replacer that has replaced `new` restore the old object instead."""
    for replacer in _replacers:
        for at, change in enumerate(replacer.changes):
            if change[0] is namespace and change[1] == name and change[2] is new:
                replacer.changes[at] = (namespace, name, old, change[3])
                return


def _is_left_alone(name: str) -> bool:
    return name in _LEFT_ALONE or name == "cpythonplus" or name.startswith("cpythonplus.")


def _is_standard(module: "ModuleType") -> bool:
    """Return False for a module of the program's own that is called `queue` or `threading`."""
    file = namespace_of(module).get("__file__")
    if not file:
        return namespace_of(module).get("__name__") in sys.builtin_module_names
    folder, standard = os.path.dirname(file), os.path.dirname(namespace_of(os)["__file__"] or "")
    if os.path.basename(folder) == "lib-dynload":
        folder = os.path.dirname(folder)
    if folder == standard:
        return True
    try:
        return os.path.samefile(folder, standard)
    except OSError:
        return False


def _is_green(namespace: "dict[str, Any]") -> bool:
    """Whether this is eventlet's copy of a home module, over the locks of a green package."""
    home = getattr(namespace.get("_allocate_lock"), "__module__", "_thread")  # threading
    below = namespace.get("threading")  # queue
    if issubclass(type(below), type(sys)) and not _is_standard(below):  # type: ignore[arg-type]
        return True
    return home != "_thread" and not str(home).startswith("cpythonplus")


# ---- later imports ---------------------------------------------------------------------


class _Watcher:
    """A finder that makes the replacements in home modules at their import; finds no module."""

    def __init__(self, replacer: Replacer) -> None:
        self._replacer = replacer
        self.find_spec = unseen_finder(replacer.heeded, self._find)

    def _find(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in self._replacer.replacements:
            self._replacer.about_to_import(name)
            return None
        for spec in self._specs(name, path, target):
            if hasattr(spec.loader, "exec_module"):
                spec.loader = Loader(spec.loader, self._replacer)  # type: ignore[assignment]
            return spec
        return None

    def _specs(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
    ) -> "Iterator[ModuleSpec]":
        finders = list(sys.meta_path)
        # The watchers of other replacers behind this one are asked too; one before it has called
        # it.
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            find_spec = getattr(finder, "find_spec", None)
            if find_spec is not None:
                spec = find_spec(name, path, target)
                if spec is not None:
                    yield spec


class Loader:
    """A module's own loader with an additional step after loading."""

    def __init__(self, loader: "Any", replacer: Replacer) -> None:  # noqa: ANN401
        self._loader = loader  # the import system's protocol
        if hasattr(loader, "create_module"):
            self.create_module = loader.create_module
        self.exec_module = unseen_loader(self._hide, loader.exec_module, replacer.replace_in)

    def __getattr__(self, name: str) -> "Any":  # noqa: ANN401
        return getattr(self.__dict__["_loader"], name)

    def _hide(self, module: "ModuleType") -> None:
        """Restore the module's own loader in its attributes."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
