"""What a server cannot have by its nature, and why: the only place that says so.

Everything that is not listed is there for all: see `options.Options`.
"""

from collections.abc import Mapping

__all__ = ["OFF", "PATH", "SERVERS"]

PATH = " at a path"
"""Behind the name of an option: only a value that is a path of a web application."""

_ENDS_LIGHTLY = "its children end by os._exit in any case"
_NO_WEB = "there is no web application to ask"

SERVERS: Mapping[str, Mapping[str, str]] = {
    "gunicorn": {},
    "uWSGI": {
        "prepare_again": "uWSGI forks in C and asks nobody first: the master is prepared once",
        "metrics" + PATH: "uWSGI takes the application out of its module itself: give a port",
    },
    "celery": {
        "warm_up" + PATH: _NO_WEB,
        "metrics" + PATH: _NO_WEB,
        "fast_exit": _ENDS_LIGHTLY,
    },
    "RQ": {
        "warm_up" + PATH: _NO_WEB,
        "metrics": "a work horse lives for one job, and between two of them nobody could answer",
        "max_private_memory": "a work horse lives for one job",
        "fast_exit": _ENDS_LIGHTLY,
    },
    "multiprocessing": {
        "warm_up" + PATH: _NO_WEB,
        "metrics" + PATH: _NO_WEB,
        "max_private_memory": "a pool asks nobody between two tasks; it has maxtasksperchild",
        "fast_exit": _ENDS_LIGHTLY,
    },
    "os.fork": {
        "warm_up" + PATH: _NO_WEB,
        "metrics" + PATH: _NO_WEB,
        "max_private_memory": "only the program knows when a child of its own may end",
    },
}

OFF = {"multiprocessing": ("gil", "threads"), "os.fork": ("gil", "threads")}
"""What is off unless somebody asks for it: processes that compute have no use for it."""
