"""Where the table is seen: text, page, JSON, the doctor's report; the example and the benchmark."""

import gc
import json

import pytest

from cpythonplus import memory
from cpythonplus._doctor.questions import asked, taken
from cpythonplus._doctor.report.page import page
from cpythonplus._doctor.report.text import report_text
from cpythonplus.memory._attribution import recording
from tests.memory.attribution.attributing import each_call, growing
from tests.support import SANITIZED, run_child

__all__ = ["each_call"]

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.usefixtures("each_call"),
    pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's"),
]

WAYS = ("run", "pid", "watch")


def leak(times: int) -> list[str]:
    kept = []
    for number in range(times):
        with memory.attribute("checkout"):
            kept.append(f"{number:>1000}")
        with memory.attribute("</script>"):
            pass
    return kept


def test_it_is_a_part_of_reports_once_it_is_used() -> None:
    kept = leak(200)
    assert all("attributed" in asked(way) for way in WAYS)
    found = {"attributed": json.loads(json.dumps(taken("attributed")))}
    assert found["attributed"]["rows"][0]["name"] == "checkout"
    assert not found["attributed"]["collected"]
    for shown in (report_text(found), page(found)):
        assert "Which task or route it came with" in shown
        assert "checkout" in shown
        assert "grows" in shown
        assert "garbage that waits" in shown
    assert "</script>" not in page({**found, "target": {}}).split("<main>")[1].split("<script>")[0]
    assert len(kept) == 200


def test_nothing_that_a_doctor_asks_for_changes_anything() -> None:
    kept = leak(100)
    home = recording.recorder()
    before = (home.meter.marks, list(home.last), gc.get_stats())
    assert memory.attributed(collect=False).rows
    assert before == (home.meter.marks, list(home.last), gc.get_stats())
    assert kept


def test_it_is_not_asked_for_where_it_is_not_used() -> None:
    run_child(
        """
        from cpythonplus._doctor.questions import asked, taken

        assert "attributed" not in asked("pid")
        try:
            taken("attributed")
        except LookupError as error:
            assert "nothing has been attributed" in str(error)
        else:
            raise AssertionError
        """
    )


@pytest.mark.parametrize("rows", [5, [5], [{}], [{"name": 5, "finding": "odd", "alone": "x"}]])
def test_a_report_of_another_version_is_read(rows: object) -> None:
    found = {"attributed": {"rows": rows, "calls": "many", "malloc": False}}
    assert "Which task or route" in report_text(found)


def test_the_findings_of_the_whole_are_the_same_in_json() -> None:
    kept = leak(200)
    found = memory.attributed()
    assert growing(found) == ["checkout"]
    assert json.loads(json.dumps(found.as_json()))["rows"][0]["finding"] == "grows"
    assert str(found) == found.text()
    assert kept


def test_the_example_names_the_route_that_leaks() -> None:
    said = run_child(
        "import runpy, sys; sys.argv[1:] = ['6000']\n"
        "runpy.run_module('examples.which_route', run_name='__main__')",
        env={"PYTHONPATH": "."},
        timeout=120,
    )
    rows = [line for line in said.out.splitlines() if "GET /" in line]
    assert len(rows) == 3, said.out
    assert "GET /orders/*" in rows[0], said.out
    assert rows[0].endswith("grows"), said.out
    assert not any(row.endswith("grows") for row in rows[1:]), said.out


def test_the_benchmark_measures() -> None:
    said = run_child(
        "from benchmarks.memory.attributing import main; main(['--quick'])",
        env={"PYTHONPATH": "."},
    )
    assert said.out.count("|\n") == 7, said.out
