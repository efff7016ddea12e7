"""A large leak and a small one."""

from examples.leaks.service import serve

journal: list[tuple[int, str]] = []  # LEAK __main__.journal
subscribers: dict[int, bytearray] = {}  # LEAK __main__.subscribers


def tick(number: int) -> None:
    """Do both."""
    journal.append((number, f"entry {number}"))
    subscribers[number] = bytearray(4000)


serve(tick)
