"""Flask: requests through its test client, and what applications do wrong."""

from collections.abc import Iterator
from typing import NoReturn

import flask
from flask import testing, views

from survey.drivers.support import fails

_APP = flask.Flask("survey")
_APP.secret_key = "no secret"
_APP.logger.disabled = True
_BLUEPRINT = flask.Blueprint("part", "survey", url_prefix="/part")


class _KnownError(Exception):
    """One that the application handles."""


@_APP.get("/")
def _index() -> str:
    return "fine"


@_APP.post("/form")
def _form() -> str:
    return flask.request.form["name"]


@_APP.get("/json")
def _json() -> flask.Response:
    return flask.jsonify(a=1)


@_APP.get("/template")
def _template() -> str:
    return flask.render_template_string("{{ request.path }}{{ url_for('_index') }}")


@_APP.get("/session")
def _session() -> str:
    flask.session["n"] = flask.session.get("n", 0) + 1
    flask.flash("noted")
    return "fine"


@_APP.get("/stream")
def _stream() -> flask.Response:
    def parts() -> Iterator[str]:
        yield flask.request.path
        yield "x"

    return flask.Response(flask.stream_with_context(parts()))


@_APP.get("/abort")
def _abort() -> NoReturn:
    flask.abort(403)


@_APP.get("/refuse")
def _refuse() -> NoReturn:
    raise ValueError("refused")


@_APP.get("/known")
def _known() -> NoReturn:
    raise _KnownError


@_APP.errorhandler(_KnownError)
def _handle(_: Exception) -> tuple[str, int]:
    return "known", 400


@_APP.get("/no-template")
def _no_template() -> str:
    return flask.render_template("missing.html")


@_APP.get("/failing-template")
def _failing_template() -> str:
    return flask.render_template_string("{{ refuse() }}", refuse=_refuse)


@_APP.get("/no-url")
def _no_url() -> str:
    return flask.url_for("missing")


@_APP.get("/nothing")  # type: ignore[type-var]
def _nothing() -> None:
    return None


@_APP.get("/failing-stream")
def _failing_stream() -> flask.Response:
    def parts() -> Iterator[str]:
        yield "x"
        raise ValueError("refused")

    return flask.Response(parts())


@_BLUEPRINT.before_request
def _before() -> None:
    flask.g.user = "me"


@_BLUEPRINT.get("/")
def _part() -> str:
    return str(flask.g.user)


@_BLUEPRINT.teardown_request
def _after(_: BaseException | None) -> None:
    flask.g.pop("user", None)


class _View(views.MethodView):
    def get(self) -> str:
        return "fine"


_APP.add_url_rule("/view", view_func=_View.as_view("view"))
_APP.register_blueprint(_BLUEPRINT)
_CLIENT: testing.FlaskClient = _APP.test_client()


def _get(path: str) -> None:
    _CLIENT.get(path).close()


def _call(path: str) -> None:
    """Past the handler of unexpected errors, as in tests."""
    _APP.testing = True
    try:
        _CLIENT.get(path).close()
    finally:
        _APP.testing = False


def get() -> None:
    _get("/")


def get_by_a_new_client() -> None:
    with _APP.test_client() as client:
        client.get("/").close()


def post() -> None:
    _CLIENT.post("/form", data={"name": "x"}).close()


def get_json() -> None:
    assert _CLIENT.get("/json").json


def template() -> None:
    _get("/template")


def session() -> None:
    _get("/session")


def stream() -> None:
    _CLIENT.get("/stream").get_data()


def blueprint() -> None:
    _get("/part/")


def view() -> None:
    _get("/view")


def contexts() -> None:
    with _APP.app_context(), _APP.test_request_context("/"):
        flask.url_for("_index")


def no_such_page() -> None:
    _get("/none")


def wrong_method() -> None:
    _get("/form")


def aborted() -> None:
    _get("/abort")


def refused() -> None:
    _get("/refuse")


def refused_in_a_test() -> None:
    fails(ValueError, lambda: _call("/refuse"))


def handled() -> None:
    _get("/known")


def missing_form_field() -> None:
    _CLIENT.post("/form").close()


def missing_template() -> None:
    _get("/no-template")


def failing_template() -> None:
    _get("/failing-template")


def cannot_build() -> None:
    _get("/no-url")


def nothing_returned() -> None:
    _get("/nothing")


def failing_stream() -> None:
    fails(ValueError, lambda: _CLIENT.get("/failing-stream").get_data())


def outside_of_a_context() -> None:
    fails(RuntimeError, lambda: flask.request.path)


def registered_twice() -> None:
    fails(ValueError, lambda: _new().register_blueprint(_BLUEPRINT))


def _new() -> flask.Flask:
    app = flask.Flask("other")
    app.register_blueprint(_BLUEPRINT)
    return app


ORDINARY = [
    get,
    get_by_a_new_client,
    post,
    get_json,
    template,
    session,
    stream,
    blueprint,
    view,
    contexts,
]
ERRORS = [
    no_such_page,
    wrong_method,
    aborted,
    refused,
    refused_in_a_test,
    handled,
    missing_form_field,
    missing_template,
    failing_template,
    cannot_build,
    nothing_returned,
    failing_stream,
    outside_of_a_context,
    registered_twice,
]
