"""The suite's own parts; tiny sizes, no time is asserted, and no peer has to be installed."""

import json
import subprocess
import sys
from collections.abc import Callable, ItemsView
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common import engine, machine, rows
from benchmarks.common.children import ROOT, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.records import kinds, measuring
from benchmarks.records.compact import scenario as compact_scenario
from benchmarks.records.compact import worker as compact
from benchmarks.records.decode import worker as decoding
from benchmarks.records.rows import scenario
from benchmarks.records.rows import worker as row_worker
from benchmarks.scenarios import cases_of, verdicts
from tests.benchmarks import canned
from tests.support import SANITIZED

COMMANDS = Commands.of(sys.executable)
TINY = Settings(1, 0.001, rows=2000)
OTHERS: dict[Side, str] = {**scenario.PACKAGES, "msgspec dict": "msgspec"}
_LOOK_UPS = {"hit_sequential_ns", "miss_ns", "miss_sequential_ns"}

pytestmark = pytest.mark.needs_gil  # what is compared with dict is refused elsewhere


def case_called(name: str) -> Case:
    return next(case for case in cases_of("records") if case.name == name)


def needs(side: Side) -> None:
    """Skip the test when `side` cannot be measured here."""
    if side in OTHERS:
        pytest.importorskip(OTHERS[side])


# ---- the sides ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", kinds.KINDS)
@pytest.mark.parametrize("fields", [2, 30])
def test_a_row_holds_what_it_was_made_of(side: Side, fields: int) -> None:
    needs(side)
    loops = kinds.Loops(side, fields)
    values = tuple(range(100, 100 + fields))
    kept: list[Any] = [None] * 2
    loops.fill()(kept, [values] * 2)
    for row in (*loops.build()([values]), *kept):
        space = {**loops._space, "row": row}
        seen = list(eval(loops.kind.items, space))
        assert seen == list(zip(loops.names, values, strict=True))
        for place, name in enumerate(loops.names):
            assert eval(loops.kind.field.format(name=name, place=place), space) == values[place]
        if loops.kind.miss:
            assert eval(loops.kind.miss, space) is None


def test_a_loop_reads_each_field_once_and_asks_as_often() -> None:
    class Row(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            asked.append(key)
            return super().__getitem__(key)

        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
            asked.append(key)
            return default

        def items(self) -> ItemsView[str, int]:  # type: ignore[override]
            asked.append("items")
            return {}.items()

    asked: list[str] = []
    loops = kinds.Loops("dict", 3)
    row = Row(f0=1, f1=2, f2=3)
    loops.fields()([row, row])
    assert asked == ["f0", "f1", "f2"] * 2
    asked.clear()
    loops.misses()([row, row])
    assert asked == ["absent"] * 6
    asked.clear()
    loops.items()([row, row])
    assert asked == ["items"] * 2


def test_what_is_not_there_ends_the_worker_with_a_line() -> None:
    with pytest.raises(SystemExit, match=r"cpythonplus\.memory has no such_thing here"):
        kinds.ours("such_thing")
    with pytest.raises(SystemExit, match=r"^no_such_package: No module named"):
        kinds.peer("no_such_package")


# ---- what is measured with ----------------------------------------------------------------------


def test_loops_run_in_turns_and_the_fastest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([90, 50, 70, 60, 80, 40])
    asked: list[str] = []

    def timed(call: Callable[[], object]) -> int:
        asked.append(str(call()))
        return next(taken)

    monkeypatch.setattr(measuring, "taken_ns", timed)
    assert measuring.fastest_ns([lambda: "a", lambda: "b"], 0) == [70, 40]
    assert asked == ["a", "b"] * measuring.TURNS


GROWTH = """
import sys
from benchmarks.records import measuring
scattered = [object() for _ in range(400_000)]
del scattered[::2], scattered[::3]
soaked = measuring.soaked_up()
before = measuring.private_bytes()
kept = [tuple([place]) for place in range(100_000)]
print(measuring.private_bytes() - before)
"""


@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
def test_rows_do_not_lie_in_memory_that_was_free() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True, cwd=ROOT
    )
    # A tuple and its number take 48 and 32 bytes, or more.
    assert int(done.stdout) > 100_000 * 70


