"""What the suite `prefork` is made of; the servers themselves are in test_prefork_servers.py."""

import mmap
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.common import memory
from benchmarks.common.engine import Case
from benchmarks.common.results import Report
from benchmarks.common.rows import HEADINGS, rows
from benchmarks.prefork import mix
from benchmarks.scenarios import TARGETS, cases_of, verdicts
from examples.django_catalogue import catalogue
from tests.benchmarks import canned

pytestmark = pytest.mark.any_version


def case_called(name: str) -> Case:
    return next(case for case in cases_of("prefork") if case.name == name)


def report(name: str, *, python: str = "3.13.0", **figures: tuple[float, float]) -> Report:
    """Return a report on one case; figures: rate and others, of stock and of plus."""
    sides = [
        replace(
            canned.outcome(figures["rate"][place]),
            figures={k: pair[place] for k, pair in figures.items() if k != "rate"},
        )
        for place in (0, 1)
    ]
    case = canned.result(case_called(name), ("stock", sides[0]), ("plus", sides[1]))
    made = Report("prefork", {"python": f"CPython {python}"}, {}, [case])
    made.targets = [verdict.as_dict() for verdict in verdicts(made)]
    return made


# ---- the example's catalogue --------------------------------------------------------------------


def test_the_catalogue_is_the_same_each_time() -> None:
    assert catalogue.build(50) == catalogue.build(50)
    assert catalogue.build(50) != catalogue.build(50, seed=1)
    assert catalogue.build(0) == catalogue.Catalogue()


def test_each_item_is_in_all_indexes() -> None:
    found = catalogue.build(400)
    for number in range(400):
        item = found.by_sku[catalogue.sku_of(number)]
        assert item in found.by_category[item.category]
        assert item in found.by_brand[item.brand]
        assert all(item in found.by_tag[tag] for tag in item.tags)
        assert set(item.related) <= found.by_sku.keys()


def test_a_search_gives_the_cheapest_first() -> None:
    found = catalogue.build(2000)
    tag = catalogue.TAGS[3]
    hits = found.search(tag)
    cents = [hit.prices["EUR"].net_cents() for hit in hits]
    assert cents == sorted(cents)
    assert len(set(cents)) > 2
    assert {hit.sku for hit in hits} == {i.sku for i in found.by_sku.values() if tag in i.tags}
    assert not found.search("none")


def test_prices_are_summed_up() -> None:
    found = catalogue.build(5000)
    summary = found.price_summary(catalogue.CATEGORIES[0])
    assert summary.items == len(found.by_category[catalogue.CATEGORIES[0]])
    assert 0 < summary.lowest_cents <= summary.mean_cents <= summary.highest_cents
    assert found.price_summary("none") == catalogue.PriceSummary(0, 0, 0, 0)


def test_related_items_are_others_of_the_number_asked_for() -> None:
    found = catalogue.build(4000)
    item = found.by_sku[catalogue.sku_of(5)]
    item.related = [sku for sku in item.related if sku != item.sku]
    related = found.related(item, 8)
    assert len({other.sku for other in related}) == 8
    assert [other.sku for other in related[: len(set(item.related))]] == [
        *dict.fromkeys(item.related)
    ]
    assert item not in related


# ---- the requests -------------------------------------------------------------------------------


def test_the_mix_is_the_same_each_time_and_of_all_kinds() -> None:
    paths = list(mix.paths(2000, 400))
    assert paths == list(mix.paths(2000, 400))
    assert paths[:100] == list(islice(mix.paths(2000, 100), 100))
    kinds = Counter(path.split("?")[0].split("/")[1] for path in paths)
    assert kinds.keys() == {"items", "prices", "health"}
    assert sum("related" in path for path in paths) > 30
    assert sum("tag=" in path for path in paths) > 60
    assert not any("SKU" in path for path in mix.paths(0, 400))


def test_the_mix_knows_what_the_catalogue_has() -> None:
    assert len(catalogue.TAGS) == mix.TAGS
    assert len(catalogue.CATEGORIES) == mix.CATEGORIES
    assert catalogue.CURRENCIES == mix.CURRENCIES


def test_later_pages_are_asked_for_only_where_they_are() -> None:
    pages = {path[-1] for path in mix.paths(110_000, 400) if "page=" in path}
    assert pages == {"1", "2", "3"}
    assert all(path.endswith("page=1") for path in mix.paths(2000, 400) if "page=" in path)


# ---- reading memory -----------------------------------------------------------------------------


