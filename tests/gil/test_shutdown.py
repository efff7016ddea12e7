"""The end of the interpreter, with threads in all states: right status, and nothing hangs."""

import pytest

from tests.gil.load import run

pytestmark = pytest.mark.needs_gil

ENDS = {
    "falls off the end": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "an exception": ("raise ValueError('the end')", 1),
    "os._exit": ("os._exit(9)", 9),
}


@pytest.mark.parametrize("end", ENDS)
def test_exit_status_with_daemon_threads(end: str) -> None:
    code, status = ENDS[end]
    child = run(
        f"""
        Load(cpu=3, io=3, daemon=True).__enter__()
        {code}
        """,
        status=status,
    )
    assert "Fatal" not in child.err
    assert ("the end" in child.err) == (end == "an exception")


def test_many_daemon_threads() -> None:
    run(
        """
        Load(cpu=20, io=60, daemon=True).__enter__()
        locks = [threading.Lock() for _ in range(20)]
        for lock in locks:
            lock.acquire()
            threading.Thread(target=lock.acquire, daemon=True).start()
        """
    )


def test_over_and_over() -> None:
    # The moment at which the threads are caught differs from run to run.
    for _ in range(10):
        run(
            """
            Load(cpu=4, io=8, daemon=True).__enter__()
            sys.exit(3)
            """,
            status=3,
        )


def test_threads_that_are_waited_for() -> None:
    child = run(
        """
        def work():
            for _ in range(20):
                sum(range(20_000))
            os.write(1, b"done ")

        for _ in range(4):
            threading.Thread(target=work).start()
        """
    )
    assert child.out.split() == ["done"] * 4


def test_exit_functions_that_use_the_gil() -> None:
    child = run(
        """
        import atexit, concurrent.futures

        pool = concurrent.futures.ThreadPoolExecutor(4)
        futures = [pool.submit(sum, range(100_000)) for _ in range(20)]

        class Late:
            def __del__(self):
                time.sleep(0.001)
                with atomic():
                    pass

        late = Late()
        cycle = [late]
        cycle.append(cycle)

        @atexit.register
        def last():
            time.sleep(0.001)
            print(gil.active(), gil.statistics().switches > 0)
        Load(cpu=2, io=2, daemon=True).__enter__()
        """
    )
    assert child.out.split() == ["True", "True"]
    assert "Traceback" not in child.err


def test_uninstalled_by_an_exit_function() -> None:
    run(
        """
        import atexit

        atexit.register(gil.uninstall)
        Load(cpu=2, io=4, daemon=True).__enter__()
        """
    )


# Something of the program's own that the interpreter calls when it has begun to finalise.
LATE = """
class Late:
    def __init__(self, call):
        self.call = call
    def __del__(self):
        try:
            os.write(1, repr(self.call()).encode())
        except BaseException as error:
            os.write(1, type(error).__name__.encode())

class Out:
    def write(self, text):
        os.write(1, text.encode())
    def flush(self):
        if sys.is_finalizing():
            self.flush = bool
            try:
                gil.install()
            except Exception as error:
                self.write(str(error))
"""


def test_sections_that_begin_late() -> None:
    child = run(
        LATE
        + """
def section():
    with atomic():
        return atomic.inside()

late = Late(section)
""",
        before="",
    )
    assert child.out == "True"


@pytest.mark.parametrize("threads", [0, 1])
def test_installed_late(threads: int) -> None:
    """No thread gets the GIL any more that it could be tried out with."""
    child = run(
        LATE
        + f"""
for _ in range({threads}):
    threading.Thread(target=int).start()
gil.active()
sys.stdout = Out()
""",
        before="",
    )
    assert child.out == "the interpreter finalises"


def test_uninstalled_late_beside_a_thread_that_was_installing() -> None:
    """The interpreter has ended that one in the midst of it."""
    child = run(
        LATE
        + """
sys.setswitchinterval(1000)  # the main thread gets the GIL in the midst of it, and keeps it
install, late = gil.install, Late(gil.uninstall)
threading.Thread(target=install, daemon=True).start()
""",
        before="",
    )
    assert child.out == "None"


def test_daemon_threads_inside_atomic_sections() -> None:
    # One computes inside one, others wait for ever inside theirs; the process ends all the same.
    run(
        """
        atomic.configure(limit_ms=1e6)
        never = threading.Lock()
        never.acquire()
        entered = threading.Semaphore(0)

        def waits():
            with atomic():
                entered.release()
                never.acquire()

        def computes():
            while True:
                with atomic():
                    for _ in range(2000):
                        pass

        for _ in range(4):
            threading.Thread(target=waits, daemon=True).start()
            entered.acquire()
        threading.Thread(target=computes, daemon=True).start()
        with Load(cpu=1, io=1) as load:
            load.progress()
        """
    )


def test_the_main_thread_ends_inside_a_section() -> None:
    run(
        """
        Load(cpu=2, io=2, daemon=True).__enter__()
        atomic.enter()
        sys.exit(4)
        """,
        status=4,
    )
