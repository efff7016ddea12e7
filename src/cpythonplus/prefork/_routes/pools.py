"""Functions that a request gives to a pool of threads belong to its route.

Sync endpoints of FastAPI and Starlette run in threads of anyio, sync views of an asynchronous
Django in an executor, as do functions given to `asyncio.to_thread` and `loop.run_in_executor`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any

from cpythonplus.prefork._routes.counting import Routes


def count_in_pools() -> None:
    """Change the two functions by which calls come into pools; once is enough.

    anyio is left alone if the program has not imported it.
    """
    if not hasattr(ThreadPoolExecutor.submit, "_of_routes"):
        _replace(ThreadPoolExecutor, "submit", 1)
    to_thread: Any = sys.modules.get("anyio.to_thread")
    if to_thread is not None and not hasattr(to_thread.run_sync, "_of_routes"):
        _replace(to_thread, "run_sync", 0)


def _replace(home: Any, name: str, place: int) -> None:  # noqa: ANN401  # a class or a module
    """Count the function that is argument `place` of the function `name` of `home`."""
    inner = getattr(home, name)

    @wraps(inner)
    def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        request = Routes.current.get()
        if request is None or len(args) <= place:
            return inner(*args, **kwargs)
        call = partial(request.call, args[place])
        return inner(*args[:place], call, *args[place + 1 :], **kwargs)

    counted._of_routes = True  # type: ignore[attr-defined]  # noqa: SLF001
    setattr(home, name, counted)
