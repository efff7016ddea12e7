"""The tool that surveys packages: its counts, its table, its page."""

import ast
import platform
import sys
from typing import Any

import pytest

from survey import cycles

pytestmark = pytest.mark.any_version


def cycle(variable: str, objects: int) -> dict[str, Any]:
    cause = {
        "kind": "exception",
        "place": {
            "file": ast.__file__,
            "line": ast.dump.__code__.co_firstlineno,
            "function": "dump",
        },
        "variable": variable,
        "what": "ValueError",
        "advice": "",
        "edges": [],
    }
    return {"cause": cause, "count": 5, "objects": objects}


def result(*runs: dict[str, Any]) -> dict[str, Any]:
    driver = {"driver": "ast", "missing": "", "versions": {}, "runs": list(runs)}
    found = {"version": 1, "python": "3.13.0", "drivers": [driver]}
    return cycles.shortened(found)


def run(name: str, path: str, objects: int, *cycles: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "path": path,
        "calls": 5,
        "components": len(cycles),
        "objects": objects,
        "cycles": list(cycles),
    }


def test_components_are_counted_and_bystanders_are_not() -> None:
    hanging: list[Any] = []
    one: list[Any] = [hanging]
    two: dict[str, Any] = {"one": one}
    three: list[Any] = [two]
    itself: list[Any] = [three]
    one.append(two)
    itself.append(itself)
    try:
        components = cycles.cyclic([hanging, one, two, three, itself])
    finally:
        one.clear()
        itself.clear()
    assert sorted(map(sorted, components)) == [[1, 2], [4]]


@pytest.mark.needs_gil
def test_a_driver_s_cycles_are_named_and_counted_twice() -> None:
    found = cycles.survey(["functools"])
    (driver,) = found["drivers"]
    runs = {each["name"]: each for each in driver["runs"]}
    (left,) = runs["singledispatch"]["cycles"]
    assert left["cause"]["place"]["function"] == "singledispatch"
    assert left["cause"]["variable"] == "register"
    assert left["cause"]["place"]["file"].endswith("functools.py")
    assert (left["count"], left["objects"]) == (5, runs["singledispatch"]["objects"])
    assert runs["reduce"]["objects"] == 0
    assert runs["reduce"]["cycles"] == []
    assert cycles.unattributed(cycles.shortened(found)) == []


def test_a_package_that_is_not_there_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    missing = cycles.drive("redis")
    assert missing["runs"] == []
    found = cycles.shortened({"version": 1, "python": "3.13.0", "drivers": [missing]})
    assert cycles.show(found) == 0
    assert "left out: redis: import of redis halted" in capsys.readouterr().out


def test_one_row_for_a_place_with_least_and_most_objects() -> None:
    found = result(
        run("a", "ordinary", 20, cycle("node", 20)),
        run("b", "error", 45, cycle("node", 45)),
        run("c", "error", 0),
    )
    (site,) = cycles.sites(found)
    version, line = platform.python_version(), site.place.line
    assert cycles.row(site) == (
        f"| ast {version} | exception | `ast.py:{line}` | `dump` | `node` | 4-9 | ordinary, error |"
    )
    assert found["drivers"][0]["clean"] == ["c (error)"]
    assert cycles.unattributed(found) == []


def test_what_is_not_named_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    nameless = cycle("?", 10)
    nameless["cause"]["place"]["file"] = ""
    found = result(run("a", "error", 20, nameless))
    assert cycles.show(found) == 1
    printed = capsys.readouterr().out
    assert "not named: ast: a: exception ? ValueError" in printed
    assert "not named: ast: a: 20 objects in cycles, 10 of them named" in printed


def test_a_place_is_looked_up_in_its_source() -> None:
    place = {"kind": "closure", "file": ast.__file__, "function": "dump", "variable": "_format"}
    code = ast.dump.__code__
    lines = [line for _, _, line in code.co_lines() if line]
    assert cycles.in_source({**place, "line": lines[-1]})
    assert not cycles.in_source({**place, "line": 1})
    assert not cycles.in_source({**place, "line": lines[-1], "variable": "other.x"})
    assert not cycles.in_source({**place, "line": lines[-1], "function": "parse"})
    outside = {"function": "NodeVisitor", "variable": "NodeVisitor.seen", "line": 0}
    assert cycles.in_source({**place, **outside})


def test_the_page_is_made_from_its_results() -> None:
    found = result(run("a", "error", 20, cycle("node", 20)))
    text = f"before\n{cycles.BEGIN}\nold\n{cycles.END}\nafter\n"
    new = cycles.page(text, [found])
    assert "| 3.13.0 | 1 | 1 | 1 | 1 | 1 | 0 |" in new
    assert "`node`" in new
    assert "old" not in new
    assert cycles.page(new, [found]) == new
    with pytest.raises(cycles.SurveyError, match="no part between"):
        cycles.page("nothing", [found])


def test_the_published_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = cycles.main(["--table", "--check"])
    assert (status, capsys.readouterr().out) == (0, "")


def test_an_unknown_driver_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cycles.main(["nothing"])
    assert "no such driver: nothing" in capsys.readouterr().err
