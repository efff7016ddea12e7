"""For a gunicorn configuration file: `from cpythonplus.prefork.gunicorn import *`.

That line loads the application in the master, prepares the memory before the workers are forked,
and has them end fast.  It defines `preload_app` and `control_socket_disable`, and no hooks: those
of the file are called as ever, ours beside them.  It takes effect when gunicorn starts, not on HUP.

What else there is, is chosen by calling `configure`, which the same line brings.

Importing this module puts the native locks and queues in the place of those of `threading`, before
the application is imported; `configure(threads=False)` takes that back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus.base.errors import UnsupportedPlatform
from cpythonplus.prefork.gunicorn_versions import require

try:
    require()
except UnsupportedPlatform as error:
    # gunicorn shows any other exception of a configuration file with its traceback.
    raise SystemExit(f"cpythonplus.prefork.gunicorn: {error}") from None

# ruff: noqa: E402  # other versions may lack what these import
from cpythonplus.prefork import warming
from cpythonplus.prefork.gunicorn_master import install
from cpythonplus.prefork.gunicorn_service import (
    SERVICE,
    Options,
    memory_limit,
    metrics_place,
    prepare_again_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["configure", "control_socket_disable", "preload_app"]

preload_app = True
# Its thread runs in the master while it forks, and can hold a lock for ever then.
control_socket_disable = True


def configure(
    *,
    max_private_memory: str | int | None = None,
    warm_up: Iterable[str | Callable[[], object]] = (),
    metrics: str | None = None,
    prepare_again: str | int = 0,
    immortal: bool = True,
    fill_pools: bool = True,
    fast_exit: bool = True,
    gil: bool = True,
    threads: bool = True,
) -> None:
    """Choose what the server does beside sharing its memory.

    max_private_memory: a worker above it is replaced, one at a time: bytes, or "300M".
    warm_up: what the master does before the fork: paths (`/`), which are asked for through the
        application's own interface, callables, or "package.module:callable".
    metrics: a path at which the workers answer ("/metrics"), or an address ("127.0.0.1:9100").
    prepare_again: how much of what the master gets after the first fork may become immortal too:
        bytes, or "100M".  0: it is prepared once.
    immortal, fill_pools: see `prefork.prepare`.  fast_exit: see `prefork.fast_exit`.
    gil: schedule the workers' GIL.  threads: use the native locks and queues.

    Raises ValueError for a size, warm-up or place that is none.
    """
    entries = [warm_up] if isinstance(warm_up, str) else warm_up
    SERVICE.options = Options(
        max_private_memory=memory_limit(max_private_memory),
        warm_up=tuple(warming.check(entry) for entry in entries),
        metrics=metrics_place(metrics),
        prepare_again=prepare_again_size(prepare_again),
        immortal=immortal,
        fill_pools=fill_pools,
        fast_exit=fast_exit,
        gil=gil,
        threads=threads,
    )
    SERVICE.patch_threads()


install()
SERVICE.patch_threads()
