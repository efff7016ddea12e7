"""An answer of another process, decoded: it may be a broken one, or mean no good.

What comes out is an object of plain JSON in which every number can be counted with and written
down. What its keys hold is not judged: whoever shows it takes anything (_base/reading.py).
"""

import json
import math
from typing import NoReturn

__all__ = ["NoAnswerError", "decoded", "reason"]

_DEEPEST = 32
"""Tables inside of tables; ours have five."""
_LONGEST_NUMBER = 20
"""Digits of 64 bits. Python writes numbers of more than 4,300 only if it is told to."""
_LONGEST_REASON = 500


class NoAnswerError(ValueError):
    """This is no answer; the text says what is wrong, in a few words."""


def decoded(data: bytes) -> dict[str, object]:
    """Return the object that the bytes mean; raises NoAnswerError."""
    try:
        # By itself json takes UTF-16, too, and lone surrogates.
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
    """Return why a process has no answer, by what it says instead of one."""
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
    """Writing it as JSON again, with an indent, takes a Python function for each level."""
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
