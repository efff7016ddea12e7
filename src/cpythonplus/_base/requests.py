"""Requests to a web application, and the files that list them: for a warm-up, and for a load.

A file is a JSON list, one JSON object a line, or an archive of a browser (HAR 1.2).  An object has

    path             a path with its query, or a whole address
    method           GET, unless given
    headers          {name: value}, or a list of [name, value]
    cookies          {name: value}
    body             text, or a value that is sent as JSON
    weight           how often a load has it beside the others: 1, unless given

An archive also has requests to other hosts, from which its page loads files.  Only requests to the
first entry's host are kept.
"""

import base64
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from cpythonplus._base.contents import contents

_KEYS = frozenset({"path", "method", "headers", "cookies", "body", "weight"})
_PATH = re.compile("/|https?://")
_MOST_WEIGHT = 1000
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEXT = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_OF_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers about a connection, which does not exist here."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to an application.

    target: a path with its query, or a whole address. headers: name and value, without those that
    every request has. origin: the file and entry that it is from; empty if it was given as a path.
    weight: how often a load has it beside the others.
    """

    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    origin: str = ""
    weight: int = 1

    def __str__(self) -> str:
        if not self.origin:
            return self.target
        # Queries of recorded requests may contain secrets, which must not be logged.
        return f"{self.method} {urlsplit(self.target).path or '/'} ({self.origin})"

    @property
    def is_safe(self) -> bool:
        """Whether it may be sent again without changing anything, by its method."""
        return self.method in {"GET", "HEAD", "OPTIONS"}

    @property
    def host(self) -> str:
        """The host's name, and the port if the address has one."""
        return urlsplit(self.target).netloc.rpartition("@")[2] or "localhost"

    @property
    def server(self) -> tuple[str, int]:
        """The host's name and port."""
        url = urlsplit(self.target)
        return url.hostname or "localhost", url.port or (443 if url.scheme == "https" else 80)

    def all_headers(self, agent: str = "cpythonplus-warm-up") -> list[tuple[str, str]]:
        """Return its headers, and those that a client adds."""
        given = {name.lower() for name, _ in self.headers}
        common = {
            "Host": self.host,
            "Accept": "*/*",
            "User-Agent": agent,
            **({"Content-Length": str(len(self.body))} if self.body or not self.is_safe else {}),
        }
        added = [(name, value) for name, value in common.items() if name.lower() not in given]
        return [*added, *self.headers]


class Found(NamedTuple):
    """The contents of a file. elsewhere: the number of requests to other hosts, left out here."""

    requests: list[Request]
    elsewhere: int


def read(path: str) -> Found:
    """Return the requests of a file.  Raises OSError, and ValueError with its error."""
    try:
        entries, is_archive = _entries(contents(path).decode("utf-8-sig"))
        requests = []
        elsewhere = 0
        host = None
        for place, entry in entries:
            with _Place(place):
                request = _recorded(entry, place) if is_archive else written(entry, place)
            if request is None or (is_archive and host not in {None, request.host}):
                elsewhere += 1
                continue
            host = request.host
            requests.append(request)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    if not requests:
        raise ValueError("there is no request in it")
    return Found(requests, elsewhere)


class _Place:
    """Adds the entry's place to an error that is raised."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"{self._place}: {error}") from None


def _entries(text: str) -> tuple[list[tuple[str, Any]], bool]:
    """Return each entry with its place, and whether the file is an archive."""
    try:
        whole = json.loads(text)
    except ValueError:
        if not text.lstrip().startswith("{"):
            raise
        return _lines(text), False
    if isinstance(whole, dict) and "log" in whole:
        entries = whole["log"].get("entries") if isinstance(whole["log"], dict) else None
        if not isinstance(entries, list):
            raise ValueError("expected log.entries to be a list")
        return _numbered(entries), True
    return _numbered(whole if isinstance(whole, list) else [whole]), False


def _numbered(entries: list[Any]) -> list[tuple[str, Any]]:
    return [(f"request {number}", entry) for number, entry in enumerate(entries, 1)]


def _lines(text: str) -> list[tuple[str, Any]]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with _Place(f"line {number}"):
                found.append((f"line {number}", json.loads(line)))
    return found


# ---- an entry -----------------------------------------------------------------------------------


def written(entry: Any, place: str = "") -> Request:  # noqa: ANN401  # JSON
    """Return the request that an object describes.  Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError(f"expected an object with a path, got {_shown(entry)}")
    unknown = entry.keys() - _KEYS
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r}; known: {', '.join(sorted(_KEYS))}")
    headers = _pairs(entry.get("headers", {}), "headers")
    body = entry.get("body")
    if body is None:
        sent = b""
    elif isinstance(body, str):
        sent = _encoded(body)
    else:
        sent = json.dumps(body).encode()
        if not _has(headers, "content-type"):
            headers.append(("Content-Type", "application/json"))
    headers += _cookie(_pairs(entry.get("cookies", {}), "cookies"))
    weight = entry.get("weight", 1)
    if type(weight) is not int or not 1 <= weight <= _MOST_WEIGHT:
        raise ValueError(f"expected a weight from 1 to {_MOST_WEIGHT}, got {_shown(weight)}")
    found = _checked(entry.get("path"), entry.get("method", "GET"), headers, sent, place)
    return replace(found, weight=weight)


