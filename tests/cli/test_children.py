"""What becomes of the interpreters that a program under `cpythonplus run` starts."""

import shlex
from pathlib import Path

import pytest

from cpythonplus._cli.features import Run, python_tag
from cpythonplus._cli.startup import HOME
from tests.cli.support import NOTHING, PYTHON, execute, run
from tests.support import AT_START, FREE_THREADED

ACTIVE = "from cpythonplus import gil; print(gil.active(), flush=True)"
SCHEDULED = f"{not FREE_THREADED}\n"

SPAWN = f"""\
import multiprocessing, os, subprocess, sys
def work():
    {ACTIVE}
if __name__ == "__main__":
    work()
    for method in multiprocessing.get_all_start_methods():
        child = multiprocessing.get_context(method).Process(target=work)
        child.start(); child.join()
    subprocess.run([sys.executable, "-c", {ACTIVE!r}])
    subprocess.run([sys.executable, "-I", "-c", {ACTIVE!r}])
    sanitizer = ("LD_PRELOAD", "ASAN_OPTIONS")
    kept = {{name: os.environ[name] for name in sanitizer if name in os.environ}}
    subprocess.run([sys.executable, "-c", {ACTIVE!r}], env=kept)
"""


def carried(**changes: object) -> str:
    """Return the environment string of a run that means this interpreter, but for `changes`."""
    values = {"home": HOME, "python": python_tag(), "pid": 1, "features": {"gil": {}}}
    return Run(**{**values, "children": True, **changes}).encode()  # type: ignore[arg-type]


def test_inherit(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN)
    result = run(str(script))
    # -I ignores the environment; the last one got none (but for a sanitizer's library).
    assert (result.out, result.err) == (SCHEDULED * 5 + "False\n" * 2, "")


def test_no_children(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN)
    result = run("--no-children", str(script))
    # fork copies the process, scheduler and all; the others are new interpreters.
    started = {"fork": SCHEDULED, "spawn": "False\n", "forkserver": "False\n"}
    import multiprocessing

    children = "".join(started[method] for method in multiprocessing.get_all_start_methods())
    assert (result.out, result.err) == (SCHEDULED + children + "False\n" * 3, "")


def test_no_children_cleans_the_environment() -> None:
    code = "import os; print('CPYTHONPLUS_RUN' in os.environ, os.getenv('CPYTHONPLUS_RUN'))"
    assert run("--no-children", "-c", code).out == "False None\n"


@pytest.mark.parametrize(
    "changes",
    [{"home": "/some/other/cpythonplus"}, {"home": "/"}, {"python": "cpython-310"}],
    ids=str,
)
def test_others_are_left_in_peace(changes: dict[str, str]) -> None:
    result = execute([PYTHON, "-c", ACTIVE], env={"CPYTHONPLUS_RUN": carried(**changes)})
    assert (result.out, result.err) == ("False\n", "")
    result = execute([PYTHON, "-c", ACTIVE], env={"CPYTHONPLUS_RUN": carried()})
    assert result.out == SCHEDULED


