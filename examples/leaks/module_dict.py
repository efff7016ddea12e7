"""A dict at module level that is never emptied."""

from examples.leaks.service import serve

sessions: dict[str, dict[str, object]] = {}  # LEAK __main__.sessions


def tick(number: int) -> None:
    """Serve one visitor."""
    sessions[f"session-{number}"] = {"user": number, "basket": ["apple"] * 20}


serve(tick)
