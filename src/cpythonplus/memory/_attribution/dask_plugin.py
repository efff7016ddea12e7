"""The plugin of a dask worker; imported only if dask is."""

from typing import Any

from dask.utils import key_split
from distributed import WorkerPlugin

from cpythonplus.memory._attribution.recording import Span, recorder


class Attribution(WorkerPlugin):
    """Begins and ends spans, in the thread of the worker's event loop."""

    name = "cpythonplus-attribution"

    def __init__(self) -> None:
        self._open: dict[object, Span] = {}
        self._worker: Any = None

    def setup(self, worker: Any) -> None:  # noqa: ANN401
        """Exclude results that the worker holds from each measurement."""
        self._worker = worker
        recorder().meter.managed = self._managed

    def teardown(self, worker: Any) -> None:  # noqa: ANN401, ARG002
        """End the open spans."""
        self._worker = None
        recorder().meter.managed = None
        for span in self._open.values():
            span.end()
        self._open.clear()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:  # noqa: ANN401
        """Begin or end a task."""
        if finish == "executing" and key not in self._open:
            self._open[key] = Span(str(key_split(key)), nests=False)
        elif start == "executing":
            span = self._open.pop(key, None)
            if span is not None:
                span.end()

    def _managed(self) -> int:
        state = getattr(self._worker, "state", None)
        return int(getattr(state, "nbytes", 0))

    def __reduce__(self) -> tuple[type["Attribution"], tuple[()]]:
        """Send only the class to a worker."""
        return Attribution, ()
