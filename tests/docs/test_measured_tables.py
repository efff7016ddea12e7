"""The pages of docs/benchmarks: their tables, index and charts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.common.results import Report
from benchmarks.scenarios import cases_of
from tests.benchmarks import canned
from tools import benchmark_pages, results_page

GILTEST, THREADS, _, TESTSERVER, PREFORK, DEMO, TASKLETS = benchmark_pages.SUITES[:7]
PICKLING, TASKLET_IO, MEMORY, DOCTOR, GROWTH, RECORDS, SITES = benchmark_pages.SUITES[7:]
REQUESTS_BESIDE = {
    case.title
    for case in cases_of("giltest")
    if case.scenario == "requests" and case.alone and "connection" not in case.title
}


@pytest.fixture
def empty_pages(tmp_path: Path) -> Path:
    """A folder of pages with nothing between the marks."""
    folder = tmp_path / "pages"
    folder.mkdir()
    blocks = {"README.md": ["measured"]}
    for page in benchmark_pages.SUITES:
        blocks.setdefault(page.file, []).append(page.name if page.within else "measured")
    for file, names in blocks.items():
        marks = ["\nold\n".join(results_page.marks(name)) for name in names]
        (folder / file).write_text("\n".join(["head", *marks, "tail\n"]))
    return folder


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


def test_the_pages_are_up_to_date() -> None:
    made = benchmark_pages.made(results_page.RESULTS, benchmark_pages.PAGES)
    stale = [path.name for path, text in made.items() if path.read_text("utf-8") != text]
    assert stale == [], "run: make docs"


def test_readme_is_short_and_its_linked_numbers_stand_in_their_pages() -> None:
    """`[1,244 → 366 MiB](docs/benchmarks/prefork.md)`: both numbers are in that page's tables."""
    readme = (results_page.ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 150
    linked = re.findall(r"\[([^\]]*\d[^\]]*)\]\((docs/benchmarks/[\w-]+\.md)[#\w-]*\)", readme)
    assert len(linked) > 5
    for words, path in linked:
        page = (results_page.ROOT / path).read_text("utf-8")
        measured = {number for line in page.splitlines() if "|" in line for number in numbers(line)}
        assert numbers(words) <= measured, f"{words}: not in {path}"


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", text))


def test_the_chart_is_of_the_newest_version_with_requests(tmp_path: Path) -> None:
    assert benchmark_pages.charts(tmp_path) == {}
    for python in ("3.9.9", "3.13.0"):
        written(tmp_path, "giltest", python)
    drawn = benchmark_pages.charts(tmp_path)["requests.svg"]
    assert "CPython 3.13.0" in drawn
    # Two sides' marks and the one of what it takes alone, and those of the legend.
    shown = {case for case in REQUESTS_BESIDE if f">{case}<" in drawn}
    assert shown == REQUESTS_BESIDE
    assert drawn.count("<circle") == 3 * (len(shown) + 1)


def test_the_headline_has_a_bar_for_each_side(tmp_path: Path) -> None:
    written(tmp_path, "giltest", "3.13.0")
    assert "headline.svg" not in benchmark_pages.charts(tmp_path)
    written(tmp_path, "prefork", "3.12.1")
    drawn = benchmark_pages.charts(tmp_path)
    for name in ("headline.svg", "headline-dark.svg"):
        assert "CPython 3.13.0" in drawn[name]
        assert "CPython 3.12.1" in drawn[name]
        assert drawn[name].count("<rect") == 1 + 2 * 3
    assert drawn["headline.svg"] != drawn["headline-dark.svg"]


def test_each_suite_has_its_own_files_and_page(tmp_path: Path, empty_pages: Path) -> None:
    for page in benchmark_pages.SUITES:
        written(tmp_path, page.benchmark, "3.13.0", page.part)
    assert [len(page.reports(tmp_path)) for page in benchmark_pages.SUITES] == [1] * 14
    made = benchmark_pages.made(tmp_path, empty_pages)
    texts = {path.stem: text for path, text in made.items() if path.suffix == ".md"}
    file_of = {page.name: page.within or page.name for page in benchmark_pages.SUITES}
    for name, part in {
        "giltest": "echo beside",
        "threads": "Queue hand-over",
        "testserver": "requests/s",
        "prefork": "page faults",
        "demo": "4 workers, gunicorn --preload, MiB",
        "tasklets": "greenlet",
        "tasklets-pickling": "cloudpickle",
        "tasklet-io": "uvloop",
        "memory": "pytest --no-cycles",
        "doctor": "pytest --no-cycles",
        "growth": "pytest --no-cycles",
        "records": "Row of 8 keys, Record, bytes",
        "sites": "80 ms, tuned, Mbit/s",
        "README": "| [sites](sites.md) | 3.13 |",
    }.items():
        text = texts[file_of.get(name, name)]
        assert part in text, name
        assert "old" not in text.splitlines()
        assert text.startswith("head\n")
        assert text.endswith("\ntail\n")
    assert "echo beside" not in texts["threads"]


def test_the_index_counts_what_is_reached_on_all_versions(tmp_path: Path) -> None:
    for python in ("3.12.1", "3.13.0"):
        written(tmp_path, "sites", python)
    *_, row = benchmark_pages.index(tmp_path).splitlines()
    text = SITES.text(tmp_path)
    stated = [line for line in text.splitlines() if "≥" in line]
    reached = [line for line in stated if line.endswith("| yes |")]
    assert row.endswith(f"| {len(stated)} | {len(reached)} |")
    assert row.startswith("| [sites](sites.md) | 3.12, 3.13 | ")


def test_what_was_not_measured_is_said(tmp_path: Path, empty_pages: Path) -> None:
    written(tmp_path, "giltest", "3.13.0")
    made = benchmark_pages.made(tmp_path, empty_pages)
    assert sum(text.count(benchmark_pages.NOT_MEASURED) for text in made.values()) == 13
    assert "| [threads](threads.md) | - | - | 0 | 0 |" in made[empty_pages / "README.md"]
    (empty_pages / "threads.md").write_text("no marks")
    with pytest.raises(results_page.PageError, match="measured:begin"):
        benchmark_pages.made(tmp_path, empty_pages)


def test_a_result_under_another_name_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "giltest", "3.13.0")
    (tmp_path / "3.13.0.json").rename(tmp_path / "threads-3.13.json")
    with pytest.raises(
        results_page.PageError,
        match=r"threads-3\.13\.json is a result of giltest, not of threads",
    ):
        THREADS.text(tmp_path)


