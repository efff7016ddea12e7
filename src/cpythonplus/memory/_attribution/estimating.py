"""Estimates from measurements: the growth by a call of each name, with errors.

Plain numbers, no process. A name's calls that were alone have a mean and an error of their own. For
calls that overlap, only sums are known: the growth while so many of each ended. Their shares are
found by least squares, together with the estimates of calls that were alone. If two names always
run in the same proportion, no equation tells them apart: their errors become large, and each has
the other as its partner.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Final, NamedTuple

_PASSES: Final = 8
_USUAL: Final = 1.4826
"""The ratio of a normal distribution's standard deviation to its median absolute deviation."""
_FAR: Final = 4.0
_CLOSE: Final = 256.0
"""Bytes: a row with a smaller deviation fits."""
_SPARE: Final = 4
"""The least number of equations beyond the unknowns."""
_TRIMMED_SHARE: Final = 0.05
_LEAST_TRIMMED: Final = 16
_PARTNER: Final = 0.5
_ROUNDING: Final = 1e-11
"""The least prior weight, as a share of the equations' weight: a smaller one would be lost."""
_OPEN_SHARE: Final = 1e-3
"""If prior knowledge is a larger share of a solution, no equation separates the names."""


class Estimate(NamedTuple):
    """The growth by one call, its standard error, and the name it is confused with, or -1."""

    value: float
    error: float
    partner: int = -1


Weighed = Sequence[tuple[int, float]]
"""Numbers of calls, and the growth by all of them."""


def mean(entries: Weighed) -> Estimate:
    """Return the mean growth by one call; entries: at least two."""
    calls = sum(count for count, _ in entries)
    value = sum(grown for _, grown in entries) / calls
    spread = sum((grown - count * value) ** 2 / count for count, grown in entries)
    return Estimate(value, sqrt(spread / (len(entries) - 1) / calls))


def trimmed(entries: Weighed) -> Estimate | None:
    """Return `mean` without the largest and the smallest twentieth; None if there are too few.

    A call in which a dict doubles its table grows a thousand times as much as all others.
    """
    if len(entries) < _LEAST_TRIMMED:
        return None
    cut = max(1, int(len(entries) * _TRIMMED_SHARE))
    ordered = sorted(entries, key=lambda entry: entry[1] / entry[0])
    return mean(ordered[cut:-cut])


def by_rows(
    rows: Sequence[tuple[Sequence[int], float]], known: Mapping[int, Estimate]
) -> dict[int, Estimate]:
    """Return the growth by one call of each column, by least squares.

    rows: the number of calls of each column, and the growth meanwhile. known: columns that were
    measured alone; they are not returned. Empty if there are too few rows.
    """
    columns = sorted({n for counts, _ in rows for n, count in enumerate(counts) if count})
    unknown = [n for n in columns if n not in known]
    if not unknown or len(rows) < len(unknown) + _SPARE:
        return {}
    largest = max(abs(grown) for _, grown in rows) or 1.0
    sums = [([float(counts[n]) for n in columns], grown) for counts, grown in rows]
    weights = [1 / largest**2] * len(rows)
    alone = [known.get(n) for n in columns]
    solved: list[float] = []
    inverse: list[list[float]] = []
    wider: list[tuple[float, float]] = []
    for _ in range(_PASSES):
        matrix, right, wider = _equations(sums, weights, alone, largest)
        inverse = _inverted(matrix)
        solved = [_dot(row, right) for row in inverse]
        weights = _weights([grown - _dot(row, solved) for row, grown in sums], len(unknown))
    return {
        n: Estimate(solved[i], _error(inverse[i][i], *wider[i]), _partner(inverse, columns, i))
        for i, n in enumerate(columns)
        if n not in known
    }


def _weights(rests: Sequence[float], unknown: int) -> list[float]:
    """Return the weight of each equation: little if it fits far worse than most.

    The collector or a doubled table affects a single row, and belongs to no name.
    """
    usual = _USUAL * sorted(map(abs, rests))[len(rests) // 2]
    limit = max(_FAR * usual, _CLOSE)
    shares = [1.0 if abs(rest) <= limit else (limit / rest) ** 2 for rest in rests]
    squares = sum(share * rest**2 for share, rest in zip(shares, rests, strict=True))
    variance = max(squares / max(sum(shares) - unknown, 1.0), 1.0)
    return [share / variance for share in shares]


def _error(variance: float, weight: float, used: float) -> float:
    """Return the error for a weight; used: the larger weight in the equations."""
    is_open = variance * used > _OPEN_SHARE
    return sqrt(max(variance * (used / weight if is_open else 1.0), 0.0))


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _equations(
    rows: Sequence[tuple[list[float], float]],
    weights: Sequence[float],
    known: Sequence[Estimate | None],
    largest: float,
) -> tuple[list[list[float]], list[float], list[tuple[float, float]]]:
    """Return the normal equations, with a prior: no call grows more than ten times the largest.

    Also, for each name, the weight of the prior knowledge, and the weight that was used.
    """
    size = len(known)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for (counts, grown), sure in zip(rows, weights, strict=True):
        for i, count in enumerate(counts):
            if count:
                weight, row = count * sure, matrix[i]
                right[i] += weight * grown
                for j, other in enumerate(counts):
                    row[j] += weight * other
    wider = []
    for i, alone in enumerate(known):
        weight = 1 / (10 * largest) ** 2 if alone is None else 1 / max(alone.error, 1.0) ** 2
        used = max(weight, _ROUNDING * matrix[i][i])
        matrix[i][i] += used
        right[i] += 0.0 if alone is None else used * alone.value
        wider.append((weight, used))
    return matrix, right, wider


def _inverted(matrix: list[list[float]]) -> list[list[float]]:
    """Return the inverse, by Gauss and Jordan; it is symmetric and positive."""
    size = len(matrix)
    work = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        best = max(range(i, size), key=lambda k: abs(work[k][i]))
        work[i], work[best] = work[best], work[i]
        pivot = work[i][i]
        row = work[i] = [value / pivot for value in work[i]]
        for k in range(size):
            factor = work[k][i]
            if k != i and factor:
                work[k] = [a - factor * b for a, b in zip(work[k], row, strict=True)]
    return [row[size:] for row in work]


def _partner(inverse: list[list[float]], columns: Sequence[int], i: int) -> int:
    """Return the column that column `i` is confused with: if one shrinks, it grows. -1: none."""
    found, strongest = -1, -_PARTNER
    for j, name in enumerate(columns):
        scale = sqrt(max(inverse[i][i] * inverse[j][j], 0.0))
        if j != i and scale and inverse[i][j] / scale < strongest:
            found, strongest = name, inverse[i][j] / scale
    return found
