"""`cpythonplus sites` and `clock`: commands of another distribution, where that is installed."""

import importlib.util

import pytest

from cpythonplus._cli.main import main

pytestmark = pytest.mark.any_version


@pytest.mark.parametrize("command", ["sites", "clock"])
def test_it_is_called(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: cpythonplus-{command} ACTION")
    assert main([command, "nonsense"]) == 2
    assert capsys.readouterr().err.startswith(f"cpythonplus-{command}: ")


@pytest.mark.parametrize("command", ["sites", "clock"])
def test_one_line_where_it_is_missing(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert main([command]) == 2
    told = f"cpythonplus {command} needs the distribution cpythonplus-sites: "
    assert capsys.readouterr().err == f"{told}pip install cpythonplus-sites\n"
