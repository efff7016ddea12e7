"""What is generated in the documentation is what its sources say now."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import canned
from tools import benchmark_pages, reference, results_page
from tools.benchmark_pages import GILTEST


@pytest.mark.needs_gil
@pytest.mark.parametrize(
    "page",
    [*sorted(results_page.PAGES.glob("*.md")), reference.MAP],
    ids=lambda page: str(page.name),
)
def test_the_reference_is_up_to_date(page: Path) -> None:
    assert reference.rendered(page.read_text("utf-8")) == page.read_text("utf-8"), "run: make docs"


def test_the_reference_has_all_public_names() -> None:
    from cpythonplus import gil, threads

    text = "".join(page.read_text("utf-8") for page in results_page.PAGES.glob("*.md"))
    present = set(reference.names_in(text))
    names = {f"cpythonplus.gil.{name}" for name in gil.__all__ if name != "atomic"}
    # These are the standard library's on some version or on all.
    elsewhere = {"BrokenBarrierError", "Empty", "Full", "ShutDown"}
    names |= {f"cpythonplus.threads.{name}" for name in set(threads.__all__) - elsewhere}
    assert names | {"cpythonplus.gil.atomic", "cpythonplus.UnsupportedPlatform"} <= present


def test_a_class_has_its_methods() -> None:
    text = reference.documented("cpythonplus.threads.Barrier")
    assert "class threads.Barrier(parties, action=None, timeout=None)\n" in text
    assert "\n- `parties`: " in text
    assert "\n#### wait(timeout=None, *, breaks=True)\n\n" in text
    assert "_at_fork_reinit" not in text
    assert "#### acquire(*args, **kwargs)" in reference.documented("cpythonplus.threads.Condition")
    assert "#### " not in reference.documented("cpythonplus.threads.LifoQueue")


def test_a_value_and_an_exception_have_none() -> None:
    for name in ("cpythonplus.threads.WaitStatistics", "cpythonplus.UnsupportedPlatform"):
        assert "#### " not in reference.documented(name)


def test_an_enumeration_has_its_values() -> None:
    text = reference.documented("cpythonplus.prefork.Category")
    assert "class prefork.Category\n    NEW_PAGES = 'new pages'\n" in text
    assert text.count("The kind of a change on a page") == 1


def test_fields_of_a_docstring_become_a_list() -> None:
    text = "What it is.\n\nlimit_ms: how long.  report: who\n    is told; None: none.  Raises X."
    assert reference.markdown(text, ["limit_ms", "report"]) == (
        "What it is.\n\n- `limit_ms`: how long.\n- `report`: who is told; None: none.\n\nRaises X."
    )


@pytest.mark.parametrize("title", ["Args", "Attributes"])
def test_a_list_has_no_title(title: str) -> None:
    text = f"What it is.\n\n{title}:\n    limit_ms: how\n        long.\n    report: who is told."
    assert reference.markdown(text, ["limit_ms", "report"]) == (
        "What it is.\n\n- `limit_ms`: how long.\n- `report`: who is told."
    )


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(reference.UnknownNameError, match=r"cpythonplus\.nothing"):
        reference.documented("cpythonplus.nothing")


def written(folder: Path, python: str) -> Path:
    report = canned.report()
    report.machine["python"] = f"CPython {python}"
    path = folder / f"{python}.json"
    report.write_json(path)
    return path


def test_the_table_has_a_column_for_each_version(tmp_path: Path) -> None:
    for python in ("3.9.9", "3.13.0", "3.12.1"):
        written(tmp_path, python)
    lines = GILTEST.text(tmp_path).splitlines()
    assert lines[0] == "| stock → plus | 3.9.9 | 3.12.1 | 3.13.0 | target | reached |"
    rate = next(line for line in lines if line.startswith("| echo beside 1 CPU thread, requests/s"))
    assert rate.count("185 → 49,500 (267 x)") == 3  # the median round
    assert rate.endswith("| ≥ 200 x stock | yes |")
    p99 = next(line for line in lines if line.startswith("| echo beside 8 CPU threads, p99"))
    assert p99.endswith("| p99 ≤ 1 ms | not on 3.9.9, 3.12.1, 3.13.0 |")
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert widths == {lines[0].count("|")}


def test_a_slim_result_gives_the_same_table(tmp_path: Path) -> None:
    path = written(tmp_path, "3.13.0")
    before, size = GILTEST.text(tmp_path), path.stat().st_size
    benchmark_pages.slim(path)
    assert GILTEST.text(tmp_path) == before
    assert path.stat().st_size < size
    assert "curve" not in path.read_text()
    once = path.read_text()
    benchmark_pages.slim(path)
    assert path.read_text() == once


def test_two_results_of_one_version_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "3.13.0").rename(tmp_path / "other.json")
    written(tmp_path, "3.13.0")
    with pytest.raises(results_page.PageError, match=r"several results for 3\.13\.0"):
        GILTEST.reports(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"schema": 99, "cases": []})])
def test_something_else_is_no_result(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(results_page.PageError, match=r"x\.json"):
        benchmark_pages.read(path)


def test_nothing_measured_leaves_a_line(tmp_path: Path) -> None:
    begin, end = results_page.marks("measured")
    text = f"a\n{begin}\nold\n{end}\nb\n"
    new = results_page.filled(text, GILTEST.text(tmp_path), begin, end)
    assert benchmark_pages.NOT_MEASURED in new
    assert "old" not in new
    assert new.endswith(f"{end}\nb\n")
    with pytest.raises(results_page.PageError, match="measured:begin"):
        results_page.filled("nothing", "x", begin, end)
