"""What the service of the pictures works with."""

import functools
from dataclasses import dataclass, field

SESSIONS: dict[str, "Session"] = {}
REJECTED: list[bytes] = []


@dataclass
class Item:
    """What somebody wants to buy."""

    name: str
    cents: int


@dataclass
class Session:
    """What is known of a visitor."""

    user: str
    basket: list[Item] = field(default_factory=list)


@functools.cache
def price(number: int) -> str:
    """Return a price as it is shown."""
    return f"{number / 100:.2f} EUR"


def visit(number: int) -> None:
    """Answer a request; the session is never removed."""
    session = SESSIONS[f"session-{number}"] = Session(f"user-{number}")
    session.basket += [Item(f"item-{number}-{n}", number * n) for n in range(4)]
    price(number)


def import_rows(count: int) -> None:
    """Work with many rows at once, and keep one in a thousand."""
    rows = [f"row {number}: what a service reads from a file".encode() for number in range(count)]
    REJECTED.extend(rows[::1000])
