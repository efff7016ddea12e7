"""Werkzeug: requests, routing, the debugger and the test client."""

import io
from collections.abc import Callable, Iterable

from werkzeug import exceptions
from werkzeug.datastructures import MultiDict
from werkzeug.debug import DebuggedApplication
from werkzeug.formparser import parse_form_data
from werkzeug.local import LocalStack
from werkzeug.routing import BuildError, Map, RequestRedirect, Rule, Submount
from werkzeug.test import Client, EnvironBuilder
from werkzeug.wrappers import Request, Response

from survey.drivers.support import fails

_RULES = [
    Rule("/", endpoint="index"),
    Rule("/item/<int:n>", endpoint="item", methods=["GET"]),
    Rule("/folder/", endpoint="folder"),
]
_MAP = Map(_RULES)
_STACK: LocalStack[int] = LocalStack()


@Request.application
def _application(request: Request) -> Response:
    if request.path == "/refuse":
        raise ValueError("refused")
    if request.path == "/abort":
        exceptions.abort(403)
    return Response(f"{request.args.get('a')} {request.form.get('b')}")


_CLIENT = Client(_application)


def _failing(_environ: object, _start: object) -> Iterable[bytes]:
    raise ValueError("refused")


def _failing_later(_environ: object, start: Callable[..., object]) -> Iterable[bytes]:
    start("200 OK", [])
    yield b"x"
    raise ValueError("refused")


def get() -> None:
    _CLIENT.get("/?a=1").get_data()


def post() -> None:
    _CLIENT.post("/", data={"b": "x", "f": (io.BytesIO(b"x"), "name")}).close()


def new_client() -> None:
    Client(_application).get("/").close()


def request() -> None:
    found = Request(EnvironBuilder(path="/?a=1", json={"a": 1}).get_environ())
    assert found.json


def streamed() -> None:
    Response(iter([b"a", b"b"])).get_data()


def match() -> None:
    _MAP.bind("localhost").match("/item/3")


def build() -> None:
    _MAP.bind("localhost").build("item", {"n": 3})


def new_map() -> None:
    Map([Submount("/x", [Rule("/y", endpoint="y")])]).bind("localhost").match("/x/y")


def local_proxy() -> None:
    _STACK.push(1)
    str(_STACK())
    _STACK.pop()


def multidict() -> None:
    MultiDict([("a", 1), ("a", 2)]).getlist("a", type=int)


def debugged() -> None:
    Client(DebuggedApplication(_application)).get("/").close()


def aborted() -> None:
    _CLIENT.get("/abort").close()


def failing_application() -> None:
    fails(ValueError, lambda: _CLIENT.get("/refuse"))


def failing_application_in_the_debugger() -> None:
    Client(DebuggedApplication(_failing)).get("/").close()


def failing_stream_in_the_debugger() -> None:
    Client(DebuggedApplication(_failing_later)).get("/").get_data()


def no_such_page() -> None:
    fails(exceptions.NotFound, lambda: _MAP.bind("localhost").match("/none"))


def wrong_method() -> None:
    fails(
        exceptions.MethodNotAllowed,
        lambda: _MAP.bind("localhost").match("/item/3", method="POST"),
    )


def wrong_number() -> None:
    fails(exceptions.NotFound, lambda: _MAP.bind("localhost").match("/item/x"))


def missing_slash() -> None:
    fails(RequestRedirect, lambda: _MAP.bind("localhost").match("/folder"))


def cannot_build() -> None:
    fails(BuildError, lambda: str(_MAP.bind("localhost").build("itme", {"n": 3})))


def missing_key() -> None:
    empty: MultiDict[str, str] = MultiDict()
    fails(exceptions.BadRequestKeyError, lambda: empty["a"])


def wrong_type() -> None:
    MultiDict([("a", "x")]).get("a", type=int)


def no_json() -> None:
    def work() -> object:
        builder = EnvironBuilder(method="POST", data=b"{", content_type="application/json")
        return Request(builder.get_environ()).json

    fails(exceptions.BadRequest, work)


def too_large() -> None:
    environ = EnvironBuilder(method="POST", data={"a": "x" * 100}).get_environ()

    def work() -> object:
        found = Request(environ)
        found.max_content_length = 10
        return found.form

    fails(exceptions.RequestEntityTooLarge, work)


def broken_form() -> None:
    kind = "multipart/form-data; boundary=x"
    parse_form_data(EnvironBuilder(method="POST", data=b"y", content_type=kind).get_environ())


def unbound_local() -> None:
    fails(RuntimeError, lambda: str(_STACK()._get_current_object()))


ORDINARY = [
    get,
    post,
    new_client,
    request,
    streamed,
    match,
    build,
    new_map,
    local_proxy,
    multidict,
    debugged,
]
ERRORS = [
    aborted,
    failing_application,
    failing_application_in_the_debugger,
    failing_stream_in_the_debugger,
    no_such_page,
    wrong_method,
    wrong_number,
    missing_slash,
    cannot_build,
    missing_key,
    wrong_type,
    no_json,
    too_large,
    broken_form,
    unbound_local,
]
