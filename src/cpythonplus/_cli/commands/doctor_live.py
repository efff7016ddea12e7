"""`cpythonplus doctor attach PID` and others: examines running processes from outside."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from cpythonplus._cli.arguments import UsageError, process_number, take_options
from cpythonplus._cli.commands.run import option_lines
from cpythonplus._cli.features import (
    HELP_OPTION,
    Option,
    format_option,
    output_option,
    seconds,
    top_option,
)
from cpythonplus._cli.terminal import complain, show, table_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus._doctor.agent.client import Client
    from cpythonplus._doctor.agent.listing import Candidate
    from cpythonplus._doctor.native_traces.asking import Traced

COMMAND = "cpythonplus doctor"
FAILED_STATUS = 1
"""The process cannot be looked at, or a part of it: a fact about CPython does not hold there."""
INTERRUPTED_STATUS = 130
TOP = 10
_NEEDED = {"trim": "before_bytes", "referrers": "rows", "path": "steps", "deadlock": "deadlocks"}
_INTERVAL_S = 2.0
_GROWTH_S = 60.0
_HALFWAY_FROM_S = 20.0
_LOOK_SHARE = 0.25
"""The share of the time before memray traces; the growth until then decides what it traces."""
_LEAST_LOST = 64 << 10

HELP = """\
usage: {usage}

{summary}.

options:
{options}
"""


_INTERVAL_TEXT = f"seconds between two samples ({_INTERVAL_S:g})"
_INTERVAL = Option("--interval", "interval", _INTERVAL_TEXT, "S", seconds, float)
_SECONDS = Option(
    "--seconds", "seconds", f"time between the two looks ({_GROWTH_S:g})", "S", seconds, float
)
_NATIVE = Option(
    "--native", "native", "trace C code's memory with memray between the looks; slows the program"
)
_SHOW_KEYS = Option(
    "--show-keys", "show_keys", "show the keys of dicts in full; they may be secrets"
)
_OUTPUT = output_option("write the report to FILE instead of standard output")
_LAST_OUTPUT = output_option("write a report to FILE at the end")
_FORMAT = format_option("text", "json", "html")
_TOP = top_option(f" ({TOP})")
_ANSWER = (format_option("text", "json"), _OUTPUT)


class Examination(NamedTuple):
    """An examination of running processes: a sub-command of `cpythonplus doctor`.

    operands: the arguments after the options: PID and TYPE.
    """

    name: str
    operands: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]

    @property
    def usage(self) -> str:
        """Return its usage, without options."""
        return " ".join((self.name, *self.operands))


EXAMINATIONS = (
    Examination("list", (), "list the Python processes that can be examined", _ANSWER),
    Examination(
        "attach", ("PID",), "examine a process; `attach` may be omitted", (_FORMAT, _OUTPUT, _TOP)
    ),
    Examination(
        "watch",
        ("PID",),
        "examine a process repeatedly, until Ctrl-C or q",
        (_INTERVAL, _FORMAT, _LAST_OUTPUT, _TOP),
    ),
    Examination(
        "growth",
        ("PID",),
        "show what grows in a process, and who keeps it; or between two JSON reports",
        (_SECONDS, _NATIVE, _FORMAT, _OUTPUT, _TOP),
    ),
    Examination(
        "cycles",
        ("PID",),
        "name the lines of a running program that leave cyclic garbage",
        (_SECONDS, _FORMAT, _OUTPUT, _TOP),
    ),
    Examination(
        "referrers", ("PID", "TYPE"), "show what refers to objects of TYPE", (*_ANSWER, _TOP)
    ),
    Examination(
        "path",
        ("PID", "TYPE"),
        "show what keeps one object of TYPE alive, step by step",
        (_SHOW_KEYS, *_ANSWER),
    ),
    Examination(
        "deadlock",
        ("PID",),
        "show which threads wait for whom, and the deadlocks",
        (*_ANSWER, _TOP),
    ),
    Examination("trim", ("PID",), "make a process return free memory, and show how much", _ANSWER),
)


CYCLES = next(each for each in EXAMINATIONS if each.name == "cycles")


class Request:
    """A command line, read. given: the options' values by field, a switch has "1".

    files: two reports in place of a PID.
    """

    __slots__ = ("files", "given", "pid", "type_name")

    def __init__(self) -> None:
        self.files: list[str] = []
        self.pid = 0
        self.type_name = ""
        self.given: dict[str, Any] = {}

    def get(self, field: str, default: Any = None) -> Any:  # noqa: ANN401  # as its option decodes it
        """Return an option's value."""
        return self.given.get(field, default)


