"""Spells paths through the heap, and finds the source lines where they begin."""

import re
import signal
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from cpythonplus._base.contents import opened
from cpythonplus._base.data import Place
from cpythonplus.memory._cycles.keys import key_text

Step = tuple[str, Any, str]
"""The kind of reference to the next object, its label, and the class of that object."""

LIBRARIES: Final = tuple({*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))})
"""The last line of the program itself tells more than that of a library which it uses."""
TEMPORARY: Final = "temporary value"
"""The name of what a function works on, and no variable has."""
_CLASSES: Final = {"type", "abc.ABCMeta", "enum.EnumType", "enum.EnumMeta"}
_CLOSURE: Final = re.compile(r"\.__closure__\[(?:\d+|\.\.\.|([^\W\d]\w*))\](?:\.cell_contents)?")
"""The steps from a function to the value of a free variable."""
_MOST_SOURCE: Final = 4 << 20
_MOST_OF_LINE: Final = 500
"""Characters. The work of a pattern grows with the square: a table of data is one line, too."""
_LOCAL: Final = "_thread._local"
CONTAINERS: Final = ("dict", "list", "set", "tuple", "hamt")
"""How classes begin whose objects are no part of a name, if nothing labels them."""
_KEYS: Final = ("key", "interned")
"""The latter is a word of the program, and nobody's secret."""


class _Named(NamedTuple):
    """The part of a name that one step adds. label: an attribute or a variable; "": none."""

    text: str
    label: str = ""
    owner: str = ""
    """The class of what it is an attribute of; "module", a class's own name, or ""."""


def spelled(steps: Sequence[Step], *, general: bool = False) -> str:
    """Return a path as Python writes it: `app.manager.sessions['ab...']`.

    general: `[...]` for each key, because the path stands for many.
    """
    text = "".join(step.text for step in _named(steps, general=general))
    text = _CLOSURE.sub(lambda found: f" (closure: {found[1]})" if found[1] else " (closure)", text)
    return text or "?"


def spelled_below(owner: str, steps: Sequence[Step]) -> str:
    """Return the path below an object, as `[...].__traceback__`; "" if that says little.

    Entries of entries say no more than the class of the object at the end.
    """
    walk = _Walk(general=True)
    walk.owner = owner
    named = [walk.gone_on(step, last=False) for step in steps]
    text = "".join(step.text for step in named if step is not None).removeprefix(" -> ")
    return text if len(steps) > 1 and set(text) - set("[.]") else ""


def _named(steps: Sequence[Step], *, general: bool) -> Iterator[_Named]:
    walk = _Walk(general=general)
    for number, step in enumerate(steps):
        found = (
            walk.begun(step) if number == 0 else walk.gone_on(step, last=number == len(steps) - 1)
        )
        if found is not None:
            yield found


class _Walk:
    """Goes along the steps. owner: the class of the object that the next step leaves."""

    def __init__(self, *, general: bool) -> None:
        self.general = general
        self.owner = ""
        self.in_names = self.in_local = False

    def begun(self, step: Step) -> _Named:
        """Take the first step."""
        how, label, self.owner = step
        self.in_local = self.owner == _LOCAL
        if how == "variable":
            name = label[0] or TEMPORARY
            return _Named(f"{name} of {label[1]}()", name, "variable")
        if how == "module":
            return _Named(str(label), "", "")
        if how == "keeper":
            return _Named(_keeper(*label, general=self.general), "", "")
        if label is not None:
            return _Named(f"{label}: {self.owner}", "", "")
        return _Named(f"C code, or a thread, has it: {self.owner}", "", "")

    def gone_on(self, step: Step, *, last: bool) -> _Named | None:
        """Take another step; None: it adds nothing to the name."""
        how, label, kind = step
        if self.in_local:  # the interpreter's dicts around the dict of a `threading.local`
            self.in_local = how not in _KEYS or type(label) is not str
            return None if self.in_local else self._left(_Named(f".{label}", label, _LOCAL), step)
        self.in_local = kind == _LOCAL
        if how == "dict":
            self.in_names = True
            return None
        if how == "...":
            return _Named(" ... ")
        return self._left(self._labelled(how, label) or self._unlabelled(kind, last=last), step)

    def _labelled(self, how: str, label: Any) -> _Named | None:  # noqa: ANN401  # of many kinds
        if how == "attribute" or (how in _KEYS and self.in_names and type(label) is str):
            return _Named(f".{label}", str(label), self.owner)
        if how in {"variable of context", "free variable"}:
            return _Named(f"[{label}]")
        if how in _KEYS or how == "index":
            return _Named("[...]" if self.general else f"[{_key(label, how)}]")
        return None

    def _unlabelled(self, kind: str, *, last: bool) -> _Named | None:
        if kind in _CLASSES:
            return _Named(".__class__")
        if kind == "traceback":
            return _Named(".tb_next" if self.owner == "traceback" else ".__traceback__")
        unnamed = last or kind.startswith(CONTAINERS)
        return None if unnamed else _Named(f" -> {kind.rpartition('.')[2]}")

    def _left(self, named: _Named | None, step: Step) -> _Named | None:
        _, label, kind = step
        self.in_names = False
        self.owner = f"class {label}" if kind in _CLASSES else kind
        return named


