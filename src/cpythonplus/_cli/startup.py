"""Runs in the interpreter that `cpythonplus run` started, before the program does.

`cpythonplus.pth` (or `outside_site/sitecustomize.py`) calls it while Python imports `site`, if
CPYTHONPLUS_RUN is set. An interpreter with -I or -E does not call it: these options ignore the
environment, and not only names that begin with PYTHON. `run` itself passes an option -X to call it
there; a process that controls only the environment cannot.

Each start of the program pays for every import here, and `site` would print an exception as several
lines. So little is imported, and nothing is raised.
"""

# Importing pathlib and contextlib would cost more than all of this.
# ruff: noqa: PTH120, PTH121, S110

import atexit
import os
import sys

from cpythonplus._base.switch import disabled, tell
from cpythonplus._cli.features import FEATURES, MARK, VARIABLE, Feature, Run, python_tag

HOME = os.path.dirname(os.path.dirname(__file__))
FAILED_STATUS = 2

_activated = False


def activate() -> None:
    """Switch on the features in CPYTHONPLUS_RUN, if it means this interpreter.

    In the process that `cpythonplus run` became, a failure ends the process: one line on standard
    error, status 2. In a child the failure is reported in one line, and the child goes on as stock
    Python: a program that works must not lose its workers. CPYTHONPLUS_DISABLE prevents all
    activation.
    """
    global _activated  # noqa: PLW0603
    take_mark()
    text = os.environ.get(VARIABLE)
    if text is None or _activated or not in_main_interpreter():
        return
    _activated = True
    try:
        if disabled():
            return
        run = Run.decode(text)
    except ValueError as error:
        # Not written by `run`: set by hand, or by another version for its own interpreters.
        tell(f"{VARIABLE} is ignored: {error}", "cpythonplus run")
        return
    if not is_meant(run):
        return
    if not run.children:
        del os.environ[VARIABLE]
    for feature in FEATURES:
        carried = run.features.get(feature.name)
        if carried is None:
            continue
        try:
            fields = {option.field: option for option in feature.options}
            values = {field: fields[field].decode(value) for field, value in carried.items()}
            feature.activate(values, run)
        except Exception as error:  # noqa: BLE001  # every failure is reported
            tell(explain(feature, error), feature.command)
            if os.getpid() == run.pid:
                # SystemExit would be a 'Fatal Python error' here. Nothing is buffered yet.
                os._exit(FAILED_STATUS)
    watch_the_end(run)


def take_mark() -> None:
    """Remove the option that `run` added from the command line that the program sees."""
    if sys._xoptions.pop(MARK, None) and sys.orig_argv[1:3] == ["-X", MARK]:  # noqa: SLF001
        del sys.orig_argv[1:3]


def watch_the_end(run: Run) -> None:
    """Report what may be wrong with this package when the program fails."""

    def at_exit() -> None:
        value = getattr(sys, "last_value", None)
        # Ctrl-C is no failure; and imports here could prevent the process from dying of it.
        if isinstance(value, Exception):
            _tell_late("uncaught", value, run.features)

    if run.features.keys() & {"gil", "threads"}:
        atexit.register(at_exit)


def _tell_late(module: str, *arguments: object) -> None:
    """Tell the line that `cpythonplus._cli.MODULE.line` returns, if any."""
    packages = os.path.dirname(HOME)
    added = packages not in sys.path  # the program may have changed it; a PEX file does
    if added:
        sys.path.append(packages)
    try:
        text = __import__(f"cpythonplus._cli.{module}", fromlist=["line"]).line(*arguments)
        if text is not None:
            from cpythonplus._cli import at_exit

            at_exit.write_to_stderr(" ".join(text.split()) + "\n")
    except Exception:  # noqa: BLE001  # the program may have changed anything that is used there
        pass
    finally:
        if added and packages in sys.path:
            sys.path.remove(packages)


def is_meant(run: Run) -> bool:
    """Whether this interpreter and this package are those of the runner."""
    if run.python != python_tag():
        return False
    try:
        if run.home == HOME or os.path.samefile(run.home, HOME):
            return True
    except OSError:
        pass
    if os.getpid() == run.pid:
        # There are two copies: `-m` found one in the current folder, and `site` the other.
        message = f"nothing is switched on: `run` is in {run.home}, and this process has {HOME}"
        tell(message, "cpythonplus run")
    return False


def in_main_interpreter() -> bool:
    """Return False in a sub-interpreter: `site` runs there too, but everything here is per process.

    The cheapest call that only works in the main interpreter (asking for the id would load an
    extension that has had three names since 3.11). At start-up no wake-up descriptor is set, so
    setting it to 'none' changes nothing.
    """
    import _signal  # type: ignore[import-not-found]  # built in and loaded; `signal` would cost 3 ms

    try:
        _signal.set_wakeup_fd(-1)
    except ValueError:
        return False
    return True


def explain(feature: Feature, error: Exception) -> str:
    """Return one line on why `feature` could not be activated, in the words of the command line."""
    message = str(error)
    # ValueError: an option's value; RuntimeError: UnsupportedPlatform. Others are unexpected.
    if not message or not isinstance(error, (ValueError, RuntimeError)):
        message = f"{type(error).__name__}: {message}"
    hint = f" ({feature.switch_off} runs the program without it)" if feature.by_default else ""
    return f"{feature.name}: {message}{hint}"
