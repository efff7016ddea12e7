"""Dask: a task is a span between two transitions on its worker."""

from typing import Any


def attribute_dask(client: Any) -> None:  # noqa: ANN401  # distributed.Client
    """Attribute the growth of dask's workers to the names of tasks, as in `sum` and `read-csv`.

    client: a `distributed.Client`. Workers that come later are attributed, too. Results that a
    worker keeps are left out, by the size that it knows of them. cpythonplus must be installed on
    the workers; `client.run(memory.attributed)` returns the findings of each. Raises ImportError
    without distributed.
    """
    from cpythonplus.memory._attribution.dask_plugin import Attribution

    client.register_plugin(Attribution())