def _recorded(entry: Any, place: str) -> Request | None:  # noqa: ANN401  # JSON
    """Return the request of an archive's entry; None if it is no HTTP request."""
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        raise ValueError("expected an object with a request")
    url = request.get("url")
    if isinstance(url, str) and not _PATH.match(url):
        return None  # data:, blob:, ws:
    headers = [
        (name, value)
        for name, value in _named(request.get("headers", []), "headers")
        if not name.startswith(":") and name.lower() not in _OF_CONNECTION
    ]
    if not _has(headers, "cookie"):
        headers += _cookie(_named(request.get("cookies", []), "cookies"))
    data = request.get("postData") or {}
    if not isinstance(data, dict):
        raise ValueError(f"expected postData to be an object, got {_shown(data)}")
    text, sent = data.get("text"), b""
    if isinstance(text, str) and data.get("encoding") == "base64":
        sent = base64.b64decode(text, validate=True)
    elif isinstance(text, str) and text:
        sent = _encoded(text)
    elif data.get("params"):
        sent = urlencode(_named(data["params"], "params")).encode()
    if sent and isinstance(data.get("mimeType"), str) and not _has(headers, "content-type"):
        headers.append(("Content-Type", data["mimeType"]))
    return _checked(url, request.get("method", "GET"), headers, sent, place)


def _checked(
    path: object, method: object, headers: list[tuple[str, str]], body: bytes, place: str
) -> Request:
    if not isinstance(path, str) or not _PATH.match(path) or not _TEXT.fullmatch(path):
        raise ValueError(f"expected a path like /index or a whole address, got {_shown(path)}")
    _ = urlsplit(path).port  # a ValueError says what is wrong with an address
    if not isinstance(method, str) or not _TOKEN.fullmatch(method):
        raise ValueError(f"expected a method like GET, got {_shown(method)}")
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"expected the name of a header, got {_shown(name)}")
        if not _TEXT.fullmatch(value) or not _is_latin(value):
            raise ValueError(f"the header {name} has a character that no header may have")
    kept = tuple(each for each in headers if each[0].lower() not in _OF_CONNECTION)
    # A browser shows non-ASCII characters, which are sent quoted.
    target = quote(path.partition("#")[0], safe="!#$%&'()*+,/:;=?@[]~")
    return Request(target, method.upper(), kept, body, place)


def _cookie(cookies: list[tuple[str, str]]) -> list[tuple[str, str]]:
    for name, value in cookies:
        if not _TOKEN.fullmatch(name) or ";" in value:
            raise ValueError(f"the cookie {_shown(name)} has a character that no cookie may have")
    return [("Cookie", "; ".join(f"{name}={value}" for name, value in cookies))] if cookies else []


def _pairs(given: Any, what: str) -> list[tuple[str, str]]:  # noqa: ANN401  # JSON
    pairs: Iterable[Any] = given.items() if isinstance(given, dict) else given
    if not isinstance(given, dict | list):
        raise ValueError(f"expected {what} to be an object, got {_shown(given)}")
    found = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:  # noqa: PLR2004
            raise ValueError(f"expected a name and a value in {what}, got {_shown(pair)}")
        if not all(isinstance(each, str) for each in pair):
            raise ValueError(f"expected texts in {what}, got {_shown(list(pair))}")
        found.append((pair[0], pair[1]))
    return found


def _named(given: Any, what: str) -> list[tuple[str, str]]:  # noqa: ANN401  # JSON
    """Return an archive's list of objects with a name and a value."""
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError(f"expected {what} to be a list of objects, got {_shown(given)}")
    return _pairs([[each.get("name"), each.get("value", "")] for each in given], what)


def _has(headers: list[tuple[str, str]], wanted: str) -> bool:
    return any(name.lower() == wanted for name, _ in headers)


def _is_latin(text: str) -> bool:
    return all(ord(character) < 256 for character in text)  # noqa: PLR2004


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("its body has half of a surrogate pair") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004
