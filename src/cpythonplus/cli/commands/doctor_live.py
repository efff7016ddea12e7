"""`cpythonplus doctor PID`, `doctor --watch PID`: a process that runs, looked at from outside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cpythonplus.cli.features import Option, number, output_file, positive_number
from cpythonplus.cli.usage import UsageError, complain, suggestion

if TYPE_CHECKING:
    from cpythonplus.memory.agent.client import Client

COMMAND = "cpythonplus doctor"
FAILED_STATUS = 1
"""The process cannot be looked at."""
TOP = 10
_NEEDED = {"trim": "before_bytes", "referrers": "rows", "path": "steps"}
_LONGEST_PID = 19
_INTERVAL_S = 2.0
_SHORTEST_S = 0.1
_LONGEST_S = 1e6


def _type_name(text: str) -> str:
    """Serve as `check` of an option that takes the name of a type."""
    if not text.isprintable() or not text or " " in text:
        raise ValueError(f"the name of a type is wanted, not {text!r}")
    return text


def _seconds(text: str) -> str:
    """Serve as `check` of an option that takes a time between two looks."""
    if not _SHORTEST_S <= float(number(text)) <= _LONGEST_S:
        raise ValueError(f"seconds from {_SHORTEST_S} on are wanted, not {text!r}")
    return text


OPTIONS = (
    Option("--json", "json", "the report as JSON"),
    Option(
        "--html",
        "html",
        "write the report to FILE as a web page; %p in it is the pid",
        metavar="FILE",
        check=output_file,
    ),
    Option(
        "--top",
        "top",
        f"the N largest of each part ({TOP})",
        metavar="N",
        check=positive_number,
        decode=int,
    ),
    Option(
        "--referrers",
        "referrers",
        "only what refers to objects of TYPE",
        metavar="TYPE",
        check=_type_name,
    ),
    Option(
        "--path",
        "path",
        "only what keeps one object of TYPE, step by step",
        metavar="TYPE",
        check=_type_name,
    ),
    Option(
        "--show-keys",
        "show_keys",
        "with --path: keys of dicts as they are; they may be secrets",
    ),
    Option("--trim", "trim", "only have it give free memory back, and tell what that freed"),
    Option("--watch", "watch", "look again and again, until Ctrl-C or q"),
    Option(
        "--interval",
        "interval",
        f"seconds between two looks ({_INTERVAL_S:g})",
        metavar="S",
        check=_seconds,
        decode=float,
    ),
)
# What does not go together, with why.
_APART = (
    (
        {"referrers", "path", "trim", "watch"},
        "only one of --referrers, --path, --trim, --watch",
    ),
    ({"html", "referrers"}, "--html goes with a whole report"),
    ({"html", "path"}, "--html goes with a whole report"),
    ({"html", "trim"}, "--html goes with a whole report"),
    ({"json", "watch"}, "--json does not go with --watch"),
)


class Request:
    """A command line, read.  given: the options' values by field, a switch has True."""

    __slots__ = ("given", "pid")

    def __init__(self) -> None:
        self.pid = 0
        self.given: dict[str, Any] = {}

    def get(self, field: str) -> Any:  # noqa: ANN401  # as its option decodes it
        """Return an option's value, None if it was not given."""
        return self.given.get(field)


def parse(arguments: list[str]) -> Request:
    """Read the command line; UsageError for what is wrong in it."""
    request = Request()
    known = {option.flag: option for option in OPTIONS}
    words = list(arguments)
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        if not word.startswith("-"):
            _take_pid(request, word)
        elif flag not in known:
            hint = suggestion(flag, [*known, "--help"])
            raise UsageError(f"unknown option {flag!r}{hint}; see {COMMAND} --help")
        else:
            _take(request, known[flag], value if equals else None, words)
    for fields, why in _APART:
        if len(fields & request.given.keys()) > 1:
            raise UsageError(why)
    if "interval" in request.given and "watch" not in request.given:
        raise UsageError("--interval goes with --watch")
    if "show_keys" in request.given and "path" not in request.given:
        raise UsageError("--show-keys goes with --path")
    if not request.pid:
        raise UsageError("the number of a process is missing")
    return request


def _take_pid(request: Request, word: str) -> None:
    if request.pid:
        raise UsageError(f"one process at a time, not {word!r} as well")
    if not (word.isascii() and word.isdecimal() and len(word) <= _LONGEST_PID and int(word)):
        raise UsageError(f"the number of a process is wanted, not {word!r}")
    request.pid = int(word)


def _take(request: Request, option: Option, value: str | None, words: list[str]) -> None:
    """Note an option, whose value is `value` or else the next word."""
    if option.metavar is None:
        if value is not None:
            raise UsageError(f"{option.flag} takes no value")
        request.given[option.field] = True
        return
    if value is None and not words:
        raise UsageError(f"{option.flag}: a value is missing")
    text = words.pop(0) if value is None else value
    try:
        request.given[option.field] = option.decode(option.check(text))
    except ValueError as error:
        raise UsageError(f"{option.flag}: {error}") from None


def main(arguments: list[str]) -> int:
    """Look at the process and tell; returns the exit status."""
    request = parse(arguments)
    # Behind the command line, for wrong ones are told at once.
    from cpythonplus.memory.agent.client import AskError, connect
    from cpythonplus.memory.agent.finding import Unreachable

    try:
        with connect(request.pid) as client:
            return _look(client, request)
    except (Unreachable, AskError) as error:
        complain(COMMAND, str(error))
        return FAILED_STATUS
    except KeyboardInterrupt:
        complain(COMMAND, "interrupted")
        return 130


def _look(client: Client, request: Request) -> int:
    from cpythonplus.cli.main import show

    top = request.get("top") or TOP
    if request.get("watch"):
        from cpythonplus.cli.watch_screen import watch

        return watch(client, request.get("interval") or _INTERVAL_S, top, request.get("html"))
    if {"trim", "referrers", "path"} & request.given.keys():
        return show(_one(client, request))
    from cpythonplus.memory.agent.client import examine

    examination = examine(client)
    client.close()  # the process waits for others while this is drawn
    if request.get("html"):
        write_page(request.get("html"), examination, request.pid)
    if request.get("json"):
        return show(json.dumps(examination, indent=2) + "\n")
    return 0 if request.get("html") else show(report(examination, top))


def _one(client: Client, request: Request) -> str:
    """Return the answer to one of the smaller questions."""
    from cpythonplus.memory.agent.client import AskError
    from cpythonplus.memory.report import part_text

    [name] = {"trim", "referrers", "path"} & request.given.keys()
    asked = "path_keys" if request.get("show_keys") else name
    answer = client.ask(asked, "" if name == "trim" else request.get(name))
    if request.get("json"):
        return json.dumps(answer, indent=2) + "\n"
    if _NEEDED[name] not in answer:
        raise AskError(f"its answer to {name} has not what it should have")
    return part_text(name, answer, request.get("top") or TOP)


def report(examination: dict[str, object], top: int) -> str:
    """Return an examination for people."""
    from cpythonplus.memory.report import report_text

    return report_text(examination, top=top)


def write_page(file: str, examination: dict[str, object], pid: int) -> None:
    """Write an examination as a web page; `%p` in the file's name is the pid.

    UsageError if the file cannot be written.
    """
    from cpythonplus.memory.report import write_page as write

    try:
        write(examination, file.replace("%p", str(pid)))
    except OSError as error:
        raise UsageError(f"cannot write {file!r}: {error.strerror}") from None
