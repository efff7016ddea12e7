"""Warm-ups: requests through WSGI and ASGI without a server, and callables."""

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cpythonplus.prefork._applications import is_asgi
from cpythonplus.prefork._warming import warming
from cpythonplus.prefork._warming.warming import WarmUp

pytestmark = pytest.mark.any_version

Start = Callable[[str, list[tuple[str, str]]], object]
Scope = dict[str, Any]
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


def warm(*targets: str | Callable[[], object], of: Any = None, **plan: Any) -> list[warming.Answer]:  # noqa: ANN401
    return warming.warm_up(WarmUp(targets=targets, **plan), of)


def test_a_path_is_asked_for_until_the_bytecode_is_warm() -> None:
    application = Recorder()
    answers = warm("/a%20b?x=1", of=application)
    assert answers == [warming.Answer("/a%20b?x=1", 200, 5)]
    assert answers[0].good
    assert len(application.asked) == application.closed == warming.REPEATS
    assert application.asked[0]["PATH_INFO"] == "/a b"
    assert application.asked[0]["QUERY_STRING"] == "x=1"


def test_an_address_gives_the_host() -> None:
    application = Recorder()
    warm("https://example.com/x", of=application)
    asked = application.asked[0]
    assert (asked["HTTP_HOST"], asked["SERVER_PORT"]) == ("example.com", "443")
    assert asked["wsgi.url_scheme"] == "https"


def test_a_bad_answer_is_told_and_not_repeated() -> None:
    application = Recorder("500 Oops")
    (answer,) = warm("/", of=application)
    assert not answer.good
    assert len(application.asked) == 1


def test_so_many_times() -> None:
    application = Recorder()
    warm("/", of=application, repeats=3)
    assert len(application.asked) == 3


def test_an_asgi_application_is_recognised() -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"  # no lifespan
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})
        assert (await receive())["type"] == "http.disconnect"

    assert is_asgi(application)
    assert not is_asgi(Recorder())
    assert warm("/é", of=application) == [warming.Answer("/é", 201, 3)]


def test_callables_are_called_once_in_order() -> None:
    called: list[str] = []
    warm(lambda: called.append("first"), lambda: called.append("second"), of=Recorder())
    assert called == ["first", "second"]


def test_modules_are_imported_and_names_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    module = SimpleNamespace(
        one=lambda: called.append("one"), inner=SimpleNamespace(two=lambda: called.append("two"))
    )
    monkeypatch.setitem(sys.modules, "warmed", module)
    warm("warmed", "warmed:one", "warmed:inner.two")
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
        warm(target)


def test_a_failure_that_does_not_stop() -> None:
    application, failed = Recorder(), []
    plan = WarmUp(targets=["sys:maxsize", "/", "/x"], file="no such file")
    answers = warming.warm_up(plan, application, failed=lambda error: failed.append(str(error)))
    assert [answer.target for answer in answers] == ["/", "/x"]
    assert failed == [
        "the warm-up sys:maxsize is not callable",
        "the warm-up's requests no such file: No such file or directory",
    ]


# ---- the time limit -----------------------------------------------------------------------------


def test_a_request_that_takes_too_long() -> None:
    def application(_environ: object, _start_response: Start) -> Iterable[bytes]:
        while True:
            try:
                time.sleep(600)
            except Exception:  # noqa: BLE001  # as frameworks do
                continue

    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(warming.Failed, match=r"the warm-up of / was ended: .* than 0.01 s \(at .*"):
        warm("/", of=application, limit_s=0.01)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_the_programs_own_timer_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        warm("/", of=Recorder(), limit_s=600)
        while not rung:
            signal.sigtimedwait([], 0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
