"""uWSGI: ``import = cpythonplus.prefork.uwsgi`` in its configuration.

uWSGI forks in C and calls no Python code before, so the master is prepared when this module is
imported.  ``import =`` comes before the application: the module that `module` or `wsgi` names is
imported here first, and uWSGI finds it loaded.  A `wsgi-file` cannot be loaded from here; there the
last line of that file imports this module instead.

Rejected: `py-call-uwsgi-fork-hooks`, with which the master calls the hooks of `os.register_at_fork`
before each fork.  By then uWSGI has made the tuples in which it passes requests to the application.
It writes into them, which CPython allows only for a tuple with one reference, not for an immortal
one.

In the workers: uWSGI's post-fork hook.  Their end is uWSGI's own, with its status; it finalises the
interpreter; after `prefork.child` that leaves the heap as it is.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import uwsgi  # type: ignore[import-untyped,unused-ignore]  # inside of uWSGI only

from cpythonplus._base.switch import skipped
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._fork.forking import child
from cpythonplus.prefork._guarding import in_one_line
from cpythonplus.prefork._options import log, read

__all__: list[str] = []

_MODULE_OPTIONS = ("module", "wsgi")
_TURNS = ("async", "ugreen", "greenlet", "asyncio", "tornado")


def _option(name: str) -> str | None:
    """Return an option's value; uWSGI has bytes, True for a flag, a list for a repeated option."""
    value = uwsgi.opt.get(name)
    if isinstance(value, list):
        value = value[-1] if value else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return None if value is None else str(value)


def _install(process: Engine) -> None:
    """Hook in, and prepare."""
    if uwsgi.worker_id() > 0:
        # Loaded in a worker: no memory is shared, nor could the workers take turns.
        if uwsgi.worker_id() == 1:
            log.warning(
                "with lazy-apps each worker loads the application for itself: nothing is shared"
            )
        _end_lightly(process)
        process.activate()
        return
    _add_post_fork_hook(lambda: _start_worker(process))
    if process.options.max_private_memory or process.options.metrics:
        _chain("after_req_hook", lambda: _after_request(process))
    process.note_open()
    application = _load_application(process)
    process.note_opened("the application while it was loaded")
    report = process.before_fork(application)
    if report is not None:
        print(f"cpythonplus prefork: {report}", file=sys.stderr, flush=True)  # noqa: T201


def _load_application(process: Engine) -> object:
    """Import the application's module, which uWSGI would import next, or log how to name it.

    Returns the application, None if it is unknown.
    """
    for name in _MODULE_OPTIONS:
        text = _option(name)
        if text:
            module, _, attribute = text.partition(":")
            try:
                found = import_module(module)
            except Exception as error:  # noqa: BLE001  # uWSGI will meet it too, and print it whole
                log.warning("%s %s: %s", name, text, in_one_line(error))
                return None
            return _counted(process, found, attribute or _option("callable") or "application")
    # uWSGI gives such a name to a file that it is loading, which imports this module.
    files = [module for name, module in sys.modules.items() if name.startswith("uwsgi_file_")]
    if not files:
        log.warning(
            "no 'module' is set: import cpythonplus.prefork.uwsgi in the application's last line"
        )
        return None
    _counted(process, files[0], _option("callable") or "application")
    return None


def _counted(process: Engine, module: object, name: str) -> object:
    """Return the application of a module, and let uWSGI find one whose requests are counted."""
    application = getattr(module, name, None)
    others = [option for option in _TURNS if _option(option)]
    if process.options.metrics is None:
        return application
    if application is None:
        log.warning("no metrics by route: there is no %s before the fork", name)
        return None
    if _option("gevent"):
        from cpythonplus.prefork._routes.greenlets import Greenlets

        greenlets = Greenlets(process.begin_routes())
        _add_post_fork_hook(greenlets.watch)
        counted = greenlets.around(application)
    elif others:
        log.warning("no metrics by route: requests take turns in a thread (%s)", others[0])
        return application
    else:
        counted = process.begin_routes().around(application, asgi=False)
    setattr(module, name, counted)
    return application


def _end_lightly(process: Engine) -> None:
    if process.options.fast_exit:
        child()


def _start_worker(process: Engine) -> None:
    if os.getpid() != process.pid:  # without a master process the first worker is not forked
        _let_signals_end()
        _end_lightly(process)
    process.start_worker()


def _let_signals_end() -> None:
    """Make a worker that is stopped during its start end at once.

    Until a worker is ready, a moment later in stock uWSGI, these signals are ignored, or SIGINT
    raises a KeyboardInterrupt that uWSGI clears.  The master asks once, and kills a minute later.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in {signal.SIG_IGN, signal.default_int_handler}:
            with suppress(ValueError):  # not the main thread: it may not set handlers
                signal.signal(number, signal.SIG_DFL)


def _after_request(process: Engine) -> None:
    process.count_request()
    if process.is_due():
        # The worker sends itself SIGHUP: it ends after this request, and the master replaces it.
        os.kill(os.getpid(), signal.SIGHUP)


def _add_post_fork_hook(hook: Callable[[], None]) -> None:
    try:
        # Official, but it refuses to be imported without a master process.
        postfork: Any = import_module("uwsgidecorators").postfork
    except Exception:  # noqa: BLE001  # its exception is of class Exception
        _chain("post_fork_hook", hook)
    else:
        postfork(hook)


def _chain(name: str, hook: Callable[[], None]) -> None:
    """Make `hook` uWSGI's hook of that name, after the present one."""
    earlier: Callable[[], object] | None = getattr(uwsgi, name, None)

    def both() -> None:
        if earlier is not None:
            earlier()
        hook()

    setattr(uwsgi, name, both)


if not skipped(__name__):
    _install(Engine(read("uWSGI")))
