"""The slots of programs that were linked in different ways (test_slots.c itself is one of them)."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import c_file, compile_c

pytestmark = pytest.mark.needs_gil

HERE = Path(__file__).resolve().parent
# Far behind the variables, so it cannot share a segment with the other code.
TWO_SEGMENTS = "-Wl,--section-start=.far_away=0x8000000"
KINDS = [
    ("-Wl,-z,lazy",),
    ("-Wl,-z,now",),
    ("-Wl,-z,lazy", TWO_SEGMENTS),
    ("-Wl,-z,now", TWO_SEGMENTS),
    ("-Wl,-z,norelro",),
    ("-fno-plt",),
    ("-fno-plt", "-Wl,-z,lazy"),
    ("-fno-pie", "-no-pie", "-Wl,-z,lazy"),
    ("-fno-pie", "-no-pie", "-Wl,-z,now"),
]


@pytest.mark.parametrize("flags", KINDS, ids=" ".join)
@pytest.mark.any_version
def test_linked(tmp_path: Path, flags: tuple[str, ...]) -> None:
    sources = [HERE / "test_slots.c", c_file("slots.c")]
    program = compile_c(tmp_path / "program", sources, *flags)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=30, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
