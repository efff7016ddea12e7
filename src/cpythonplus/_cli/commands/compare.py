"""`cpythonplus compare`: compares the user's program in stock Python and under cpythonplus."""

import argparse
import dataclasses
import math
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cpythonplus import _compare as compare
from cpythonplus._base.files import write_output
from cpythonplus._base.requests import Request, read, written
from cpythonplus._base.switch import VARIABLE, disabled
from cpythonplus._base.text.visible import visible
from cpythonplus._cli.arguments import UsageError
from cpythonplus._cli.parser import Parser
from cpythonplus._cli.terminal import USAGE_STATUS, complain, show
from cpythonplus._compare.load import MOST_CONNECTIONS
from cpythonplus._compare.samples import Sample
from cpythonplus._compare.sides import Side

COMMAND = "cpythonplus compare"
FORMATS = {"text": compare.text, "json": compare.as_json, "html": compare.page}
JOB_ROUNDS = 12
"""From here on one odd round does not widen the interval (see `statistics.ratio`)."""
SERVICE_ROUNDS = 6
MOST_ROUNDS = 1000
MOST_PER_SECOND = 100_000
MOST_SECONDS = 3600.0
_OF_URLS = ("weights", "method", "header", "data")

DESCRIPTION = (
    "Runs a program alternately with and without cpythonplus, and reports the differences."
)
_EPILOG = (
    "Exit status: 0 measured, 2 wrong usage or a program that failed, 128 + N after signal N."
    " For a server, give --url and --rate."
)


def main(arguments: Sequence[str]) -> int:
    """Run `cpythonplus compare ARGUMENTS`. Raises UsageError for wrong ones."""
    words = list(arguments)
    border = words.index("--") if "--" in words else len(words)
    parser = Parser(
        prog=COMMAND,
        usage="%(prog)s [options] -- PROGRAM [arguments ...]",
        description=DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add_options(parser)
    options, rest = parser.parse_known_args(words[:border])
    program = words[border + 1 :]
    if rest and not program and not rest[0].startswith("-"):
        raise UsageError(f"expected -- in front of the program: -- {shlex.join(rest)}")
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if not program:
        raise UsageError("expected a program after --")
    if options.output is not None:
        _check_output(options.output)
    try:
        if disabled():
            raise UsageError(f"{VARIABLE} is set: both sides would be stock Python")
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        settings = _settings(options)
        commands = compare.sides(program, options.plus)
    except compare.ComparisonError as error:
        raise UsageError(str(error)) from None
    return _compare(options, commands, settings)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    add = parser.add_argument
    add(
        "--rounds",
        type=_whole(MOST_ROUNDS),
        metavar="N",
        help=f"number of runs of each side ({JOB_ROUNDS}; {SERVICE_ROUNDS} with --url)",
    )
    add(
        "--plus",
        default="run",
        metavar="COMMAND",
        help="what to compare with stock: run or serve with options, as one quoted argument; stock"
        " shows how far two equal sides differ (run)",
    )
    add("--ignore-status", action="store_true", help="continue after an exit status other than 0")
    add(
        "--url",
        action="append",
        metavar="URL",
        help="send requests to this URL of the program, then stop it; may be repeated",
    )
    add(
        "--weights",
        metavar="N,N,...",
        help="how often each URL is requested beside the others, in their order (1,1,...)",
    )
    add("--method", metavar="NAME", help="method of the requests to the URLs (GET)")
    add("--header", action="append", metavar="'NAME: VALUE'", help="add it; may be repeated")
    add("--data", metavar="TEXT", help="body of the requests to the URLs; the method then is POST")
    add(
        "--requests",
        metavar="FILE",
        help="send the requests of a file instead: JSON, or a browser's archive (HAR), as of"
        " `serve --warm-up-requests`; --url says where the server answers",
    )
    add(
        "--rate",
        type=_positive(MOST_PER_SECOND),
        metavar="R",
        help="requests per second in the open loop",
    )
    add(
        "--duration",
        type=_positive(MOST_SECONDS),
        metavar="S",
        help="duration of each loop in seconds (10)",
    )
    add(
        "--connections",
        type=_whole(MOST_CONNECTIONS),
        metavar="N",
        help="number of concurrent connections (50)",
    )
    add(
        "--wait",
        type=_positive(MOST_SECONDS),
        metavar="S",
        help="longest wait for the first answer in seconds (30)",
    )
    add("--any-host", action="store_true", help="allow a host other than loopback")
    add("--format", choices=tuple(FORMATS), default="text", help="format of the report (text)")
    add("--output", type=Path, metavar="FILE", help="write the report to FILE and print the table")


def _whole(most: int) -> Callable[[str], int]:
    """Return a function that reads a whole number from 1 to `most`."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else 0
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from 1 to {most}, got {text!r}"
            )
        return value

    return read


def _positive(most: float) -> Callable[[str], float]:
    """Return a function that reads a number above 0."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a number above 0 and up to {most:g}, got {text!r}"
            )
        return value

    return read