def test_threads_has_a_row_for_each_target_and_each_package(tmp_path: Path) -> None:
    for python in ("3.13.0", "3.14.1"):
        written(tmp_path, "threads", python)
    text = THREADS.text(tmp_path)
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
    text = GILTEST.text(tmp_path)
    found = rows(text)
    assert "| p50 / p99, ms, stock → plus | 3.13.0 | target | reached |" in text
    assert found["5 ms requests beside no CPU threads"] == ["1.00 / 8.00 → 0.900 / 2.00"]
    floor = "≤ 1.2 x requests-5ms-beside-process"
    wanted = f"p50 ≤ 1.15 x alone, p99 ≤ 1.3 x alone, {floor}, kept ≥ 0.95"
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
    found = rows(TESTSERVER.text(tmp_path))
    title = "Flask, gunicorn gthread, 50 connections"
    assert found[f"{title}, requests/s"][1] == "≥ 1.1 x stock"
    assert found[f"{title}, p99, ms"] == ["8.00 → 2.00 (0.250 x)"]
    jobs = [case.title for case in report.cases if case.usual_share("stock") is not None]
    assert found[f"{jobs[0]}, speed of the job to alone"] == ["0.400 → 0.400"]
    headings = 2  # those of later tables replace those of the first
    assert len(found) == 2 * len(report.cases) + len(jobs) + headings


def test_a_slim_result_gives_the_same_tables(tmp_path: Path) -> None:
    pages = (GILTEST, THREADS, TESTSERVER)
    for page in pages:
        written(tmp_path, page.benchmark, "3.13.0")
    before = [page.text(tmp_path) for page in pages]
    for path in tmp_path.iterdir():
        benchmark_pages.slim(path)
    assert [page.text(tmp_path) for page in pages] == before


def test_prefork_has_a_row_for_each_target_and_the_peer(tmp_path: Path) -> None:
    written(tmp_path, "prefork", "3.13.0")
    found = rows(PREFORK.text(tmp_path))
    assert any("private a worker" in name for name in found)
    assert any("seconds until the last process has ended" in name for name in found)
    assert "stock → gc.freeze before the fork" in found


