"""For `set_forkserver_preload`, as the last module: prepares the fork server.

Importing it is enough.  The modules preloaded before this one are prepared while the client still
works, and the heap once more before a fork if it has grown since: this module need not be the last
one.  Errors are logged, not raised: an exception here would end the fork server.
"""

import json
import os

from cpythonplus._base.switch import skipped
from cpythonplus.prefork._engine import Engine
from cpythonplus.prefork._fork.forking import watch
from cpythonplus.prefork._options import read
from cpythonplus.prefork.multiprocessing._installing import HANDED

__all__: list[str] = []

if not skipped(__name__):
    _fork_server = Engine(read("multiprocessing", json.loads(os.environ.get(HANDED, "{}"))))
    _fork_server.before_fork()
    # The rest of the list is loaded by then.
    _fork_server.prepare_anew()
    watch(_fork_server, "multiprocessing")
