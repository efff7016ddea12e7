"""Installing and uninstalling, and grounds on which that is refused."""

import sysconfig
from pathlib import Path

import pytest

from tests.gil.load import run
from tests.support import c_file, compile_c, run_child

pytestmark = pytest.mark.needs_gil

# A library that has put functions of its own into the interpreter's slots before us.
REDIRECT = r"""
#include <Python.h>
#include <pthread.h>
#include <string.h>
#include "gil/scheduler/slots.h"

static int other_signal(pthread_cond_t *c) { return pthread_cond_signal(c); }
static int other_wait(pthread_cond_t *c, pthread_mutex_t *m) { return pthread_cond_wait(c, m); }
static int other_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{ return pthread_cond_timedwait(c, m, t); }

static struct plus_slot_set set;
static uintptr_t target;

int redirect(const char *symbol)
{
    set.symbol = strdup(symbol);
    target = strstr(symbol, "timedwait") ? (uintptr_t)other_timedwait
           : strstr(symbol, "signal")    ? (uintptr_t)other_signal
                                         : (uintptr_t)other_wait;
    int rc = plus_slots_find((void *)PyEval_RestoreThread, &set);
    return rc < 0 ? rc : plus_slots_write(&set, target);
}
int still_there(void) { return *set.addresses[0] == target; }
int restore(void) { return plus_slots_restore(&set, target); }
"""

# Calls of the package's own that fail while `failing` is set.
FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

int failing;

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    return failing & 1 ? EAGAIN : real(t, a, f, x);
}

int mprotect(void *p, size_t n, int prot)
{
    int (*real)(void *, size_t, int) = dlsym(RTLD_NEXT, "mprotect");
    if (failing & 2) { errno = EACCES; return -1; }
    return real(p, n, prot);
}
"""

# The interpreter's calls go through a library that was preloaded: that is ordinary linking.
INTERPOSED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

long calls;

int pthread_cond_signal(pthread_cond_t *c)
{
    static int (*real)(pthread_cond_t *);
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_signal");
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    return real(c);
}
"""


def _library(folder: Path, code: str, *more: Path) -> str:
    source = folder / "library.c"
    source.write_text(code)
    include = f"-I{sysconfig.get_path('include')}"
    flags = ("-shared", "-fPIC", include)
    return str(compile_c(folder / "library.so", [source, *more], *flags))


def test_install_and_uninstall() -> None:
    run(
        """
        assert not gil.active()
        gil.uninstall()
        assert gil.install() is True
        assert gil.active()
        assert gil.install(gil.Policy()) is True
        assert gil.active() and gil.statistics().active
        gil.uninstall()
        gil.uninstall()
        assert not gil.active() and not gil.statistics().active
        with Load(cpu=2, io=2) as load:
            assert gil.install() is True
            load.progress()
            gil.uninstall()
            load.progress()
        """,
        before="",
    )


def test_a_second_install_changes_the_policy() -> None:
    # Lighter threads that want all there is: whether the job is protected is a matter of its share.
    run(
        """
        def light():
            while not stop:
                end = time.thread_time_ns() + 400_000
                while time.thread_time_ns() < end:
                    pass
                time.sleep(0.0008)

        stop = False
        gil.install(gil.Policy(batch_share=0.0))
        with Load(cpu=1):
            threads = [threading.Thread(target=light) for _ in range(6)]
            for thread in threads:
                thread.start()
            time.sleep(0.3)
            assert gil.statistics().protected_runs == 0
            gil.install(gil.Policy(batch_share=0.3))
            until(lambda: gil.statistics().protected_runs > 10)
            gil.install(gil.Policy(batch_share=0.0))
            time.sleep(0.05)
            before = gil.statistics().protected_runs
            time.sleep(0.3)
            assert gil.statistics().protected_runs == before
            stop = True
            for thread in threads:
                thread.join()
        """,
        before="",
    )


def test_a_wrong_policy_changes_nothing() -> None:
    run(
        """
        for before in (False, True):
            if before:
                gil.install()
            for wrong in (5, "policy", {"slice_us": 500}):
                try:
                    gil.install(wrong)
                except (TypeError, AttributeError, ValueError):
                    assert gil.active() is before
                else:
                    raise AssertionError(wrong)
        """,
        before="",
    )


@pytest.mark.parametrize("symbol", ["signal", "wait", "timedwait"])
def test_redirected_slots_are_refused_and_left_alone(tmp_path: Path, symbol: str) -> None:
    library = _library(tmp_path, REDIRECT, c_file("slots.c"))
    run(
        f"""
        import ctypes

        other = ctypes.PyDLL({library!r})
        assert other.redirect(b"pthread_cond_{symbol}") == 0
        for use in (gil.install, atomic.enter, lambda: atomic().__enter__()):
            try:
                use()
            except UnsupportedPlatform as error:
                assert "pthread_cond_{symbol}" in str(error) and "\\n" not in str(error), error
            else:
                raise AssertionError("not refused")
            assert not gil.active() and not atomic.inside()
            assert other.still_there()
        with Load(cpu=2, io=2):
            pass
        assert gil.statistics().switches == 0
        assert other.restore() == 0
        assert gil.install()
        with Load(cpu=2, io=2):
            pass
        assert gil.statistics().switches > 0
        """,
        before="",
    )


