"""Using gunicorn's own code for requests and answers before the fork, as workers will use it.

The application's warm-up does not go through it, and the first requests of each worker would
specialise its bytecode in pages that then are that worker's own.
"""

import socket
from contextlib import suppress
from typing import Any

from cpythonplus.prefork._warming import REPEATS

__all__ = ["rehearse_requests"]

_REQUEST = (
    b"GET /?a=b HTTP/1.1\r\nHost: localhost\r\nUser-Agent: rehearsal\r\nAccept: */*\r\n"
    b"Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
)


def rehearse_requests(config: Any) -> bool:  # noqa: ANN401  # gunicorn's Config
    """Parse some requests and write some answers, over a pair of sockets; False if that failed.

    No hook of the configuration is called, and nothing is logged.
    """
    from gunicorn.http import wsgi
    from gunicorn.http.parser import RequestParser

    # Whatever another version of gunicorn does differently: the workers will learn it themselves.
    with suppress(Exception):
        for _ in range(REPEATS):
            here, there = socket.socketpair()
            with here, there:
                there.sendall(_REQUEST)
                request = next(RequestParser(config, here, ("127.0.0.1", 1)))
                answer, _environ = wsgi.create(
                    request, here, ("127.0.0.1", 1), ("127.0.0.1", 2), config
                )
                answer.start_response("200 OK", [("Content-Type", "text/plain")])
                answer.write(b"rehearsed")
                answer.close()
        return True
    return False
