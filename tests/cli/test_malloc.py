"""`cpythonplus run --malloc` and `serve --malloc`: what the program is started with."""

import json
from pathlib import Path

import pytest

from cpythonplus.memory import allocators
from tests.cli.support import MODULE, RUNNER, assert_refused, execute, run
from tests.support import SANITIZED, compile_c

pytestmark = [
    pytest.mark.skipif(SANITIZED, reason="a sanitizer's library has to be preloaded first"),
    pytest.mark.needs_gil,
]

PROGRAM = """
import json, os, sys
names = ("LD_PRELOAD", "MALLOC_CONF", "PYTHONMALLOC", "MIMALLOC_PURGE_DELAY")
with open("/proc/self/maps") as maps:
    loaded = "libjemalloc.so.9" in maps.read()
values = {name: os.environ[name] for name in names if name in os.environ}
print(json.dumps([values, loaded, sys.argv[1:]]))
"""
SETTINGS = allocators.settings("jemalloc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that has jemalloc's symbol, and nothing else of it."""
    folder = tmp_path_factory.mktemp("library")
    source = folder / "source.c"
    source.write_text("int mallctl(void) { return 0; }\n")
    return str(compile_c(folder / "libjemalloc.so.9", [source], "-shared", "-fPIC"))


def test_the_program_runs_under_it(library: str) -> None:
    result = run("--malloc", library, "-c", PROGRAM, "word", MALLOC_CONF=None)
    values, loaded, words = json.loads(result.out)
    assert values == {"LD_PRELOAD": library, **SETTINGS}
    assert loaded
    assert words == ["word"]
    assert result.err == ""


@pytest.mark.any_version
def test_children_have_it_or_not(library: str) -> None:
    # The outer run's choice is not the inner one's.
    start = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    own = run("--malloc", library, "--no-children", "-c", start, "-c", PROGRAM)
    assert json.loads(own.out)[:2] == [{}, False]
    all_of_them = run("--malloc", library, "-c", start, "-c", PROGRAM)
    assert json.loads(all_of_them.out)[:2] == [{"LD_PRELOAD": library, **SETTINGS}, True]
    inner = run("--malloc", library, "-c", start, *RUNNER[1:], "-c", PROGRAM)
    assert json.loads(inner.out)[:2] == [{}, False]


def test_glibc_is_trimmed_by_a_thread() -> None:
    # A thread has its name once it has begun; without one this ends by its limit of time.
    code = (
        "import os, time\n"
        "def names():\n"
        "    tasks = os.listdir('/proc/self/task')\n"
        "    return {open(f'/proc/self/task/{task}/comm').read().strip() for task in tasks}\n"
        "while 'malloc-trim' not in names():\n"
        "    time.sleep(0.01)\n"
        "print('there')\n"
    )
    assert run("--malloc=glibc-tuned", "-c", code).out == "there\n"


@pytest.mark.any_version
def test_what_cannot_be_done_is_one_line(library: str, tmp_path: Path) -> None:
    assert_refused(
        run("--malloc", "tcmalloc", "-c", ""), "--malloc: expected jemalloc, mimalloc, glibc-"
    )
    assert_refused(run("--malloc", "./none.so", "-c", ""), "'./none.so' cannot be read")
    assert_refused(run("--malloc", library, "-E", "-c", ""), "-I or -E", "PYTHONMALLOC")
    broken = tmp_path / "broken.so"
    broken.write_bytes(Path(library).read_bytes()[:200] + b"\0mallctl\0")
    result = run("--malloc", str(broken), "-c", "print('started')")
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines()[-1] == f"cpythonplus run: malloc: '{broken}' could not be loaded"


@pytest.mark.any_version
def test_show_names_it() -> None:
    lines = run("--malloc", "glibc-tuned", "--show", "-c", "").out.splitlines()
    assert "            --malloc glibc-tuned" in lines


@pytest.mark.any_version
def test_serve_begins_anew(library: str, tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "gunicorn.conf.py").write_text("import os; print(os.environ['LD_PRELOAD'])")
    begun = execute([*MODULE, "serve", "--malloc", library, "--print-config", "app"], cwd=tmp_path)
    assert begun.out.splitlines()[0] == library
    assert_refused(
        execute([*MODULE, "serve", "--malloc", "x", "app"]), "--malloc: expected jemalloc"
    )
    assert_refused(execute([*MODULE, "serve", "app", "--malloc"]), "expected a value")
