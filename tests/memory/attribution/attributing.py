"""What tests of attribution share."""

import gc
from collections.abc import Callable, Iterator

import pytest

from cpythonplus import memory
from cpythonplus.memory import Attributed, AttributedRow
from cpythonplus.memory._attribution import measuring
from cpythonplus.memory._attribution.recording import Recorder


def rows(report: Attributed) -> dict[str, AttributedRow]:
    return {row.name: row for row in report.rows}


def findings(report: Attributed) -> dict[str, str]:
    return {row.name: row.finding for row in report.rows}


def growing(report: Attributed) -> list[str]:
    return [row.name for row in report.rows if row.finding == "grows"]


@pytest.fixture
def each_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin anew, and measure whenever a call is alone, whatever that costs."""
    gc.collect()  # what other tests have left would be freed by the report
    memory.attribute.configure()
    monkeypatch.setattr(Recorder, "_later", lambda _: None)
    monkeypatch.setattr(measuring, "_TOO_LONG_NS", 1 << 60)  # beside other load malloc is slow, too
    yield
    memory.attribute.configure()


def repeat(times: int, *functions: Callable[[int], object]) -> None:
    for number in range(times):
        for function in functions:
            function(number)
