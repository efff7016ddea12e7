"""The lists of tests/selection.py: short, explained, and of tests that exist."""

import ast
import datetime as dt
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.selection import ANY_VERSION, MOST_UNSTEADY, TESTS, is_any_version, unsteady
from tests.support import child_environment

pytestmark = pytest.mark.any_version
ROOT = TESTS.parent


def is_defined(identifier: str) -> bool:
    """Whether the file of a test has the classes and the function that the identifier names."""
    file, *names = identifier.partition("[")[0].split("::")
    path = ROOT / file
    if not names or not path.is_file():
        return False
    body = ast.parse(path.read_text("utf-8")).body
    for name in names:
        found = [
            each
            for each in body
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and each.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return True


def wrongs(path: Path) -> list[str]:
    """What is wrong with a list of unsteady tests."""
    listed = unsteady(path)
    found = [] if len(listed) <= MOST_UNSTEADY else [f"{len(listed)} entries"]
    for identifier, entry in listed.items():
        if not is_defined(identifier):
            found.append(f"{identifier}: there is no such test")
        if type(entry.since) is not dt.date:
            found.append(f"{identifier}: since is no date")
        if len(entry.reason.split()) < 3:
            found.append(f"{identifier}: no reason")
    return found


def test_the_list_of_unsteady_tests_is_short_and_explained() -> None:
    assert wrongs(TESTS / "unsteady.toml") == []


def entry(
    identifier: str, since: str = "2026-11-28", reason: str = "hangs on Tuesdays only"
) -> str:
    return f"[[test]]\nid = '{identifier}'\nsince = {since}\nreason = '{reason}'\n"


THIS = "tests/test_selection.py::test_a_wrong_entry_is_told"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (entry(THIS), ""),
        (entry(f"{THIS}[a-b]"), ""),
        (entry("tests/test_selection.py::test_gone"), "there is no such test"),
        (entry("tests/test_gone.py::test_gone"), "there is no such test"),
        (entry("tests/test_selection.py"), "there is no such test"),
        (entry(THIS, since="'2026-11-28'"), "since is no date"),
        (entry(THIS, reason="flaky"), "no reason"),
        ("".join(entry(f"{THIS}[{n}]") for n in range(MOST_UNSTEADY + 1)), "11 entries"),
    ],
)
def test_a_wrong_entry_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "unsteady.toml"
    path.write_text(text)
    found = wrongs(path)
    assert len(found) == bool(told)
    assert not told or told in found[0]


@pytest.mark.parametrize("pattern", ANY_VERSION)
def test_each_pattern_matches_a_file(pattern: str) -> None:
    assert any(is_any_version(path) for path in TESTS.glob(pattern)), pattern


def test_both_lists_reach_pytest(tmp_path: Path) -> None:
    copy = tmp_path / "tests"
    (copy / "survey").mkdir(parents=True)
    for name in ("conftest.py", "selection.py", "support.py"):
        shutil.copy(TESTS / name, copy)
    (copy / "survey" / "test_same.py").write_text("def test_same(): pass\n")
    (copy / "test_other.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    (copy / "unsteady.toml").write_text(entry("tests/test_other.py::test_bad"))
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\nmarkers = any_version\naddopts = --import-mode=importlib -rs\n"
    )

    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=tmp_path,
            env=child_environment(),
            check=False,
            capture_output=True,
            text=True,
        ).stdout

    everything = run()
    assert "2 passed, 1 skipped" in everything
    assert "unsteady since 2026-11-28: hangs on Tuesdays only" in everything
    assert "1 passed, 2 deselected" in run("-m", "any_version")
