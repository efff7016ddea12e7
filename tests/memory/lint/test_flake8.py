"""The rules inside flake8."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from cpythonplus.memory._lint.flake8_plugin import Plugin

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


PLUGIN = "cpythonplus.memory._lint.flake8_plugin:Plugin"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that makes the plugin known, unless the installed package does."""
    if any(each.value == PLUGIN for each in entry_points(group="flake8.extension")):
        return tmp_path
    info = tmp_path / "path" / "cpythonplus_lint_test-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cpythonplus-lint-test\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(f"[flake8.extension]\nCYC = {PLUGIN}\n")
    return tmp_path


PROGRAM = """
import sys
sys.path[:0] = [{path!r}, *{paths!r}]
from flake8.main.cli import main
main(["--isolated", "-j1", "--extend-ignore", "E,F,W", *{arguments!r}])
main(["--isolated", "-j1", "--select", "CYC203", "c.py"])
"""


def test_flake8_finds_them_and_has_its_noqa(installed: Path) -> None:
    pytest.importorskip("flake8")
    (installed / "a.py").write_text(BAD.format(""))
    (installed / "b.py").write_text(BAD.format("  # noqa: CYC105"))
    (installed / "c.py").write_text("def f():\n    class A: pass\n")
    program = PROGRAM.format(
        path=str(installed / "path"), paths=sys.path, arguments=["a.py", "b.py", "c.py"]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=installed, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"a.py:3:5: {HIT}",
        "c.py:2:5: CYC203 class `A` is created by each call, and every class is a reference cycle",
    ]


def test_the_package_names_the_plugin() -> None:
    project = Path(__file__).parents[3] / "pyproject.toml"
    assert 'CYC = "cpythonplus.memory._lint.flake8_plugin:Plugin"' in project.read_text()
