"""Which of CPython's own tests are run on ours, and which of them are known to fail, and why.

Each reason is one that a reader can judge: what the test asks for, and what is so on purpose
instead.  A defect has no place here.
"""

# ---- under `cpythonplus run` --------------------------------------------------------------------

# The longest first: two run at once.
RUN_QUICK = (
    "test_threading",
    "test_faulthandler",
    "test_queue",
    "test_fork1",
    "test_thread",
    "test_threading_local",
)
RUN_ALL = (
    *RUN_QUICK,
    "test_signal",
    "test_socket",
    "test_socketserver",
    "test_logging",
    "test_asyncio",
    "test_concurrent_futures",
    "test_subprocess",
    "test_multiprocessing_fork",
)

_FRAMES = (
    "expects frames of threading.py inside Event.wait(); a native wait has none, so a stack ends"
    " with the line that called it"
)

# Tests of what a C type cannot have, or of what ours have on purpose.  They are named in the output
# all the same, and in docs/reference/cpython-tests.md.  One more can hang, plain too, on
# CPython 3.12 before 3.12.8 and on 3.13.0: test_processes_terminate of test_concurrent_futures.
KNOWN_RUN = {
    "test.test_threading.ThreadJoinOnShutdown.test_3_join_in_forked_from_thread":
        "forks while the main thread ends; that comes first, as a fork waits for the doctor's"
        " thread, and before 3.12.3 no thread may begin any more then (gh-113964)",
    "test.test_faulthandler.FaultHandlerTests.test_dump_traceback_threads":
        _FRAMES,
    "test.test_faulthandler.FaultHandlerTests.test_dump_traceback_threads_file":
        _FRAMES,
    "test.test_queue.CSimpleQueueTest.test_simplequeue_sizeof":
        "compares with the size of CPython's own structure; ours has another",
}  # fmt: skip

# Of the whole, where the children that tests start with -E or -I are plain Python.
KNOWN_WHOLE: dict[str, str] = {}

# ---- with the locks, sockets and sleeping of tasklets -------------------------------------------

TASKLETS_QUICK = (
    "test_socket",
    "test_queue",
    "test_ftplib",
    "test_urllib2_localnet",
    "test_httpservers",
    "test_select",
    "test_httplib",
    "test_socketserver",
    "test_http_cookiejar",
    "test_urllib",
    "test_urllib2",
)
TASKLETS_ALL = ("test_ssl", "test_threading", *TASKLETS_QUICK)

_BLOCKS = "asks the system whether the descriptor blocks: none does, it is the tasklet that waits"

# Keys are names of tests, or patterns of them as fnmatch has them.
KNOWN_TASKLETS = {
    "test.test_select.SelectTestCase.test_disallow_instantiation":
        "expects that the type of what `select.poll()` returns cannot be called; ours is a class",
    "test.test_socket.GeneralModuleTests.testRefCountGetNameInfo":
        "counts references to what a traceback's frames hold: ours is a function in Python",
    "test.test_socket.NonBlockingTCPTests.testSetBlocking*":
        _BLOCKS,
    "test.test_socket.NonblockConstantTest.test_SOCK_NONBLOCK":
        _BLOCKS,
    "test.test_threading.ThreadTests.test_disallow_instantiation":
        "before 3.13 the type behind threading.Lock() cannot be called; ours is threading.Lock",
    "test.test_threading.MiscTestCase.test__all__":
        "looks for types that say they are `threading`'s; Lock, RLock and local say whose they are",
}  # fmt: skip
