"""Records in shared memory that stay whole if a writer is killed.

A record is kept twice.  The writer fills the copy that is not in use, then stores the sequence
number, whose lowest bit names the copy in use:

    | sequence | copy 0: words, check | copy 1: words, check |

So a writer that is killed at any instruction leaves the old record or the new one.  A reader takes
no lock: it copies, and believes the copy if the check, a hash over the sequence number and the
words, fits.  It does not fit while a writer laps the reader, nor if a processor shows the sequence
number before the words (ARM): then the reader reads again.

Single words are loaded and stored by `memoryview` of format Q, as one instruction on 64-bit
machines.  Rejected: `struct.pack_into`, which clears its target first, so that readers see zeros;
one copy with an odd sequence number meanwhile (a seqlock), which a killed writer leaves odd.
"""

import os
from array import array
from collections.abc import Sequence

WordsT = memoryview
WORD_MAX = 2**64 - 1
_TRIES = 10_000


class Record:
    """`size` words of 64 bits at word `start` of `words`, where the record takes `span` words.

    The caller ensures one writer at a time; there may be any number of readers, in any process.
    """

    __slots__ = ("_copy_span", "_size", "_start", "_words")

    def __init__(self, words: "WordsT", start: int, size: int) -> None:
        self._words = words
        self._start = start
        self._size = size
        self._copy_span = size + 1

    @staticmethod
    def span(size: int) -> int:
        """Return the number of words of memory that a record of `size` words takes."""
        return 1 + 2 * (size + 1)

    def sequence(self) -> int:
        """Return the number of writes so far: it differs when the record may have changed."""
        return int(self._words[self._start])

    def read(self) -> list[int]:
        """Return the words as one write left them; zeros when there was none.

        Raises RuntimeError when writers never leave it alone (two at a time, against the rules).
        """
        for _ in range(_TRIES):
            sequence = self.sequence()
            if sequence == 0:
                return [0] * self._size
            *words, check = self._copy(sequence).tolist()
            if check == _check(sequence, words):
                return words
            os.sched_yield()
        raise RuntimeError("a record in shared memory is being written all the time")

    def write(self, words: Sequence[int]) -> None:
        """Replace the words, all at once; each is from 0 to WORD_MAX."""
        sequence = self.sequence() + 1
        copy = self._copy(sequence)
        copy[:] = memoryview(array("Q", [*words, _check(sequence, words)]))
        self._words[self._start] = sequence

    def _copy(self, sequence: int) -> "WordsT":
        first = self._start + 1 + (sequence & 1) * self._copy_span
        return self._words[first : first + self._copy_span]


def _check(sequence: int, words: Sequence[int]) -> int:
    # The hash of a tuple of integers is the same in every process of one interpreter.
    return hash((sequence, *words)) & WORD_MAX
