"""Few small survivors of many small objects: most of the memory is free, and stays."""

from examples.leaks.service import serve

kept: list[list[int]] = []  # LEAK __main__.kept


def tick(number: int) -> None:
    """Make very many, keep few."""
    many = [[number, i] for i in range(60_000)]
    kept.extend(many[::600])


serve(tick, per_second=4)
