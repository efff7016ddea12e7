"""Exceptions of queues that the standard library of this version may lack."""

import sys

__all__ = ["ShutDown"]

if sys.version_info >= (3, 13):
    from queue import ShutDown
else:

    class ShutDown(Exception):  # noqa: N818  # its name since 3.13
        """Raised by ``put`` and ``get`` of a queue that has been shut down."""
