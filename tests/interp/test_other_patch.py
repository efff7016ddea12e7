"""A wheel is compiled with one patch release and runs with all, which differ in what is private."""

import re
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support import compile_c, interp_sources, run_child

pytestmark = pytest.mark.needs_gil

HERE = Path(__file__).resolve().parent
INCLUDE = Path(sysconfig.get_path("include"))


def build(folder: Path, include: Path = INCLUDE) -> Path:
    """Compile the facts and their probes with these headers; return the extension's folder."""
    sources = [HERE / "other_patch_probe.c", *interp_sources()]
    # Debian's pyconfig.h is found from the folder around.
    flags = ["-shared", "-fPIC", "-DNDEBUG", f"-I{include}", f"-idirafter{INCLUDE.parent}"]
    compile_c(folder / "other_patch_probe.so", sources, *flags)
    return folder


@pytest.fixture(scope="module")
def same(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an extension that is compiled with this interpreter's own headers."""
    return build(tmp_path_factory.mktemp("same"))


def told(folder: Path, expression: str) -> str:
    program = f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport other_patch_probe\n"
    return run_child(f"{program}print({expression})").out.strip()


def with_public_half(folder: Path, pattern: str, replacement: str) -> Path:
    """Return a copy of the headers in which the public half of a thread state is another one."""
    include = folder / "include"
    shutil.copytree(INCLUDE, include)
    header = include / "cpython" / "pystate.h"
    text, count = re.subn(pattern, replacement, header.read_text("utf-8"), count=1, flags=re.DOTALL)
    assert count == 1
    header.write_text(text, "utf-8")
    return include


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 14), reason="the C stack's limits came with 3.14")
@pytest.mark.parametrize("words", ["longer", "shorter"])
def test_public_half_of_a_thread_state(same: Path, tmp_path: Path, words: str) -> None:
    """3.14.4 has `datastack_cached_chunk` at its end, behind which the private half begins."""
    member = r"(struct _ts \{.*?)(    PyObject \*threading_local_sentinel;\n)"
    change = r"\1\2    void *one_more;\n" if words == "longer" else r"\1"
    expression = "other_patch_probe.thread_state()"
    limits = told(same, expression)
    assert limits.startswith("(")
    assert told(build(tmp_path, with_public_half(tmp_path, member, change)), expression) == limits


@pytest.mark.slow
def test_flags_of_an_incremental_collector(same: Path) -> None:
    """3.14.0 to 3.14.4 note in a link's lowest bit in which half of the old objects it is."""
    links = "[other_patch_probe.leads_to(id(op) - 16 + more, op) for more in (0, 1, 2, 4, 16)]"
    assert told(same, f"(lambda op: {links})([])") == str([True, True, True, False, False])
