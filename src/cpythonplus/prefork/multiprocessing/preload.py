"""For `set_forkserver_preload`, as the last module: prepares the fork server.

Importing it is all there is to it.  What was preloaded in front of this module is prepared while
the client still works, and once more before a fork when the heap has grown since: it need not be
the last one.  Whatever goes wrong is told, not raised: an exception here would end the fork server.
"""

import os
from multiprocessing.util import register_after_fork

from cpythonplus.prefork.preparing import Budget
from cpythonplus.prefork.servers import PREFIX, Parent, Settings

__all__: list[str] = []

# Computing processes have no use for a scheduled GIL and other locks unless somebody says so.
_off_unless_set = {name: os.environ.get(PREFIX + name.upper(), "off") for name in ("gil", "locks")}
_fork_server = Parent(Settings.read(_off_unless_set))


def _before_fork() -> None:
    # The fork server makes no other forks than those that it is there for; its children may.
    if os.getpid() == _fork_server.pid:
        _fork_server.before_fork()


_before_fork()
# The first fork has one of its own: the rest of the list is loaded by then.
_fork_server.budget = Budget(_fork_server.settings.again_bytes)
os.register_at_fork(before=_before_fork)
register_after_fork(_fork_server, Parent.start_worker)
