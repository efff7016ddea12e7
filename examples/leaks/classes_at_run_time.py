"""A class that is made for each request."""

from examples.leaks.service import serve

forms: list[type] = []  # LEAK __main__.forms


def tick(number: int) -> None:
    """Make a form for one request."""
    forms.append(type("Form", (), {"number": number, "fields": ["a", "b"]}))


serve(tick)
