"""The options for forking workers: one model for all servers.

An option has one name.  In Python it is an argument; in the environment CPYTHONPLUS_PREFORK_NAME;
in a configuration file of gunicorn or celery prefork_name; for `cpythonplus serve` --name, or
--no-name if it is on by default.
"""

import dataclasses
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cpythonplus._base.shared_options import (
    JOB_SHARE_SHAPE,
    JOB_SHARE_TEXT,
    POLICY_SHAPE,
    POLICY_TEXT,
)
from cpythonplus._base.switch import is_on
from cpythonplus._base.text.sizes import parse_size
from cpythonplus.prefork._activation import checked_policy, checked_share


class _Named(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines tell their origin in another program's log."""

    def process(self, msg: Any, kwargs: Any) -> tuple[str, Any]:  # noqa: ANN401  # as in logging
        return f"cpythonplus prefork: {msg}", kwargs


log = _Named(logging.getLogger("cpythonplus.prefork"))


_DIGITS = 9
_MOST_SECONDS = 1e6
_FAILURES = ("stop", "continue")


# ---- readers of values; they raise ValueError ---------------------------------------------


def _switch(value: object) -> bool:
    on = is_on(str(value))
    if on is None:
        raise ValueError(f"expected on or off, got {value!r}")
    return on


def _size(value: object) -> int:
    size = value if isinstance(value, int) else parse_size(str(value))
    if size < 0:
        raise ValueError(f"expected a size of 0 or more, got {value!r}")
    return size


def _positive(value: object) -> int:
    text = str(value)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise ValueError(f"expected a number from 1 on, got {value!r}")
    return int(text)


def _file(value: object) -> str | None:
    text = "" if value is None else os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise ValueError(f"expected the name of a file, got {value!r}")
    return text or None


def _count(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise ValueError(f"expected a number of 0 or more, got {value!r}")
    return int(text)


def _seconds(value: object) -> float:
    try:
        seconds = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if isinstance(value, bool) or not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"expected a number of seconds, 0 or more, got {value!r}")
    return seconds


def _failure(value: object) -> str | None:
    if value not in {None, *_FAILURES}:
        raise ValueError(f"expected {' or '.join(_FAILURES)}, got {value!r}")
    return None if value is None else str(value)


def _policy(value: object) -> str | None:
    return None if value is None else checked_policy(str(value))


def _share(value: object) -> str | None:
    return None if value is None else checked_share(str(value))


def is_path(target: object) -> bool:
    """Whether it is a path of a web application, or a whole address."""
    return isinstance(target, str) and target.startswith(("/", "http://", "https://"))


def _is_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.replace(":", ".", 1).split("."))


def _warm_up(target: object) -> object:
    if callable(target) or is_path(target) or (isinstance(target, str) and _is_name(target)):
        return target
    raise ValueError(
        "expected a path like /index, package.module,"
        f" package.module:callable or a callable, got {target!r}"
    )


def _warm_ups(value: object) -> tuple[object, ...]:
    if isinstance(value, str):
        value = [entry.strip() for entry in value.split(",") if entry.strip()]
    if callable(value) or not isinstance(value, Iterable):
        value = [value]
    return tuple(map(_warm_up, value))


_ADDRESS = re.compile(
    r"(?:(?:(?P<name>[\w.-]+)|\[(?P<v6>[\w:.%]+)\]):)?(?P<port>\d{1,5})", re.ASCII
)


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of an address: `HOST:PORT`, `[IPV6]:PORT`, or a port of 127.0.0.1."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) >= 1 << 16:
        raise ValueError(
            "expected a path like /metrics, or an address like"
            f" 9100, 127.0.0.1:9100 or [::1]:9100, got {address!r}"
        )
    return match["name"] or match["v6"] or "127.0.0.1", int(match["port"])


OPENTELEMETRY = "opentelemetry"
"""The value of `metrics` for instruments of OpenTelemetry."""


