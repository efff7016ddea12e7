"""urllib3: pools, retries, and what servers do wrong."""

import urllib3
from urllib3 import exceptions

from survey.drivers.support import Refused, Server, fails, pages

_SERVER = Server(pages)
_REFUSED = Refused()
_NO_RETRY = urllib3.Retry(0)
_RETRY = urllib3.Retry(2, backoff_factor=0)
_IMPATIENT = urllib3.Timeout(connect=30, read=0.01)
# One pool for all calls, as a service has.
_POOL = urllib3.PoolManager()


def _get(path: str, **options: object) -> object:
    return _POOL.request("GET", _SERVER.url + path, **options)


def get() -> None:
    _get("/ok")


def get_by_a_new_pool() -> None:
    with urllib3.PoolManager() as pool:
        pool.request("GET", _SERVER.url + "/ok")


def post() -> None:
    _POOL.request("POST", _SERVER.url + "/ok", fields={"a": "b"})


def get_json() -> None:
    _POOL.request("GET", _SERVER.url + "/json").json()


def get_compressed() -> None:
    _get("/gzip")


def get_chunked() -> None:
    _get("/chunked")


def get_stream() -> None:
    answer = _POOL.request("GET", _SERVER.url + "/ok", preload_content=False)
    for _ in answer.stream(2):
        pass
    answer.release_conn()


def follow_redirect() -> None:
    _get("/redirect")


def missing_page() -> None:
    _get("/404")


def refused() -> None:
    fails(exceptions.MaxRetryError, lambda: _POOL.request("GET", _REFUSED.url, retries=_NO_RETRY))


def refused_with_retries() -> None:
    fails(exceptions.MaxRetryError, lambda: _POOL.request("GET", _REFUSED.url, retries=_RETRY))


def refused_without_retries() -> None:
    fails(exceptions.HTTPError, lambda: _POOL.request("GET", _REFUSED.url, retries=False))


def refused_proxy() -> None:
    with urllib3.ProxyManager(_REFUSED.url) as pool:
        fails(
            exceptions.HTTPError,
            lambda: pool.request("GET", _SERVER.url + "/ok", retries=_NO_RETRY),
        )


def refused_tunnel() -> None:
    with urllib3.ProxyManager(_SERVER.url) as pool:
        fails(
            exceptions.HTTPError,
            lambda: pool.request("GET", "https://127.0.0.1/", retries=_NO_RETRY),
        )


def timed_out() -> None:
    fails(exceptions.HTTPError, lambda: _get("/slow", timeout=_IMPATIENT, retries=_NO_RETRY))


def timed_out_without_retries() -> None:
    fails(exceptions.HTTPError, lambda: _get("/slow", timeout=_IMPATIENT, retries=False))


def dropped() -> None:
    fails(exceptions.HTTPError, lambda: _get("/drop", retries=_NO_RETRY))


def no_http() -> None:
    fails(exceptions.HTTPError, lambda: _get("/garbage", retries=_NO_RETRY))


def short_body() -> None:
    fails(exceptions.HTTPError, lambda: _get("/short", retries=_NO_RETRY))


def broken_chunk() -> None:
    fails(exceptions.HTTPError, lambda: _get("/bad-chunk", retries=_NO_RETRY))


def broken_compression() -> None:
    fails(exceptions.HTTPError, lambda: _get("/bad-gzip", retries=_NO_RETRY))


def too_many_redirects() -> None:
    fails(exceptions.MaxRetryError, lambda: _get("/loop", retries=_RETRY))


def too_many_errors() -> None:
    retries = urllib3.Retry(1, status_forcelist=[503], backoff_factor=0)
    fails(exceptions.MaxRetryError, lambda: _get("/503", retries=retries))


def no_tls() -> None:
    url = f"https://127.0.0.1:{_SERVER.port}/"
    fails(exceptions.HTTPError, lambda: _POOL.request("GET", url, retries=_NO_RETRY))


def no_url() -> None:
    fails(exceptions.LocationParseError, lambda: _POOL.request("GET", "http://[broken"))


def no_such_scheme() -> None:
    fails(exceptions.URLSchemeUnknown, lambda: _POOL.request("GET", "gopher://127.0.0.1/"))


def no_json() -> None:
    fails(ValueError, lambda: _POOL.request("GET", _SERVER.url + "/ok").json())


def full_pool() -> None:
    pool = urllib3.HTTPConnectionPool("127.0.0.1", _SERVER.port, maxsize=1, block=True)
    held = pool.request("GET", "/ok", preload_content=False)
    try:
        fails(exceptions.EmptyPoolError, lambda: pool.request("GET", "/ok", pool_timeout=0.001))
    finally:
        held.close()
        pool.close()


def closed_pool() -> None:
    pool = urllib3.HTTPConnectionPool("127.0.0.1", _SERVER.port)
    pool.close()
    fails(exceptions.ClosedPoolError, lambda: pool.request("GET", "/ok"))


ORDINARY = [
    get,
    get_by_a_new_pool,
    post,
    get_json,
    get_compressed,
    get_chunked,
    get_stream,
    follow_redirect,
    missing_page,
]
ERRORS = [
    refused,
    refused_with_retries,
    refused_without_retries,
    refused_proxy,
    refused_tunnel,
    timed_out,
    timed_out_without_retries,
    dropped,
    no_http,
    short_body,
    broken_chunk,
    broken_compression,
    too_many_redirects,
    too_many_errors,
    no_tls,
    no_url,
    no_such_scheme,
    no_json,
    full_pool,
    closed_pool,
]
