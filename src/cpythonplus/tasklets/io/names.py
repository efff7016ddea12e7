"""Names of hosts, looked up in threads while only the tasklet waits.

The functions are those of `socket`, with their arguments, results and exceptions. Arguments that
need no look-up, such as numeric addresses, are answered at once. The system's resolver cannot be
stopped: it goes on in its thread when the tasklet has been killed, and its result is dropped.
"""

# The standard library's names and parameters.
# ruff: noqa: A002, PLR0917

import _socket
import socket as _stock
from typing import Any

from cpythonplus.tasklets.io import _standard as standard
from cpythonplus.tasklets.io._threadpool import in_thread

__all__ = [
    "getaddrinfo",
    "getfqdn",
    "gethostbyaddr",
    "gethostbyname",
    "gethostbyname_ex",
    "getnameinfo",
]

_NUMERIC = _socket.NI_NUMERICHOST | _socket.NI_NUMERICSERV
_NOT_LOOKED_UP = ("", "<broadcast>", "localhost")  # no other host is asked for these
_THIS_HOST = ("127.0.0.1", "::1", "localhost")

# The standard functions, taken before any patch.
_getaddrinfo = _stock.getaddrinfo
_gethostbyname = _socket.gethostbyname
_gethostbyname_ex = _socket.gethostbyname_ex
_gethostbyaddr = _socket.gethostbyaddr
_getnameinfo = _socket.getnameinfo


def _is_number(host: object, family: int) -> bool:
    if not isinstance(host, str):
        return False
    if host in _NOT_LOOKED_UP:
        return True
    try:
        _socket.inet_pton(family, host.partition("%")[0])
    except (OSError, ValueError):
        return False
    return True


def getaddrinfo(
    host: bytes | str | None,
    port: bytes | str | int | None,
    family: int = 0,
    type: int = 0,
    proto: int = 0,
    flags: int = 0,
) -> Any:  # noqa: ANN401  # as in the standard module
    """Return the addresses of a host and a service. gaierror if there are none."""
    if host is not None and host not in _NOT_LOOKED_UP:
        try:
            return _getaddrinfo(host, port, family, type, proto, flags | _socket.AI_NUMERICHOST)
        except _socket.gaierror:
            return in_thread(_getaddrinfo, host, port, family, type, proto, flags)
    return _getaddrinfo(host, port, family, type, proto, flags)


def gethostbyname(hostname: str, /) -> str:
    """Return the IPv4 address of a host. gaierror if it has none."""
    if _is_number(hostname, _socket.AF_INET):
        return _gethostbyname(hostname)
    return in_thread(_gethostbyname, hostname)


def gethostbyname_ex(hostname: str, /) -> tuple[str, list[str], list[str]]:
    """Return a host's name, its other names, and its IPv4 addresses. gaierror if it has none."""
    if _is_number(hostname, _socket.AF_INET):
        return _gethostbyname_ex(hostname)
    return in_thread(_gethostbyname_ex, hostname)


def gethostbyaddr(ip_address: str, /) -> tuple[str, list[str], list[str]]:
    """Return a host's name, its other names, and its addresses. herror or gaierror if unknown."""
    if isinstance(ip_address, str) and ip_address in _THIS_HOST:
        return _gethostbyaddr(ip_address)
    return in_thread(_gethostbyaddr, ip_address)


def getnameinfo(
    sockaddr: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes], flags: int, /
) -> tuple[str, str]:
    """Return the names of a host and a service. gaierror if it is unknown."""
    if isinstance(flags, int) and flags & _NUMERIC == _NUMERIC:
        return _getnameinfo(sockaddr, flags)
    return in_thread(_getnameinfo, sockaddr, flags)


# The standard function with our gethostbyaddr().
getfqdn = standard.function_over(_stock.getfqdn, {**vars(_stock), "gethostbyaddr": gethostbyaddr})


def with_number(address: tuple[Any, ...], family: int) -> tuple[Any, ...]:
    """Return a socket's address with its host's name looked up. gaierror if that fails."""
    host = address[0]
    if _is_number(host, family):
        return address
    found = getaddrinfo(host, None, family)[0][4]
    # The scope of the name is used if the address has none.
    rest = (*address[1:2], *(address[2:] or found[2:]))
    return (found[0], *rest)


# The replacements of patch(), by module and name.
_functions = (getaddrinfo, gethostbyaddr, gethostbyname, gethostbyname_ex, getnameinfo)
REPLACEMENTS = {"socket": {function.__name__: function for function in _functions}}