def _place(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    if text and text != OPENTELEMETRY and not text.startswith("/"):
        host_and_port(text)
    return text or None


def _filter(value: object) -> object:
    if callable(value) or value is None:
        return value
    text = str(value)
    if ":" not in text or not _is_name(text):
        raise ValueError(f"expected package.module:callable, got {text!r}")
    return text


# ---- the model ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """The names of one option, and its effect.

    text: one sentence, for --help and for the reference; for a switch, its effect when on. shape:
    the form of a value, empty for a switch. read: returns the value of a text; ValueError.
    """

    name: str
    default: object
    text: str
    shape: str
    read: Callable[[object], object]

    @property
    def variable(self) -> str:
        """The name of the option's environment variable."""
        return f"CPYTHONPLUS_PREFORK_{self.name.upper()}"

    @property
    def setting(self) -> str:
        """The name of the option in a configuration file."""
        return f"prefork_{self.name}"

    @property
    def word(self) -> str:
        """The option on the command line; for a switch the form that changes its default."""
        return f"--{'no-' if self.is_on else ''}{self.name.replace('_', '-')}"

    @property
    def is_on(self) -> bool:
        """Whether the option is a switch that is on by default."""
        return not self.shape and bool(self.default)


def _option(text: str, read: Callable[[object], object], shape: str = "", *, default: Any) -> Any:  # noqa: ANN401  # the type of the field
    return field(default=default, metadata={"text": text, "read": read, "shape": shape})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a server; ValueError, naming the option, for a wrong value.

    Each value may also be given as the text that the environment has for it, a warm-up also as one
    entry or any number of them, and a name also as the callable itself.
    """

    gil: bool = _option("Schedule the workers' GIL.", _switch, default=True)
    policy: str | None = _option(
        f"{POLICY_TEXT[0].upper()}{POLICY_TEXT[1:]}.", _policy, POLICY_SHAPE, default=None
    )
    job_share: str | None = _option(
        f"{JOB_SHARE_TEXT[0].upper()}{JOB_SHARE_TEXT[1:]}; it wins over the policy's.",
        _share,
        JOB_SHARE_SHAPE,
        default=None,
    )
    threads: bool = _option("Use the native locks and queues.", _switch, default=True)
    stalls: int = _option(
        "Log lines that block others for MS milliseconds: GIL, lock, event loop; 0: never.",
        _count,
        "MS",
        default=100,
    )
    warm_up: tuple[str | Callable[[], object], ...] = _option(
        "Before the fork, request the path /..., import package.module, or call"
        " package.module:callable.",
        _warm_ups,
        "PATH_OR_NAME",
        default=(),
    )
    warm_up_requests: str | None = _option(
        "Before the fork, send the application the requests that FILE lists (JSON or HAR).",
        _file,
        "FILE",
        default=None,
    )
    warm_up_repeats: int = _option(
        "Send each request of the warm-up N times; 0: up to 8 times within a second, and once where"
        " its method may change something.",
        _count,
        "N",
        default=0,
    )
    warm_up_timeout: float = _option(
        "A request of the warm-up that takes longer than SECONDS has failed; 0: no limit.",
        _seconds,
        "SECONDS",
        default=0.0,
    )
    warm_up_lifespan: bool = _option(
        "Start and shut down an ASGI application (lifespan) around the requests of the warm-up.",
        _switch,
        default=True,
    )
    warm_up_failure: str | None = _option(
        "What follows when a warm-up fails: stop ends the start, continue logs it and goes on.",
        _failure,
        "ACTION",
        default=None,
    )
    max_private_memory: int = _option(
        "Recycle workers whose private memory exceeds SIZE (bytes, 300M, 1G), one at a time;"
        " 0: never.",
        _size,
        "SIZE",
        default=0,
    )
    hard_private_memory: int = _option(
        "End a worker at once, in the middle of a request, when its private memory exceeds SIZE;"
        " 0: never.",
        _size,
        "SIZE",
        default=0,
    )
    max_worker_lifetime: float = _option(
        "Recycle workers that are older than SECONDS, one at a time; 0: never.",
        _seconds,
        "SECONDS",
        default=0.0,
    )
    max_worker_lifetime_jitter: float = _option(
        "Let each worker live for up to SECONDS longer, at random.",
        _seconds,
        "SECONDS",
        default=0.0,
    )
    request_timeout: float = _option(
        "End a worker at once when a request takes longer than SECONDS, and log where it is;"
        " 0: no limit.",
        _seconds,
        "SECONDS",
        default=0.0,
    )
    metrics: str | None = _option(
        "Prometheus metrics: at a path (/metrics) of the service, or on a port ([HOST:]PORT);"
        " opentelemetry: as its instruments.",
        _place,
        "PATH_OR_ADDRESS",
        default=None,
    )
    refork: bool = _option(
        "Have a worker that has served requests fork the next ones, which share its memory.",
        _switch,
        default=False,
    )
    refork_after: int = _option(
        "Refork when a worker has served COUNT requests, then at twice, four times ... as many.",
        _positive,
        "COUNT",
        default=500,
    )
    prepare_again: int = _option(
        "Make up to SIZE more immortal if the parent has grown since the first fork; 0: prepare"
        " once.",
        _size,
        "SIZE",
        default=0,
    )
    immortal: bool = _option(
        "Make objects that exist before the fork immortal.", _switch, default=True
    )
    fill_pools: bool = _option(
        "Fill half-used memory pools before the fork.", _switch, default=True
    )
    keep_mortal: str | Callable[[type], bool] | None = _option(  # noqa: RUF009  # it makes a field
        "Keep instances of a class mortal if package.module:callable returns true for it.",
        _filter,
        "NAME",
        default=None,
    )
    fast_exit: bool = _option("Skip freeing memory when workers end.", _switch, default=True)

    def __post_init__(self) -> None:
        for option in OPTIONS:
            try:
                value = option.read(getattr(self, option.name))
            except ValueError as error:
                raise ValueError(f"{option.name}: {error}") from None
            object.__setattr__(self, option.name, value)


OPTIONS = tuple(
    Option(name=each.name, default=each.default, **each.metadata)
    for each in dataclasses.fields(Options)
)


# ---- options that a server cannot have, and why; options not listed are there for all ------

PATH = " at a path"
"""A suffix to an option's name: only a value that is a path of a web application."""

_ENDS_LIGHTLY = "its children end by os._exit in any case"
_ONLY_GUNICORN = "only the workers of `cpythonplus serve`, gunicorn's, can be reforked"
_NO_WEB = "there is no web application to ask"
_GOES_ON = "a warm-up that fails is logged, and the start goes on"
_NO_REQUESTS = {
    "warm_up" + PATH: _NO_WEB,
    "warm_up_requests": _NO_WEB,
    "warm_up_repeats": _NO_WEB,
    "warm_up_timeout": _NO_WEB,
    "warm_up_lifespan": _NO_WEB,
    "warm_up_failure": _GOES_ON,
}
_ONLY_SERVE = "only the workers of `cpythonplus serve`, gunicorn's, have it"
_TELLS_NO_STALLS = "only `cpythonplus serve` has a log for it; `cpythonplus run` has --stalls"
_ONE_JOB = "a work horse lives for one job"
_NO_LIMITS = {
    "hard_private_memory": _ONLY_SERVE,
    "max_worker_lifetime": _ONLY_SERVE,
    "max_worker_lifetime_jitter": _ONLY_SERVE,
    "request_timeout": "there are no requests",
}

SERVERS: Mapping[str, Mapping[str, str]] = {
    "gunicorn": {},
    "uWSGI": {
        "refork": _ONLY_GUNICORN,
        "refork_after": _ONLY_GUNICORN,
        "stalls": _TELLS_NO_STALLS,
        "warm_up_failure": _GOES_ON,
        "hard_private_memory": "uWSGI has evil-reload-on-rss, which counts shared memory too",
        "max_worker_lifetime": "uWSGI has its own: max-worker-lifetime",
        "max_worker_lifetime_jitter": "uWSGI has its own: max-worker-lifetime-delta",
        "request_timeout": "uWSGI has its own: harakiri",
        "prepare_again": "uWSGI forks in C without calling Python first: the"
        " master is prepared once",
        "metrics" + PATH: "uWSGI reads the application from its module itself: give a port",
    },
    "celery": {
        "refork": _ONLY_GUNICORN,
        "refork_after": _ONLY_GUNICORN,
        "stalls": _TELLS_NO_STALLS,
        **_NO_REQUESTS,
        **_NO_LIMITS,
        "request_timeout": "celery has its own: task_time_limit",
        "metrics" + PATH: _NO_WEB,
        "fast_exit": _ENDS_LIGHTLY,
    },
    "RQ": {
        "refork": _ONLY_GUNICORN,
        "refork_after": _ONLY_GUNICORN,
        "stalls": _TELLS_NO_STALLS,
        **_NO_REQUESTS,
        **_NO_LIMITS,
        "hard_private_memory": _ONE_JOB,
        "max_worker_lifetime": _ONE_JOB,
        "max_worker_lifetime_jitter": _ONE_JOB,
        "request_timeout": "RQ has its own: the timeout of a job",
        "metrics": "a work horse lives for one job, and between two jobs nothing could answer",
        "max_private_memory": _ONE_JOB,
        "fast_exit": _ENDS_LIGHTLY,
    },
    "multiprocessing": {
        "refork": _ONLY_GUNICORN,
        "refork_after": _ONLY_GUNICORN,
        "stalls": _TELLS_NO_STALLS,
        **_NO_REQUESTS,
        **_NO_LIMITS,
        "metrics" + PATH: _NO_WEB,
        "max_private_memory": "a pool calls nothing between two tasks; use maxtasksperchild",
        "fast_exit": _ENDS_LIGHTLY,
    },
    "os.fork": {
        "refork": _ONLY_GUNICORN,
        "refork_after": _ONLY_GUNICORN,
        "stalls": _TELLS_NO_STALLS,
        **_NO_REQUESTS,
        **_NO_LIMITS,
        "metrics" + PATH: _NO_WEB,
        "max_private_memory": "only the program knows when a child of its own may end",
    },
}

OFF = {"multiprocessing": ("gil", "threads"), "os.fork": ("gil", "threads")}
"""Options that are off unless asked for: processes that compute have no use for them."""


def refuse(options: Options, server: str) -> Options:
    """Return `options`; ValueError, in one line, if `server` cannot have one of them."""
    for name, why in SERVERS[server].items():
        plain = name.removesuffix(PATH)
        value = getattr(options, plain)
        if plain == name:
            asked = value != getattr(Options(), plain)
        else:
            asked = any(map(is_path, value if isinstance(value, tuple) else [value]))
        if asked:
            raise ValueError(f"{name} is not available with {server}: {why}")
    return options


def read(server: str, given: Mapping[str, object] | None = None) -> Options:
    """Return the options that are set: in `given` by their names, else in the environment.

    A value that is wrong, or that `server` cannot have, is logged in one line, and the default
    holds: a service that works must not go down over it.
    """
    values: dict[str, Any] = dict.fromkeys(OFF.get(server, ()), False)
    for option in OPTIONS:
        value: Any = (given or {}).get(option.name, os.environ.get(option.variable))
        if value is None:
            continue
        try:
            refuse(replace(Options(), **{option.name: value}), server)
        except ValueError as error:
            log.warning("an option is ignored: %s", error)
        else:
            values[option.name] = value
    return Options(**values)
