"""Serves a few requests inside the process, so that what the first ones make is there already.

For `cpythonplus serve --warm-up examples.django_catalogue.warm_up:warm_up`: resolved URLs, the
fields of serializers and specialised bytecode are then made once, in the master, and shared.
"""

from typing import Any
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

from examples.django_catalogue.catalogue import CATEGORIES, CURRENCIES, TAGS
from examples.django_catalogue.wsgi import application

ROUNDS = 20
"""More than the calls after which the interpreter has specialised a function's bytecode."""


def warm_up() -> None:
    """Ask each endpoint a few times. Raises RuntimeError for an answer that is not 200."""
    for path in paths():
        status = ask(path)
        if not status.startswith("200"):
            raise RuntimeError(f"{path} answered {status}")


def ask(path: str) -> str:
    """Send `GET path` through the WSGI interface; return the answer's status line."""
    parts = urlsplit(path)
    environ: dict[str, Any] = {"PATH_INFO": parts.path, "QUERY_STRING": parts.query}
    setup_testing_defaults(environ)
    given: list[str] = []
    answer = application(environ, lambda status, _headers: given.append(status))
    try:
        b"".join(answer)
    finally:
        answer.close()
    return given[0]


def paths() -> list[str]:
    """Return what is asked for."""
    # Not at the top: it needs Django's settings, which the application sets up.
    from examples.django_catalogue import views

    skus = list(views.CATALOGUE.by_sku)[:ROUNDS]
    found = [f"/items/{sku}/{more}" for sku in skus for more in ("", "related/")]
    for turn in range(ROUNDS):
        currency = CURRENCIES[turn % len(CURRENCIES)]
        found += [
            f"/items/?tag={TAGS[turn]}&currency={currency}",
            f"/prices/{CATEGORIES[turn]}/",
            "/health/",
        ]
    return found
