"""The map of the rooms names files and functions that exist, and counts the files of a pass."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools import arrows

PAGE = ROOT / "docs" / "contributing" / "map.md"
MOST_LINES = 25  # below a room's table, without empty ones

GENERATED = re.compile(r"<!-- generated: .*?<!-- end of generated -->\n", re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./]+\.(?:c|h|py)")
FOLDER = re.compile(r"[\w/]+/")
CALL = re.compile(r"(?:(\w+)\.)?(\w+)\(\)")
ITEM = re.compile(r"\n(?=(?:- |\d+\. |\*\*))")
PASS = re.compile(r"^\*\*.+?\*\* \((\d+) files\b.*?(?=^\*\*|\Z)", re.DOTALL | re.MULTILINE)


def parts(page: str) -> dict[str, str]:
    """Return what stands by hand below each room's table."""
    return {
        name: GENERATED.sub("", rest).strip("\n")
        for name, rest in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    }


def found(room: str, folder: str, name: str) -> Path | None:
    """Return a file of a folder that was named before, of the room, or of the package."""
    for base in (f"{room}/{folder}", folder, room, ""):
        if (path := arrows.PACKAGE / base / name).is_file():
            return path
    return None


@cache
def defined(file: Path) -> set[str]:
    """Return the functions that a file and its header define; of a method, also `Class.name`."""
    names: set[str] = set()
    for path in {file, file.with_suffix(".c"), file.with_suffix(".h")}:
        if not path.is_file():
            continue
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            owner = ""
            for kind, indent, name in re.findall(
                r"^(?=(?: {4})?(?:async )?(def|class) )( *)(?:async )?(?:def|class) (\w+)",
                text,
                re.MULTILINE,
            ):
                owner = name if kind == "class" else owner if indent else ""
                names |= {name, f"{owner}.{name}"}
        else:
            names |= set(re.findall(r"^(\w+)\([^;{}]*\)\s*\{", text, re.MULTILINE))
    return names


@cache
def defined_anywhere() -> set[str]:
    """Return the functions that any file of the package defines."""
    files = [path for path in arrows.PACKAGE.rglob("*") if path.suffix in {".c", ".h", ".py"}]
    return set[str]().union(*map(defined, files))


def named(room: str, item: str) -> Iterator[tuple[str, Path | None]]:
    """Yield each piece of code of an item, with the file that it names or follows."""
    folder, file = "", None
    for span in SPAN.findall(item):
        if FOLDER.fullmatch(span):
            folder = span
        elif FILE.fullmatch(span):
            file = found(room, folder, span)
        yield span, file


def files(room: str, text: str) -> set[Path]:
    """Return the files that a text names; x.c and x.h are one."""
    spans = [pair for item in ITEM.split(text) for pair in named(room, item)]
    paths = {file for span, file in spans if file is not None and FILE.fullmatch(span)}
    return {path if path.suffix == ".py" else path.with_suffix("") for path in paths}


def problem(room: str, span: str, file: Path | None) -> str:
    """Return what is wrong with a piece of code, or nothing; file: that it names or follows."""
    call = CALL.fullmatch(span)
    if FOLDER.fullmatch(span):
        there = (arrows.PACKAGE / room / span).is_dir() or (arrows.PACKAGE / span).is_dir()
        return "" if there else f"there is no folder {span}"
    if FILE.fullmatch(span):
        return "" if file is not None else f"there is no file {span}"
    if call is None:
        return ""
    if file is None:
        return "" if call[2] in defined_anywhere() else f"{span} is not defined in the package"
    there = span.removesuffix("()") in defined(file)
    return "" if there else f"{span} is not defined in {file.name}"


def problems(room: str, text: str) -> Iterator[str]:
    """Yield what a room's part names, and the sources do not have; and numbers that are wrong."""
    for item in ITEM.split(text):
        yield from filter(None, (problem(room, *pair) for pair in named(room, item)))
    for each in PASS.finditer(text):
        if (count := len(files(room, each[0]))) != int(each[1]):
            yield f"{each[0].splitlines()[0]} names {count} files"


PARTS = parts(PAGE.read_text("utf-8"))


def test_the_page_has_each_room() -> None:
    assert tuple(PARTS) == arrows.ROOMS
    assert sum(len(PASS.findall(text)) for text in PARTS.values()) > len(PARTS)


@pytest.mark.parametrize("room", arrows.ROOMS)
def test_what_a_room_names_exists(room: str) -> None:
    assert list(problems(room, PARTS[room])) == []


@pytest.mark.parametrize("room", arrows.ROOMS)
def test_a_room_is_read_on_one_screen(room: str) -> None:
    assert len(list(filter(None, PARTS[room].splitlines()))) <= MOST_LINES


def test_what_does_not_exist_is_named() -> None:
    text = (
        "- `plus_no_such_function()`, `no_such/`\n\n"
        "**One pass** (3 files):\n\n"
        "1. `hooks.c`: `plus_hook_cond_wait()`, `grant_next()`; `no_such.c`\n"
        "2. `scheduler/`: `sched.h`, `sched.c`: `grant_next()`; `_base/errors.py`\n"
        "3. `scheduler/`: `policy.c`: `plus_policy_decide()`\n"
    )
    assert list(problems("gil", text)) == [
        "plus_no_such_function() is not defined in the package",
        "there is no folder no_such/",
        "grant_next() is not defined in hooks.c",
        "there is no file no_such.c",
        "**One pass** (3 files): names 4 files",
    ]
