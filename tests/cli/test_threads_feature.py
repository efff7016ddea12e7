"""`cpythonplus run` gives the program native locks and queues; `--no-threads` does not."""

import shutil
import sys
from pathlib import Path

from cpythonplus._cli.startup import HOME
from tests.cli.support import PYTHON, assert_refused, execute, run

SHOW = """\
import queue, sys, threading
from queue import LifoQueue
print(*(hasattr(kind(), "statistics") for kind in (threading.Lock, LifoQueue)), flush=True)
"""
NATIVE = "True True\n"
STOCK = "False False\n"

SPAWN = f"""\
import multiprocessing, subprocess, sys
def work():
    exec({SHOW!r})
if __name__ == "__main__":
    work()
    for method in multiprocessing.get_all_start_methods():
        child = multiprocessing.get_context(method).Process(target=work)
        child.start(); child.join()
    subprocess.run([sys.executable, "-c", {SHOW!r}])
"""


def test_on_and_off() -> None:
    assert execute([PYTHON, "-c", SHOW]).out == STOCK
    result = run("-c", SHOW)
    assert (result.status, result.out, result.err) == (0, NATIVE, "")
    result = run("--no-threads", "-c", SHOW)
    assert (result.status, result.out, result.err) == (0, STOCK, "")
    assert run("--no-gil", "-c", SHOW).out == NATIVE


def test_nothing_of_it_is_loaded_when_it_is_off() -> None:
    code = "import sys; print([n for n in sys.modules if n.startswith('cpythonplus.threads')])"
    assert run("--no-threads", "-c", code).out == "[]\n"


def test_the_environment_string() -> None:
    code = "import os; print('threads=1' in os.environ['CPYTHONPLUS_RUN'].split(';'))"
    assert run("-c", code).out == "True\n"
    assert run("--no-threads", "-c", code).out == "False\n"


def test_children(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN)
    result = run(str(script))
    assert (result.out, result.err) == (NATIVE * 5, "")
    result = run("--no-threads", str(script))
    assert (result.out, result.err) == (STOCK * 5, "")


def test_the_program_may_switch_it_off() -> None:
    code = f"from cpythonplus import threads; threads.unpatch()\n{SHOW}"
    assert run("-c", code).out == STOCK


def test_a_program_without_threads_does_not_import_them() -> None:
    """And `threading` is not loaded twice, or by way of something else, where it is used."""
    code = "import sys; print(sorted({'threading', 'queue'} & set(sys.modules)))"
    assert run("-c", code).out == execute([PYTHON, "-c", code]).out


def modules(*words: str) -> int:
    """Return how many modules the program sees loaded."""
    code = "import sys; print(len(sys.modules))"
    return int(run(*words, "-c", code).out)


def test_what_it_loads_at_start_up() -> None:
    """The package, the patch and its replacer, the types; before 3.13 an exception for `queue`."""
    assert modules() - modules("--no-threads") <= 4 + (sys.version_info < (3, 13))


def test_a_script_that_is_called_queue(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("print(__name__)\n")
    (tmp_path / "main.py").write_text(
        "import queue, threading\nprint(hasattr(threading.Lock(), 'statistics'))\n"
    )
    result = run("main.py", cwd=tmp_path)
    assert (result.out, result.err) == ("queue\nTrue\n", "")


def test_unsupported_platform(tmp_path: Path) -> None:
    shutil.copytree(HOME, tmp_path / "cpythonplus")
    (tmp_path / "cpythonplus" / "threads" / "_primitives.py").write_text(
        "from cpythonplus import UnsupportedPlatform\n"
        "raise UnsupportedPlatform('the moon is\\nin the wrong phase')\n"
    )
    found = str(tmp_path)
    reason = "cpythonplus run: threads: the moon is in the wrong phase"
    hint = "--no-threads runs the program without it"
    assert_refused(run("-c", "print(1)", PYTHONPATH=found), reason, hint)
    assert run("--no-threads", "-c", "print(1)", PYTHONPATH=found).out == "1\n"
