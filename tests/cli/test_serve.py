"""`cpythonplus serve`: what is wrong is told in one line, and gunicorn's ways in stay open."""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.serving import APP, answers, python_path, running, until
from tests.support import LOAD, Child, child_environment, run_child

TIMEOUT_S = 60 * LOAD
pytestmark = pytest.mark.any_version

WRONG_USE, FAILED, APP_LOAD_ERROR = 2, 1, 4


def serve(folder: Path, *words: str, env: dict[str, str] | None = None, **files: str) -> Child:
    """Run `cpythonplus serve` where it is going to end by itself."""
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    for name, text in {"app": APP, **files}.items():
        (folder / f"{name}.py").write_text(dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "cpythonplus", "serve", *words],
        cwd=folder,
        env=child_environment({"PYTHONPATH": python_path(folder), **(env or {})}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Child(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["nothing:app"], APP_LOAD_ERROR, "'nothing:app' cannot be loaded: ModuleNotFoundError"),
        (["app:nothing"], APP_LOAD_ERROR, "Failed to find attribute 'nothing' in 'app'"),
        (["broken:app"], APP_LOAD_ERROR, "NameError: name 'undefined' is not defined ("),
        ([], FAILED, "No application module specified"),
        (["app:app", "--max-private-memory", "3 apples"], WRONG_USE, "or 1.5G, got '3 apples'"),
        (["app:app", "--max-private-memory", "-1"], WRONG_USE, "or 1.5G, got '-1'"),
        (["app:app", "--warm-up", "index html"], WRONG_USE, "or a callable, got 'index html'"),
        (["app:app", "--metrics", "here"], WRONG_USE, "[::1]:9100, got 'here'"),
        (["app:app", "--metrics", "99999"], WRONG_USE, "[::1]:9100, got '99999'"),
        (["app:app", "--policy", "slice_us=1"], WRONG_USE, "slice_us must be from 100"),
        (["app:app", "--policy=slice=1"], WRONG_USE, "no key 'slice' (did you mean slice_us?)"),
        (["app:app", "--job-share", "lots"], WRONG_USE, "a percentage like 25%, got 'lots'"),
        (["app:app", "--no-doctor=1"], WRONG_USE, "--no-doctor takes no value"),
        (["app:app", "--no-doc"], WRONG_USE, "--no-doctor counts on the command line alone"),
        (["app:app", "--malloc"], WRONG_USE, "--malloc: expected a value"),
        (["app:app", "--no-such-option"], WRONG_USE, "--no-such-option"),
        (["app:app", "--workers", "many"], WRONG_USE, "--workers"),
        (["app:app", "-c", "wrong.py"], FAILED, "or 1.5G, got 'lots'"),
        (["app:app", "-c", "absent.py"], FAILED, "'absent.py' doesn't exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line(
    tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    wrong = 'prefork_max_private_memory = "lots"\n'
    done = serve(tmp_path, *words, broken="app = undefined\n", wrong=wrong)
    assert done.status == status, done
    assert message in done.err
    assert "Traceback" not in done.err
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("cpythonplus serve: ")
    # gunicorn itself names the setting first where a configuration file is wrong.
    assert len(done.err.strip().splitlines()) == 1 or "wrong.py" in words, done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--warm-up", "app:nothing"], "the warm-up app:nothing cannot be imported"),
        (["--warm-up", "nothing:warm"], "No module named 'nothing'"),
        (["--warm-up", "app:kept"], "the warm-up app:kept is not callable"),
        (["--warm-up", "app:fails"], "the warm-up app:fails raised ZeroDivisionError: nothing to"),
        (["--warm-up", "sys:exit"], "the warm-up sys:exit raised SystemExit"),
        (["--warm-up", "/raises"], "the warm-up of /raises raised LookupError: on purpose"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failing_warm_up_ends_the_start(tmp_path: Path, words: list[str], message: str) -> None:
    done = serve(tmp_path, "app:app", "--bind", "127.0.0.1:0", *words)
    assert done.status == FAILED, done
    assert done.err.count(message) == 1, done.err
    assert "Traceback" not in done.err


def test_a_port_of_the_metrics_in_use_ends_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = serve(tmp_path, "app:app", "--bind", "127.0.0.1:0", "--metrics", address)
    assert done.status == FAILED, done
    assert address in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_listening_port_in_use_ends_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = serve(tmp_path, "app:app", "--bind", address)
    assert done.status == FAILED, done
    assert "Connection in use" in done.err
    assert "Traceback" not in done.err


def test_without_gunicorn_it_names_the_extra() -> None:
    child = run_child(
        """
        import sys
        sys.modules["gunicorn"] = None
        from cpythonplus._cli.main import main
        sys.exit(main(["serve", "app:app"]))
        """,
        status=WRONG_USE,
    )
    assert child.err == (
        "cpythonplus serve: requires the extra: pip install 'cpythonplus[serve]'\n"
    )


def test_other_commands_do_not_import_gunicorn() -> None:
    child = run_child(
        """
        import sys
        from cpythonplus._cli.main import main
        main(["--help"])
        print(any(name.partition(".")[0] == "gunicorn" for name in sys.modules))
        """
    )
    assert child.out.endswith("False\n")


def test_help_has_our_options_in_a_group_of_their_own(tmp_path: Path) -> None:
    done = serve(tmp_path, "--help")
    assert done.status == 0, done
    ours, theirs = done.out.split("\ngunicorn:\n")
    _, ours = ours.split("\ncpythonplus:\n")
    options = ("--max-private-memory SIZE", "--warm-up PATH", "--metrics PATH", "--no-immortal")
    more = ("--prepare-again SIZE", "--keep-mortal NAME", "--policy KEY=VALUE,...")
    before = ("--no-doctor", "--malloc KIND")
    for option in (
        *options,
        *more,
        *before,
        "--no-fast-exit",
        "--no-gil",
        "--no-threads",
        "--preload",
    ):
        assert option in ours
    assert "--worker-class" in theirs
    assert "--warm-up" not in theirs


def test_gunicorns_ways_to_configure_work_with_our_settings(tmp_path: Path) -> None:
    done = serve(
        tmp_path,
        "app:app",
        "--print-config",
        "--warm-up=/a",
        "--warm-up=/b",
        "-c=conf.py",
        env={"GUNICORN_CMD_ARGS": "--metrics /m --workers 3"},
        conf='prefork_max_private_memory = "1G"\nprefork_metrics = "/other"\nprefork_gil = "off"\n',
    )
    assert done.status == 0, done
    values = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    found = {name.strip(): value.strip() for name, value in values.items()}
    assert found["prefork_max_private_memory"] == str(1 << 30)
    assert found["prefork_metrics"] == "/m"
    assert found["workers"] == "3"
    assert found["prefork_warm_up"] == "('/a', '/b')"
    assert found["prefork_gil"] == "False"
    assert found["preload_app"] == "True"
    assert found.get("control_socket_disable", "True") == "True"


def test_what_is_read_before_gunicorn_is_not_in_its_variable(tmp_path: Path) -> None:
    done = serve(tmp_path, "app:app", env={"GUNICORN_CMD_ARGS": "--malloc jemalloc"})
    assert done.status == WRONG_USE
    assert done.err == (
        "cpythonplus serve: --malloc counts on the command line alone, written out;"
        " see cpythonplus serve --help\n"
    )


POLICY_APP = """
    from cpythonplus import gil
    installed, install = [], gil.install
    gil.install = lambda policy=None: installed.append(policy) or install(policy)
    def app(environ, start_response):
        start_response("200 OK", [("Connection", "close")])
        return [str(installed[-1]).encode()]
"""


@pytest.mark.needs_gil
@pytest.mark.parametrize("way", ["--policy", "GUNICORN_CMD_ARGS", "CPYTHONPLUS_PREFORK_POLICY"])
def test_the_workers_have_the_policy(tmp_path: Path, way: str) -> None:
    app = POLICY_APP
    text = "slice_us=5000,spin_us=3"
    words = [way, text] if way == "--policy" else []
    env = {"--policy": {}, "GUNICORN_CMD_ARGS": {way: f"--policy {text}"}}.get(way, {way: text})
    with running(tmp_path, *words, app=app, env=env) as server:
        assert server.get() == "Policy(slice_us=5000, batch_share=0.05, spin_us=3)"
        assert server.stop() == 0


@pytest.mark.needs_gil
def test_the_share_of_jobs_wins_over_the_policy(tmp_path: Path) -> None:
    words = ("--job-share", "25%", "--policy", "batch_share=0.5,spin_us=7")
    with running(tmp_path, *words, app=POLICY_APP) as server:
        assert server.get() == "Policy(slice_us=10000, batch_share=0.25, spin_us=7)"
        assert server.stop() == 0


@pytest.mark.needs_gil
@pytest.mark.parametrize("words", [[], ["--no-doctor"], ["--no-doctor", "--malloc", "glibc-tuned"]])
def test_the_doctor_can_be_left_out(tmp_path: Path, words: list[str]) -> None:
    with running(tmp_path, *words) as server:
        command = [sys.executable, "-m", "cpythonplus", "doctor", "list"]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=child_environment()
        )
        # From 3.14 on every process can be reached, by sys.remote_exec: these do not listen.
        listening = [line.split()[0] for line in done.stdout.splitlines() if " socket " in line]
        there = {str(pid) for pid in (server.process.pid, *server.workers())} & {*listening}
        assert bool(there) == (not words), done.stdout
        assert server.stop() == 0


def test_a_control_socket_is_there_when_asked_for(tmp_path: Path) -> None:
    gunicorn = pytest.importorskip("gunicorn.config", reason="gunicorn is not installed")
    if "control_socket" not in gunicorn.Config().settings:
        pytest.skip("this gunicorn has no control socket")
    done = serve(tmp_path, "app:app", "--print-config", "--control-socket", "here.ctl")
    assert "control_socket_disable" in done.out, done
    assert any(
        line.split() == ["control_socket_disable", "=", "False"] for line in done.out.splitlines()
    )


@pytest.mark.slow
def test_reload_loads_the_application_in_the_workers(tmp_path: Path) -> None:
    with running(tmp_path, "--reload", "--metrics", "/metrics") as server:
        server.ready(1)
        assert "no memory is shared" in server.output()
        before = server.get("/")
        path = tmp_path / "app.py"
        path.write_text(path.read_text().replace("str(os.getpid())", "'changed'"))
        os.utime(path, (4_000_000_000, 4_000_000_000))
        until(lambda: answers(server) and server.get("/") == "changed", "the new code")
        assert before != "changed"
        path.write_text("def app(:\n")
        times = count(4_000_000_100)

        def shown() -> bool:
            # gunicorn misses a change that comes before its first look.
            os.utime(path, (time := next(times), time))
            with suppress(OSError):
                return "import_app" in server.get("/")
            return False

        until(shown, "the traceback")
        assert server.process.poll() is None, "gunicorn waits for the next change"
        assert server.stop() == 0
