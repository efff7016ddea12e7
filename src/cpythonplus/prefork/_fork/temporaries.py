"""Deleting the temporary files that a process leaves behind when its heap is not torn down.

The file of a `tempfile.NamedTemporaryFile` is deleted when its object is dropped, at the latest
when the interpreter takes everything apart.  A light end does not do that, nor does a normal one
with immortal objects; so the files are deleted by name.

Only files that this process made are deleted: a forked child has its parent's objects too, and at a
normal end deletes files that the parent goes on using.  Such an object does not tell its maker, so
the pid is noted when it is made, once this module is imported.  Rejected: listing the existing
objects right after the fork.  On 3.11 that writes to every object, and a child that ends by
`fast_exit` need not have told us of its beginning.

Temporary directories are deleted by an exit function (`weakref.finalize`), also at the end of a
child, while its parent and the other children use them.  `disown` leaves those to their maker.
Other temporary files have no name.
"""

import atexit
import functools
import gc
import os
import sys
import tempfile
import weakref
from contextlib import suppress
from typing import Any

# The pid of each object's maker; read and written under the GIL, by one operation at a time.
_noted: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()


def delete_own() -> None:
    """Delete the files that this process would delete by name at a normal end; raises nothing.

    The files stay open: a thread that writes to one goes on writing to the deleted file.
    """
    pid = os.getpid()
    for closer, maker in list(_noted.items()):
        # close_called: until 3.11, cleanup_called: from 3.12 on, where a closed file may stay.
        is_done = getattr(closer, "cleanup_called", getattr(closer, "close_called", True))
        if maker != pid or is_done or not closer.delete:
            continue
        with suppress(OSError):
            os.unlink(closer.name)  # noqa: PTH108  # any kind of name


def disown() -> None:
    """Leave to the parent, in a child, what the child's exit functions would end; raises nothing.

    That is temporary directories, and daemonic processes of multiprocessing.
    """
    kind: Any = tempfile.TemporaryDirectory
    with suppress(AttributeError, RuntimeError):  # another version; a thread adds one meanwhile
        delete = kind._cleanup.__func__  # noqa: SLF001
        for each in weakref.finalize._registry.values():  # type: ignore[attr-defined]  # noqa: SLF001
            if getattr(each.func, "__func__", None) is delete:
                each.atexit = False
    with suppress(AttributeError, KeyError):
        sys.modules["multiprocessing.process"]._children.clear()  # noqa: SLF001


def _delete_at_end() -> None:
    # An immortal object is not dropped at a normal end either.
    if gc.get_freeze_count() > 0:
        delete_own()


# The earlier an exit function is registered, the later it runs: others may use the files.
atexit.register(_delete_at_end)


def _note_makers() -> None:
    kind: Any = getattr(tempfile, "_TemporaryFileCloser", None)
    if kind is None:
        return  # another version: its files stay, like those of a killed process
    original = kind.__init__

    @functools.wraps(original)
    def noting(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        original(self, *args, **kwargs)
        _noted[self] = os.getpid()

    kind.__init__ = noting


_note_makers()
