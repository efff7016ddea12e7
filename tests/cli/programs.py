"""Programs that run under `python` and under `cpythonplus run`, and the comparison of both."""

import re
import zipfile
from pathlib import Path

from tests.cli.support import Result

FACTS = """\
import os, signal, sys, __main__
print("argv", sys.argv, sys.orig_argv)
print("path", sys.path)
print("flags", sys.flags, sys._xoptions, sys.warnoptions)
print("main", sorted(vars(__main__)), __name__, __package__, __spec__)
print("file", globals().get("__file__"), globals().get("__cached__"))
print("where", sys.executable, sys.prefix, sys.base_prefix, os.getcwd())
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print("stream", stream and (stream.encoding, stream.errors, stream.line_buffering,
                                stream.write_through, stream.isatty()))
print("coding", sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
    print("signal", number, signal.getsignal(number))
print("mask", signal.pthread_sigmask(signal.SIG_BLOCK, ()))
print("descriptors", [fd for fd in range(64) if os.path.exists(f"/proc/self/fd/{fd}")])
for item in sorted(os.environ.items()):
    if item[0] not in ("CPYTHONPLUS_RUN", "_"):
        print("environment", item)
print("sitecustomize" in sys.modules, "__main__" in sys.modules, "faulthandler" in sys.modules)
print("docs", __doc__, __debug__)
sys.stderr.write("and standard error\\n")
"""

FILES = {
    "facts.py": FACTS,
    "-dash.py": FACTS,
    "fails.py": "def f():\n    return 1 / 0\n\nf()\n",
    "chained.py": "try:\n    {}['x']\nexcept KeyError:\n    raise ValueError('y')\n",
    "exits.py": "import sys\nsys.exit(int(sys.argv[1]))\n",
    "lines.py": "x = 3\nprint(x)\n",
    "startup.py": "print('startup')\n",
    # What the interpreter has written for perf goes with it.
    "perf.py": """\
import glob, os
for name in sorted(glob.glob(f"/tmp/*-{os.getpid()}.*")):
    print(name.split("-")[0])
    os.remove(name)
""",
    "syntax.py": "x = (\n",
    "latin.py": "# -*- coding: latin-1 -*-\nprint('\\xe9')\n",
    "first.py": "this line is skipped by -x\nprint('second')\n",
    "folder/__main__.py": FACTS,
    "folder/beside.py": "",
    "hollow/nothing.txt": "",
    "package/__init__.py": "print('package')\n",
    "package/__main__.py": "import package\n" + FACTS,
    "package/module.py": FACTS,
    "package/broken.py": "import does_not_exist\n",
    "bare/__init__.py": "",
    "module.py": FACTS,
    "broken.py": "import does_not_exist\n",
    "late.py": """\
import atexit, threading, time
atexit.register(print, "atexit")
started = threading.Event()
def work():
    print("thread")
    started.set()
    threading.main_thread().join()
    print("thread ends")
threading.Thread(target=work).start()
started.wait()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("main ends")
""",
    "thread_fails.py": """\
import threading
thread = threading.Thread(target=lambda: 1 / 0, name="x")
thread.start(); thread.join()
""",
    "spawn.py": """\
import multiprocessing, os, sys
def work(x):
    print("child", x, sys.argv, sys.flags.optimize, __name__, flush=True)
    sys.exit(x)
if __name__ == "__main__":
    for method in "spawn", "fork", "forkserver":
        child = multiprocessing.get_context(method).Process(target=work, args=(3,))
        print(method, flush=True)
        child.start(); child.join()
        print(child.exitcode, flush=True)
""",
    "becomes.py": """\
import inspect, os, posix
for function in os.execv, os.execve:
    print(function, type(function), inspect.signature(function), function in os.supports_fd)
print(os.execv is posix.execv, os.execve is posix.execve, flush=True)
os.execlp("echo", "echo", "another")
""",
    "children.py": """\
import subprocess, sys
done = subprocess.run([sys.executable, "-O", "facts.py", "x"], capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
""",
}


def write_programs(folder: Path) -> None:
    """Write them into a folder, which both are then started in."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    for name in ("program.zip", "program.pyz"):
        with (folder / name).open("wb") as file:
            if name.endswith("z"):
                file.write(b"#!/usr/bin/env python3\n")
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("__main__.py", FACTS)


def assert_same(ours: Result, stock: Result) -> None:
    """Assert that nothing differs but addresses of objects."""
    for name in ("stdout", "stderr"):
        text, expected = (
            re.sub(rb"\b0x[0-9a-f]+", b"0x0", getattr(result, name)).splitlines()
            for result in (ours, stock)
        )
        # Line by line: pytest shows long differences best so.
        assert text == expected, name
    assert ours.status == stock.status