LOADED = "import sys; print([n for n in sys.modules if n.startswith('cpythonplus')], flush=True)"


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-sE"], ["-IB"]], ids=str)
def test_what_ignores_the_environment_ignores_this(options: list[str], tmp_path: Path) -> None:
    """As PYTHON*: whoever has set it, and whatever it says, nothing of ours is even loaded.

    But for the module that looks.
    """
    loaded = f"{AT_START}\n"
    written = tmp_path / "written"
    features = {"gil": {}, "statistics": {"json": str(written), "table": "1"}}
    for text in (carried(features=features), "nonsense"):
        result = execute([PYTHON, *options, "-c", LOADED], env={"CPYTHONPLUS_RUN": text})
        assert (result.status, result.out, result.err) == (0, loaded, "")
    # Nor does it by what the variable could know: exec keeps the pid.
    values = carried(features=features, pid=123).replace("pid=123", "pid=$$")
    words = " ".join(options)
    shell = f'CPYTHONPLUS_RUN="{values}" exec {shlex.quote(PYTHON)} {words} -c "{LOADED}"'
    result = execute(["/bin/sh", "-c", shell])
    assert (result.status, result.out, result.err) == (0, loaded, "")
    assert not written.exists()


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_run_with_an_option_that_ignores_the_environment(option: str) -> None:
    """It is meant by who wrote the command line. Its children are if they do not ignore it."""
    code = f"""\
import subprocess, sys
{ACTIVE}
print(sys.orig_argv[1:2], sys._xoptions, flush=True)
for words in ([], [{option!r}]):
    subprocess.run([sys.executable, *words, "-c", {ACTIVE!r}])
"""
    for words in ([option, "-c", code], ["-u", f"{option}c", code]):
        first = words[:1]
        result = run(*words)
        assert (result.status, result.err) == (0, "")
        assert result.out == f"{SCHEDULED}{first} {{}}\n{SCHEDULED}False\n"
    result = run("--no-children", option, "-c", code)
    assert result.out == f"{SCHEDULED}{[option]} {{}}\nFalse\nFalse\n"


def test_installation_by_another_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(HOME)
    env = {"CPYTHONPLUS_RUN": carried(home=str(tmp_path / "link"))}
    assert execute([PYTHON, "-c", ACTIVE], env=env).out == SCHEDULED


def test_run_inside_of_run(tmp_path: Path) -> None:
    """The inner one counts, as a whole."""
    inner = f"{shlex.quote(PYTHON)} -m cpythonplus run"
    code = "import os, sys; sys.exit(os.system(sys.argv[1]) >> 8)"
    environment = "import os; print(os.environ.get('CPYTHONPLUS_RUN'))"

    def nested(options: str, program: str) -> str:
        result = run("--policy", "spin_us=7", "-c", code, f'{inner} {options} -c "{program}"')
        assert (result.status, result.err) == (0, "")
        return result.out

    starts = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"
    assert nested("", ACTIVE) == SCHEDULED
    assert nested("--no-gil", ACTIVE) == "False\n"
    assert nested(" ".join(NOTHING), environment) == "None\n"
    assert Run.decode(
        nested("--no-threads --policy slice_us=2000", environment).strip()
    ).features == {
        "gil": {"policy": "slice_us=2000"},
        "doctor": {},
    }
    assert nested("", f"{starts}; {ACTIVE}") == SCHEDULED


def test_program_that_starts_itself_again() -> None:
    """As reloading servers do; by exec it is the same process, and still the program."""
    code = "import os, sys; from cpythonplus import gil; print(gil.active(), flush=True); "
    again = "len(sys.argv) > 1 or os.execv(sys.executable, sys.orig_argv + ['again'])"
    assert run("-c", code + again).out == SCHEDULED * 2


def test_sub_interpreter() -> None:
    """`site` runs there too, and must neither activate nor report a second time."""
    code = """\
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
text = "import sys; print('cpythonplus.gil' in sys.modules, 'atexit' in sys.modules, flush=True)"
number = interpreters.create()
interpreters.run_string(number, text)
interpreters.destroy(number)
print("done", flush=True)
"""
    result = run("--stats", "-c", code)
    assert result.out.endswith("done\n")
    assert result.out.startswith("False")
    assert result.status == 0
    assert result.err.count("statistics of pid") == 1


def test_a_child_that_cannot_be_scheduled_runs() -> None:
    """The program itself is refused with status 2, see test_outside_site; its workers are not."""
    env = {"CPYTHONPLUS_RUN": carried(features={"gil": {"policy": "slice_us=-5"}})}
    result = execute([PYTHON, "-c", "print(1)"], env=env)
    assert (result.status, result.out) == (0, "1\n")
    assert result.err.startswith("cpythonplus run: gil: slice_us must be ")
    assert result.err.count("\n") == 1
