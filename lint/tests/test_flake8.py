"""The rules inside flake8."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from cpythonplus_lint.flake8_plugin import Plugin

pytestmark = pytest.mark.any_version

BAD = "def f():\n    e = ErrorOf()\n    raise e{}\n    class A: pass\n"
HIT = "CYC105 `raise e` leaves `e` on its own traceback; `finally: del e`"


def test_what_flake8_asks_of_a_plugin() -> None:
    text = BAD.format("")
    lines = text.splitlines(keepends=True)
    (first, second) = Plugin(ast.parse(text), "x.py", lines).run()
    assert first == (3, 4, HIT, Plugin)
    assert second[:2] == (4, 4)
    assert second[2].startswith("CYC203 ")


PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from flake8.main.cli import main
main(["--isolated", "-j1", "--extend-ignore", "E,F,W", *{arguments!r}])
main(["--isolated", "-j1", "--select", "CYC203", "c.py"])
"""


def test_flake8_finds_them_and_has_its_noqa(tmp_path: Path) -> None:
    pytest.importorskip("flake8")
    (tmp_path / "a.py").write_text(BAD.format(""))
    (tmp_path / "b.py").write_text(BAD.format("  # noqa: CYC105"))
    (tmp_path / "c.py").write_text("def f():\n    class A: pass\n")
    program = PROGRAM.format(
        path=str(tmp_path / "path"), paths=sys.path, arguments=["a.py", "b.py", "c.py"]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"a.py:3:5: {HIT}",
        "c.py:2:5: CYC203 class `A` is created by each call, and every class is a reference cycle",
    ]
