"""Each expression that was ever asked for stays in a dict of the module."""

from datetime import UTC, datetime

from croniter import croniter

START = datetime(2026, 1, 1, tzinfo=UTC)


def tick(number):
    hour, day, month = number // 60 % 24, number // 1440 % 28 + 1, number // 40320 % 12 + 1
    croniter(f"{number % 60} {hour} {day} {month} *", START).get_next(datetime)


PER_SECOND = 400
