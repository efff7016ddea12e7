"""Threads of all origins: come and go, made by C code, ending where they should not."""

import sysconfig

import pytest

from tests.gil.load import STATES, run
from tests.support import compile_c

pytestmark = pytest.mark.needs_gil

NATIVE = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

typedef void (*callback)(void);

/* Threads that the interpreter did not make; each calls `calls` times. */
struct job { callback body; int calls; };

static void *work(void *argument)
{
    struct job *job = argument;
    for (int i = 0; i < job->calls; i++) job->body();
    return NULL;
}

int in_threads(callback body, int threads, int calls)
{
    pthread_t ids[64];
    struct job job = {body, calls};
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, &job) != 0) return -1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}

/* Calls once, then ends in the middle of native code. */
static void *die(void *argument)
{
    ((callback)argument)();
    pthread_exit(NULL);
}

int dying(callback body)
{
    pthread_t id;
    return pthread_create(&id, NULL, die, (void *)body) || pthread_join(id, NULL);
}

/* A thread-specific destructor that calls Python when the thread ends. */
static pthread_key_t key;
static callback at_end;
static void destructor(void *value) { (void)value; at_end(); }
int on_thread_end(callback body) { at_end = body; return pthread_key_create(&key, destructor); }
int arm(void) { return pthread_setspecific(key, &key); }

/* One that was cancelled while it waits. */
static sem_t asleep;

static void *sleeper(void *argument)
{
    ((callback)argument)();
    sem_post(&asleep);
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&m);
    for (;;) pthread_cond_wait(&c, &m);
}

int cancelled(callback body)
{
    pthread_t id;
    return sem_init(&asleep, 0, 0) || pthread_create(&id, NULL, sleeper, (void *)body) ||
           sem_wait(&asleep) || pthread_cancel(id) || pthread_join(id, NULL);
}
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("native")
    source = folder / "native.c"
    source.write_text(NATIVE)
    include = f"-I{sysconfig.get_path('include')}"
    return str(compile_c(folder / "native.so", [source], "-shared", "-fPIC", include))


def _program(library: str, code: str) -> str:
    from textwrap import dedent

    head = f"""
import ctypes
native = ctypes.CDLL({library!r})
CALLBACK = ctypes.CFUNCTYPE(None)
"""
    return head + dedent(code)


@pytest.mark.slow
@pytest.mark.parametrize("uninstalled", [False, True])
def test_thousands_come_and_go(uninstalled: bool) -> None:
    run(
        f"""
        done = []
        with Load(cpu=1, io=2) as load:
            for i in range(60):
                wave = [threading.Thread(target=done.append, args=(1,)) for _ in range(50)]
                for thread in wave:
                    thread.start()
                for thread in wave:
                    thread.join()
                if {uninstalled} and i == 57:  # stock is slow at this
                    gil.uninstall()
            load.progress()
        assert len(done) == 3000
        until(lambda: len(gil.statistics().threads) <= 1)
        """
    )


def test_hundreds_at_once() -> None:
    run(
        """
        go = threading.Event()
        done = []

        def body():
            go.wait()
            for _ in range(20):
                time.sleep(0)
                sum(range(100))
            done.append(1)

        threads = [threading.Thread(target=body) for _ in range(300)]
        for thread in threads:
            thread.start()
        with Load(cpu=1) as load:
            go.set()
            for thread in threads:
                thread.join()
            load.progress()
        assert len(done) == 300
        """
    )


def test_callbacks_from_native_threads(native: str) -> None:
    run(
        _program(
            native,
            """
            calls = []

            @CALLBACK
            def body():
                calls.append(threading.get_ident())
                with atomic():
                    calls.append(sum(range(50)))

            with Load(cpu=1, io=1) as load:
                assert native.in_threads(body, 8, 40) == 0
                load.progress()
            assert len(calls) == 2 * 8 * 40
            until(lambda: len(gil.statistics().threads) == 1)
            """,
        )
    )


def test_a_native_thread_that_dies_inside_a_section(native: str) -> None:
    run(
        _program(
            native,
            """
            @CALLBACK
            def body():
                atomic.enter()

            with Load(cpu=1, io=1) as load:
                for _ in range(5):
                    assert native.dying(body) == 0
                assert native.cancelled(body) == 0
                load.progress()
            assert gil.statistics().atomic.abandoned == 6, gil.statistics().atomic
            """,
        )
    )


@pytest.mark.parametrize("state", STATES)
def test_destructors_that_call_python(native: str, state: str) -> None:
    # They may run after the thread's record is gone: then there is a new one, which goes too.
    run(
        _program(
            native,
            """
            ended = []

            @CALLBACK
            def at_end():
                with atomic():
                    ended.append(threading.get_ident())

            @CALLBACK
            def body():
                assert native.arm() == 0
                time.sleep(0)

            def python_thread():
                with atomic():
                    assert native.arm() == 0

            assert native.on_thread_end(at_end) == 0
            with Load(cpu=1, io=1) as load:
                assert native.in_threads(body, 8, 1) == 0
                for _ in range(8):
                    thread = threading.Thread(target=python_thread)
                    thread.start()
                    thread.join()
                until(lambda: len(ended) == 16)
                load.progress()
                gil.statistics()
            until(lambda: len(gil.statistics().threads) <= 1)
            """,
        ),
        before=STATES[state],
    )


def test_a_local_that_uses_a_section_when_it_goes() -> None:
    run(
        """
        local = threading.local()
        gone = []

        class Value:
            def __del__(self):
                with atomic():
                    time.sleep(0)
                    gone.append(1)

        def body(i):
            local.value = Value()
            time.sleep(0)

        with Load(cpu=1, io=1):
            for _ in range(10):
                together(body)
        until(lambda: len(gone) == 40)
        """
    )
