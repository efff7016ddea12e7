"""CYC301: wrappers that hand `*args, **kwargs` to wrappers.

Each layer packs and unpacks the arguments again, appears in every traceback, and its frame holds
the arguments for as long as the call takes. One layer may be needed. Instead of a second one, make
`partial(call, x)` once at the outside, and pass a callable without arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from cpythonplus_lint.checks.scopes import names_of, parameters
from cpythonplus_lint.checks.source import Function, FunctionNode, Source, at, dotted
from cpythonplus_lint.model import Violation

CODES = frozenset({"CYC301"})


@dataclass(frozen=True, slots=True)
class Layer:
    """A function that hands its `*args, **kwargs` on, and does nothing else with them."""

    function: Function
    target: str
    """The dotted name of the callable that gets `*args, **kwargs`."""
    handed: frozenset[str]
    """The names that are passed on in addition to `*args, **kwargs`."""


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    if not source.says("**"):
        return
    layers = [layer for one in source.functions if (layer := _layer(source, one)) is not None]
    by_name = {name: layer for layer in layers for name in _names(layer.function)}
    known = {id(layer) for layer in layers if layer.target in _callables(layer.function)}
    for layer in _upper(layers, by_name, known):
        name = layer.function.node.name
        text = (
            f"`{name}` passes `*args, **kwargs` on to `{layer.target}`, which passes them on again;"
            " accept a callable without arguments"
        )
        yield at(layer.function.node, "CYC301", text)


def _upper(layers: list[Layer], by_name: dict[str, Layer], known: set[int]) -> list[Layer]:
    """The layers that pass a callable on to a known layer; each found layer becomes known."""
    found: list[Layer] = []
    while True:
        new = [
            layer
            for layer in layers
            if id(layer) not in known
            and id(_target(layer, by_name)) in known
            and _callables(layer.function) & layer.handed
        ]
        if not new:
            return sorted(found, key=lambda layer: layer.function.node.lineno)
        known |= {id(layer) for layer in new}
        found += new


def _names(function: Function) -> list[str]:
    """The names by which its module can call a function."""
    node = function.node
    if function.owner is not None:
        return [f"{base}.{node.name}" for base in ("self", "cls", function.owner.name)]
    return [node.name]


def _target(layer: Layer, by_name: dict[str, Layer]) -> Layer | None:
    found = by_name.get(layer.target)
    if found is None or found is layer:
        return None
    is_own = layer.target.startswith(("self.", "cls."))
    if is_own and found.function.owner is not layer.function.owner:
        return None
    return found


def _callables(function: Function) -> set[str]:
    """Parameters of a function and of those around it, its own `*args` and `**kwargs` left out."""
    found: set[str] = set()
    at_hand: Function | None = function
    while at_hand is not None:
        arguments = at_hand.node.args
        plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names = {argument.arg for argument in plain}
        if at_hand.is_method and plain:
            names.discard(plain[0].arg)
        found |= names
        at_hand = at_hand.outer
    return found


def _layer(source: Source, function: Function) -> Layer | None:
    """The function as a layer, or None."""
    node, arguments = function.node, function.node.args
    if arguments.vararg is None or arguments.kwarg is None:
        return None
    text = source.excerpt(node.lineno, node.end_lineno or node.lineno)
    words = (arguments.vararg.arg, arguments.kwarg.arg)
    if text.count(f"**{words[1]}") < 2:  # noqa: PLR2004  # taken and handed on
        return None
    call = _handing_on(node, words)
    if call is None or not dotted(call.func):
        return None
    plain = [one for one in call.args if not isinstance(one, ast.Starred)]
    named = [word.value for word in call.keywords if word.arg is not None]
    handed = frozenset(one.id for one in [*plain, *named] if isinstance(one, ast.Name))
    return Layer(function, dotted(call.func), handed)


def _handing_on(node: FunctionNode, words: tuple[str, str]) -> ast.Call | None:
    """The one call that gets `*args` and `**kwargs`, if neither is used for anything else."""
    calls: list[ast.Call] = []
    uses = 0
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in words:
            uses += 1
        elif isinstance(inner, ast.Call) and _gets_both(inner, words):
            calls.append(inner)
    if len(calls) != 1 or uses != len(words):
        return None
    own = names_of(node)
    rebound = {one.arg for one in parameters(node.args)} & _stored(node)
    return calls[0] if not rebound and own.bound >= set(words) else None


def _stored(node: FunctionNode) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _gets_both(call: ast.Call, words: tuple[str, str]) -> bool:
    starred = {
        one.value.id
        for one in call.args
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Name)
    }
    double = {
        word.value.id
        for word in call.keywords
        if word.arg is None and isinstance(word.value, ast.Name)
    }
    return words[0] in starred and words[1] in double