def test_slots_that_others_take_later_are_left_to_them(tmp_path: Path) -> None:
    library = _library(tmp_path, REDIRECT, c_file("slots.c"))
    run(
        f"""
        import ctypes

        other = ctypes.PyDLL({library!r})
        gil.install()
        with Load(cpu=2, io=1) as load:
            assert other.redirect(b"pthread_cond_wait") == 0
            load.progress()  # threads that were asked wait for the switch over there
            load.progress()
            gil.uninstall()
            assert other.still_there()
            load.progress()
        """,
        before="",
    )


@pytest.mark.parametrize(("failing", "reason"), [(1, "probe"), (2, "written")])
def test_a_failing_call_is_named_and_nothing_changed(
    tmp_path: Path, failing: int, reason: str
) -> None:
    library = _library(tmp_path, FAILING)
    child = run(
        f"""
        import ctypes

        failing = ctypes.c_int.in_dll(ctypes.CDLL({library!r}), "failing")
        failing.value = {failing}
        try:
            gil.install()
        except UnsupportedPlatform as error:
            assert {reason!r} in str(error), error
            assert not gil.active()
        else:
            assert failing.value == 2, "not refused"
            print("open slots")  # nothing had to be made writable
        failing.value = 0
        with Load(cpu=1, io=1):
            pass
        assert gil.install()
        with Load(cpu=1, io=1):
            pass
        """,
        before="",
        # The JIT does not get over a failing mprotect() of its own.
        env={"LD_PRELOAD": library, "PYTHON_JIT": "0"},
    )
    if "open slots" in child.out:
        pytest.skip("this interpreter's slots are not closed: there is nothing to refuse")


def test_beside_an_interposed_function(tmp_path: Path) -> None:
    library = _library(tmp_path, INTERPOSED)
    run(
        f"""
        import ctypes

        calls = ctypes.c_long.in_dll(ctypes.CDLL({library!r}), "calls")
        assert gil.install()
        with Load(cpu=2, io=2):
            pass
        gil.uninstall()
        before = calls.value
        with Load(cpu=2, io=2):
            pass
        assert calls.value > before
        """,
        before="",
        env={"LD_PRELOAD": library},
    )


def test_without_a_gil_there_is_nothing_to_do() -> None:
    run(
        """
        from cpythonplus.gil import _control as control

        control.free_threaded = lambda: True
        assert gil.install() is False
        assert not gil.active()
        assert gil.statistics().active is False
        gil.uninstall()
        """,
        before="",
    )


def test_without_the_extension_it_is_refused() -> None:
    run_child(
        """
        import sys
        sys.modules["cpythonplus._native"] = None
        from cpythonplus import UnsupportedPlatform, gil
        from cpythonplus.gil import atomic

        def refused(use):
            try:
                use()
            except UnsupportedPlatform as error:
                assert "\\n" not in str(error)
            else:
                raise AssertionError(use)

        refused(gil.install)
        refused(atomic.enter)
        refused(lambda: atomic().__enter__())
        refused(atomic(lambda: None))
        assert not gil.active() and gil.statistics() == gil.Statistics()
        gil.uninstall()
        gil.reset_statistics()
        """
    )


@pytest.mark.parametrize("interval", [1e-6, 1.0, 5000.0, 1e6])
def test_whatever_the_switch_interval(interval: float) -> None:
    run(
        f"""
        sys.setswitchinterval({interval})
        assert gil.install()
        """,
        before="",
    )


@pytest.mark.slow
def test_install_and_uninstall_in_a_loop_under_load() -> None:
    run(
        """
        with Load(cpu=2, io=3) as load:
            for i in range(150):
                gil.install(gil.Policy(slice_us=100 + 100 * i % 2000, spin_us=i % 30))
                if i % 3:
                    time.sleep(0.0005)
                gil.uninstall()
                if i % 50 == 0:
                    load.progress()
            load.progress()
        """,
        before="",
    )


@pytest.mark.parametrize("load", ["Load(cpu=0)", "Load(cpu=1, io=1)"])
def test_several_threads_install_and_uninstall(load: str) -> None:
    run(
        f"""
        def body(i):
            for j in range(60):
                assert gil.install(gil.Policy(slice_us=100 + i))
                if (i + j) % 3 == 0:
                    gil.uninstall()

        gil.install  # imported once, so that the threads meet inside it
        with {load} as load:
            together(body)
            load.progress()
            gil.uninstall()
            load.progress()
            assert gil.install()
            load.progress()
        """,
        before="",
    )


def test_first_use_of_atomic_and_install_meet() -> None:
    run(
        """
        gil.install, gil.uninstall

        def body(i):
            for _ in range(40):
                if i % 2:
                    gil.install()
                    gil.uninstall()
                else:
                    with atomic():
                        pass

        together(body)
        """,
        before="",
    )


@pytest.mark.slow
def test_uninstall_by_a_waiting_crowd() -> None:
    # Everybody waits for the GIL in our queue when the scheduling ends.
    run(
        """
        with Load(cpu=12) as load:
            for _ in range(5):
                gil.uninstall()
                load.progress()
                gil.install()
                load.progress()
        """
    )