def parse(examination: Examination, arguments: Sequence[str]) -> Request:
    """Read the command line; UsageError for mistakes in it."""
    request = Request()
    request.given, operands = take_options(
        arguments, examination.options, f"{COMMAND} {examination.name}"
    )
    _take_operands(request, examination, operands)
    if examination.name == "watch" and "format" in request.given and "output" not in request.given:
        raise UsageError("--format requires --output")
    return request


def _take_operands(request: Request, examination: Examination, operands: list[str]) -> None:
    wanted = examination.operands
    if examination.name == "growth" and _are_files(operands):
        for option in (_SECONDS, _NATIVE):
            if option.field in request.given:
                raise UsageError(f"{option.flag}: two reports have been made at times of their own")
        request.files = operands
        return
    if len(operands) < len(wanted):
        raise UsageError(f"{examination.name}: expected {wanted[len(operands)]}")
    if len(operands) > len(wanted):
        raise UsageError(f"{examination.name}: unexpected argument {operands[len(wanted)]!r}")
    for name, text in zip(wanted, operands, strict=True):
        if name == "PID":
            request.pid = process_number(text)
        elif text.isprintable() and text and " " not in text:
            request.type_name = text
        else:
            raise UsageError(f"expected the name of a type, got {text!r}")


def main(examination: Examination, arguments: Sequence[str]) -> int:
    """Examine the process and report; returns the exit status."""
    if {"-h", "--help"} & {*arguments}:
        return show(help_text(examination))
    request = parse(examination, arguments)
    if request.files:
        return _compare(request.files, request)
    # Import after parsing, so that mistakes in the arguments are reported at once.
    from cpythonplus._doctor.agent.client import AskError, connect
    from cpythonplus._doctor.agent.finding import Unreachable

    try:
        if examination.name == "list":
            return _list(request)
        with connect(request.pid) as client:
            return _look(client, examination, request)
    except (Unreachable, AskError) as error:
        complain(COMMAND, str(error))
        return FAILED_STATUS
    except KeyboardInterrupt:
        complain(COMMAND, "interrupted")
        return INTERRUPTED_STATUS


def _look(client: Client, examination: Examination, request: Request) -> int:
    if examination.name == "watch":
        from cpythonplus._cli.watch_screen import watch

        interval_s, top = request.get("interval", _INTERVAL_S), request.get("top", TOP)
        if "output" not in request.given:
            return watch(client, interval_s, top, None)
        return watch(client, interval_s, top, lambda found: _tell_report(found, request))
    if examination.name == "growth":
        return _growth(client, request)
    if examination.name == "cycles":
        return _cycles(client, request)
    if examination.name != "attach":
        return _ask(client, examination.name, request)
    from cpythonplus._doctor.agent.client import examine

    _announce_copy(client)
    found = examine(client)
    client.close()  # the process can serve others meanwhile
    return _status(found, _tell_report(found, request))


# ---- the smaller questions ----------------------------------------------------------------------


def _ask(client: Client, name: str, request: Request) -> int:
    from cpythonplus._doctor.agent.client import AskError
    from cpythonplus._doctor.report.text import part_text

    asked = "path_keys" if request.get("show_keys") else name
    answer = client.ask(asked, request.type_name)
    if request.get("format") == "json":
        return _tell_json(answer, request)
    if _NEEDED[name] not in answer:
        raise AskError(f"its answer to {name} is incomplete")
    return tell(part_text(name, answer, request.get("top", TOP), _width(request)), request)


def _are_files(operands: Sequence[str]) -> bool:
    """Whether these are the names of two reports."""
    return len(operands) == 2 and any(each.endswith(".json") for each in operands)  # noqa: PLR2004


def _compare(files: list[str], request: Request) -> int:
    from cpythonplus._doctor.agent.comparing import compared

    reports = [_read_report(file) for file in files]
    try:
        growth = compared(*reports)
    except ValueError as error:
        raise UsageError(f"{files[0]}, {files[1]}: {error}") from None
    return _tell_report({"target": reports[1].get("target"), "growth": growth}, request)