# ---- rows ---------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
@pytest.mark.parametrize("side", ["dict", "shared dict", "Record", "tuple", "slots"])
def test_the_process_grows_by_what_a_row_takes(side: Side) -> None:
    needs(side)
    outcome = case_called("row-bytes-8").measure(COMMANDS, side, replace(TINY, rows=20_000))
    assert outcome.figures["sizeof_bytes"] * 0.95 < outcome.rate
    assert (outcome.scheduled, outcome.patched) == (False, False)


@pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's")
def test_shared_keys_take_less() -> None:
    case, few = case_called("row-bytes-8"), replace(TINY, rows=20_000)
    plain, shared = (case.measure(COMMANDS, side, few) for side in ("dict", "shared dict"))
    assert shared.rate < plain.rate * 0.75


@pytest.mark.parametrize(
    ("what", "side"),
    [(what, side) for what, (_, sides) in scenario.SPEEDS.items() for side in sides],
)
def test_a_side_does_the_work(what: str, side: Side) -> None:
    needs(side)
    parameters = {"what": what, "side": side, "fields": 8, "seconds": 0}
    found = row_worker.speed(parameters)
    assert found["rate"] > 0
    assert ("zip_ns" in found.get("figures", {})) == (what == "build" and side == "dict")


@pytest.mark.parametrize("side", ["dict", "shared dict", "Record"])
def test_very_many_are_made_with_the_collector_on(side: Side) -> None:
    needs(side)
    outcome = case_called("very-many").measure(COMMANDS, side, TINY)
    assert 0.001 < outcome.rate < 1
    assert outcome.figures["build_s"] > 0
    assert outcome.figures["full_collection_ms"] > 0


@pytest.mark.parametrize("fields", [1, 30])
def test_values_are_objects_that_the_interpreter_has_anyway(fields: int) -> None:
    values = row_worker.values(fields)
    assert len(values) == fields
    assert all(value is int(str(value)) for value in values)


def test_a_machine_without_room_is_told_and_nothing_started() -> None:
    with pytest.raises(MeasurementError, match=r"rows may need 2\d\d,?\d+\.\d GiB, .* are free"):
        case_called("very-many").measure(COMMANDS, "dict", replace(TINY, rows=10**12))


# ---- JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "side", ["shared dict", "Record", "Record hook", "msgspec dict", "msgspec"]
)
def test_a_side_decodes_the_same(side: Side) -> None:
    needs(side)
    text = decoding.document(50)
    plain = json.loads(text)
    decoded = decoding.decoder(side)(text)
    as_dict = kinds.asdict(side) or (lambda row: row if isinstance(row, dict) else row.asdict())
    assert [as_dict(row) for row in decoded] == plain
    assert list(plain[0]) == list(decoding.FIELDS)
    outcome = case_called("json").measure(COMMANDS, side, TINY)
    assert outcome.rate > 0
    assert set(outcome.figures) == {"json_mib", "json_peak_mib"}


# ---- mappings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", compact_scenario.KEYS)
def test_keys_are_different_and_the_same_in_each_run(kind: str) -> None:
    keys = compact.some_keys(kind, 1000)
    assert len(set(keys)) == 1000
    assert keys == compact.some_keys(kind, 1000)
    assert {type(key) for key in keys} == {str if kind == "str" else int}


def test_the_worst_on_the_way_is_found() -> None:
    keys = list(range(20))
    bytes_at = [sys.getsizeof(compact.filled(dict, keys[:size])) for size in range(21)]
    grown, worst = compact.growing(dict, keys, 10)
    assert grown == bytes_at[10]
    assert worst == max(bytes_at[size] / size for size in range(10, 21))
    assert compact.growing(dict, keys[:2], 0) == (bytes_at[0], bytes_at[1])


def test_a_loop_has_enough_look_ups_and_not_too_many() -> None:
    assert len(compact.repeated([1, 2, 3])) == compact.LOOP
    assert set(compact.repeated([1, 2, 3])) == {1, 2, 3}
    assert len(compact.repeated(list(range(50_000)))) == 50_000
    assert len(compact.repeated(list(range(300_000)))) == compact.LOOKED_UP


