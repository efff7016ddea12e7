"""The settings of a session and of each of its tests: options, ini file, marks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path

import pytest

from cpythonplus._base.text.visible import visible
from cpythonplus.memory._cycles.report import Kind
from cpythonplus.memory._no_cycles import allowing

ALLOW_MARK = "allow_cycles"
CHECK_MARK = "no_cycles"
_MARKS = (ALLOW_MARK, CHECK_MARK)


@dataclass(frozen=True, slots=True)
class Plan:
    """The checks of one test. kinds: empty if it is not checked."""

    kinds: frozenset[Kind]
    allowed: tuple[allowing.Pattern, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a session. everywhere: check every test, else only the marked ones.

    packages: a cycle has to be closed in one of them to count, () for any. baseline: the file of
    known causes; write_baseline: write it, and fail no test.
    """

    kinds: frozenset[Kind]
    allowed: tuple[allowing.Pattern, ...]
    everywhere: bool
    report_unused: bool
    packages: tuple[str, ...]
    baseline: Path | None
    write_baseline: bool

    def plan(self, item: pytest.Item) -> Plan:
        """Return the checks of `item`; UsageError for wrong marks."""
        mark = item.get_closest_marker(CHECK_MARK)
        kinds = self.kinds if self.everywhere or mark is not None else frozenset[Kind]()
        try:
            if mark is not None:
                kinds = _kinds_of(mark, kinds)
            allowed = [*self.allowed]
            for mark in item.iter_markers(ALLOW_MARK):
                _check_words(mark, {"reason"})
                # Without a pattern, allow all.
                allowed += map(allowing.parse, mark.args or ("*",))
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from None
        return Plan(kinds, tuple(allowed))


def _kinds_of(mark: pytest.Mark, kinds: frozenset[Kind]) -> frozenset[Kind]:
    """Return the kinds in `no_cycles(on=True, kinds=...)`; kinds: the default."""
    _check_words(mark, {"on", "kinds"})
    on = [*mark.args, *(mark.kwargs[word] for word in ("on",) if word in mark.kwargs)]
    if len(on) > 1 or not all(isinstance(each, bool) for each in on):
        raise ValueError(f"{CHECK_MARK} takes True or False and kinds=[...], got {mark.args}")
    if "kinds" in mark.kwargs:
        kinds = parse_kinds(mark.kwargs["kinds"])
    return frozenset() if on == [False] else kinds


def _check_words(mark: pytest.Mark, known: set[str]) -> None:
    """Refuse unknown words: a misspelt word would switch off a check."""
    for word in mark.kwargs:
        if word not in known:
            raise ValueError(f"the mark {mark.name} takes {', '.join(sorted(known))}, got {word}=")


def from_config(config: pytest.Config, *, everywhere: bool) -> Settings:
    """Read the options and the ini file; UsageError for mistakes in them."""
    try:
        baseline = _baseline(config)
        return Settings(
            parse_kinds(config.getoption("no_cycles_kinds") or config.getini("no_cycles_kinds")),
            tuple(allowing.parse_lines(config.getini("allow_cycles"))),
            everywhere,
            bool(config.getoption("no_cycles_report_unused")),
            _packages(config),
            baseline,
            bool(config.getoption("no_cycles_write_baseline")),
        )
    except ValueError as error:
        raise pytest.UsageError(f"no cycles: {error}") from None


def _packages(config: pytest.Config) -> tuple[str, ...]:
    given = config.getoption("no_cycles_packages")
    names = config.getini("no_cycles_packages") if given is None else given.split(",")
    names = [name.strip() for name in names]
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"expected names of packages or modules, got {name!r}")
    return tuple(names)


def _baseline(config: pytest.Config) -> Path | None:
    """Return the file of known causes, which has to exist unless it is to be written."""
    given = config.getoption("no_cycles_baseline")
    writes = config.getoption("no_cycles_write_baseline")
    folder = config.invocation_params.dir
    if given is None:
        given = config.getini("no_cycles_baseline")
        folder = config.inipath.parent if config.inipath else config.rootpath
    path = folder / str(given)
    if not given:
        if writes:
            raise ValueError("--no-cycles-write-baseline needs a file: --no-cycles-baseline FILE")
        return None
    if not writes and not isfile(path):  # noqa: PTH113  # it raises nothing
        raise ValueError(
            f"there is no baseline {visible(str(path))}: --no-cycles-write-baseline makes it"
        )
    return path


def marked(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the items marked `no_cycles`, themselves or by their class, module or package.

    Not by `iter_markers`: for each test, that would cost a suite of small tests more than all the
    rest.
    """
    parents: dict[pytest.Collector | None, bool] = {None: False}
    for item in items:
        parent = item.parent
        if parent is not None and parent not in parents:
            parents[parent] = any(mark.name in _MARKS for mark in parent.iter_markers())
        if parents[parent] or any(mark.name in _MARKS for mark in item.own_markers):
            yield item


def parse_kinds(given: object) -> frozenset[Kind]:
    """Read `exception,closure`, or the names one by one; ValueError for a wrong one."""
    names: Iterable[object] = ()
    if isinstance(given, str):
        names = given.split(",")
    elif isinstance(given, (list, tuple, set, frozenset)):
        names = given
    kinds = frozenset(_kind(str(name).strip()) for name in names if name)
    if not kinds:
        raise ValueError(f"expected kinds of cycles among {', '.join(Kind)}, got {given!r}")
    return kinds


def _kind(name: str) -> Kind:
    try:
        return Kind(name)
    except ValueError:
        raise ValueError(
            f"expected kinds of cycles among {', '.join(Kind)}, got {name!r}"
        ) from None