def _read_report(file: str) -> dict[str, object]:
    """Read a saved report like an answer of a process, with the same checks."""
    from cpythonplus._base.contents import contents
    from cpythonplus._doctor.agent.decoding import NoAnswerError, decoded

    try:
        return decoded(contents(file))
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}") from None
    except NoAnswerError as error:
        raise UsageError(f"{file!r} is no report: {error}") from None


def _growth(client: Client, request: Request) -> int:
    """Look twice, and report the growth between."""
    from cpythonplus._doctor.agent.client import own_name
    from cpythonplus._doctor.agent.comparing import with_halfway

    seconds, doctor = request.get("seconds", _GROWTH_S), own_name()
    if native := bool(request.get("native")):
        _announce_tracer(client, seconds)  # the modules that it imports are not growth
    _announce_copy(client)
    client.ask("mark", doctor)
    client.close()  # others may ask meanwhile
    traced: Traced | str = ""
    halfway: dict[str, Any] | None = None
    try:
        if native:
            small = _has_lost_blocks(client, seconds * _LOOK_SHARE, doctor)
            traced = _traced(client, seconds * (1 - _LOOK_SHARE), small=small)
        else:
            halfway = _wait(client, seconds, doctor)
    except KeyboardInterrupt:
        client.ask("forget_mark", doctor)
        raise
    target = client.ask("hello")
    growth = client.ask("growth", doctor)
    found: dict[str, object] = {
        "target": target,
        "growth": growth if halfway is None else with_halfway(growth, halfway),
    }
    client.close()
    if native:
        found["native"] = {"error": traced} if isinstance(traced, str) else traced.examined()
    return _tell_report(found, request)


def _announce_copy(client: Client) -> None:
    """Tell who watches a terminal how much memory the look may take."""
    from cpythonplus._base.proc import resident_bytes
    from cpythonplus._base.text.sizes import format_size

    if sys.stderr is not None and sys.stderr.isatty():
        pid = client.process.pid
        complain(
            COMMAND,
            f"process {pid} copies itself for a moment, which takes up to"
            f" {format_size(resident_bytes(pid))} more memory; where less can be had, the report"
            " goes without owners",
        )


def _wait(client: Client, seconds: float, doctor: str) -> dict[str, Any] | None:
    """Sleep; look once more at half of a longer time: steady growth is rather a leak."""
    if seconds < _HALFWAY_FROM_S:
        time.sleep(seconds)
        return None
    time.sleep(seconds / 2)
    halfway = client.ask("growth_so_far", doctor)
    client.close()
    time.sleep(seconds / 2)
    return halfway


def _announce_tracer(client: Client, seconds: float) -> None:
    """Print the cost of the tracer; AskError if the tracer cannot run, here or in the process."""
    from cpythonplus._base.text.sizes import format_size
    from cpythonplus._doctor.agent.client import AskError
    from cpythonplus._doctor.native_traces.reading import need_memray

    try:
        need_memray()
    except RuntimeError as error:
        raise AskError(str(error)) from None
    limit = client.ask("native_ready").get("limit_bytes")
    file = format_size(limit) if isinstance(limit, int) else "a file"
    complain(
        COMMAND,
        f"memray traces process {client.process.pid} for {seconds:g} s: calls and allocations take"
        f" longer meanwhile; it writes up to {file}, and stays imported",
    )


def _has_lost_blocks(client: Client, seconds: float, doctor: str) -> bool:
    """Wait; return whether the allocator then has more blocks that may belong to no object."""
    from cpythonplus._doctor.report.owners import parts_grown

    time.sleep(seconds)
    found = client.ask("growth_so_far", doctor)
    client.close()
    blocks = "live_objects" if found.get("lost") else "unexplained_blocks"
    return any(name == blocks for name, _ in parts_grown(found, _LEAST_LOST))


def _traced(client: Client, seconds: float, *, small: bool) -> Traced | str:
    """Trace the process, or return the reason why not; takes at least so many seconds."""
    from cpythonplus._doctor.agent.client import AskError
    from cpythonplus._doctor.native_traces.asking import traced

    began = time.monotonic()
    found: Traced | str
    try:
        found = traced(client, seconds, small=small)
    except (AskError, OSError) as error:
        found = str(error)
    client.close()
    time.sleep(max(began + seconds - time.monotonic(), 0))
    return found


