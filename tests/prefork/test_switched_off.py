"""With CPYTHONPLUS_DISABLE set the calls that switch something on do nothing, and say so once."""

from pathlib import Path

import pytest

from tests.prefork import test_celery as celery
from tests.prefork import test_rq as rq
from tests.prefork import test_uwsgi as uwsgi
from tests.support import run_child

OFF = "CPYTHONPLUS_DISABLE"


def line(what: str) -> str:
    return f"cpythonplus: {what} does nothing: {OFF} is set\n"


@pytest.mark.any_version
def test_the_calls_of_a_program() -> None:
    child = run_child(
        """
        import multiprocessing, os, sys, threading
        from cpythonplus import gil, prefork, threads
        from cpythonplus.prefork import multiprocessing as ours
        before = threading.Lock
        print(gil.install(), gil.install(gil.Policy(slice_us=5000)), gil.active())
        threads.patch()
        print(threads.patched(), threading.Lock is before)
        prefork.install(warm_up=sys.exit)
        ours.install()
        catalogue = [object()]
        if os.fork() == 0:
            os._exit(sys.getrefcount(catalogue) > 1 << 29)
        print(os.wait()[1], "CPYTHONPLUS_PREFORK_HANDED" in os.environ)
        gil.uninstall(), threads.unpatch(), prefork.uninstall(), ours.uninstall()
        print(gil.statistics().active)
        """,
        env={OFF: "1"},
    )
    assert child.out == "False False False\nFalse True\n0 False\nFalse\n"
    assert child.err == "".join(
        map(
            line,
            (
                "gil.install()",
                "threads.patch()",
                "prefork.install()",
                "prefork.multiprocessing.install()",
            ),
        )
    )


@pytest.mark.any_version
def test_a_wrong_value_counts_as_switched_off() -> None:
    code = "from cpythonplus import gil; gil.install(); print(gil.active())"
    child = run_child(code, env={OFF: "of"})
    assert child.out == "False\n"
    assert child.err == (
        f"cpythonplus: gil.install() does nothing: {OFF} must be 1 or 0"
        " (or true, yes, on, false, no, off), not 'of'\n"
    )


@pytest.mark.any_version
def test_what_is_wrong_in_a_call_is_still_told() -> None:
    child = run_child(
        """
        from cpythonplus import prefork
        from cpythonplus.prefork import multiprocessing
        for call in (prefork.install, multiprocessing.install):
            for options in ({"max_private_memory": "lots"}, {"nothing": 1}):
                try:
                    call(**options)
                except (TypeError, ValueError) as error:
                    print(type(error).__name__)
        """,
        env={OFF: "1"},
    )
    assert child.out == "ValueError\nTypeError\n" * 2
    assert child.err == ""


@pytest.mark.any_version
def test_the_fork_server_is_stock() -> None:
    child = run_child(
        """
        import multiprocessing, sys
        from cpythonplus.prefork.multiprocessing._installing import PRELOAD

        def look():
            print("cpythonplus.prefork._engine" in sys.modules, flush=True)
            from cpythonplus import prefork
            print(prefork.statistics().prepares, flush=True)

        if __name__ == "__main__":
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([PRELOAD])
            process = context.Process(target=look)
            process.start()
            process.join()
        """,
        env={OFF: "1"},
    )
    assert child.out.endswith("\n0\n")
    assert child.err.count(f"preload does nothing: {OFF} is set\n") == 1


def test_celery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF, "1")
    with celery.worker(tmp_path, "-c", "1") as shop:
        answer = shop.ask("answer = shop.look.delay(1).get(timeout=60)")
        assert [answer[name] for name in ("gil", "native_locks", "immortal")] == [False] * 3
        assert answer["warm"] != "warm"
        assert line("cpythonplus.prefork.celery") in shop.server.text()


def test_rq(tmp_path: Path) -> None:
    settings = {OFF: "1", "CPYTHONPLUS_PREFORK_WARM_UP": "jobs:warm"}
    with rq.worker(tmp_path, **settings) as shop:
        answer = shop.ask("answer = ended(queue.enqueue(jobs.look, 1))")
        assert [answer[name] for name in ("gil", "native_locks", "immortal")] == [False] * 3
        assert answer["warm"] != "warm"
        assert shop.server.text().count(line("cpythonplus.prefork.rq")) >= 1


@pytest.mark.builds
def test_uwsgi(tmp_path: Path) -> None:
    with uwsgi.serving(tmp_path, *uwsgi.MODULE, CPYTHONPLUS_DISABLE="1") as site:
        answer = site.get()
        assert [answer[name] for name in ("gil", "native_locks", "immortal")] == [False] * 3
        assert site.server.text().count(line("cpythonplus.prefork.uwsgi")) == 1
        assert site.server.stop() == 0
