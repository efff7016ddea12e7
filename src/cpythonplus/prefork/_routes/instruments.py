"""The numbers of this process as instruments of OpenTelemetry.

Each worker is a resource of its own there, so each reports its own numbers, and the reader of its
MeterProvider asks for them. Only the API is imported, and only on demand.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from cpythonplus.prefork._board.counts import TASK
from cpythonplus.prefork._routes.counting import Routes, labels

_S = 1e-9
_OF_ROUTE = (
    ("requests", "{request}", "Requests that have ended.", 1),
    ("gil_hold", "s", "Time with the GIL.", _S),
    ("gil_wait", "s", "Time spent waiting for the GIL.", _S),
    ("cpu", "s", "Processor time of threads.", _S),
    ("stalls", "{stall}", "Times that others were blocked for long.", 1),
    ("new_memory", "By", "Pages of memory touched or copied for the first time.", 1),
)
_OF_TASK = (("runs", "{run}", "Runs that have ended.", 1), *_OF_ROUTE[1:])


def make_instruments(
    routes: Routes,
    waits: Callable[[], tuple[int, int]],
    stalls: Callable[[], Iterable[tuple[str, str, int, int]]],
) -> None:
    """Make the instruments; ImportError without opentelemetry-api.

    Those of routes are named `cpythonplus.route.*`; `cpythonplus.task.*` if `routes` has tasks.

    waits: returns the number of waits for the GIL, and their ns. stalls: kind, line, number and ns
    of those so far.
    """
    otel: Any = import_module("opentelemetry.metrics")
    meter, observed = otel.get_meter("cpythonplus"), otel.Observation

    def counter(name: str, unit: str, text: str, read: Callable[[], Iterable[Any]]) -> None:
        meter.create_observable_counter(
            f"cpythonplus.{name}", callbacks=[lambda _: read()], unit=unit, description=text
        )

    for place, (name, unit, text, scale) in enumerate(_OF_TASK if routes.tasks else _OF_ROUTE):
        counter(
            f"task.{name}" if routes.tasks else f"route.{name}",
            unit,
            f"{text} Of each task." if routes.tasks else f"{text} Of the requests of each route.",
            lambda place=place, scale=scale: [  # type: ignore[misc]
                observed(row[place] * scale, _attributes(each))
                for each, row in list(routes.rows.items())
            ],
        )
    counter("gil.waits", "{wait}", "Waits for the GIL.", lambda: [observed(waits()[0])])
    counter("gil.wait", "s", "Time spent waiting for it.", lambda: [observed(waits()[1] * _S)])
    for name, unit, text, place, scale in (
        ("stalls", "{stall}", "Times that a line blocked others for long.", 2, 1),
        ("stall", "s", "Time for which it did.", 3, _S),
    ):
        counter(
            name,
            unit,
            text,
            lambda place=place, scale=scale: [  # type: ignore[misc]
                observed(each[place] * scale, {"kind": each[0], "at": each[1]}) for each in stalls()
            ],
        )


def _attributes(name: str) -> dict[str, str]:
    method, route = labels(name)
    if method == TASK:
        return {"celery.task_name": route}
    return {"http.request.method": method, "http.route": route}
