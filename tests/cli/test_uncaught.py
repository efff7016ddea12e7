"""The line about an exception that ended the program and has something of ours in it."""

import re
from pathlib import Path

import pytest

from tests.cli.support import NOTHING, PYTHON, Result, execute, run

HINT = "cpythonplus run: cpythonplus code is part of this error ("

OURS = {
    "instance": "raise ValueError(1, threading.Event())",
    "repr": "raise ValueError(f'{threading.Event()} is bad')",
    "attribute": "threading.Lock().colour",
    "attribute of a queue": "queue.Queue().colour",
    "pickle": "import pickle; pickle.dumps(threading.Lock())",
    "cause": "raise OSError(1) from ValueError(threading.Condition())",
    "context": "try: raise ValueError(threading.Semaphore())\nfinally: 1 / 0",
    "member": "raise ExceptionGroup('x', [OSError(2), ValueError(threading.Lock())])",
    "frame": "from cpythonplus.gil._control import install_numbers as f; f({'slice_us': -1})",
    "own hook": "sys.excepthook = lambda *args: None\nraise ValueError(threading.Event())",
    "circle": "e = ValueError(threading.Event()); e.__context__ = OSError(); "
    "e.__context__.__context__ = e; raise e",
}
NOT_OURS = {
    "subclass": "class Own(queue.Queue): pass\nraise ValueError(Own())",
    "none": "1 / 0",
    "caught": "try: raise ValueError(threading.Event())\nexcept ValueError: pass",
    "exit": "sys.exit('gone')",
    "interrupt": "raise KeyboardInterrupt(threading.Event())",
    "thread": "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "no traceback": "sys.last_value = ValueError(threading.Event())",
    "noted by a test runner": """
def case(): raise ValueError(threading.Event())
def runner():
    try: case()
    except ValueError as error: sys.last_type, sys.last_value = ValueError, error
runner()""",
    "broken": "class E(Exception):\n  args = property(lambda self: 1 / 0)\nraise E()",
    "empty queue": "queue.Queue().get(False)",
}
IMPORTS = "import queue, sys, threading\n"


def plain(code: str) -> Result:
    return execute([PYTHON, "-c", code])


@pytest.mark.parametrize("name", OURS)
def test_told(name: str) -> None:
    code = IMPORTS + OURS[name]
    result = run("-c", code)
    *_, last = result.err.splitlines()
    assert last.startswith(HINT), result.err
    assert last.endswith("try --no-threads or --no-gil, and please report it")
    assert result.err.count("cpythonplus run: ") == 1
    assert result.status == plain(code).status


@pytest.mark.parametrize("name", NOT_OURS)
def test_not_told(name: str) -> None:
    """Then nothing at all differs from plain Python, but for addresses and native frames."""
    code = IMPORTS + NOT_OURS[name]
    result, stock = run("-c", code), plain(code)
    assert (result.status, result.stdout) == (stock.status, stock.stdout)
    assert HINT not in result.err
    if name in ("none", "exit", "no traceback", "noted by a test runner", "caught"):
        assert result.stderr == stock.stderr


def test_only_what_is_on_is_named() -> None:
    code = IMPORTS + OURS["instance"]
    assert "try --no-threads, and" in run("--no-gil", "-c", code).err
    for options in (["--no-threads"], list(NOTHING)):
        assert HINT not in run(*options, "-c", code).err


def test_where(tmp_path: Path) -> None:
    """From a script and from a module; a frame is told by its file and line."""
    (tmp_path / "fails.py").write_text(IMPORTS + OURS["frame"] + "\n")
    for words in (["fails.py"], ["-m", "fails"]):
        result = run(*words, cwd=tmp_path)
        assert re.search(r"\(cpythonplus/gil/_control\.py:\d+\)", result.err)
    result = execute([PYTHON, "-m", "cpythonplus", "run", "-iq", "fails.py"], cwd=tmp_path)
    assert HINT not in result.err  # the program goes on, as a shell


def test_the_hook_is_the_standard_one() -> None:
    code = "import sys; print(sys.excepthook is sys.__excepthook__)"
    assert run("-c", code).out == "True\n"


def test_standard_error_is_gone() -> None:
    """A pipe that nobody reads, and SIGPIPE that would end the process: the status stays."""
    code = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + IMPORTS
    code += "sys.stderr = None\n" + OURS["instance"]
    shell = '( "$@" 2>&1 >&3; echo $? >&3 ) 3>&1 | true'
    words = ["/bin/sh", "-c", shell, "sh", PYTHON, "-m", "cpythonplus", "run", "-c", code]
    assert execute(words).out in ("1\n", "")


def test_forked_child() -> None:
    code = f"import os\n{IMPORTS}if os.fork(): os.wait()\nelse: {OURS['instance']}"
    result = run("-c", code)
    assert result.err.count(HINT) == 1
    assert result.status == 0


def test_costs_nothing_while_nothing_fails() -> None:
    code = "import sys; print('cpythonplus._cli.uncaught' in sys.modules)"
    late = "import atexit, sys\n"
    late += "atexit.register(lambda: print('cpythonplus._cli.uncaught' in sys.modules))"
    assert run("-c", code).out == run("-c", late).out == "False\n"
