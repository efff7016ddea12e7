"""Files that are opened and kept."""

from examples.leaks.service import serve

opened: list[object] = []  # LEAK __main__.opened


def tick(_number: int) -> None:
    """Open one more."""
    opened.append(open("/dev/null", "rb"))  # noqa: SIM115, PTH123


serve(tick, per_second=40)
