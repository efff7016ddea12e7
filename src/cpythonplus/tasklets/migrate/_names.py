"""The names of eventlet and gevent: what to write instead, and what has no counterpart."""

from typing import NamedTuple

WRITE, NONE, STAYS = "write", "none", "stays"


class Advice(NamedTuple):
    """The fate of a name, and what to write or to know."""

    kind: str
    text: str


_PATCH = "io.patch(); locks.patch(threads=True)  # threads become tasklets, too"
_SPAWN = "tasklet(f)(x); where the result is asked, a Future: how-to from-gevent, Results"
_LATER = "io.call_later(seconds, f, x)"
_POOL = "an Executor of eight lines over tasklets: how-to from-gevent, A pool"
_QUEUE = "{0} of queue under locks.patch(), or locks.{0}; no `for item in queue`"
_RESULT = "concurrent.futures.Future: set_result, set_exception, result"
_STANDARD = "the standard module, under io.patch() and locks.patch()"
_SERVER = "io.StreamServer((host, port), handle)"
_WSGI = "gunicorn --worker-class cpythonplus.tasklets.gunicorn.Worker"
_TIMEOUT = "with io.timeout(seconds): it raises TimeoutError"
_THREAD = "io.in_thread(f, x)"
_REPORT = "dump(), report(), dump_on(SIGUSR1)"
_LOOP = "the loop is begun when it is needed; io.set_loop_factory() chooses another"
_QUEUES = ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue")

