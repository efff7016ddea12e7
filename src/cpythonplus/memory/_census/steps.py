"""The steps of a path to an object, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import Any

from cpythonplus import _native
from cpythonplus.memory._census.naming import module_name
from cpythonplus.memory._cycles.keys import key_text
from cpythonplus.memory._cycles.looking import qualified_name
from cpythonplus.memory._owners.spelling import Step, spelled


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path, as `.CACHE (dict)`.

    step: `module app`, `.CACHE`, `['use...]`. type: of the object that it leads to, "" for a root.
    """

    step: str
    type: str = ""

    def __str__(self) -> str:
        return f"{self.step} ({self.type})".strip() if self.type else self.step


def told_steps(steps: Sequence[Step], *, show_keys: bool) -> Iterator[PathStep]:
    """Yield the steps of a path that was found in a copy of the process."""
    (how, label, kind), *others = steps
    in_namespace = False
    if how == "module":
        yield PathStep(f"module {label}")
    elif how == "keeper":
        yield PathStep(spelled([steps[0]]))
        yield PathStep("", kind)
    else:
        is_variable = how == "variable"
        yield PathStep(
            f"variable {label[0]} of {label[1]}()" if is_variable else "only C code, or garbage"
        )
        yield PathStep("", kind)
    for how, label, target in others:
        if how == "dict":
            in_namespace = True
            continue
        whole = show_keys or how in ("index", "interned")
        shown = f"<{label[0]}>" if type(label) is tuple else key_text(label, whole=whole)
        step = _reference_word(how, label, shown, in_namespace=in_namespace)
        yield PathStep(step or how or f"in the {kind}", target)
        kind, in_namespace = target, False


def path_steps(
    root: Any,  # noqa: ANN401
    name: str | None,
    objects: list[object],
    *,
    show_keys: bool = False,
) -> Iterator[PathStep]:
    """Yield the steps of a path that `_native` has found."""
    in_namespace = False
    if type(root) is CodeType:
        yield PathStep(f"variable {name} of {root.co_qualname}()")
        yield PathStep("", qualified_name(type(objects[0])))
    elif root is not None:
        yield PathStep(f"module {module_name(root)}")
        in_namespace = True
    else:
        yield PathStep("only C code, or garbage")
        yield PathStep("", qualified_name(type(objects[0])))
    for source, target in pairwise(objects):
        how, label = _native.memory_reference_label(source, target)
        if how == "dict":
            in_namespace = True
            continue
        shown = key_text(label, whole=show_keys or how == "index")
        step = _reference_word(how, label, shown, in_namespace=in_namespace)
        step = step or f"in the {qualified_name(type(source))}"
        yield PathStep(step, qualified_name(type(target)))
        in_namespace = False


def _reference_word(how: str, label: object, shown: str, *, in_namespace: bool) -> str:
    """Return `.name` or `[key]`, or "" for other steps. shown: the key in words."""
    is_key = how in ("key", "interned")
    if how == "attribute" or (is_key and in_namespace and type(label) is str):
        return f".{label}"
    if how == "variable of context":
        return f"[{label}]"
    return f"[{shown}]" if is_key or how == "index" else ""