def test_what_was_measured_is_shown_on_versions_without_a_target(tmp_path: Path) -> None:
    for python in ("3.11.9", "3.13.0"):
        written(tmp_path, "prefork", python)
    of_targets, _ = PREFORK.text(tmp_path).split("\n\n", 1)
    older, newer, target, _ = rows(of_targets)["Catalogue, 4 workers, MiB"]
    assert older == newer != "-"
    assert target.endswith("from 3.12 on")


def test_tasklets_has_a_row_for_each_target_and_a_column_for_each_side(tmp_path: Path) -> None:
    for python in ("3.12.1", "3.13.0"):
        written(tmp_path, "tasklets", python)
    text = TASKLETS.text(tmp_path)
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
    pickled = "Write and read one that has stopped"
    assert "on 3.13.0 | tasklets | cloudpickle |" in text
    assert len(found[f"{pickled}, us"]) == 2


def test_pickles_alone_are_a_page(tmp_path: Path) -> None:
    report = canned.report("tasklets")
    report.cases[:] = report.scenario("pickle")
    report.write_json(tmp_path / "tasklets-pickling-3.13.json")
    text = PICKLING.text(tmp_path)
    assert "Write and read one that has stopped, bytes" in rows(text)
    assert "greenlet" not in text


def test_tasklet_io_has_a_table_for_each_scenario(tmp_path: Path) -> None:
    for python in ("3.12.1", "3.13.0"):
        written(tmp_path, "tasklet-io", python)
    text = TASKLET_IO.text(tmp_path)
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
    text = MEMORY.text(tmp_path)
    found = rows(text)
    assert text.startswith("| measured | 3.13.0 | target | reached |")
    assert found["Flask test client, requests that fail, to gc-off"][1] == "≤ 1.15 x gc-off"
    assert "| cpythonplus lint, 5,000 modules, s | 1,193 | ≤ 10 s | not on 3.13.0 |" in text
    assert "| on 3.13.0 | stock | plus | peer | gc-off | watch | jemalloc |" in text


def test_records_has_sides_on_each_version_and_mappings_on_the_newest(tmp_path: Path) -> None:
    written(tmp_path, "records", "3.12.1")
    report = written(tmp_path, "records", "3.13.0")
    for case in report.scenario("look-up"):
        for place, entry in enumerate(case.rounds):
            assert entry.outcome is not None
            own = {"dict": 3.0, "CompactDict": 6.0} if case.name == "look-up-str-5" else {}
            figures = {"miss_ns": own[entry.side]} if own else {}
            case.rounds[place] = replace(entry, outcome=replace(entry.outcome, figures=figures))
    report.write_json(tmp_path / "records-3.13.0.json")
    text = RECORDS.text(tmp_path)
    found = rows(text)
    assert text.startswith("| measured | 3.12.1 | 3.13.0 | target | reached |")
    many = "Very many rows of 8, {}, to dict"
    wanted = {side: found[many.format(side)][2] for side in ("shared dict", "Record")}
    assert wanted == {"shared dict": "shared dict ≤ 0.6 x dict", "Record": "Record ≤ 0.35 x dict"}
    # What canned results have: the sides beyond the second have half of the first one's rate.
    assert "| dict = 1 | 3.12.1 | 3.13.0 |" in text
    assert found["Row of 8 keys, Record, bytes"] == ["600 (0.556 x)"] * 2
    assert "Row of 9 keys, Record, bytes" not in found
    assert "| on 3.13.0 | dict | shared dict | CompactDict | Record | msgspec | " in text
    assert "| dict → CompactDict, on 3.13.0 | Random hits, ns | random misses, ns |" in text
    assert found["5 str keys"][1] == "3.00 → 6.00 (2.000 x)"
    assert found["10 keys 0, 1, 2, ..."][1] == "-"


def test_what_a_target_s_figure_is_stands_beside_its_case(tmp_path: Path) -> None:
    written(tmp_path, "memory", "3.13.0", "doctor")
    targets, _ = DOCTOR.text(tmp_path).split("\n\n", 1)
    found = rows(targets)
    assert (
        found["census of 1 million objects, pause to gc.collect()"][1]
        == "pause to gc.collect() ≤ 1"
    )
    name = "strings deleted, one block behind them, % given back"
    assert {name, f"{name} (jemalloc)"} <= found.keys()
