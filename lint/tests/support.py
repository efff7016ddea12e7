"""The cases of the rules, and what becomes of them when they are called."""

import ast
import gc
import inspect
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
EXCEPTIONS = ["exceptions", *(["groups"] if sys.version_info >= (3, 11) else [])]
"""The files of cases that keep exceptions; the second one has `except*`."""


def case(name: str) -> str:
    return (CASES / f"{name}.txt").read_text()


@dataclass(frozen=True)
class Outcome:
    """What a function does that a caller can see, and whether the collector finds something."""

    seen: str
    leaves_garbage: bool


def outcomes(text: str) -> dict[str, Outcome]:
    """Call each function of a file of cases, but for those marked `# only`."""
    space: dict[str, Any] = {"Nowhere": io.StringIO()}
    exec(compile(text, "cases.py", "exec"), space)
    # What was there before need not be looked through each time.
    gc.collect()
    gc.freeze()
    try:
        return {name: outcome(space[name]) for name in called(text)}
    finally:
        gc.unfreeze()


def called(text: str) -> list[str]:
    lines = text.splitlines()
    return [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith(("bad_", "good_"))
        and not lines[node.lineno - 1].endswith("# only")
    ]


def outcome(call: Callable[[], object]) -> Outcome:
    gc.collect()
    seen = observed(call)
    return Outcome(seen, gc.collect() > 0)


def observed(call: Callable[[], object]) -> str:
    """A function's result or exception, without where it lies."""
    result: object = None
    try:
        result = call()
        if inspect.iscoroutine(result):
            try:
                result.send(None)
            except StopIteration as end:
                return repr(end.value)
        return type(result).__name__ if callable(result) else repr(result)
    except BaseException as error:  # noqa: BLE001  # whatever a case raises
        return f"{type(error).__name__}: {error}; {error.__cause__!r}; {error.__context__!r}"
    finally:
        # An exception that is returned has this frame behind those of its traceback.
        del result
