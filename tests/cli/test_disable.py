"""CPYTHONPLUS_DISABLE: every command line that starts a program starts it on stock Python."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.support import MODULE, PYTHON, RUNNER, assert_refused, environment, execute, run
from tests.prefork.serving import running, until
from tests.servers import free_port

pytestmark = pytest.mark.any_version

OFF = "CPYTHONPLUS_DISABLE"
NOTE = f"cpythonplus: {OFF} is set: this is stock Python\n"
# From 3.15 on these two are in every interpreter: it calls what a `.start` file names.
STARTED = ["cpythonplus", "cpythonplus._start"] if sys.version_info >= (3, 15) else []
LOOK = """
import json, os, sys, threading
ours = sorted(name for name in sys.modules if name.startswith("cpythonplus"))
with open("/proc/self/maps") as maps:
    loaded = "cpythonplus" in maps.read()
names = sorted(name for name in os.environ if name.startswith("CPYTHONPLUS"))
print(json.dumps([sys.argv, sys.orig_argv, ours, loaded, names, threading.active_count()]))
"""
CHILD = """
import os, subprocess, sys
os.environ["CPYTHONPLUS_DISABLE"] = sys.argv[1]
sys.exit(subprocess.call([sys.executable, "-c", sys.argv[2]]))
"""


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
def test_run_is_python_with_nothing_loaded(value: str) -> None:
    words = ["-X", "dev", "-c", LOOK, "--stats", "a b"]
    stock = execute([PYTHON, *words], env={OFF: value})
    options = ["--stats", "--policy=slice_us=5000", "--malloc", "glibc-tuned", "--dump-on", "USR1"]
    ours = run(*options, *words, CPYTHONPLUS_DISABLE=value)
    assert ours.stdout == stock.stdout
    assert json.loads(ours.out)[2:5] == [STARTED, False, [OFF]]
    assert (ours.status, ours.err) == (0, NOTE)


@pytest.mark.parametrize("value", ["0", "false", "No", "off", ""])
def test_it_is_on_otherwise(value: str) -> None:
    code = "from cpythonplus import threads; print(threads.patched())"
    done = run("-c", code, CPYTHONPLUS_DISABLE=value)
    assert (done.out, done.err) == ("True\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "import sys; sys.exit(7)"],
        ["-c", "import os; os.kill(os.getpid(), 15)"],
        ["-c", "raise LookupError('on purpose')"],
        ["does_not_exist.py"],
        ["-m", "does_not_exist"],
        [],
        ["-z"],
        ["-S", "-c", "import sys; print(sys.flags.no_site)"],
        ["-I", "-c", "import sys; print(sys.orig_argv, sys.flags.isolated)"],
        ["-V"],
    ],
    ids=str,
)
def test_status_and_words_are_pythons_own(words: list[str], tmp_path: Path) -> None:
    stock = execute([PYTHON, *words], cwd=tmp_path)
    ours = run(*words, cwd=tmp_path, CPYTHONPLUS_DISABLE="1")
    assert (ours.status, ours.out, ours.err) == (stock.status, stock.out, NOTE + stock.err)


@pytest.mark.parametrize("value", ["2", "y", "disable", "1 0", "\n1\n2"])
def test_another_value_is_one_line(value: str, tmp_path: Path) -> None:
    text = f"{OFF} must be 1 or 0 (or true, yes, on, false, no, off), not {value!r}"
    assert_refused(run("-c", "", CPYTHONPLUS_DISABLE=value), "cpythonplus run: ", text)
    assert_refused(execute([*MODULE, "serve", "app:app"], env={OFF: value}), text)
    cycles = [*MODULE, "doctor", "cycles", "-c", ""]
    assert_refused(execute(cycles, env={OFF: value}), text)
    assert_refused(execute([*MODULE, "compare", "--", "x.py"], env={OFF: value}), text)


def test_show_has_everything_off() -> None:
    shown = run(
        "--show", "--policy", "spin_us=0", "app.py", CPYTHONPLUS_DISABLE="1"
    ).out.splitlines()
    assert shown[0] == f"{OFF} is set: nothing is switched on"
    assert not [line for line in shown if line[12:16] == "on  "]


def test_an_outer_allocator_goes_too() -> None:
    start = f"import os, sys; os.environ['{OFF}'] = '1'; os.execv(sys.executable, {[*RUNNER]!r} + "
    inner = ["-c", "import os; print('LD_PRELOAD' in os.environ, 'CPYTHONPLUS_RUN' in os.environ)"]
    assert run("-c", f"{start}{inner!r})").out == "False False\n"


def test_programs_that_are_examined_are_not() -> None:
    for word in ("cycles", "run"):
        done = execute([*MODULE, "doctor", word, "-c", "print(1)"], env={OFF: "1"})
        assert (done.status, done.out, done.err) == (0, "1\n", NOTE)


def test_nothing_is_compared_with_itself(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    done = execute([*MODULE, "compare", "--", "x.py"], env={OFF: "1"}, cwd=tmp_path)
    assert_refused(done, "cpythonplus compare: ", f"{OFF} is set: both sides would be stock")


def test_what_looks_at_others_goes_on(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    for words in (["lint", "x.py"], ["doctor", "list"], ["--version"]):
        done = execute([*MODULE, *words], env={OFF: "1"}, cwd=tmp_path)
        assert (done.status, done.err) == (0, "")


def test_a_child_can_be_kept_from_it() -> None:
    look = "import sys; print('cpythonplus._native' in sys.modules)"
    assert run("-c", CHILD, "1", look).out == "False\n"
    assert run("-c", CHILD, "0", look).out == "True\n"
    wrong = run("-c", CHILD, "maybe", "print('goes on')")
    assert (wrong.status, wrong.out) == (0, "goes on\n")
    assert wrong.err == (
        f"cpythonplus run: CPYTHONPLUS_RUN is ignored: {OFF} must be 1 or 0"
        " (or true, yes, on, false, no, off), not 'maybe'\n"
    )


# ---- serve --------------------------------------------------------------------------------------

CONFIGURATION = """
    workers = 2
    prefork_max_private_memory = "1G"
    def post_fork(server, worker):
        import sys
        print("ours", "cpythonplus._base" in sys.modules, flush=True)
