"""Decodes an answer of another process, which may be broken or malicious.

The result is an object of plain JSON in which every number can be used in arithmetic and written.
The values of its keys are not checked: the code that shows them takes anything (_base/reading.py).
"""

import json
import math
from typing import NoReturn

_DEEPEST = 32
"""Tables inside of tables; ours have five."""
_LONGEST_NUMBER = 20
"""Digits of a number of 64 bits; a number with more is refused."""
_LONGEST_REASON = 500


class NoAnswerError(ValueError):
    """The bytes are no answer; the text gives the reason, in a few words."""


def decoded(data: bytes) -> dict[str, object]:
    """Return the object in the bytes; raises NoAnswerError."""
    try:
        # json alone would also take UTF-16, and lone surrogates.
        answer = json.loads(
            data.decode("utf-8"), parse_int=_whole, parse_float=_float, parse_constant=_constant
        )
    except UnicodeDecodeError:
        raise NoAnswerError("not UTF-8") from None
    except NoAnswerError:
        raise
    except ValueError:
        raise NoAnswerError("not JSON") from None
    except (RecursionError, MemoryError):
        raise NoAnswerError("JSON that is too large or too deep") from None
    if not isinstance(answer, dict):
        raise NoAnswerError("not an object")
    _check_depth(answer)
    return answer


def reason(answer: dict[str, object]) -> str:
    """Return the reason that the process gave instead of an answer."""
    text = answer.get("error")
    if not isinstance(text, str) or not text.strip():
        return "no reason was given"
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > _LONGEST_NUMBER:
        raise NoAnswerError("a number with too many digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _constant(text)


def _constant(text: str) -> NoReturn:
    raise NoAnswerError(f"{text[:_LONGEST_NUMBER]} for a number")


def _check_depth(answer: dict[str, object]) -> None:
    """Limit the depth: writing indented JSON calls a Python function for each level."""
    level: list[object] = [answer]
    for _ in range(_DEEPEST):
        level = [
            each
            for outer in level
            for each in (outer.values() if isinstance(outer, dict) else outer)  # type: ignore[attr-defined]
            if isinstance(each, dict | list)
        ]
        if not level:
            return
    raise NoAnswerError("tables nested too deeply")
