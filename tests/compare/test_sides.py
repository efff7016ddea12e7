"""What the two sides of a command are."""

import os
import sys
from pathlib import Path

import pytest

from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.sides import sides

PLUS = ["-m", "cpythonplus"]
OWN = f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''"
"""How a script of this Python begins, wherever it is."""


def script(folder: Path, head: str, name: str = "tool") -> Path:
    path = folder / name
    path.write_text(f"{head}\nprint('hello')\n")
    path.chmod(0o755)
    return path


def test_a_python() -> None:
    words = [sys.executable, "-u", "job.py", "--x"]
    assert sides(words) == {
        "stock": words,
        "plus": [sys.executable, *PLUS, "run", "-u", "job.py", "--x"],
    }


def test_a_python_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, name = os.path.split(sys.executable)
    monkeypatch.setenv("PATH", folder)
    assert sides([name, "-c", ""])["plus"] == [sys.executable, *PLUS, "run", "-c", ""]


def test_options_of_plus() -> None:
    plus = sides([sys.executable, "job.py"], "run --no-gil --dump-on USR1")["plus"]
    assert plus == [sys.executable, *PLUS, "run", "--no-gil", "--dump-on", "USR1", "job.py"]


def test_stock_beside_stock() -> None:
    found = sides([sys.executable, "job.py"], "stock")
    assert found["stock"] == found["plus"]


@pytest.mark.parametrize(
    "head",
    [
        "#!{python} -I",
        "#! /usr/bin/env -S {python} -I",
        "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''",
        "#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''",
        "#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''",
    ],
)
def test_a_console_script(tmp_path: Path, head: str) -> None:
    if " " in sys.executable and not {'"{python}"', "'{python}'"} & {*head.split()}:
        pytest.skip("such a line cannot name an interpreter whose path has spaces")
    tool = script(tmp_path, head.format(python=sys.executable))
    options = ["-I"] if "-I" in head else []
    found = sides([str(tool), "--x"])
    assert found["stock"] == [str(tool), "--x"]
    assert found["plus"] == [sys.executable, *PLUS, "run", *options, str(tool), "--x"]


def test_serve(tmp_path: Path) -> None:
    gunicorn = script(tmp_path, OWN, "gunicorn")
    expected = [sys.executable, *PLUS, "serve", "-w", "2", "app:app"]
    for words in ([str(gunicorn)], [sys.executable, "-m", "gunicorn"]):
        assert sides([*words, "-w", "2", "app:app"], "serve")["plus"] == expected


@pytest.mark.parametrize(
    ("words", "plus", "message"),
    [
        (["no-such-program-anywhere"], "run", "program 'no-such-program-anywhere' was not found"),
        (["/bin/sh", "-c", "true"], "run", "not a Python program"),
        ([sys.executable], "run", "expected a script"),
        ([sys.executable, "job.py"], "serve", "gunicorn"),
        ([sys.executable, "job.py"], "walk", "--plus"),
        ([sys.executable, "job.py"], "", "--plus"),
    ],
)
def test_what_is_refused(words: list[str], plus: str, message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        sides(words, plus)


@pytest.mark.parametrize("head", ["", "#!", "#!/bin/sh", "#!/no/such/python3", "#!/usr/bin/env"])
def test_scripts_that_are_no_pythons(tmp_path: Path, head: str) -> None:
    with pytest.raises(ComparisonError, match="not a Python program"):
        sides([str(script(tmp_path, head))])


def test_cpythonplus_beside_itself(tmp_path: Path) -> None:
    with pytest.raises(ComparisonError, match="without cpythonplus"):
        sides([str(script(tmp_path, OWN, "cpythonplus")), "run", "job.py"])


def test_a_python_without_cpythonplus(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(ComparisonError, match="cpythonplus is not installed for"):
        sides([str(python), "job.py"])