_EVENTLET = {
    "monkey_patch": _PATCH,
    "patcher.is_monkey_patched": "io.patched(), locks.patched()",
    "patcher.original": "the standard module: import it before the patch",
    "import_patched": "import it after the patch",
    "patcher": "io.patch(), locks.patch()",
    "sleep": "time.sleep(seconds) under io.patch(), or io.sleep(); sleep(0): schedule()",
    "spawn": _SPAWN,
    "spawn_n": "tasklet(f)(x)",
    "spawn_after": _LATER,
    "spawn_after_local": _LATER,
    "exc_after": "io.timeout(seconds)",
    "getcurrent": "getcurrent()",
    "kill": "tasklet.kill()",
    "greenthread": _SPAWN,
    "GreenPool": _POOL,
    "greenpool": _POOL,
    "GreenPile": "map() of an Executor: how-to from-gevent, A pool",
    "LightQueue": _QUEUE.format("Queue"),
    "queue.Empty": "queue.Empty",
    "queue.Full": "queue.Full",
    "queue": "the module queue under locks.patch()",
    "Event": _RESULT,
    "event": _RESULT,
    "Semaphore": "threading.Semaphore under locks.patch(), or locks.Semaphore",
    "CappedSemaphore": "locks.BoundedSemaphore",
    "BoundedSemaphore": "locks.BoundedSemaphore",
    "semaphore": "locks.Semaphore, locks.BoundedSemaphore",
    "Timeout": _TIMEOUT,
    "TimeoutError": "TimeoutError",
    "with_timeout": _TIMEOUT,
    "timeout": _TIMEOUT,
    "listen": "socket.create_server(address)",
    "connect": "socket.create_connection(address)",
    "serve": _SERVER,
    "StopServe": "server.stop()",
    "wrap_ssl": "ssl.SSLContext.wrap_socket(), or ssl_context= of io.StreamServer",
    "wsgi": _WSGI + ", or wsgiref: how-to tasklets-with-libraries",
    "tpool.execute": _THREAD,
    "tpool.set_num_threads": "io.set_thread_limit(number)",
    "tpool": _THREAD,
    "hubs.trampoline": "io.wait_readable(fd), io.wait_writable(fd)",
    "hubs": _LOOP,
    "greenio.shutdown_safe": "socket.shutdown()",
    "greenio.GreenPipe": "os.fdopen(), with io.wait_readable(fd) before a read",
    "greenio": "socket.socket under io.patch()",
    "greenlet.GreenletExit": "TaskletExit",
    "support.greenlets.GreenletExit": "TaskletExit",
    "corolocal": "threading.local under locks.patch(), or locks.local",
    "pools": "a locks.Queue of the things",
    "debug.hub_blocking_detection": "run_for(limit): how-to tasklets-and-threads",
    "debug": _REPORT,
    "backdoor": "cpythonplus doctor PID: how-to look-into-a-live-process",
    "asyncio": "aio.run(), aio.spawn()",
    "convenience": "socket.create_server(), io.StreamServer",
    "green.os": "os; os.read() of a pipe after io.wait_readable(fd)",
    "green.zmq": "pyzmq: how-to tasklets-with-libraries",
    "green": _STANDARD,
    "version_info": "",
}
_EVENTLET_NONE = {
    "dagpool": "write it over futures",
    "green.MySQLdb": "a driver in Python (PyMySQL), or io.in_thread()",
    "db_pool": "the pool of a driver or of SQLAlchemy",
    "websocket": "a WebSocket library over sockets, such as simple-websocket",
    "zipkin": "OpenTelemetry",
    "tpool.Proxy": "io.in_thread() for each call",
    "support": "internal",
}
_GEVENT = {
    "monkey.patch_all": _PATCH,
    "monkey.is_module_patched": "io.patched(), locks.patched()",
    "monkey.get_original": "import the name before the patch",
    "monkey.patch_thread": "locks.patch(threads=True)",
    "monkey": "io.patch(), locks.patch(); its arguments choose the areas",
    "spawn": _SPAWN,
    "spawn_raw": "tasklet(f)(x)",
    "spawn_later": _LATER,
    "sleep": "time.sleep(seconds) under io.patch(), or io.sleep(); sleep(0): schedule()",
    "idle": "schedule()",
    "wait": "run(), or concurrent.futures.wait",
    "joinall": "concurrent.futures.wait",
    "iwait": "concurrent.futures.as_completed",
    "getcurrent": "getcurrent()",
    "kill": "tasklet.kill()",
    "killall": "tasklet.kill() of each",
    "GreenletExit": "TaskletExit",
    "Timeout": _TIMEOUT,
    "with_timeout": _TIMEOUT,
    "timeout": _TIMEOUT,
    "event.Event": "threading.Event under locks.patch(), or locks.Event",
    "event.AsyncResult": _RESULT,
    "lock": "the same name in locks",
    "queue.Channel": "channel()",
    "queue.JoinableQueue": "locks.Queue: task_done(), join()",
    "queue": "the module queue under locks.patch()",
    "local": "threading.local under locks.patch(), or locks.local",
    "pool": _POOL,
    "threadpool": _THREAD,
    "get_hub": _LOOP + "; hub.threadpool: io.in_thread(f, x)",
    "hub": _LOOP + "; hub.threadpool: io.in_thread(f, x)",
    "core": _LOOP,
    "config": _LOOP,
    "reinit": "nothing: a fork needs no call",
    "server": _SERVER,
    "pywsgi": _WSGI,
    "socket.wait_read": "io.wait_readable(fd)",
    "socket.wait_write": "io.wait_writable(fd)",
    "socket": _STANDARD,
    "ssl": _STANDARD,
    "select": _STANDARD,
    "selectors": _STANDARD,
    "subprocess": _STANDARD,
    "signal_handler": "signal.signal(number, handler)",
    "signal": "signal.signal(number, handler)",
    "fork": "os.fork()",
    "os": "os; os.read() of a pipe after io.wait_readable(fd)",
    "time": "time, under io.patch()",
    "thread": "threading, under locks.patch(threads=True)",
    "threading": "threading, under locks.patch(threads=True)",
    "util": _REPORT,
    "resolver": "nothing: look-ups run in a thread",
    "backdoor": "cpythonplus doctor PID: how-to look-into-a-live-process",
    "contextvars": "contextvars: each tasklet has a context",
    "version_info": "",
}
_GEVENT_NONE = {
    "Greenlet": "no base class: a function, or a class with run(); spawned: " + _SPAWN,
    "greenlet": "no base class: a function, or a class with run(); spawned: " + _SPAWN,
    "fileobject": "io.in_thread() for files",
    "baseserver": "io.StreamServer, with a semaphore in the handler",
    "events": "",
    "ares": "",
}
# eventlet has the same classes in modules, too.
_EVENTLET.update({name: _QUEUE.format(name) for name in _QUEUES})
_GEVENT.update({f"queue.{name}": _QUEUE.format(name) for name in _QUEUES})
for _name in (
    "spawn",
    "spawn_n",
    "spawn_after",
    "spawn_after_local",
    "sleep",
    "getcurrent",
    "kill",
):
    _EVENTLET[f"greenthread.{_name}"] = _EVENTLET[_name]
for _name in ("GreenPool", "GreenPile"):
    _EVENTLET[f"greenpool.{_name}"] = _EVENTLET[_name]
_TABLE = {
    f"{library}.{name}": Advice(kind, text)
    for library, kind, names in (
        ("eventlet", WRITE, _EVENTLET),
        ("eventlet", NONE, _EVENTLET_NONE),
        ("gevent", WRITE, _GEVENT),
        ("gevent", NONE, _GEVENT_NONE),
    )
    for name, text in names.items()
}
_TABLE["greenlet"] = Advice(STAYS, "greenlets run in tasklets, and a patch leaves them alone")
LIBRARIES = frozenset({"eventlet", "gevent", "greenlet"})


def advice(name: str) -> Advice:
    """Return what becomes of a dotted name; the longest part of it that is known decides."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        found = _TABLE.get(".".join(parts[:end]))
        if found is not None:
            return found
    return Advice(NONE, "not known here: see how-to from-gevent")
