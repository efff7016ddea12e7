"""A cache without a limit, of a function that gets ever new arguments."""

from functools import cache

from examples.leaks.service import serve


@cache
def render(number: int) -> str:  # LEAK __main__.render
    """Make a page."""
    return f"<p>{number}</p>" * 40


serve(render)
