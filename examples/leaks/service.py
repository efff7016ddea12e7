"""What the leaking services share: a loop that calls `tick` so many times a second."""

import os
import time
from collections.abc import Callable

SECONDS = float(os.environ.get("LEAK_SECONDS", "30"))


def serve(tick: Callable[[int], object], per_second: int = 400) -> None:
    """Call tick(number) until the time is over."""
    began = time.monotonic()
    number = 0
    while (now := time.monotonic()) < began + SECONDS:
        due = int((now - began) * per_second)
        while number < due:
            tick(number)
            number += 1
        time.sleep(0.005)
