"""Requests of a warm-up that a file lists."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cpythonplus._base.requests import Request, read
from cpythonplus.prefork._warming import warming

pytestmark = pytest.mark.any_version

LOGIN = {
    "path": "/login?next=/",
    "method": "post",
    "headers": {"X-Shop": "1"},
    "cookies": {"a": "1", "b": "2"},
    "body": "user=é",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "requests"


def test_a_list_lines_and_one_object(file: Path) -> None:
    other = {"path": "/items", "method": "PUT", "body": {"count": 1}}
    for text in (
        json.dumps([LOGIN, other]),
        f"{json.dumps(LOGIN)}\n\n{json.dumps(other)}\r\n",
        "\N{BYTE ORDER MARK}" + json.dumps([LOGIN, other]),
    ):
        file.write_text(text)
        login, put = read(str(file)).requests
        assert (login.target, login.method, login.body) == (
            "/login?next=/",
            "POST",
            "user=é".encode(),
        )
        assert login.headers == (("X-Shop", "1"), ("Cookie", "a=1; b=2"))
        assert put.body == b'{"count": 1}'
        assert put.headers == (("Content-Type", "application/json"),)
    file.write_text(json.dumps({"path": "/"}))
    assert [each.target for each in read(str(file)).requests] == ["/"]


def test_what_the_log_shows_has_no_query(file: Path) -> None:
    file.write_text(json.dumps([LOGIN]))
    (request,) = read(str(file)).requests
    assert str(request) == "POST /login (request 1)"


def archive(*requests: dict[str, Any]) -> str:
    entries = [{"startedDateTime": "2026-01-01", "request": each} for each in requests]
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


def test_an_archive_of_a_browser(file: Path) -> None:
    file.write_text(
        archive(
            {
                "method": "GET",
                "url": "https://shop.example.com/a?b=c d#e",
                "httpVersion": "http/2.0",
                "headers": [
                    {"name": ":authority", "value": "shop.example.com"},
                    {"name": "Accept", "value": "text/html"},
                    {"name": "Connection", "value": "keep-alive"},
                    {"name": "Host", "value": "shop.example.com"},
                ],
                "cookies": [{"name": "session", "value": "x=="}],
            },
            {"method": "GET", "url": "https://cdn.example.net/x.js", "headers": [], "cookies": []},
            {"method": "GET", "url": "data:image/png;base64,AAAA", "headers": []},
            {
                "method": "POST",
                "url": "https://shop.example.com/order",
                "headers": [{"name": "Cookie", "value": "session=y"}],
                "cookies": [{"name": "session", "value": "not used"}],
                "postData": {
                    "mimeType": "application/x-www-form-urlencoded",
                    "params": [{"name": "item", "value": "a b"}],
                },
            },
        )
    )
    (page, order), elsewhere = read(str(file))
    assert elsewhere == 2
    assert page.target == "https://shop.example.com/a?b=c%20d"
    assert page.headers == (
        ("Accept", "text/html"),
        ("Host", "shop.example.com"),
        ("Cookie", "session=x=="),
    )
    assert (order.method, order.body) == ("POST", b"item=a+b")
    assert dict(order.headers) == {
        "Cookie": "session=y",
        "Content-Type": "application/x-www-form-urlencoded",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("[]", "there is no request in it"),
        ("[3]", "request 1: expected an object with a path, got 3"),
        ("[{}]", "request 1: expected a path like /index or a whole address, got None"),
        ('[{"path": "index"}]', "request 1: expected a path like /index"),
        ('{"path": "/"}\n{"path": 1}', "line 2: expected a path"),
        ('{"path": "/"}\n{"path"', "line 2: Expecting ':' delimiter"),
        ('[{"path": "/", "url": ""}]', "request 1: unknown key 'url'; known: body, cookies"),
        ('[{"path": "/", "method": "G T"}]', "expected a method like GET, got 'G T'"),
        ('[{"path": "/", "headers": {"a b": ""}}]', "expected the name of a header, got 'a b'"),
        ('[{"path": "/", "headers": {"a": "x\\r\\ny"}}]', "the header a has a character"),
        ('[{"path": "/", "headers": {"a": 1}}]', "expected texts in headers, got ['a', 1]"),
        ('[{"path": "/", "headers": 3}]', "expected headers to be an object, got 3"),
        ('[{"path": "/", "headers": [["a"]]}]', "expected a name and a value in headers"),
        ('[{"path": "/", "cookies": {"a": "b; c"}}]', "the cookie 'a' has a character"),
        ('[{"path": "/", "body": "\\ud800"}]', "its body has half of a surrogate pair"),
        ('[{"path": "http://[::1"}]', "request 1: "),
        ('[{"path": "http://x:port/"}]', "request 1: "),
        ('{"log": 3}', "expected log.entries to be a list"),
        ('{"log": {"entries": [{}]}}', "request 1: expected an object with a request"),
        ("[" * 100_000, "its JSON is nested too deeply"),
    ],
)
def test_a_damaged_file_is_one_line(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(warming.Failed) as failed:
        warming.warm_up(warming.WarmUp(file=str(file)), print)
    told = str(failed.value)
    assert told.startswith(f"the warm-up's requests {file}: ")
    assert why in told
    assert "\n" not in told


def test_files_that_cannot_be_read(file: Path) -> None:
    def told() -> str:
        with pytest.raises(warming.Failed) as failed:
            warming.warm_up(warming.WarmUp(file=str(file)), print)
        return str(failed.value).partition(f"requests {file}: ")[2]

    assert told() == "No such file or directory"
    file.write_bytes(b"\xff\xfe")
    assert told().startswith("'utf-8' codec can't decode")
    file.unlink()
    file.mkdir()
    assert told() == "Is a directory"
    file.rmdir()
    os.mkfifo(file)
    assert told() == "it is a pipe that nothing is written to"
    file.unlink()
    file.symlink_to("/dev/zero")
    assert told() == "it is not a regular file"


# ---- what the application gets ------------------------------------------------------------------


def test_a_wsgi_application_gets_it_all(file: Path) -> None:
    asked: list[dict[str, Any]] = []

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401
        environ["read"] = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        asked.append(environ)
        start_response("303 See Other", [])
        return []

    file.write_text(json.dumps([{**LOGIN, "headers": [["Content-Type", "x/y"], ["X-Shop", "1"]]}]))
    (answer,) = warming.warm_up(warming.WarmUp(file=str(file)), application)
    assert answer.target == "POST /login (request 1)"
    assert answer.status == 303
    (environ,) = asked  # once: it may change something
    assert environ["read"] == "user=é".encode()
    wanted = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/login",
        "QUERY_STRING": "next=/",
        "CONTENT_TYPE": "x/y",
        "CONTENT_LENGTH": "7",
        "HTTP_X_SHOP": "1",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_HOST": "localhost",
    }
    assert {name: environ[name] for name in wanted} == wanted


def test_an_asgi_application_gets_it_all(file: Path) -> None:
    asked: list[tuple[Any, ...]] = []

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401
        assert scope["type"] == "http"
        headers = dict(scope["headers"])
        asked.append((scope["method"], scope["query_string"], headers[b"cookie"], await receive()))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    file.write_text(json.dumps(LOGIN))
    plan = warming.WarmUp(file=str(file), repeats=2)
    assert [each.status for each in warming.warm_up(plan, application)] == [204]
    body = {"type": "http.request", "body": "user=é".encode(), "more_body": False}
    assert asked == [("POST", b"next=/", b"a=1; b=2", body)] * 2


def test_headers_that_every_client_sends_may_be_given() -> None:
    request = Request("http://example.com:81/", headers=(("host", "other"), ("Accept", "a/b")))
    names = [name.lower() for name, _ in request.all_headers()]
    assert sorted(names) == ["accept", "host", "user-agent"]
    assert request.server == ("example.com", 81)
