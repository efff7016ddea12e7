"""Runs the C test programs that were built beside the wheel (tests/meson.build).

`make sanitize` points CPYTHONPLUS_BUILD_DIR at a build with the thread sanitizer instead.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
BUILD = os.environ.get("CPYTHONPLUS_BUILD_DIR")
SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.glob("*/test_*.c"))


@pytest.mark.any_version
@pytest.mark.skipif(BUILD is None, reason="CPYTHONPLUS_BUILD_DIR is not set: use make test")
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_c_program(source: Path) -> None:
    program = Path(BUILD or "", "tests", "_".join(source.with_suffix("").parts))
    assert program.exists(), f"{source} is not in tests/meson.build"
    # The sanitizers of the interpreter's process are not the program's own.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    result = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr
