"""Counters by label in shared memory: the first labels each by itself, all others together.

So counters never go down, and there are never more of them.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from cpythonplus.prefork._board.records import WORD_MAX, Record, WordsT

MOST_LABELS = 40
OTHER = "other"
TASK = "task"
"""The kind of a name that is a task's, in place of the method of a route."""
_LABEL_BYTES = 192


class Counted(NamedTuple):
    """The counters of one label; kind: its first word, what: the rest."""

    kind: str
    what: str
    numbers: list[int]


class Counts:
    """`numbers` counters for each label, at word `start` of `words`.

    The caller ensures one writer at a time; there may be any number of readers, in any process.
    """

    def __init__(self, words: WordsT, start: int, numbers: int) -> None:
        self._numbers = numbers
        size = numbers + _LABEL_BYTES // 8
        starts = range(start, start + self.span(numbers), Record.span(size))
        self._records = [Record(words, each, size) for each in starts]

    @staticmethod
    def span(numbers: int) -> int:
        """Return the number of words of memory that they take."""
        return (MOST_LABELS + 1) * Record.span(numbers + _LABEL_BYTES // 8)

    def add(self, kind: str, what: str, numbers: Sequence[int]) -> None:
        """Add to the counters of a label; the beginning of a long `what` is left out."""
        label = _words_of(kind, what)
        for record in self._records[:-1]:
            known = record.read()
            if known[self._numbers :] == label or not any(known):
                break
        else:
            record, label = self._records[-1], _words_of(OTHER, OTHER)
            known = record.read()
        sums = [min(a + b, WORD_MAX) for a, b in zip(known, numbers, strict=False)]
        record.write(sums + label)

    def rows(self) -> list[Counted]:
        """Return the counters of each label.  Takes no lock."""
        rows: list[Counted] = []
        for record in self._records:
            words = record.read()
            if any(words):
                label = array("Q", words[self._numbers :]).tobytes()
                kind, _, what = label.rstrip(b"\0").decode(errors="replace").partition(" ")
                rows.append(Counted(kind, what, words[: self._numbers]))
        return rows


def _words_of(kind: str, what: str) -> list[int]:
    room = _LABEL_BYTES - len(kind) - 1
    text = kind.encode() + b" " + what.encode(errors="backslashreplace")[-room:]
    return array("Q", text.ljust(_LABEL_BYTES, b"\0")).tolist()
