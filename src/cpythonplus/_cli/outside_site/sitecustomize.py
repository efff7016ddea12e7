"""Replaces `cpythonplus.pth` if that is not read: see `set_search_path` in commands/run.py.

Every Python that the program starts finds this in its PYTHONPATH, whatever its version, so it is
written for all versions, and the folder holds nothing else that could be imported.
"""

# Old versions have no pathlib.
# ruff: noqa: INP001, PTH100, PTH120

import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if entry != _folder]

if sys.version_info >= (3, 11) and "CPYTHONPLUS_RUN" in os.environ:
    # At the end: files beside cpythonplus must not come before the standard library.
    _packages = os.path.dirname(os.path.dirname(os.path.dirname(_folder)))
    sys.path.append(_packages)
    try:
        from cpythonplus._cli import startup

        startup.activate()
    finally:
        # Not remove(): the user's own PYTHONPATH may have the folder further up.
        del sys.path[-1]
    if "CPYTHONPLUS_RUN" not in os.environ:
        # --no-children: no other process needs the folder.
        _rest = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        _rest = [entry for entry in _rest if entry != _folder]
        if _rest:
            os.environ["PYTHONPATH"] = os.pathsep.join(_rest)
        else:
            os.environ.pop("PYTHONPATH", None)

# The user's own, if there is one. If there is none, this raises the ImportError that `site`
# expects; `site` reports any other exception, as without us. Python 2 clears a module's names when
# it is dropped, so keep it alive there; elsewhere that would be cyclic garbage.
_self = sys.modules.pop("sitecustomize", None)
if sys.version_info >= (3, 11):  # noqa: UP036
    del _self
import sitecustomize  # type: ignore[import-not-found,unused-ignore]  # noqa: E402, F401
