"""Exceptions that are kept, and with them the variables of all functions on their way."""

from examples.leaks.service import serve

failures: list[Exception] = []  # LEAK __main__.failures


def parse(number: int) -> int:
    """Fail, with much at hand."""
    body = f"{number};" * 200
    return int(body)


def tick(number: int) -> None:
    """Try, and note what went wrong."""
    try:
        parse(number)
    except ValueError as error:
        failures.append(error)  # noqa: CYC103


serve(tick)
