"""What `inspect`, `typing`, `pydoc`, `copy`, `pickle` say of each replaced name: as of stock's."""

import json
import sys
from functools import cache

import pytest

from tests.support import run_child

Told = dict[str, dict[str, str]]

PROGRAM = """
import copy, inspect, json, pickle, pydoc, re, sys, typing
import _queue, _thread, queue, threading

NAMES = {
    "threading": (
        "Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queue": ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"),
    "_thread": ("allocate_lock", "allocate", "LockType", "lock", "RLock"),
    "_queue": ("SimpleQueue",),
}

def tried(function, *args):
    try:
        text = str(function(*args))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub("0x[0-9a-f]+", "0x...", text)

def signature(value):
    # A function in C takes the object itself by position; one in Python may be told its name.
    return str(inspect.signature(value)).replace(", /)", ")").replace("(self, /", "(self")

def told(value):
    return {
        "callable": str(callable(value)),
        "class": str(inspect.isclass(value)),
        "signature": tried(signature, value) if callable(value) else "",
        "hints": tried(typing.get_type_hints, value),
        "documented": str(bool(inspect.getdoc(value))),
        "module": str(getattr(value, "__module__", None)),
        "name": str(getattr(value, "__name__", None)),
        "qualname": str(getattr(value, "__qualname__", None)),
        "rendered": tried(lambda: bool(pydoc.render_doc(value))),
    }

def told_in_full(value):
    return {
        **told(value),
        "repr": tried(repr, value),
        "copy": tried(lambda: type(copy.copy(value)).__name__),
        "deepcopy": tried(lambda: type(copy.deepcopy(value)).__name__),
        "pickle": tried(lambda: type(pickle.loads(pickle.dumps(value))).__name__),
    }

found = {}
for module, names in NAMES.items():
    for name in names:
        value = getattr(sys.modules[module], name, None)
        if value is None:
            continue
        title = f"{module}.{name}"
        found[title] = told_in_full(value)
        for each in dir(value) if inspect.isclass(value) else ():
            if not each.startswith("_"):
                found[f"{title}.{each}"] = told(getattr(value, each))
        try:
            made = value(2) if name == "Barrier" else value()
        except TypeError as error:
            found[f"{title}()"] = {"refused": str(error)}
            continue
        found[f"{title}()"] = told_in_full(made)
        for each in (*dir(made), "__enter__", "__exit__"):
            if hasattr(made, each) and (not each.startswith("_") or each.endswith("er__")):
                found[f"{title}().{each}"] = told(getattr(made, each))
print(json.dumps(found))
"""
PATCH = "from cpythonplus import threads\nthreads.patch()\n"

# What is so on purpose, or is known and harmless; by the end of the name, and the question.
MORE = {
    ("Barrier().wait", "signature"): "(timeout=None, *, breaks=True)",
    ("Queue().join", "signature"): "(timeout=None)",
    # For speed it is bound as a method in C is; before 3.12 somebody has to look at the class.
    **({("Event().is_set", "module"): "None"} if sys.version_info >= (3, 12) else {}),
    # There it is acquire() itself, by another name.
    ("Semaphore().__enter__", "name"): "__enter__",
    ("Semaphore().__enter__", "qualname"): "Semaphore.__enter__",
    ("_thread.allocate", "name"): "allocate_lock",
    ("_thread.allocate", "qualname"): "allocate_lock",
    ("_thread.allocate", "repr"): "<built-in function allocate_lock>",
}


@cache
def sides() -> tuple[Told, Told]:
    """What stock says, and what a patched process does."""
    stock, ours = (json.loads(run_child(before + PROGRAM).out) for before in ("", PATCH))
    return stock, ours


def expected(name: str, question: str, stock: str) -> str:
    for (end, about), answer in MORE.items():
        if name.endswith(end) and question == about:
            return answer
    return stock


def differences() -> dict[str, tuple[str, str]]:
    stock, ours = sides()
    found = {}
    for name, answers in stock.items():
        for question, answer in answers.items():
            told = ours.get(name, {}).get(question, "nothing")
            if told != expected(name, question, answer):
                found[f"{name}: {question}"] = (answer, told)
    return found


def is_told_by_ours_only(question: str, stock: str) -> bool:
    """Whether stock's C code tells nothing there, so that nobody can rely on it."""
    return question.endswith((": signature", ": documented")) and stock.startswith(
        ("ValueError: no signature", "False")
    )


def test_all_names_are_asked_for() -> None:
    stock, ours = sides()
    assert {"threading.Condition().wait", "queue.Queue", "_thread.RLock().acquire"} <= stock.keys()
    assert stock.keys() - ours.keys() == set()


def test_all_is_told_as_of_stocks() -> None:
    wrong = {
        question: told
        for question, told in differences().items()
        if not is_told_by_ours_only(question, told[0])
    }
    assert wrong == {}


@pytest.mark.parametrize("name", ["threading.RLock", "_thread.RLock", "threading.Event"])
def test_types_have_a_signature_where_stocks_have(name: str) -> None:
    stock, ours = sides()
    assert ours[name]["signature"] == stock[name]["signature"]


def test_each_signature_can_be_read() -> None:
    """But for types whose own cannot be read either, whatever the version of `inspect`."""
    stock, ours = sides()
    unread = {name for name, told in ours.items() if "no signature" in told.get("signature", "")}
    allowed = {name for name, told in stock.items() if "no signature" in told.get("signature", "")}
    assert unread <= allowed
    assert not [name for name in unread if not name.endswith(("RLock", "LockType"))]