"""
OURS = (
    *("--no-gil", "--no-threads", "--no-doctor", "--no-immortal", "--policy", "spin_us=0"),
    *("--malloc=jemalloc", "--warm-up", "/", "--max-private-memory=1G", "--max-priv", "1G"),
)


def test_serve_is_the_stock_gunicorn(tmp_path: Path) -> None:
    files = {"conf.py": CONFIGURATION}
    env = {OFF: "1", "GUNICORN_CMD_ARGS": "--no-fast-exit --log-level debug --metrics 9100"}
    with running(tmp_path, "-c", "conf.py", *OURS, files=files, env=env) as server:
        until(lambda: server.output().count("ours False") == 2, "two workers")
        command = Path(f"/proc/{server.process.pid}/cmdline").read_text().split("\0")
        assert Path(command[1]).name == "gunicorn"
        assert not {*command} & {*OURS}
        maps = Path(f"/proc/{server.process.pid}/maps").read_text()
        assert "cpythonplus" not in maps
        text = Path(f"/proc/{server.process.pid}/environ").read_text()
        assert "GUNICORN_CMD_ARGS=--log-level debug\0" in text
        assert server.output().startswith(NOTE)
        assert server.output().count("cpythonplus") == server.output().count(NOTE)
        first = server.workers()
        server.signal(signal.SIGHUP)
        until(lambda: len(server.workers()) == 2 and not first & server.workers(), "new workers")
        assert server.stop() == 0


def test_a_configuration_file_loads_nothing(tmp_path: Path) -> None:
    text = """
        from cpythonplus.prefork.gunicorn import *
        configure(metrics="/metrics")
        def post_fork(server, worker):
            import threading
            print("preloaded:", server.cfg.preload_app, "lock:", type(threading.Lock()).__module__)
            print(end="", flush=True)
    """
    files = {"conf.py": text}
    command = ("gunicorn", "-c", "conf.py")
    with running(tmp_path, command=command, files=files, env={OFF: "1"}) as server:
        until(lambda: "preloaded: False lock: _thread\n" in server.output(), "a worker")
        note = f"cpythonplus: cpythonplus.prefork.gunicorn does nothing: {OFF} is set\n"
        assert server.output().count(note) == 1
        assert server.stop() == 0


@pytest.mark.slow
def test_a_new_master_after_usr2_is_stock_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    words = ("--pid", str(pid_file), "--no-gil")
    with running(tmp_path, *words, env={OFF: "1"}, port=free_port()) as server:
        server.signal(signal.SIGUSR2)
        new = Path(f"{pid_file}.2")
        until(lambda: new.exists() and new.read_text().strip(), "a new master")
        pid = int(new.read_text())
        assert "cpythonplus" not in Path(f"/proc/{pid}/maps").read_text()
        os.kill(pid, signal.SIGTERM)
        assert server.stop() == 0


def test_which_words_are_left() -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    from cpythonplus._cli.commands.serve import stock_words

    kept = ["app:app", "-w", "8", "--bind=:80", "--max-requests", "9", "--ma", "--wor", "1", "x y"]
    assert stock_words(kept) == kept
    first, last = (
        ["--no-gil", "--keep-mortal=a:b", "--prep", "1M"],
        ["--metrics", "/m", "--prep=2M"],
    )
    assert stock_words([*first, *kept, *last]) == kept
    assert stock_words(["--no-gil", "--", "--no-gil"]) == ["--", "--no-gil"]
    assert stock_words(["--warm-up"]) == []


def test_without_a_script_of_gunicorns_it_is_the_module(tmp_path: Path) -> None:
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        dedent("""
        import sys, sysconfig
        from cpythonplus._cli.main import main
        sysconfig.get_path = lambda name: "/no/such/folder"
        sys.exit(main(["serve", "--version", "--no-gil"]))
        """)
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        check=False,
        capture_output=True,
        text=True,
        env=environment({OFF: "1"}),
        timeout=300,
    )
    assert done.returncode == 0, done
    assert done.stdout.startswith("gunicorn ")
    assert "cpythonplus" not in done.stdout
