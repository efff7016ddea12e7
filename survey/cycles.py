"""Drives real packages, and tells which lines of theirs leave cyclic garbage.

    python -m survey.cycles [DRIVER...]     prints what was found, as a table
    python -m survey.cycles --json FILE     the same, raw
    python -m survey.cycles --write         all drivers; writes survey/results/ and docs
    python -m survey.cycles --table         writes docs anew from the results that are there
    python -m survey.cycles --table --check changes nothing; status 1 when docs are outdated

Each file of survey/drivers/ is a driver: it calls one package through its public interface,
on its ordinary paths (`ORDINARY`) and where something goes wrong (`ERRORS`). A driver runs in a
process of its own. Each of its callables is called twice before anything counts, so that what is
made once is not taken for a leak, then CALLS times twice over: under `memory.cycles.watch()`, and
with the collector told to save what it finds, whose cycles are then counted by the few lines of
Python here. The two have to agree.

The packages come with `make cycle-survey`; one that is not installed is left out, and named.
"""

import argparse
import functools
import gc
import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DRIVERS = ROOT / "survey" / "drivers"
RESULTS = ROOT / "survey" / "results"
PAGE = ROOT / "docs" / "reference" / "cycles-in-packages.md"
BEGIN = "<!-- survey:begin -->"
END = "<!-- survey:end -->"

CALLS = 5
TRIES = 3  # threads that end a little later may put an object into the other of the two counts
DRIVER_S = 120
SUPPORT = "support"
SHOWN = "3.13"  # the interpreter whose sites the page lists: all packages install there


class SurveyError(Exception):
    """One line that says what could not be done."""


# --- In the driver's process ---------------------------------------------------------------------