def _settings(options: argparse.Namespace) -> compare.Settings | None:
    fields = {"duration": "duration_s", "connections": "connections", "wait": "wait_s"}
    values = {field: getattr(options, option) for option, field in fields.items()}
    given = {field: value for field, value in values.items() if value is not None}
    if options.url is None:
        if given or options.rate is not None or options.any_host:
            raise UsageError("--rate, --duration, --connections, --wait, --any-host require --url")
        for word in (*_OF_URLS, "requests"):
            if getattr(options, word) is not None:
                raise UsageError(f"--{word} requires --url")
        return None
    if options.rate is None:
        raise UsageError("--url requires --rate: requests per second in the open loop")
    places = [compare.parse_url(url, any_host=options.any_host) for url in options.url]
    if len({place[:2] for place in places}) > 1:
        raise UsageError("expected URLs of one host and port")
    host, port, path = places[0]
    settings = compare.Settings(host, port, path, options.rate, **given)
    requests = _requests(options)
    return dataclasses.replace(settings, requests=compare.sent(requests, settings))


def _requests(options: argparse.Namespace) -> list[Request]:
    """Return the requests of a file or to the URLs, none for one plain URL.  Raises UsageError."""
    own = [word for word in _OF_URLS if getattr(options, word) is not None]
    if options.requests is not None:
        if own or len(options.url) > 1:
            raise UsageError("--requests takes one --url, and no option of requests to URLs")
        try:
            return read(options.requests).requests
        except OSError as error:
            raise UsageError(f"--requests: {error.strerror}: {options.requests!r}") from None
        except ValueError as error:
            raise UsageError(f"--requests: {options.requests}: {error}") from None
    try:
        return _to_urls(options) if own or len(options.url) > 1 else []
    except ValueError as error:
        raise UsageError(str(error)) from None


def _to_urls(options: argparse.Namespace) -> list[Request]:
    weights = options.weights.split(",") if options.weights else ["1"] * len(options.url)
    if len(weights) != len(options.url):
        raise ValueError(f"expected a weight for each of {len(options.url)} URLs")
    headers = []
    for each in options.header or ():
        name, colon, value = each.partition(":")
        if not colon:
            raise ValueError(f"--header: expected NAME: VALUE, got {each!r}")
        headers.append([name.strip(), value.strip()])
    same = {
        "method": options.method or ("GET" if options.data is None else "POST"),
        "headers": headers,
        "body": options.data,
    }
    return [
        written({"path": url, "weight": int(weight) if weight.isdecimal() else weight, **same})
        for url, weight in zip(options.url, weights, strict=True)
    ]


def _check_output(path: Path) -> None:
    """Raise UsageError if no file can be written there, before minutes of measuring."""
    if path.is_dir():
        raise UsageError(f"--output: {str(path)!r} is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"--output: the folder {str(path.parent)!r} does not exist")


def _compare(
    options: argparse.Namespace, commands: dict[Side, list[str]], settings: compare.Settings | None
) -> int:
    """Measure and report; an early end does not lose the samples."""
    rounds = options.rounds or (JOB_ROUNDS if settings is None else SERVICE_ROUNDS)
    samples: list[Sample] = []
    status, problem = 0, ""
    with compare.caught():
        try:
            samples.extend(
                compare.measure(
                    commands,
                    rounds,
                    settings,
                    any_status=options.ignore_status,
                    begins=lambda number, side: _progress(number, rounds, side),
                )
            )
        except compare.ComparisonError as error:
            status, problem = USAGE_STATUS, str(error)
        except KeyboardInterrupt as error:
            number = error.args[0] if error.args else signal.SIGINT
            status, problem = 128 + number, "interrupted"
    if samples:
        comparison = compare.Comparison(commands, rounds, tuple(samples), settings)
        status = _report(options, comparison) or status
    if problem:
        complain(COMMAND, problem)
    return status


def _progress(number: int, rounds: int, side: Side) -> None:
    if sys.stderr is not None:
        print(f"round {number + 1} of {rounds}: {side}", file=sys.stderr, flush=True)


def _report(options: argparse.Namespace, comparison: compare.Comparison) -> int:
    """Show and write the report; returns an exit status."""
    text = FORMATS[options.format](comparison)
    if options.output is None:
        return show(text)
    table = text if options.format == "text" else compare.text(comparison)
    try:
        write_output(options.output, text)
    except OSError as error:
        # Still show the table below: it took minutes to get.
        complain(COMMAND, f"{options.output}: {error.strerror}")
        return show(table) or 1
    return show(f"{table}\n{options.format}: {visible(str(options.output))}\n")
