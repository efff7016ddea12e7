"""A log handler that is added for each job."""

import io
import logging

from examples.leaks.service import serve

logger = logging.getLogger("jobs")  # LEAK __main__.logger.handlers


def tick(number: int) -> None:
    """Do a job that wants a log of its own."""
    handler = logging.StreamHandler(io.StringIO("x" * 500))
    handler.setFormatter(logging.Formatter(f"{number} %(message)s"))
    logger.addHandler(handler)


serve(tick)
