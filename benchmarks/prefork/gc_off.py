"""The same settings with the garbage collector off in the workers, as services did in 2017."""

import gc

from benchmarks.prefork.configuration import *  # noqa: F403


def post_fork(_server: object, _worker: object) -> None:
    """Turn it off so that a library's `gc.enable()` does not bring it back."""
    gc.disable()
    gc.set_threshold(0)
