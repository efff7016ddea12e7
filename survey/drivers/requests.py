"""requests: a session's ordinary calls, and what servers do wrong."""

import requests

from survey.drivers.support import Refused, Server, fails, pages

_SERVER = Server(pages)
_REFUSED = Refused()
_SESSION = requests.Session()
_SESSION.trust_env = False


def _get(path: str, **options: object) -> "requests.Response":
    return _SESSION.get(_SERVER.url + path, **options)


def get() -> None:
    _get("/ok")


def get_without_a_session() -> None:
    requests.get(_SERVER.url + "/ok", timeout=10)


def get_by_a_new_session() -> None:
    with requests.Session() as session:
        session.get(_SERVER.url + "/ok")


def post() -> None:
    _SESSION.post(_SERVER.url + "/ok", data={"a": "b"}, files={"f": b"x"})


def get_json() -> None:
    _get("/json").json()


def get_stream() -> None:
    with _get("/ok", stream=True) as answer:
        for _ in answer.iter_content(2):
            pass


def get_lines() -> None:
    for _ in _get("/chunked", stream=True).iter_lines():
        pass


def follow_redirect() -> None:
    _get("/redirect")


def cookies() -> None:
    _get("/cookie")


def authentication() -> None:
    _get("/401", auth=requests.auth.HTTPDigestAuth("a", "b"))


def hooks() -> None:
    _get("/ok", hooks={"response": lambda answer, **_: answer})


def refused() -> None:
    fails(requests.ConnectionError, lambda: _SESSION.get(_REFUSED.url))


def refused_proxy() -> None:
    fails(requests.ConnectionError, lambda: _get("/ok", proxies={"http": _REFUSED.url}))


def timed_out() -> None:
    fails(requests.Timeout, lambda: _get("/slow", timeout=(30, 0.01)))


def dropped() -> None:
    fails(requests.ConnectionError, lambda: _get("/drop"))


def no_http() -> None:
    fails(requests.RequestException, lambda: _get("/garbage"))


def short_body() -> None:
    fails(requests.RequestException, lambda: _get("/short"))


def broken_chunk() -> None:
    fails(requests.RequestException, lambda: _get("/bad-chunk"))


def broken_compression() -> None:
    fails(requests.RequestException, lambda: _get("/bad-gzip"))


def too_many_redirects() -> None:
    fails(requests.TooManyRedirects, lambda: _get("/loop"))


def bad_redirect() -> None:
    fails((requests.RequestException, ValueError), lambda: _get("/bad-redirect"))


def status() -> None:
    fails(requests.HTTPError, lambda: _get("/404").raise_for_status())


def no_json() -> None:
    fails(requests.JSONDecodeError, lambda: _get("/ok").json())


def no_tls() -> None:
    fails(requests.RequestException, lambda: _SESSION.get(f"https://127.0.0.1:{_SERVER.port}/"))


def no_url() -> None:
    fails(requests.exceptions.MissingSchema, lambda: _SESSION.get("nothing"))


def no_such_scheme() -> None:
    fails(requests.exceptions.InvalidSchema, lambda: _SESSION.get("gopher://127.0.0.1"))


def no_such_header() -> None:
    fails(requests.exceptions.InvalidHeader, lambda: _get("/ok", headers={"a": 1}))


def read_twice() -> None:
    answer = _get("/ok", stream=True)
    list(answer.iter_content(2))
    fails(RuntimeError, lambda: answer.content)


ORDINARY = [
    get,
    get_without_a_session,
    get_by_a_new_session,
    post,
    get_json,
    get_stream,
    get_lines,
    follow_redirect,
    cookies,
    authentication,
    hooks,
]
ERRORS = [
    refused,
    refused_proxy,
    timed_out,
    dropped,
    no_http,
    short_body,
    broken_chunk,
    broken_compression,
    too_many_redirects,
    bad_redirect,
    status,
    no_json,
    no_tls,
    no_url,
    no_such_scheme,
    no_such_header,
    read_twice,
]
