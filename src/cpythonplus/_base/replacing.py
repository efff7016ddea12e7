"""Putting objects in the place of others: in their modules, and wherever they were imported to.

Replaced is each global of a loaded module that *is* the object of a home module that is to be
replaced.  A home module that is not loaded yet gets its replacements as soon as it is imported: a
finder in front of `sys.meta_path` sees that.  What hides in class attributes, default arguments and
containers stays as it is, and so do the modules of this package.

On the start-up path of `run`: nothing is imported here that an interpreter does not have anyway.
"""

# ruff: noqa: PTH119, PTH120, PTH121

import _thread
import os
import sys

try:
    from cpythonplus._native import unseen_finder, unseen_loader
except ImportError:  # the program's tracer sees what is called here

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

__all__ = [
    "MISSING",
    "Loader",
    "Replacer",
    "everybodys",
    "namespace_of",
    "original",
    "when_loaded",
]

MISSING = object()
"""The old value of a name that was not there."""

# What the import system depends on.
_LEFT_ALONE = frozenset({"_thread", "_queue", "_frozen_importlib", "_frozen_importlib_external"})
_replacers: "list[Replacer]" = []  # that have replaced something


class Replacer:
    """What one `patch()` has replaced and is to replace.

    Any thread may use it at any time.  Replacers that are to replace each other's objects share
    their lock; who is in the middle of such a pile may be the first to go.

    Args:
        lock: guards it; re-entrant, and free in a forked child whose parent's other thread had it.
        homes: the modules whose names are to be replaced, as far as known before `start`.
        others: modules whose imports it is to be told of.
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
        """The names that the watcher looks at."""
        # Namespace, name, old, new.
        self.changes: list[tuple[dict[str, Any], str, object, object]] = []
        self._lock = lock
        self.watcher = _Watcher(self)

    def start(self, replacements: "Mapping[str, Mapping[str, object]]") -> None:
        """Replace, now and in home modules that are imported later.

        May be called again: new replacements are added, and modules that were loaded without the
        watcher's notice are looked at.

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
                __import__(home)  # waits for another thread that is in the middle of it
        with self._lock:
            if self.active:
                self.switched(on=True)
                self._replace_everywhere()

    def stop(self) -> None:
        """Put everything back that nobody else has changed since; does nothing when not active."""
        with self._lock:
            self.active = False
            self.switched(on=False)
            if self.watcher in sys.meta_path:
                sys.meta_path.remove(self.watcher)
            if self in _replacers:
                _replacers.remove(self)
            while self.changes:
                _undo(*self.changes.pop())

    # ---- for subclasses; called with the lock held, but for `about_to_import` --------------------

    def switched(self, *, on: bool) -> None:
        """Is told at each start and stop."""

    def is_stock(self, value: object) -> bool:
        """Return whether an object may be replaced wherever it is found."""
        return callable(value)

    def further(self) -> "Pairs":
        """Return what else is replaced wherever it is found: old and new objects."""
        return ()

    def finish(self, home: str, namespace: "dict[str, Any]") -> None:
        """Change what else there is in a home module."""

    def about_to_import(self, name: str) -> None:
        """Is told of each import of one of the others that is not loaded."""

    def is_of_another(self, value: object) -> bool:
        """Return whether another replacer has put it somewhere."""
        others = (replacer for replacer in _replacers if replacer is not self)
        return any(change[3] is value for replacer in others for change in replacer.changes)

    # ---- replacing ------------------------------------------------------------------------------

    def change(self, namespace: "dict[str, Any]", name: str, new: object) -> None:
        """Set a global, until `stop`."""
        old = namespace.get(name, MISSING)
        namespace[name] = new
        self.changes.append((namespace, name, old, new))

    def replace_in(self, module: "ModuleType") -> None:
        """Treat a home module as it has just been loaded; nobody has imported from it yet."""
        with self._lock:
            home, space = module.__name__, namespace_of(module)
            if self.active and _is_standard(module) and not _is_green(space):
                self._replace(space, self._substitutes({home: space}))
                self._replace_at_home(home, space)

    def _replace_everywhere(self) -> None:
        # What has put itself into sys.modules without being a module has no globals. (Not
        # isinstance(): it would ask such an object for its class.)
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
        """Replace what is not looked for elsewhere: constants."""
        for name, new in self.replacements[home].items():
            old = namespace.get(name, MISSING)
            if old is not MISSING and old is not new and not callable(old):
                self.change(namespace, name, new)
        self.finish(home, namespace)


def when_loaded(name: str, call: "Callable[[], object]") -> None:
    """Have a function called, without arguments, as soon as a module is loaded.

    At once where it is loaded already, else when its import has succeeded, before anybody has got
    it; in rare cases twice, if another thread imports it at this moment.
    """
    awaited = _Awaited(name, call)
    sys.meta_path.insert(0, awaited.watcher)
    if sys.modules.get(name) is not None:
        __import__(name)  # waits for another thread that is in the middle of it
        awaited.replace_in(sys.modules[name])


class _Awaited(Replacer):
    """A module in which nothing is replaced; its watcher goes when it is there."""

    def __init__(self, name: str, call: "Callable[[], object]") -> None:
        super().__init__(_thread.allocate_lock(), (name,))
        self._call = call

    def replace_in(self, module: "ModuleType") -> None:  # noqa: ARG002
        if self.watcher in sys.meta_path:
            sys.meta_path.remove(self.watcher)
        self._call()


def original(module: "ModuleType", name: str) -> object:
    """Return a global as it would be if all replacers stopped; raises KeyError for none such."""
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
    """Return what a global is now and what it was before each change of it; empty for none such."""
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

    Not vars(): it would load a module that is still to be loaded (importlib.util.LazyLoader).
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
    """Have another replacer that has replaced `new` put back the old object instead."""
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
    """Whether this is a copy of a home module over the locks of a green package: eventlet's."""
    home = getattr(namespace.get("_allocate_lock"), "__module__", "_thread")  # threading
    below = namespace.get("threading")  # queue
    if issubclass(type(below), type(sys)) and not _is_standard(below):  # type: ignore[arg-type]
        return True
    return home != "_thread" and not str(home).startswith("cpythonplus")


# ---- what is imported later ---------------------------------------------------------------------


class _Watcher:
    """A finder that has home modules treated at their import; finds nothing itself."""

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
        # Another replacer's watcher behind this one does its part; one before has asked this one.
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            find_spec = getattr(finder, "find_spec", None)
            if find_spec is not None:
                spec = find_spec(name, path, target)
                if spec is not None:
                    yield spec


class Loader:
    """A module's own loader, but that what it has loaded is treated."""

    def __init__(self, loader: "Any", replacer: Replacer) -> None:  # noqa: ANN401
        self._loader = loader  # the import system's protocol
        if hasattr(loader, "create_module"):
            self.create_module = loader.create_module
        self.exec_module = unseen_loader(self._hide, loader.exec_module, replacer.replace_in)

    def __getattr__(self, name: str) -> "Any":  # noqa: ANN401
        return getattr(self.__dict__["_loader"], name)

    def _hide(self, module: "ModuleType") -> None:
        """Have the module look as if nobody had been there."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
