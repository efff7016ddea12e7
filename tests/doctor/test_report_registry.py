"""An examination that one line registers is a part of every report, whatever shows it."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cpythonplus import memory
from cpythonplus._doctor.agent.examining import examine
from cpythonplus._doctor.agent.watched import Watched
from cpythonplus._doctor.questions import EXAMINATIONS, asked, register, taken
from cpythonplus._doctor.report.labels import LABELS
from cpythonplus._doctor.report.live import screen
from cpythonplus._doctor.report.page import page
from cpythonplus._doctor.report.text import report_text

pytestmark = pytest.mark.any_version

FOUND = {"lost_bytes": 3 << 20, "rows": [{"name": "app.Cache", "size_bytes": 2 << 20}]}


class Here:
    """Asks this process, as a client asks another one through its socket."""

    process = type("Process", (), {"pid": 1})

    def ask(self, name: str) -> dict[str, object]:
        return taken(name) if name in ("hello", "made_up") else {"error": "not asked"}

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def made_up() -> Iterator[None]:
    register("made_up", "Made up for a test", lambda: FOUND)
    yield
    del EXAMINATIONS["made_up"]


def test_it_is_asked_for_everywhere() -> None:
    assert all("made_up" in asked(where) for where in ("run", "pid", "watch"))


def test_it_is_in_the_json_the_text_and_the_page() -> None:
    found = json.loads(json.dumps(examine(["made_up"])))
    assert found["made_up"] == FOUND
    for shown in (report_text(found), page(found)):
        assert all(said in shown for said in ("Made up for a test", "3 MiB", "app.Cache", "2 MiB"))


def test_it_is_on_the_live_screen() -> None:
    watched = Watched(Here())  # type: ignore[arg-type]
    watched.keep_target()
    watched.look()
    out = StringIO()
    Console(file=out, width=100).print(screen(watched.examination(), 5, 100))
    for said in ("Made up for a test", "3 MiB", "app.Cache", "2 MiB"):
        assert said in out.getvalue()


def test_only_the_report_words_sizes() -> None:
    """Beside the lines of cycles, which are for logs."""
    folder = Path(memory.__file__).parent
    files = {*folder.rglob("*.py")} - {folder / "_cycles" / "report.py"}
    assert len(files) > 50
    assert [each for each in files if "format_size(" in each.read_text()] == []


def test_each_part_of_memory_has_one_name() -> None:
    assert len({each.title for each in LABELS.values()}) == len(LABELS)
    assert {part.name for part in memory.resident().parts} <= LABELS.keys()
