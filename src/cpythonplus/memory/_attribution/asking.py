"""`memory.attributed()`: measures once more, and only then imports the code of the report."""

from importlib import import_module

from cpythonplus.memory._attribution.recording import recorder

TYPE_CHECKING = False  # as in typing, whose import would weigh in the memory that is measured
if TYPE_CHECKING:
    from cpythonplus.memory._attribution.model import Attributed


def attributed(*, collect: bool = True) -> "Attributed":
    """Return the growth of this process by the tasks and routes that `attribute` has seen.

    collect: run the garbage collector first, as `gc.collect()` does, so that cyclic garbage counts
    as freed. If false, nothing in the process changes, and garbage counts as growth. The same holds
    if a signal's handler or a finalizer asks in the middle of a measurement.

    Raises LookupError if nothing has been attributed.
    """
    home = recorder(make=False)
    collected = collect and home.finish()
    made: Attributed = import_module("cpythonplus.memory._attribution.reporting").reported(
        home, collected=collected
    )
    return made


def attributed_now() -> "Attributed":
    """Return `attributed` for a doctor in another process, without a collection."""
    return attributed(collect=False)
