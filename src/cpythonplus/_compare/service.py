"""A run of a server: it is started, loaded in two ways, and asked to end."""

import http.client
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from cpythonplus._base.proc import tree_cpu_s, tree_pss_bytes
from cpythonplus._compare import load
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.load import Settings
from cpythonplus._compare.processes import Program, started
from cpythonplus._compare.samples import CURVE, Sample
from cpythonplus._compare.sides import Side
from cpythonplus._compare.statistics import percentile

MOST_KINDS = 8
"""So many kinds of requests have rows of the report."""
STOP_S = 60.0
"""The limit for the end of a server."""
LONGEST_WARM_UP_S = 2.0
_WARM_UP_SHARE = 0.2
_POLL_S = 0.02
_ANSWER_S = 5.0
_FIRST_ERROR = 400


def parse_url(url: str, *, any_host: bool = False) -> tuple[str, int, str]:
    """Return host, port and path of a URL. Raises ComparisonError.

    any_host: allow another machine, or an address of this one that other machines can reach.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname:
        raise ComparisonError(f"expected a URL that begins with http:// and a host, got {url!r}")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ComparisonError(f"{url!r} has characters that must be percent-encoded")
    if not any_host and not _is_loopback(parts.hostname):
        raise ComparisonError(f"{parts.hostname} is not loopback; --any-host allows it")
    path = parts.path or "/"
    return parts.hostname, port, f"{path}?{parts.query}" if parts.query else path


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # no such host, or an impossible name
        return False
    return all(ipaddress.ip_address(address[4][0]).is_loopback for address in found)


def measure(side: Side, number: int, command: Sequence[str], settings: Settings) -> Sample:
    """Start the server, load it, stop it.

    Raises ComparisonError if something listens already, if there is no answer in time, or if the
    server ends while it is loaded.
    """
    check_port_is_free(settings)
    began = time.perf_counter()
    with started(command, stdout=True) as server:
        _wait_for_answer(side, server, settings)
        values = {"start_s": time.perf_counter() - began}
        kinds: dict[str, dict[str, int]] = {}
        curves: dict[str, tuple[float, ...]] = {}
        settled_s = min(LONGEST_WARM_UP_S, settings.duration_s * _WARM_UP_SHARE)
        load.run(replace(settings, duration_s=settled_s))
        late_s = 0.0
        for each in (settings, replace(settings, loop="closed")):
            name = each.loop
            before_s = tree_cpu_s(server.pid)
            done = load.run(each)
            cpu_s = tree_cpu_s(server.pid) - before_s
            if server.has_ended():
                raise server.failure(side)
            ordered = sorted(done.latencies_ns)
            values |= _values(name, done.answered / each.duration_s, ordered, cpu_s)
            kinds[name] = done.errors
            if name == "open":
                values |= _values_of_each(done, each)
            if ordered:
                curves[name] = tuple(percentile(ordered, p) / 1e9 for p in CURVE)
            late_s = max(late_s, done.late_ns / 1e9)  # a closed loop is never late
        values["pss_bytes"] = tree_pss_bytes(server.pid)
        took_s = server.stop(STOP_S)
        if took_s is None:
            kinds["stop"] = {f"killed after {STOP_S:g} s": 1}
        else:
            values["stop_s"] = took_s
        return Sample(side, number, server.wait().status, values, kinds, curves, late_s)


def _values_of_each(done: load.Load, settings: Settings) -> dict[str, float]:
    """Return the latencies of the most frequent kinds of requests, if there are several."""
    found: dict[str, list[int]] = {}
    for latency, place in zip(done.latencies_ns, done.which, strict=True):
        if settings.requests:
            found.setdefault(settings.requests[place].title, []).append(latency)
    weights = Counter[str]()
    for each in settings.requests:
        weights[each.title] += each.weight
    titles = [title for title, _ in weights.most_common(MOST_KINDS)]
    values = {}
    for title in titles if len(weights) > 1 else []:
        ordered = sorted(found.get(title, []))
        if ordered:
            for percent in (50, 99):
                values[f"open_p{percent}_s {title}"] = percentile(ordered, percent) / 1e9
    return values


def _values(name: str, rate: float, ordered: Sequence[int], cpu_s: float) -> dict[str, float]:
    values = {f"{name}_rate": rate}
    if ordered:
        for percent, key in ((50, "p50"), (99, "p99"), (99.9, "p999"), (100, "max")):
            values[f"{name}_{key}_s"] = percentile(ordered, percent) / 1e9
        values[f"{name}_cpu_s"] = cpu_s / len(ordered)
    return values


def check_port_is_free(settings: Settings) -> None:
    """Raise ComparisonError if a program listens at host and port: it would be measured instead."""
    try:
        socket.create_connection((settings.host, settings.port), timeout=_ANSWER_S).close()
    except OSError:
        return
    raise ComparisonError(f"{settings.host}:{settings.port} is already in use")


def _wait_for_answer(side: Side, server: Program, settings: Settings) -> None:
    deadline = time.perf_counter() + settings.wait_s
    answer = "did not answer"
    while not server.has_ended():
        try:
            status = _status_of(settings)
        except (OSError, http.client.HTTPException):
            status = None
        if status is not None and status < _FIRST_ERROR:
            return
        if status is not None:
            answer = f"answered with status {status}"
        if time.perf_counter() > deadline:
            raise ComparisonError(
                f"{side}: {settings.url} {answer} within {settings.wait_s:g} s; the server printed:"
                f" {server.last_words()}"
            )
        time.sleep(_POLL_S)
    raise server.failure(side)


def _status_of(settings: Settings) -> int:
    connection = http.client.HTTPConnection(settings.host, settings.port, timeout=_ANSWER_S)
    try:
        connection.request("GET", settings.path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