def cyclic(found: list[Any]) -> list[list[int]]:
    """Positions of the objects of each strongly connected component of more than one object.

    Tarjan's algorithm without recursion; an object that refers to itself is a component too.
    Written apart from the watch's own, to check it.
    """
    position = {id(each): i for i, each in enumerate(found)}
    targets = [
        [position[id(to)] for to in gc.get_referents(each) if id(to) in position] for each in found
    ]
    order = [0] * len(found)  # 0: not reached yet
    low = [0] * len(found)
    open_ = [False] * len(found)
    stack: list[int] = []
    components: list[list[int]] = []
    clock = 0
    for root in range(len(found)):
        work = [] if order[root] else [(root, iter(targets[root]))]
        while work:
            node, rest = work[-1]
            if not order[node]:
                clock += 1
                order[node] = low[node] = clock
                stack.append(node)
                open_[node] = True
            for to in rest:
                if not order[to]:
                    work.append((to, iter(targets[to])))
                    break
                if open_[to]:
                    low[node] = min(low[node], low[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = closed(stack, open_, node)
                    if len(component) > 1 or node in targets[node]:
                        components.append(component)
    return components


def closed(stack: list[int], open_: list[bool], first: int) -> list[int]:
    """Take a finished component from Tarjan's stack."""
    component: list[int] = []
    while not component or component[-1] != first:
        component.append(stack.pop())
        open_[component[-1]] = False
    return component


def count(call: Callable[[], object]) -> tuple[int, int]:
    """Components and objects in them that CALLS calls leave, by DEBUG_SAVEALL."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(CALLS):
            call()
        gc.collect()
        components = cyclic(list(gc.garbage))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()
    return len(components), sum(map(len, components))


def watched(call: Callable[[], object]) -> list[dict[str, Any]]:
    """What the watch names for CALLS calls."""
    from cpythonplus import memory

    with memory.cycles.watch(hoards=False) as watch:
        for _ in range(CALLS):
            call()
    return [asdict(cycle) for cycle in watch.report.cycles]


def drive_one(call: Callable[[], object], path: str) -> dict[str, Any]:
    """Both counts of one callable; again where they differ, until they agree."""
    call()
    call()
    cycles: list[dict[str, Any]] = []
    components = objects = 0
    for _ in range(TRIES):
        components, objects = count(call)
        cycles = watched(call)
        if sum(cycle["objects"] for cycle in cycles) == objects:
            break
    return {
        "name": call.__name__,
        "path": path,
        "calls": CALLS,
        "components": components,
        "objects": objects,
        "cycles": cycles,
    }


def drive(name: str) -> dict[str, Any]:
    """All of one driver, in this process; `missing` is set where its package is not installed."""
    try:
        driver = importlib.import_module(f"survey.drivers.{name}")
    except ModuleNotFoundError as error:
        return {"driver": name, "missing": str(error), "runs": [], "versions": {}}
    # Only what the calls leave is looked at, when they are over.
    gc.disable()
    runs = []
    for path, calls in (("ordinary", driver.ORDINARY), ("error", driver.ERRORS)):
        for call in calls:
            try:
                runs.append(drive_one(call, path))
            except Exception as error:
                error.add_note(f"in {call.__name__}")
                raise
    return {"driver": name, "missing": "", "runs": runs, "versions": versions()}


def versions() -> dict[str, str]:
    """Of every imported top-level package: its distribution and version."""
    found = {}
    for top, names in importlib.metadata.packages_distributions().items():
        if top in sys.modules:
            found[top] = f"{names[0]} {importlib.metadata.version(names[0])}"
    return found


# --- In the parent -------------------------------------------------------------------------------


def names() -> list[str]:
    """Every driver."""
    return sorted(path.stem for path in DRIVERS.glob("*.py") if path.stem != SUPPORT)


def run(name: str) -> dict[str, Any]:
    """The driver's findings, from a process of its own."""
    command = [sys.executable, "-m", "survey.cycles", "--drive", name]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "0", "NO_PROXY": "*"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DRIVER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SurveyError(f"the driver {name} took longer than {DRIVER_S} s") from None
    if done.returncode != 0:
        last = ", ".join((done.stderr.strip() or "no message").splitlines()[-2:])
        raise SurveyError(f"the driver {name} failed: {last}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def survey(wanted: Iterable[str]) -> dict[str, Any]:
    """Run these drivers one after the other."""
    drivers = []
    for name in wanted:
        print(f"survey: {name}", file=sys.stderr, flush=True)
        drivers.append(run(name))
    return {"version": 1, "python": platform.python_version(), "drivers": drivers}


@dataclass(frozen=True, slots=True)
class Place:
    """A line that keeps a cycle."""

    package: str
    release: str
    kind: str
    file: str
    line: int
    function: str
    variable: str


@dataclass(slots=True)
class Site:
    """What was found of one place: objects a call on each path, and who made it happen."""

    place: Place
    objects: list[float] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)


def packaged(file: str, driver: str, releases: dict[str, str]) -> tuple[str, str, str]:
    """Package, version and path within it of a code object's file."""
    if file.startswith("<"):
        # A template's code, say: that of the package which was driven.
        made_by = releases.get(driver, f"{driver} {platform.python_version()}")
        package, _, release = made_by.partition(" ")
        return package, release, file
    path = Path(file)
    for root in {Path(sysconfig.get_paths()[key]) for key in ("purelib", "platlib")}:
        if path.is_relative_to(root):
            inside = path.relative_to(root)
            top = inside.parts[0].removesuffix(".py")
            package, _, release = releases.get(top, top).partition(" ")
            return package, release, str(inside)
    if path.is_relative_to(ROOT):
        return "", "", str(path.relative_to(ROOT))
    library = Path(sysconfig.get_paths()["stdlib"])
    if path.is_relative_to(library):
        inside = path.relative_to(library)
        return inside.parts[0].removesuffix(".py"), platform.python_version(), str(inside)
    return "", "", file


@functools.cache
def functions(file: str) -> dict[str, list[types.CodeType]]:
    """Code objects of a source file by their qualified names; none where there is no source."""
    try:
        todo = [compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)]
    except OSError:
        return {}
    found = defaultdict(list)
    while todo:
        code = todo.pop()
        found[code.co_qualname].append(code)
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return found


def in_source(cause: dict[str, Any]) -> bool:
    """Whether the source has that function there, with the variable and the line in it."""
    if not cause["function"] or cause["file"].startswith("<"):
        return True  # nothing to look up
    root = re.split(r"\W", cause["variable"], maxsplit=1)[0]
    if root == cause["function"].rpartition(".")[2]:
        return True  # an attribute that no method of the class sets: named by the class
    for code in functions(cause["file"]).get(cause["function"], []):
        lines = {line for _, _, line in code.co_lines()} | {code.co_firstlineno, 0}
        names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)
        if cause["line"] in lines and (root in names or cause["kind"] == "class"):
            return True
    return False


