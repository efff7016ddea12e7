"""README's measured tables beside that of giltest: of the other suites."""

from pathlib import Path

import pytest

from benchmarks.common.results import Report
from benchmarks.scenarios import cases_of
from tests.benchmarks import canned
from tools import readme_table

THREADS, TESTSERVER, PREFORK, TASKLETS, TASKLET_IO, MEMORY, DOCTOR, _SITES = readme_table.BLOCKS[1:]
REQUESTS_BESIDE = {
    case.title
    for case in cases_of("giltest")
    if case.scenario == "requests" and case.alone and "connection" not in case.title
}
README = "".join(f"{block.begin}\nold\n{block.end}\ntext\n" for block in readme_table.BLOCKS)


def written(folder: Path, benchmark: str, python: str, part: str = "") -> Report:
    report = canned.report(benchmark)
    report.machine["python"] = f"CPython {python}"
    prefix = "" if benchmark == "giltest" else f"{part or benchmark}-"
    report.write_json(folder / f"{prefix}{python}.json")
    return report


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of all tables, by the first of them."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in lines}


def test_the_tables_are_up_to_date() -> None:
    text = readme_table.README.read_text("utf-8")
    assert readme_table.updated(text, readme_table.RESULTS) == text, (
        "run: python tools/readme_table.py"
    )


def test_the_explanation_s_table_is_up_to_date() -> None:
    text = readme_table.EXPLANATION.read_text("utf-8")
    assert readme_table.explained(text, readme_table.RESULTS) == text, (
        "run: python tools/readme_table.py"
    )


def test_the_chart_is_up_to_date() -> None:
    drawn = readme_table.CHART.read_text("utf-8")
    assert readme_table.charted(drawn, readme_table.RESULTS) == drawn, (
        "run: python tools/readme_table.py"
    )


def test_the_chart_is_of_the_newest_version_with_requests(tmp_path: Path) -> None:
    assert readme_table.charted("as it was", tmp_path) == "as it was"
    for python in ("3.9.9", "3.13.0"):
        written(tmp_path, "giltest", python)
    drawn = readme_table.charted("", tmp_path)
    assert "CPython 3.13.0" in drawn
    # Two sides' marks and the one of what it takes alone, and those of the legend.
    shown = {case for case in REQUESTS_BESIDE if f">{case}<" in drawn}
    assert shown == REQUESTS_BESIDE
    assert drawn.count("<circle") == 3 * (len(shown) + 1)


def test_each_benchmark_has_its_own_files_and_marks(tmp_path: Path) -> None:
    suites = ("giltest", "threads", "testserver", "prefork", "tasklets", "tasklet-io")
    for benchmark in (*suites, "memory", "sites"):
        written(tmp_path, benchmark, "3.13.0")
    written(tmp_path, "memory", "3.13.0", "doctor")
    assert [len(block.reports(tmp_path)) for block in readme_table.BLOCKS] == [1] * 9
    text = readme_table.updated(README, tmp_path)
    giltest, threads, testserver, prefork, tasklets, io, *others = text.split("text\n")
    memory, doctor, sites, _ = others
    assert "echo beside" in giltest
    assert "Queue hand-over" in threads
    assert "echo beside" not in threads
    assert "requests/s" in testserver
    assert "page faults" in prefork
    assert "greenlet" in tasklets
    assert "uvloop" in io
    assert "pytest --no-cycles" in memory
    assert "pytest --no-cycles" in doctor
    assert "≥ 2 x ssh" in sites
    assert "80 ms, tuned, Mbit/s" in sites
    assert "\nold\n" not in text
    assert readme_table.updated(text, tmp_path) == text


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    written(tmp_path, "giltest", "3.13.0")
    text = readme_table.updated(README, tmp_path)
    assert text.count(readme_table.NOT_MEASURED) == 8
    with pytest.raises(readme_table.TableError, match="threads:begin"):
        readme_table.updated(README.replace(THREADS.begin, ""), tmp_path)


def test_a_result_under_another_name_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "giltest", "3.13.0")
    (tmp_path / "3.13.0.json").rename(tmp_path / "threads-3.13.json")
    with pytest.raises(
        readme_table.TableError, match=r"threads-3\.13\.json is a result of giltest, not of threads"
    ):
        readme_table.updated(README, tmp_path)


def test_threads_has_a_row_for_each_target_and_each_package(tmp_path: Path) -> None:
    for python in ("3.13.0", "3.14.1"):
        written(tmp_path, "threads", python)
    text = THREADS.text(THREADS.reports(tmp_path))
    found = rows(text)
    assert text.startswith("| stock → plus | 3.13.0 | 3.14.1 | target | reached |")
    assert [cells for name, cells in found.items() if name.startswith("with lock:, ns")]
    older, newer = (
        cells
        for line in text.splitlines()
        if (cells := line.strip("| ").split(" | "))[0] == "Queue stream, 1 to 1, items/s"
    )
    assert older[2] == newer[1] == "-"
    assert older[3:] == ["≥ 10 x stock before 3.14", "not on 3.13.0"]
    assert newer[3:] == ["≥ 4 x stock from 3.14 on", "not on 3.14.1"]
    idle = found["32 threads wait, CPU ms in 10 s"]
    assert idle[2:] == ["≤ 0.05 s more in 10 s, or 10%", "yes"]
    # No target, but shown.
    assert found["event.is_set(), ns"][0].count("→") == 1
    assert found["Queue hand-over, culsans, round trips/s"][0].endswith("(0.500 x)")
    assert found["with rlock:, fastrlock, ns"][0].endswith("(0.500 x)")


