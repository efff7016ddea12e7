"""`cpythonplus lint`, `sites` and `clock`: commands of other distributions, where installed."""

import importlib.util
from pathlib import Path

import pytest

from cpythonplus._cli.main import main

pytestmark = pytest.mark.any_version


@pytest.mark.parametrize("command", ["sites", "clock"])
def test_it_is_called(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: cpythonplus-{command} ACTION")
    assert main([command, "nonsense"]) == 2
    assert capsys.readouterr().err.startswith(f"cpythonplus-{command}: ")


def test_the_linter_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text("def f():\n    e = OSError()\n    raise e\n")
    assert main(["lint", str(file)]) == 1
    assert f"{file}:3:5: CYC105 " in capsys.readouterr().out
    assert main(["lint", "--nonsense"]) == 2
    assert capsys.readouterr().err.startswith("cpythonplus-lint: ")


@pytest.mark.parametrize(
    ("command", "distribution"),
    [("lint", "cpythonplus-lint"), *((name, "cpythonplus-sites") for name in ("sites", "clock"))],
)
def test_one_line_where_it_is_missing(
    command: str,
    distribution: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main([command]) == 2
    told = f"cpythonplus {command} needs the distribution {distribution}: "
    assert capsys.readouterr().err == f"{told}pip install {distribution}\n"
