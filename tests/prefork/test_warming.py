"""Warm-ups: requests through WSGI and ASGI without a server, and callables."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cpythonplus.prefork import _warming as warming

pytestmark = pytest.mark.any_version

Start = Callable[[str, list[tuple[str, str]]], object]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Recorder:
    """A WSGI application that keeps what it was asked, and whether its answers were closed."""

    def __init__(self, status: str = "200 OK") -> None:
        self.status = status
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        self.asked.append(environ)
        start_response(self.status, [])
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"abc", b"de"])

    def close(self) -> None:
        self.closed += 1


def test_a_path_is_asked_for_until_the_bytecode_is_warm() -> None:
    application = Recorder()
    answers = warming.warm_up(["/a%20b?x=1"], application)
    assert answers == [warming.Answer("/a%20b?x=1", 200, 5)]
    assert answers[0].good
    assert len(application.asked) == application.closed == warming.REPEATS
    assert application.asked[0]["PATH_INFO"] == "/a b"
    assert application.asked[0]["QUERY_STRING"] == "x=1"


def test_an_address_gives_the_host() -> None:
    application = Recorder()
    warming.warm_up(["https://example.com/x"], application)
    asked = application.asked[0]
    assert (asked["HTTP_HOST"], asked["SERVER_PORT"]) == ("example.com", "443")
    assert asked["wsgi.url_scheme"] == "https"


def test_a_bad_answer_is_told_and_not_repeated() -> None:
    application = Recorder("500 Oops")
    (answer,) = warming.warm_up(["/"], application)
    assert not answer.good
    assert len(application.asked) == 1


def test_an_asgi_application_is_recognised() -> None:
    async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})
        assert (await receive())["type"] == "http.disconnect"

    assert warming.is_asgi(application)
    assert not warming.is_asgi(Recorder())
    assert warming.warm_up(["/é"], application) == [warming.Answer("/é", 201, 3)]


def test_callables_are_called_once_in_order() -> None:
    called: list[str] = []
    warming.warm_up([lambda: called.append("first"), lambda: called.append("second")], Recorder())
    assert called == ["first", "second"]


def test_modules_are_imported_and_names_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    module = SimpleNamespace(
        one=lambda: called.append("one"), inner=SimpleNamespace(two=lambda: called.append("two"))
    )
    monkeypatch.setitem(sys.modules, "warmed", module)
    warming.warm_up(["warmed", "warmed:one", "warmed:inner.two"])
    assert called == ["one", "two"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("sys:no_such_name", "cannot be imported: AttributeError"),
        ("sys:maxsize", "is not callable"),
        ("/", "no application was found"),
    ],
)
def test_what_cannot_be_done_is_told(target: str, why: str) -> None:
    with pytest.raises(warming.Failed, match=f"the warm-up.* {target}:? {why}"):
        warming.warm_up([target])
