"""Read the fields that a class declares."""

import sys
import typing
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final


class _Missing:
    """Stands for a missing default."""

    def __repr__(self) -> str:
        return "<no default>"


MISSING: Final = _Missing()


def declared_fields(class_name: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the body of a class declares, with their defaults or MISSING.

    Fields are the annotated names, except class variables and names that begin with two
    underscores.  An undefined name in an annotation is no error.
    """
    module = sys.modules.get(namespace.get("__module__", ""))
    private = ("__", f"_{class_name.lstrip('_')}__")  # the compiler puts the class in front
    return {
        name: namespace.get(name, MISSING)
        for name, annotation in _annotations(namespace).items()
        if not name.startswith(private) and not _is_class_variable(annotation, module)
    }


def annotations_of(cls: type) -> dict[str, Any]:
    """Return the annotations of a class and of its bases, as they are written if need be."""
    found: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        if sys.version_info >= (3, 14):
            import annotationlib

            found |= annotationlib.get_annotations(each, format=annotationlib.Format.FORWARDREF)
        else:
            found |= vars(each).get("__annotations__", {})
    return found


def _annotations(namespace: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = namespace.get("__annotations__")
    if found is None and sys.version_info >= (3, 14):  # the body has a function that makes them
        import annotationlib

        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        if annotate is not None:
            found = annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF)
    return found or {}


def _is_class_variable(annotation: object, module: ModuleType | None) -> bool:
    written = getattr(annotation, "__forward_arg__", annotation)  # a text that was not evaluated
    if isinstance(written, str):
        annotation = _named(written, module)
    return typing.ClassVar in (annotation, typing.get_origin(annotation))


def _named(annotation: str, module: ModuleType | None) -> object:
    """Return the object named in "typing.ClassVar[int]" from a module, without evaluation."""
    found: object = module
    for name in annotation.partition("[")[0].strip().split("."):
        found = getattr(found, name, None)
    return found
