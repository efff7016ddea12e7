"""Amounts of memory and times as people write them: '300M', '1.5 GiB', 262144; '4.2 ms'."""

import re

_UNITS = ("", "K", "M", "G", "T")
_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE | re.ASCII)
_LARGEST = 2**63 - 1


def parse_size(text: str) -> int:
    """Return the number of bytes in a text.

    A number, then optionally K, M, G or T, then optionally B or iB; a space may be between them.
    Case does not matter, and every unit is a power of 1024: '300M', '300MB' and '300 MiB' are the
    same.  Without a unit it is bytes.  A fraction of a byte is cut off.

    Raises ValueError, naming the text, for anything else.
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a size in bytes, or one such as 300M or 1.5G, got {text!r}")
    number, unit = match.groups()
    scale = 1024 ** _UNITS.index(unit.upper())
    # Whole numbers exactly: a float has 53 bits.
    size = int(float(number) * scale) if "." in number else int(number) * scale
    if size > _LARGEST:
        raise ValueError(f"{text!r} is more memory than can be addressed")
    return size


def format_size(size_bytes: int) -> str:
    """Return `size_bytes` for people, three digits or so: '512 B', '9.6 MiB', '313 MiB'.

    `parse_size` reads the result back, as precisely as it is written.
    """
    sign, rest = ("-" if size_bytes < 0 else ""), float(abs(size_bytes))
    if rest < 1024:  # noqa: PLR2004  # one KiB
        return f"{size_bytes} B"
    for unit in _UNITS[1:]:
        rest /= 1024
        if rest < 1023.5 or unit == _UNITS[-1]:  # noqa: PLR2004  # rounds to less than the next unit
            break
    shown = f"{rest:.0f}" if rest >= 99.95 else f"{rest:.1f}".removesuffix(".0")  # noqa: PLR2004
    return f"{sign}{shown} {unit}iB"


def duration(nanoseconds: float) -> str:
    """Return a time for people, three figures of it at most: '12.5 ms', '4.2 ms'."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(nanoseconds) >= scale:
            value = nanoseconds / scale
            return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004
    return f"{nanoseconds:.0f} ns"
