"""Runs the C test programs that were built beside the wheel (tests/meson.build).

`make sanitize` points CPYTHONPLUS_BUILD_DIR at a build with the thread sanitizer instead.
"""

from pathlib import Path

import pytest

from tests.support import is_built, run_c_program

ROOT = Path(__file__).resolve().parent
NAMES = sorted(str(path.relative_to(ROOT).with_suffix("")) for path in ROOT.rglob("test_*.c"))


@pytest.mark.any_version
@is_built
@pytest.mark.parametrize("name", NAMES)
def test_c_program(name: str) -> None:
    run_c_program(name)