def test_memory_that_is_touched_is_seen() -> None:
    size = 64 * memory.MIB
    before, faults = memory.of(os.getpid()), memory.faults(os.getpid())
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        for place in range(0, size, mmap.PAGESIZE):
            area[place] = 1
        after = memory.of(os.getpid())
        assert memory.faults(os.getpid()) > faults
    grown = after.private_bytes - before.private_bytes
    assert 0.9 * size < grown < 1.5 * size
    assert after.proportional_bytes - before.proportional_bytes > 0.9 * size


def test_a_child_belongs_to_the_tree_until_it_has_ended() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        assert pid in memory.tree(os.getpid())
        assert memory.of(pid).proportional_bytes > 0
        assert memory.total([pid, os.getpid()]).proportional_bytes > 0
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)
    assert pid not in memory.tree(os.getpid())
    assert memory.of(pid) == memory.Memory()
    assert memory.faults(pid) == 0
    assert memory.tree(pid) == []


# ---- cases, targets, table ----------------------------------------------------------------------


def test_the_cases_have_the_workers_that_their_names_say() -> None:
    names = [case.name for case in cases_of("prefork")]
    assert names == [
        *("memory-4", "memory-8", "memory-collected-4", "small-4"),
        *("stop-8", "max-requests-4"),
    ]
    few = cases_of("prefork", workers=2)
    assert [case.name for case in few] == [
        *("memory-2", "memory-collected-2", "small-2", "stop-2", "max-requests-2")
    ]
    assert all("2 workers" in case.title for case in few)
    stated = {t.case for t in TARGETS}
    assert set(names) <= stated


def test_memory_is_judged_by_sum_private_part_and_faults() -> None:
    made = report(
        "memory-4",
        rate=(700, 315),
        private_mib=(110, 10.5),
        faults=(140_000, 20_000),
        requests_per_s=(1000, 990),
    )
    assert [(t["target"], t["reached"]) for t in made.targets] == [
        ("<= 0.46 x stock from 3.12 on", True),
        ("private <= 10 MiB from 3.12 on before 3.14", False),
        ("requests/s >= 1 x stock", False),
        ("page faults <= 0.143 x stock from 3.12 on", True),
    ]
    (stock, plus) = rows(made, "memory")
    place = HEADINGS.index("private MiB")
    assert (stock.cells()[place], plus.cells()[place]) == ("110", "10.5")
    assert plus.ratio == "0.450 x"
    assert plus.verdicts[2].text == "requests/s >= 1 x stock (0.990 x)"


def test_without_immortality_memory_is_not_judged() -> None:
    made = report(
        *("memory-8",), python="3.11.7", rate=(1, 1), private_mib=(1, 1), requests_per_s=(1, 1)
    )
    assert [t["target"] for t in made.targets] == ["requests/s >= 1 x stock"]


def test_later_versions_may_have_more_of_their_own() -> None:
    made = report("memory-4", python="3.14.0", rate=(100, 10), private_mib=(110, 12.5))
    assert ("private <= 13 MiB from 3.14 on", True) in [
        (t["target"], t["reached"]) for t in made.targets
    ]


@pytest.mark.parametrize(
    ("seconds", "peak", "reached"),
    [(0.5, 350.5, (True, True)), (0.7, 340, (False, True)), (0.6, 352, (True, False))],
)
def test_stopping_is_judged_by_time_and_rise(
    seconds: float, peak: float, reached: tuple[bool, bool]
) -> None:
    made = report("stop-8", rate=(15, seconds), before_mib=(1000, 350), peak_mib=(1500, peak))
    assert tuple(t["reached"] for t in made.targets) == reached


# ---- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--items", "0"], "argument --items: '0' is not a number from 1 on"),
        (["--workers", "many"], "'many' is not a number from 1 on"),
        (["--seconds", "3"], "unrecognized arguments: --seconds"),
        (["--sides", "peer"], "there is no side 'peer'; sides are stock, plus, gc.freeze, gc-off"),
        (["--workers", "2", "--only", "memory-4"], "no case is called 'memory-4'"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: list[str], line: str, refusal: Callable[..., str]
) -> None:
    assert line in refusal("prefork", *arguments)


def test_a_missing_package_names_the_group(tmp_path: Path, refusal: Callable[..., str]) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {os.path.realpath("/proc/self/exe")} -I -S "$@"\n')
    bare.chmod(0o755)
    line = refusal("prefork", "--python", str(bare), "--plus-command", "stub")
    assert "lacks django, gunicorn, rest_framework" in line
    assert line.endswith("dependency group bench")
