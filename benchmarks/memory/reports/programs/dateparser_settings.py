"""Caches have an entry for each object of settings, and there is one for each moment."""

from datetime import UTC, datetime

import dateparser


def tick(number):
    dateparser.parse("12.01.2021", settings={"RELATIVE_BASE": datetime.now(UTC)})


PER_SECOND = 30
