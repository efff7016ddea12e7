"""Amounts of memory, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus._base.text.sizes import duration, format_size, parse_size

pytestmark = pytest.mark.any_version

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("262144", 262144),
        ("1023B", 1023),
        ("2K", 2048),
        ("2k", 2048),
        ("300M", 300 * MIB),
        ("300m", 300 * MIB),
        ("300MB", 300 * MIB),
        ("300MiB", 300 * MIB),
        ("300 MiB", 300 * MIB),
        (" 300M\n", 300 * MIB),
        ("1.5G", 3 << 29),
        ("0.5", 0),
        ("1T", 1 << 40),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "M", "-1", "+1", "1e6", "1_000", "nan", "inf", "0x10", "٣M"),
        *("300X", "300MM", "3 0M", "1.G", ".5G", "1,5G", "300M extra", "300iB5", "300%"),
    ],
)
def test_wrong_texts_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size") as raised:
        parse_size(text)
    assert repr(text) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["9" * 30, "8388608T", "1e9999".replace("e", "") * 9])
def test_more_than_there_can_be(text: str) -> None:
    with pytest.raises(ValueError, match="more memory than can be addressed"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (10066329, "9.6 MiB"),
        (300 * MIB, "300 MiB"),
        (MIB - 1, "1 MiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 50, "1024 TiB"),
        (-2048, "-2 KiB"),
    ],
)
def test_written(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


@given(st.integers(min_value=0, max_value=1 << 55))
def test_what_is_written_can_be_read(size_bytes: int) -> None:
    """As nearly as it was written: one digit behind the point, or three in front of it."""
    again = parse_size(format_size(size_bytes))
    assert abs(again - size_bytes) <= max(size_bytes * 0.05, 0)


@given(st.text())
def test_nothing_but_a_value_error(text: str) -> None:
    try:
        size_bytes = parse_size(text)
    except ValueError:
        return
    assert size_bytes >= 0


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1 us"),
        (12_345, "12.3 us"),
        (123_456, "123 us"),
        (7_654_321, "7.65 ms"),
        (4_200_000, "4.2 ms"),
        (1_000_000_000, "1 s"),
        (3_600_000_000_000, "3,600 s"),
    ],
)
def test_duration(nanoseconds: int, text: str) -> None:
    assert duration(nanoseconds) == text
