"""Modules that another thread is importing are not used before their end."""

import builtins
import sys
import threading
from pathlib import Path

import pytest

from cpythonplus._base.modules import imported


def test_a_module_counts_when_its_import_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("gate.wait()\nname = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    gate = threading.Event()
    monkeypatch.setattr(builtins, "gate", gate, raising=False)
    thread = threading.Thread(target=__import__, args=("slow_to_import",))
    thread.start()
    while "slow_to_import" not in sys.modules:
        thread.join(0.001)
    assert imported("slow_to_import") is None
    gate.set()
    thread.join()
    assert imported("slow_to_import").name == 1
    del sys.modules["slow_to_import"]
    assert imported("slow_to_import") is None