@pytest.mark.parametrize("side", compact_scenario.SIDES)
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("dict-bytes-int-100", {"grown_bytes", "grown_worst", "rss_bytes"}),
        ("look-up-str-100", {*_LOOK_UPS, "equal_ns"}),
        ("look-up-dense-5", _LOOK_UPS),
        ("iteration-int-10", {"values_ns", "items_ns"}),
        ("insertion-str-10", {"built_ns", "deleted_ns"}),
        ("shrinking-int-10000", {"rss_percent"}),
    ],
)
def test_a_mapping_is_measured(side: Side, name: str, figures: set[str]) -> None:
    needs(side)
    outcome = case_called(name).measure(COMMANDS, side, TINY)
    assert outcome.rate > 0
    assert set(outcome.figures) == figures
    assert figures <= set(compact_scenario.SCENARIO.figures)
    if name.startswith("shrinking") and side == "dict":
        assert outcome.rate == 100, "it stays as large as it was"


# ---- what is missing, and what is shown ---------------------------------------------------------


class Quiet:
    """Progress that shows nothing."""

    def begin(self, total: int) -> None: ...
    def step(self, text: str) -> None: ...
    def end(self) -> None: ...


def test_what_is_not_installed_has_a_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "missing_modules", lambda _, *wanted: list(wanted))
    monkeypatch.setattr(machine, "describe", lambda *_: dict(canned.MACHINE))
    gib = {"dict": 5.0, "shared dict": 3.0, "Record": 1.5, "tuple": 2.0}
    cases = [
        replace(case, measure=lambda _, side, __: Outcome(gib[side]))
        for case in engine.select(cases_of("records"), ["very-many"])
    ]
    found = engine.with_sides(cases, COMMANDS, scenario.MANY, own_command=False)
    report = engine.run("records", found, COMMANDS, TINY, Quiet())
    shown = {row.label: row for row in rows.rows(report, "many")}
    assert list(shown) == ["dict", "shared dict", "Record", "msgspec", "recordclass", "tuple"]
    assert (shown["msgspec"].rate, shown["msgspec"].remark) == ("-", "not installed")
    assert shown["Record"].ratio == "0.300 x"
    judged = {verdict.target: verdict for verdict in verdicts(report)}
    assert judged["shared dict <= 0.6 x dict"].value == 0.6
    assert judged["shared dict <= 0.6 x dict"].reached
    assert judged["Record <= 0.35 x dict"].value == pytest.approx(0.3)


def test_targets_are_stated_for_compact_dicts() -> None:
    stated = {(v.case, v.target) for v in verdicts(canned.report("records"))}
    assert {
        ("dict-bytes-int-10", "<= 200 bytes"),
        ("look-up-str-5", "<= 1.5 x dict"),
        ("iteration-int-1000000", "<= 1 x dict"),
        ("shrinking-str-1000000", "<= 3 % of the peak"),
    } <= stated
    million = next(
        target for target in compact_scenario.SCENARIO.targets if target.figure == "grown_worst"
    )
    assert (million.case, million.limit) == ("dict-bytes-int-1000000", 20.5)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--rows", "0"], "argument --rows: '0' is not a number from 1 on"),
        (["--sides", "plus"], "there is no side 'plus'; sides are dict, shared dict, CompactDict"),
        (["--only", "row-bytes-9"], "no case is called 'row-bytes-9'"),
    ],
)
def test_a_wrong_request_is_one_line(
    arguments: list[str], line: str, refusal: Callable[..., str]
) -> None:
    assert line in refusal("records", *arguments)


def test_a_whole_run(tmp_path: Path) -> None:
    raw = tmp_path / "raw.json"
    options = ["--seconds", "0.001", "--rounds", "1", "--rows", "2000", "--sides", "shared dict"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "records", *options),
            *("--only", "row-bytes-8,json", "--json", str(raw)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "to dict" in done.stdout
    assert "not stock against plus" not in done.stdout
    cases = json.loads(raw.read_text())["cases"]
    assert [case["name"] for case in cases] == ["row-bytes-8", "json"]
    assert [r["side"] for case in cases for r in case["rounds"]] == ["dict", "shared dict"] * 2