def test_giltest_has_one_row_for_a_case_with_several_targets(tmp_path: Path) -> None:
    report = written(tmp_path, "giltest", "3.13.0")
    (block, *_) = readme_table.BLOCKS
    text = block.text(block.reports(tmp_path))
    found = rows(text)
    assert "| p50 / p99, ms, stock → plus | 3.13.0 | target | reached |" in text
    assert found["5 ms requests beside no CPU threads"] == ["1.00 / 8.00 → 0.900 / 2.00"]
    wanted = "p50 ≤ 1.15 x alone, p99 ≤ 1.3 x alone, kept ≥ 0.95"
    assert found["5 ms requests beside 8 CPU threads"] == [
        "1.00 / 8.00 → 0.900 / 2.00",
        wanted,
        "yes",
    ]
    assert "| CPU / wall, ms, stock → plus | 3.13.0 | target | reached |" in text
    crowds = [case for case in report.cases if case.scenario == "crowds"]
    assert all(found[case.title][1].startswith("≤ 1.5 x stock, wall ms ≤") for case in crowds)


def test_testserver_has_rates_and_p99(tmp_path: Path) -> None:
    report = written(tmp_path, "testserver", "3.13.0")
    found = rows(TESTSERVER.text(TESTSERVER.reports(tmp_path)))
    title = "Flask, gunicorn gthread, 50 connections"
    assert found[f"{title}, requests/s"][1] == "≥ 1.1 x stock"
    assert found[f"{title}, p99, ms"] == ["8.00 → 2.00 (0.250 x)"]
    headings = 2  # the second table's replace those of the first
    assert len(found) == 2 * len(report.cases) + headings


def test_a_slim_result_gives_the_same_tables(tmp_path: Path) -> None:
    for benchmark in ("threads", "testserver"):
        written(tmp_path, benchmark, "3.13.0")
    written(tmp_path, "giltest", "3.13.0")
    before = readme_table.updated(README, tmp_path)
    for path in tmp_path.iterdir():
        readme_table.slim(path)
    assert readme_table.updated(README, tmp_path) == before


def test_prefork_has_a_row_for_each_target_and_the_peer(tmp_path: Path) -> None:
    written(tmp_path, "prefork", "3.13.0")
    found = rows(PREFORK.text(PREFORK.reports(tmp_path)))
    assert any("private a worker" in name for name in found)
    assert any("seconds until the last process has ended" in name for name in found)
    assert "stock → gc.freeze before the fork" in found


def test_tasklets_has_a_row_for_each_target_and_a_column_for_each_side(tmp_path: Path) -> None:
    for python in ("3.12.1", "3.13.0"):
        written(tmp_path, "tasklets", python)
    text = TASKLETS.text(TASKLETS.reports(tmp_path))
    found = rows(text)
    assert text.startswith("| tasklets | 3.12.1 | 3.13.0 | target | reached |")
    # What canned results have: 810 ns on the own side, 450 on all beyond the second.
    trip = "Channel round trip, 2 transfers"
    assert found[f"{trip}, to go"] == ["1.800 x"] * 2 + ["≤ 0.5 x go", "not on 3.12.1, 3.13.0"]
    assert found[f"{trip}, gevent to it"][2] == "≥ 20 x faster than gevent"
    assert "on 3.13.0 | tasklets | greenlet | gevent | asyncio | go | threads" in text
    assert found[f"{trip}, ns"] == ["810", "801", "450", "450", "450", "450"]
    assert found["Switch, both 50 C frames deep, ns"][3:5] == ["-", "-"]
    assert "A parked one, cold, KB" in found


def test_tasklet_io_has_a_table_for_each_scenario(tmp_path: Path) -> None:
    for python in ("3.12.1", "3.13.0"):
        written(tmp_path, "tasklet-io", python)
    text = TASKLET_IO.text(TASKLET_IO.reports(tmp_path))
    found = rows(text)
    assert text.startswith("| tasklets | 3.12.1 | 3.13.0 | target | reached |")
    # As above; of per CPU s canned results have a number more for each figure before it.
    many = "Echo, many connections"
    assert found[f"{many}, to uvloop"][2:] == ["≥ 0.8 x uvloop", "yes"]
    assert found[f"{many}, requests per CPU second, to gevent"][2] == "per CPU s ≥ 1.5 x gevent"
    assert "| on 3.13.0 | tasklets | gevent | uvloop | asyncio | streams | threads |" in text
    assert "| on 3.13.0 | tasklets | scheduled | queue.Queue | SimpleQueue |" in text
    assert "| on 3.13.0 | tasklets | gevent | threads |" in text
    assert found[f"{many}, p99, ms"][0] == "8.00"
    assert "Connect, one request, close, to gevent" not in found


def test_memory_has_a_row_for_each_target_and_a_column_for_each_side(tmp_path: Path) -> None:
    written(tmp_path, "memory", "3.13.0")
    text = MEMORY.text(MEMORY.reports(tmp_path))
    found = rows(text)
    assert text.startswith("| measured | 3.13.0 | target | reached |")
    assert found["Flask test client, requests that fail, to gc-off"][1] == "≤ 1.15 x gc-off"
    assert "| cpythonplus lint, 5,000 modules, s | 1,193 | ≤ 10 s | not on 3.13.0 |" in text
    assert "| on 3.13.0 | stock | plus | peer | gc-off | watch | jemalloc |" in text


def test_what_a_target_s_figure_is_stands_beside_its_case(tmp_path: Path) -> None:
    written(tmp_path, "memory", "3.13.0", "doctor")
    targets, _ = DOCTOR.text(DOCTOR.reports(tmp_path)).split("\n\n", 1)
    found = rows(targets)
    assert (
        found["census of 1 million objects, pause to gc.collect()"][1]
        == "pause to gc.collect() ≤ 1"
    )
    name = "strings deleted, one block behind them, % given back"
    assert {name, f"{name} (jemalloc)"} <= found.keys()