def shortened(result: dict[str, Any]) -> dict[str, Any]:
    """Put each cause's package in, and make its file relative to it: no folder of this machine."""
    for driver in result["drivers"]:
        for each in driver["runs"]:
            for cycle in each["cycles"]:
                cause = cycle["cause"]
                cause |= cause.pop("place")
                del cause["advice"], cause["edges"]  # follow from the rest
                cause["in_source"] = in_source(cause)
                cause["package"], cause["release"], cause["file"] = packaged(
                    cause["file"], driver["driver"], driver["versions"]
                )
        del driver["versions"]
        clean = [each for each in driver["runs"] if not each["objects"] and not each["cycles"]]
        driver["clean"] = [f"{each['name']} ({each['path']})" for each in clean]
        driver["runs"] = [each for each in driver["runs"] if each not in clean]
    return result


def findings(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Driver's name, run and cycle of everything found."""
    for driver in result["drivers"]:
        for each in driver["runs"]:
            for cycle in each["cycles"]:
                yield driver["driver"], each, cycle


def sites(result: dict[str, Any]) -> list[Site]:
    """One for each place in a package; sorted."""
    found: dict[Place, Site] = {}
    for driver, each, cycle in findings(result):
        cause = cycle["cause"]
        if not cause["package"]:
            continue
        keys = ("package", "release", "kind", "file", "line", "function", "variable")
        place = Place(**{key: cause[key] for key in keys})
        site = found.setdefault(place, Site(place))
        if cycle["objects"]:
            site.objects.append(cycle["objects"] / each["calls"])
        site.paths.add(each["path"])
        site.seen.append(f"{driver}: {each['name']}")
    return sorted(found.values(), key=order)


def order(site: Site) -> tuple[str, str, int, str, str]:
    """What sites are sorted by."""
    place = site.place
    return place.package.lower(), place.file, place.line, place.function, place.variable


def unattributed(result: dict[str, Any]) -> list[str]:
    """Causes without a place or with a wrong one, and runs where the two counts differ."""
    wrong = []
    for driver, each, cycle in findings(result):
        cause = cycle["cause"]
        if not cause["in_source"]:
            what = f"{cause['file']}:{cause['line']} {cause['function']} {cause['variable']}"
            wrong.append(f"{driver}: {each['name']}: not in the source: {what}")
        if not cause["file"] or cause["variable"] in ("", "?"):
            what = f"{cause['kind']} {cause['variable']} {cause['what']}"
            wrong.append(f"{driver}: {each['name']}: {what}")
    for driver in result["drivers"]:
        for each in driver["runs"]:
            named = sum(cycle["objects"] for cycle in each["cycles"])
            if named != each["objects"]:
                counts = f"{each['objects']} objects in cycles, {named} of them named"
                wrong.append(f"{driver['driver']}: {each['name']}: {counts}")
    return wrong


# --- The page ------------------------------------------------------------------------------------


def amount(objects: list[float]) -> str:
    """Least and most objects a call: `4`, `4-12`."""
    if not objects:
        return "-"  # they are counted for another place of the same cycle
    least, most = (f"{number:.1f}".removesuffix(".0") for number in (min(objects), max(objects)))
    return least if least == most else f"{least}-{most}"


def row(site: Site) -> str:
    """A line of the table."""
    place = site.place
    where = f"{place.file}:{place.line}" if place.line else place.file
    paths = ", ".join(sorted(site.paths, reverse=True))
    cells = [
        f"{place.package} {place.release}",
        place.kind,
        f"`{where}`",
        f"`{place.function}`" if place.function else "-",
        f"`{place.variable}`",
        amount(site.objects),
        paths,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(result: dict[str, Any]) -> str:
    """The sites of one interpreter."""
    head = "| package | kind | file | function | variable | objects a call | path |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *map(row, sites(result))])


def quiet(result: dict[str, Any]) -> list[str]:
    """Packages that were driven and have no site."""
    noisy = {site.place.package.lower() for site in sites(result)}
    driven = (each["driver"] for each in result["drivers"] if not each["missing"])
    return [name for name in driven if name not in noisy]


def summary(results: list[dict[str, Any]]) -> str:
    """One line for each interpreter."""
    lines = [
        "| CPython | drivers | callables | leave cycles | sites | in packages | not named |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        found = sites(result)
        drivers = [driver for driver in result["drivers"] if not driver["missing"]]
        noisy = sum(len(driver["runs"]) for driver in drivers)
        cells = [
            result["python"],
            len(drivers),
            noisy + sum(len(driver["clean"]) for driver in drivers),
            noisy,
            len(found),
            len({site.place.package for site in found}),
            len(unattributed(result)),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def page(text: str, results: list[dict[str, Any]]) -> str:
    """The page's text with its generated part made anew."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SurveyError(f"{PAGE.name} has no part between {BEGIN} and {END}")
    shown = [result for result in results if result["python"].startswith(f"{SHOWN}.")]
    if not shown:
        raise SurveyError(f"there is no result for CPython {SHOWN}")
    without = ", ".join(quiet(shown[0])) or "none"
    parts = [
        summary(results),
        f"Where, on CPython {shown[0]['python']}:",
        table(shown[0]),
        f"Driven, and nothing found in them: {without}.",
    ]
    return before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after


def stored() -> list[dict[str, Any]]:
    """The results that are kept, oldest interpreter first."""
    found = [json.loads(path.read_text("utf-8")) for path in RESULTS.glob("cycles-*.json")]
    return sorted(found, key=lambda result: [int(n) for n in result["python"].split(".")[:2]])


def as_text(result: dict[str, Any]) -> str:
    """JSON with a line for each callable that left something."""
    drivers = []
    for driver in result["drivers"]:
        head = json.dumps({key: driver[key] for key in ("driver", "missing", "clean")})[:-1]
        runs = ",\n  ".join(map(json.dumps, driver["runs"]))
        drivers.append(f'{head}, "runs": [\n  {runs}]}}')
    return f'{{"version": 1, "python": "{result["python"]}", "drivers": [\n' + (
        ",\n".join(drivers) + "]}\n"
    )


def write_page(*, check: bool) -> int:
    """Bring the page up to date, or tell that it is not."""
    text = PAGE.read_text("utf-8")
    new = page(text, stored())
    if new == text:
        return 0
    if check:
        print(f"survey: {PAGE.name} is not up to date: python -m survey.cycles --table")
        return 1
    PAGE.write_text(new, "utf-8")
    print(f"survey: {PAGE.name} rewritten")
    return 0


def show(result: dict[str, Any]) -> int:
    """Print what was found, and what is wrong; status 1 if anything is."""
    print(table(result))
    own = defaultdict(list)
    for driver, each, cycle in findings(result):
        if not cycle["cause"]["package"]:
            own[f"{cycle['cause']['file']}: {cycle['cause']['variable']}"].append(
                f"{driver}: {each['name']}"
            )
    for cause, runs in own.items():
        print(f"in no package: {cause}: {', '.join(runs)}")
    for driver in result["drivers"]:
        if driver["missing"]:
            print(f"left out: {driver['driver']}: {driver['missing']}")
    wrong = unattributed(result)
    for line in wrong:
        print(f"not named: {line}")
    return int(bool(wrong))


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Parsed arguments; exits with status 2 and one line where they are wrong."""
    parser = argparse.ArgumentParser(description="Find the cycles that real packages leave.")
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write raw results")
    parser.add_argument("--write", action="store_true", help="keep the results, rewrite the docs")
    parser.add_argument("--table", action="store_true", help="rewrite the docs from kept results")
    parser.add_argument("--check", action="store_true", help="with --table: change nothing, tell")
    parser.add_argument("--drive", metavar="DRIVER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.drivers) - set(names()))
    if unknown:
        parser.error(f"no such driver: {', '.join(unknown)} (there are: {', '.join(names())})")
    if options.write and options.drivers:
        parser.error("--write takes all drivers")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for."""
    options = options_of(arguments)
    if options.drive:
        print("\n" + json.dumps(drive(options.drive)), flush=True)
        # Threads of servers, loops that were never closed: nothing that has to be tidied up.
        os._exit(0)
    try:
        if options.table:
            return write_page(check=options.check)
        result = shortened(survey(options.drivers or names()))
        if options.write:
            version = ".".join(result["python"].split(".")[:2])
            kept = RESULTS / f"cycles-{version}.json"
            kept.write_text(as_text(result), "utf-8")
            write_page(check=False)
        if options.json:
            options.json.write_text(as_text(result), "utf-8")
    except (SurveyError, OSError) as error:
        print(f"survey: {error}", file=sys.stderr)
        return 2
    return show(result)


if __name__ == "__main__":
    sys.exit(main())