def _cycles(client: Client, request: Request) -> int:
    """Make the process watch its collector, and report the cycles."""
    client.ask("watch_cycles")
    client.close()
    try:
        time.sleep(request.get("seconds", _GROWTH_S))
    finally:  # also after an interruption: it must not watch for ever
        found: dict[str, object] = {"target": client.ask("hello")}
        found["cycles"] = client.ask("watched_cycles")
        client.close()
    return _tell_report(found, request)


# ---- listing processes --------------------------------------------------------------------------


def _list(request: Request) -> int:
    from cpythonplus._doctor.agent.listing import candidates

    found = candidates()
    if request.get("format") == "json":
        return _tell_json({"processes": [each.as_json() for each in found]}, request)
    return tell(list_text(found), request)


def list_text(found: Sequence[Candidate]) -> str:
    """Return a table of the processes that can be examined, and the number of the others."""
    from cpythonplus._base.text.sizes import format_size
    from cpythonplus._base.text.visible import visible

    listed = [each for each in found if each.reached_by]
    lines = [
        f"{each.pid:>7}  {each.parent:>7}  {format_size(each.resident_bytes):>8}"
        f"  {_age(each.started_s):>8}  {each.reached_by:<15}  {visible(each.command)}"
        for each in listed
    ]
    others = len(found) - len(lines)
    if lines:
        heads = (
            f"{'PID':>7}  {'parent':>7}  {'resident':>8}  {'age':>8}  {'reached by':<15}  command"
        )
        lines.insert(0, heads)
    else:
        lines.append("no process can be examined; start one with `cpythonplus run`")
    if others:
        lines.append(
            f"other Python processes: {others}; `cpythonplus doctor PID` says why one is not listed"
        )
    return "".join(f"{line}\n" for line in lines)


def _age(started_s: float) -> str:
    """Return the age of a process in words: 12 s, 5 min, 3 h 20, 8 d 04."""
    minutes, seconds = divmod(max(int(time.time() - started_s), 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    for value, unit, rest in ((days, "d", hours), (hours, "h", minutes), (minutes, "min", None)):
        if value:
            return f"{value} {unit}" if rest is None else f"{value} {unit} {rest:02}"
    return f"{seconds} s"


# ---- reports ------------------------------------------------------------------------------------


def _tell_report(found: dict[str, object], request: Request) -> int:
    """Write an examination in the requested format."""
    if request.get("format") == "json":
        return _tell_json(found, request)
    from cpythonplus.memory.report import page, report_text

    if request.get("format") == "html":
        return tell(page(found), request)
    return tell(report_text(found, request.get("top", TOP), _width(request)), request)


def _width(request: Request) -> int:
    return table_width(to_file="output" in request.given)


def _status(found: dict[str, object], status: int) -> int:
    """Return FAILED_STATUS if the report lacks a feature that does not work in the process."""
    from cpythonplus._doctor.report.sections import lacks_something

    return status or (FAILED_STATUS if lacks_something(found) else 0)


def _tell_json(content: dict[str, object], request: Request) -> int:
    # DEL is the only character that a terminal might obey and that JSON does not escape.
    text = json.dumps(content, indent=2).replace("\x7f", "\\u007f")
    return tell(f"{text}\n", request)


def tell(text: str, request: Request) -> int:
    """Write a report to its destination; UsageError if the file cannot be written."""
    file = request.get("output")
    is_html = request.get("format") == "html"
    if file is None:
        return show(text.encode() if is_html else text)
    from cpythonplus._base.files import write_output
    from cpythonplus._base.text.visible import visible_lines

    try:
        path = file.replace("%p", str(request.pid or os.getpid()))
        write_output(path, text if is_html else visible_lines(text))
    except OSError as error:
        raise UsageError(f"cannot write {file!r}: {error.strerror}") from None
    return 0


def help_text(examination: Examination) -> str:
    """Return the text of `cpythonplus doctor EXAMINATION --help`."""
    name, *operands = examination.usage.split()
    usage = " ".join((COMMAND, name, "[options]", *operands))
    options = option_lines((*examination.options, HELP_OPTION))
    summary = f"{examination.summary[0].upper()}{examination.summary[1:]}"
    return HELP.format(usage=usage, summary=summary, options=options)
