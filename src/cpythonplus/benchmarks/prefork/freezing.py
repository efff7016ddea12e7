"""The same settings with the hook that services write for themselves: freeze before the fork."""

import gc

from cpythonplus.benchmarks.prefork.configuration import *  # noqa: F403


def pre_fork(_server: object, _worker: object) -> None:
    """Take what is loaded out of the collector's sight, before the first worker is made."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
