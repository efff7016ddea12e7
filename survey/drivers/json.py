"""The standard library's json."""

import io
import json

from survey.drivers.support import fails

_DATA = {"a": [1, 2.5, None, True], "b": {"c": "text"}}


class _Odd:
    pass


def _refuse(_: object) -> object:
    raise ValueError("refused")


def loads() -> None:
    json.loads('{"a": [1, 2.5, null, true], "b": {"c": "text"}}')


def loads_with_hooks() -> None:
    json.loads('{"a": [1, 2.5]}', object_pairs_hook=list, parse_float=str)


def dumps() -> None:
    json.dumps(_DATA)


def dumps_with_indent() -> None:
    json.dumps(_DATA, indent=2)


def dump_to_file() -> None:
    json.dump(_DATA, io.StringIO())


def dumps_broken_off() -> None:
    next(iter(json.JSONEncoder(indent=1).iterencode(_DATA)))


def loads_what_is_no_json() -> None:
    fails(json.JSONDecodeError, lambda: json.loads('{"a": ]'))


def loads_with_a_failing_hook() -> None:
    fails(ValueError, lambda: json.loads('{"a": {"b": 1}}', object_hook=_refuse))


def dumps_what_has_no_json() -> None:
    fails(TypeError, lambda: json.dumps([{"a": _Odd()}]))


def dumps_what_has_no_json_with_indent() -> None:
    fails(TypeError, lambda: json.dumps([{"a": _Odd()}], indent=1))


def dump_what_has_no_json() -> None:
    fails(TypeError, lambda: json.dump([{"a": _Odd()}], io.StringIO()))


def dumps_with_a_failing_default() -> None:
    fails(ValueError, lambda: json.dumps(_Odd(), default=_refuse))


def dumps_a_circle() -> None:
    circle: list[object] = []
    circle.append(circle)
    try:
        fails(ValueError, lambda: json.dumps(circle))
    finally:
        circle.clear()


ORDINARY = [loads, loads_with_hooks, dumps, dumps_with_indent, dump_to_file, dumps_broken_off]
ERRORS = [
    loads_what_is_no_json,
    loads_with_a_failing_hook,
    dumps_what_has_no_json,
    dumps_what_has_no_json_with_indent,
    dump_what_has_no_json,
    dumps_with_a_failing_default,
    dumps_a_circle,
]
