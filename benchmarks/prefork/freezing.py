"""The same settings with the hook that services write for themselves: freeze before the fork."""

import gc

from benchmarks.prefork.configuration import *  # noqa: F403

_frozen = False


def pre_fork(_server: object, _worker: object) -> None:
    """Take what is loaded out of the collector's sight, before the first worker is made."""
    global _frozen  # noqa: PLW0603
    # Not by gc.get_freeze_count(): 3.12 has frozen objects from its start on.
    if not _frozen:
        gc.collect()
        gc.freeze()
        _frozen = True