def _keeper(by: str, number: int, *, general: bool) -> str:
    """Return the call that gave an object to the interpreter, and its thread or signal."""
    if by.startswith("signal"):
        names = {int(each): each.name for each in signal.valid_signals() if hasattr(each, "name")}
        return f"{by}({names.get(number, number)})"
    threads = getattr(sys.modules.get("threading"), "_active", {})
    name = getattr(threads.get(number), "name", None)
    return by if general or type(name) is not str else by.replace("a thread", name)


def _key(label: Any, how: str) -> str:  # noqa: ANN401  # of many kinds
    return f"<{label[0]}>" if type(label) is tuple else key_text(label, whole=how != "key")


# ---- where it is written ------------------------------------------------------------------------


def place_of(steps: Sequence[Step]) -> Place:
    """Return the line that makes the object at a path, as far as its name tells."""
    if steps and steps[0][0] == "variable":
        _, function, file, first = steps[0][1]
        name = steps[0][1][0]
        line = _find(file, [rf"\b{re.escape(name)}\s*(?::[^=\n]+)?=(?!=)"], first) if name else 0
        return Place(file, line or first, function)
    module = str(steps[0][1]) if steps and steps[0][0] == "module" else ""
    found = [
        place
        for step in _named(steps, general=False)
        if step.label and not step.label.startswith("__")
        if (place := _place(module, step.owner, step.label)) is not None
    ]
    own = [place for place in found if not place.file.startswith(LIBRARIES)]
    return (own or found or [Place()])[-1]


def _place(module: str, owner: str, label: str) -> Place | None:
    name = re.escape(label)
    assigned = rf"{name}\s*(?::[^=\n]+)?=(?!=)"
    if owner == "module":
        patterns = [
            rf"^{assigned}",
            rf"^\s+(?:async\s+)?def {name}\b|^(?:async\s+)?def {name}\b|^class {name}\b",
            rf"^\s+{assigned}",
            rf"^{name}\s*:",
        ]
        return _in_module(module, patterns) or _imported(module, label, patterns)
    if owner.startswith("class "):
        class_name = re.escape(owner.removeprefix("class "))
        patterns = [rf"^\s+{assigned}", rf"^\s+(?:async\s+)?def {name}\b", rf"^\s+{name}\s*:"]
        return _in_module(module, patterns, class_name)
    if owner == _LOCAL:
        return _in_module(module, [rf"\.{assigned}"])
    home, _, class_name = _split(owner)
    if not home:
        return None
    patterns = [rf"\w+\.{assigned}", rf"^\s+{name}\s*[:=]"]
    return _in_module(home, patterns, re.escape(class_name.rpartition(".")[2]))


def _imported(module: str, label: str, patterns: list[str]) -> Place | None:
    """Return the place of an imported object: another module has it under the same name."""
    modules = {
        name: vars(each) for name, each in [*sys.modules.items()] if type(each) is ModuleType
    }
    wanted = modules.get(module, {}).get(label)
    if wanted is None:
        return None
    others = (name for name, names in modules.items() if names.get(label) is wanted)
    found = (_in_module(name, patterns) for name in others if name != module)
    return next((place for place in found if place is not None), None)


def class_place(kind: str) -> Place:
    """Return the line of a class by its full name."""
    home, _, name = _split(kind)
    last = re.escape(name.rpartition(".")[2])
    return (_in_module(home, [rf"^\s*class {last}\b"]) if home else None) or Place()


def forget_sources() -> None:
    """Forget the source files that were read; the cache must not outlast the report."""
    _lines.cache_clear()


def _split(kind: str) -> tuple[str, str, str]:
    """Split a class's full name into its module and the rest."""
    parts = kind.split(".")
    for count in range(len(parts) - 1, 0, -1):
        home = ".".join(parts[:count])
        if home in sys.modules:
            return home, ".", ".".join(parts[count:])
    return "", "", kind


def _in_module(name: str, patterns: list[str], class_name: str = "") -> Place | None:
    file = getattr(sys.modules.get(name), "__file__", None)
    if type(file) is not str or not file.endswith(".py"):
        return None
    first = _find(file, [rf"^\s*class {class_name}\b"], 1) if class_name else 1
    line = _find(file, patterns, first or 1) or (_find(file, patterns, 1) if first else 0)
    return Place(file, line) if line else None


def _find(file: str, patterns: list[str], first: int) -> int:
    """Return the first line, from `first` on, with the first matching pattern; 0 for none."""
    lines = _lines(file)
    for pattern in patterns:
        compiled = re.compile(pattern)
        for number in range(max(first, 1) - 1, len(lines)):
            if compiled.search(lines[number], 0, _MOST_OF_LINE):
                return number + 1
    return 0


@lru_cache(maxsize=16)
def _lines(file: str) -> list[str]:
    try:
        with opened(file) as source:
            return source.read(_MOST_SOURCE).decode(errors="replace").splitlines()
    except OSError:
        return []
