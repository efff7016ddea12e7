"""A plugin for pytest that ends a run in which not what was asked for is enabled.

It lies in each environment as `cpythonplus_compat.py` and is loaded by `-p`, in pytest-xdist's
workers too.  The test that is running is written into a file, so that a crash or a hang has a name.
"""

import os
import sys

import pytest

_SIDE = os.environ["CPYTHONPLUS_COMPAT_SIDE"]
_RUNNING = os.environ["CPYTHONPLUS_COMPAT_RUNNING"]

_RUN = {"cpythonplus.gil": "active", "cpythonplus.threads": "patched"}
_TASKLETS = {"cpythonplus.tasklets.locks": "patched", "cpythonplus.tasklets.io": "patched"}
_WANTED = {"plus": set(_RUN), "tasklets": set(_TASKLETS)}


def _complaint() -> str:
    """Return what is wrong with this process, or an empty text."""
    enabled = {
        name
        for name, asked in (_RUN | _TASKLETS).items()
        if name in sys.modules and getattr(sys.modules[name], asked)()
    }
    if _SIDE == "gevent" and not sys.modules["gevent.monkey"].is_module_patched("socket"):
        return "gevent has patched nothing"
    wanted = _WANTED.get(_SIDE, set())
    if enabled - wanted:
        return f"cpythonplus is enabled: {', '.join(sorted(enabled))}"
    return "" if enabled == wanted else "cpythonplus is not enabled"


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test anything else than what was asked for."""
    complaint = _complaint()
    if _SIDE == "no-cycles" and not config.pluginmanager.hasplugin("cpythonplus"):
        complaint = "the plugin of cpythonplus is not loaded"
    if complaint:
        pytest.exit(f"compat: {_SIDE}: {complaint} in {sys.argv[0]}", returncode=99)
    exec(os.environ.get("CPYTHONPLUS_COMPAT_BEFORE", ""))  # noqa: S102  # from our own list


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note what begins."""
    with open(_RUNNING, "w", encoding="utf-8") as file:  # noqa: PTH123  # also before pathlib works
        file.write(nodeid)
