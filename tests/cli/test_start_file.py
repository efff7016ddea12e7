"""`cpythonplus.start`, which Python reads from 3.15 on (PEP 829), beside `cpythonplus.pth`."""

import pkgutil
import sys
from pathlib import Path

import pytest

import cpythonplus
from tests.cli.support import execute
from tests.support import AT_START

SITE = Path(cpythonplus.__file__).parent.parent

LOADED = """
import sys
print(sorted(name for name in sys.modules if name.startswith("cpythonplus")))
"""


def test_it_names_a_callable() -> None:
    (line,) = (SITE / "cpythonplus.start").read_text().splitlines()
    assert callable(pkgutil.resolve_name(line))


def test_an_ordinary_start_loads_next_to_nothing() -> None:
    child = execute([sys.executable, "-c", LOADED])
    assert child.out == f"{AT_START}\n"


@pytest.mark.skipif(not AT_START, reason="Python before 3.15 reads the .pth file")
def test_the_line_of_the_pth_file_is_left_out() -> None:
    child = execute([sys.executable, "-v", "-c", "pass"])
    assert f"import lines in {SITE}/cpythonplus.pth are suppressed" in child.err
